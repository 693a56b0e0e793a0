#!/usr/bin/env bash
# Random faults for about a minute: no worker hangs, no sum is wrong, all know which were lost.
# `make soak` does the full number.
source "$(dirname "$0")/../support/dist.bash"
needs_root

for where in local hosts proxy; do
    "$root/tests/support/faults.py" "$paceline" $where --faults 100000 --seconds 20 --silence 4 ||
        fail "a fault did harm"
done
