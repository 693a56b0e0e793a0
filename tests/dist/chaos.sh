#!/usr/bin/env bash
# Trainings that are killed, stopped, interrupted, joined and left leave nothing that is not true.
# `make soak` ends 500 of them.
source "$(dirname "$0")/../support/dist.bash"

"$root/tests/support/chaos.py" "$paceline" --endings 12 --seed 1 || fail "an ending broke a promise"
