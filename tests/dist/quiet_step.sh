#!/usr/bin/env bash
# A training step makes no system call beyond waking and waiting for threads: runs of 20 and of 60
# steps differ by nothing else, in the bare step and in the main thread of a training.
source "$(dirname "$0")/../support/dist.bash"

# calls STEPS COMMAND…: the main thread's system calls without those of waiting, counted by name.
# STEPS in the command becomes the number.
calls() {
    local steps=$1
    shift
    rm -f trace.*
    strace -ff -o trace "$paceline" "${@//STEPS/$steps}" --steps "$steps" >out 2>err || fail "$* failed: $(cat err)"
    # The main thread has the lowest id: its trace is the first file.
    grep -ohE '^[a-z0-9_]+\(' "$(ls trace.* | sort -t. -k2n | head -n 1)" |
        grep -vE '^(futex|sched_yield|restart_syscall)\(' | sort | uniq -c
}

# compare WHAT COMMAND…: 40 more steps make fewer than 20 more calls of any kind. Not none: how often
# the heap grows at the start and at the end (brk) depends on where the kernel has put it.
compare() {
    local what=$1 more
    shift
    calls 20 "$@" >few.txt
    calls 60 "$@" >many.txt
    [ -s few.txt ] || fail "strace saw nothing"
    more=$(awk 'NR == FNR { few[$2] = $1; next } $1 - few[$2] >= 20 { print $2, few[$2] + 0, "and", $1 }' few.txt many.txt)
    [ -z "$more" ] || fail "40 more steps of $what make system calls: $more"
}

mkdir runs # what is made by the first run would be missing in the second
plan="conv1=direct conv2=winograd4"
compare "a bare step" bench step mnist-cnn --batch 8 --threads 2 --kernels "$plan"
compare "a training" train --model mnist-cnn --data synthetic:train=2000,test=100 --batch 8 \
    --threads 2 --kernels "$plan" --log-every 0 --no-test --no-checkpoint --run runSTEPS
