#!/usr/bin/env bash
# Random faults for about a minute: nobody hangs, no sum is wrong, everybody knows who was lost.
# `make soak` does the full number.
source "$(dirname "$0")/../support/dist.bash"
needs_root

"$root/tests/support/faults.py" "$paceline" --faults 100000 --seconds 25 --only local ||
    fail "on one host, seed 1"
"$root/tests/support/faults.py" "$paceline" --faults 100000 --seconds 35 --only hosts ||
    fail "on three hosts, seed 1"
