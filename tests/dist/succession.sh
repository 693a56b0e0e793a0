#!/usr/bin/env bash
# Host 0, which coordinates, is lost with its agent and its worker, in each phase of a training on test
# hosts: the others agree on a successor and go on, with the undisturbed losses. A minority saves and stops.
source "$(dirname "$0")/../support/dist.bash"
needs_root

cases() { # HOSTS CASE…
    local hosts=$1
    mkdir "$hosts" && cd "$hosts" || exit 1
    CLUSTER=heirs$$ timeout 400 "$root/tools/cluster" run "$hosts" -- \
        "$root/tests/support/succession.py" "$paceline" "$@" || fail "$hosts hosts: see above"
    cd ..
}

cases 2 forward
cases 3 start forward combine validation checkpoint cut-last sleeps dozes stop
cases 4 forward another cut-first join
