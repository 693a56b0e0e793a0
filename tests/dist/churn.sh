#!/usr/bin/env bash
# A training that loses and gets workers again and again goes on. `make soak` does it 500 times.
source "$(dirname "$0")/../support/dist.bash"

"$root/tests/support/churn.py" "$paceline" --changes 15 --seed 1 || fail "a lost worker did harm"
