#!/usr/bin/env bash
# A worker that the kernel kills for memory. The kernel is played: in a mount namespace the cgroup's
# counter is a file of this test, which counts one up before a worker is killed.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"
needs_root
if [ -z "${MEMORY_TEST-}" ]; then
    MEMORY_TEST=inside unshare --mount bash "$root/tests/dist/memory.sh" "$paceline"
    exit
fi
mount -t tmpfs none /sys/fs/cgroup || { echo "skipped: no tmpfs" && exit 77; }
events=/sys/fs/cgroup/memory.events
echo 'oom_kill 4' >$events

killed() { # KILLS: the counter says so when worker 2 dies
    job a --workers 2 --min-workers 2
    eventually in_view a 1
    eventually grep -q 'worker 1: view 1: rank 0 of 2' a.err
    echo "oom_kill $1" >$events
    kill -KILL "$(worker_pid a 2)"
    ends a 1
    says 'worker 2 on host .* \(signal 9, SIGKILL\)'
}
killed 5
says 'out of memory: the kernel killed worker 2, which had taken [1-9][0-9]* MB'
killed 5 # by another hand: the counter was there before
grep -q 'out of memory' err && fail "a kill is taken for want of memory: $(cat err)"
exit 0
