#!/usr/bin/env bash
# N workers are one: `mnist-cnn` with its dropout and `vgg11` with --sync-bn on 1 to 4 workers under
# every synchronous strategy. Free runs of ten steps have the losses of one worker; a step restarted
# from the single run's weights has its gradient; the same run twice has the same bits.
# With FULL=1 (make soak) every step is restarted on every number of workers, else some.
source "$(dirname "$0")/../support/dist.bash"
equal=$root/tests/support/equal.py

full=${FULL:-0}
strategies=(gather-scatter allreduce ddp)
common=(--kernels onednn --threads 1 --quiet)
cnn=(--model mnist-cnn --data synthetic:classes=10,shape=1x28x28,train=120,test=20 --batch 12 --lr 0.02)
# The rate is small because a flip (see equal.py) in one of ten steps moves the losses after it.
vgg=(--model vgg11 --data synthetic:classes=10,shape=3x32x32,train=80,test=10 --batch 8 --lr 0.00003 --sync-bn)

free() { # MODEL STRATEGY WORKERS RUN OPTION…: a run of ten steps is the single one
    local -n job=$1
    expect 0 "$paceline" train "${job[@]}" "${common[@]}" --steps 10 --strategy "$2" --workers "$3" --run "$4" "${@:5}"
    "$equal" losses "$1" "$4" || fail "$4 is not $1"
}

twice() { # MODEL STRATEGY WORKERS
    free "$1" "$2" "$3" once
    free "$1" "$2" "$3" again
    [ "$(fingerprint runs/once)" = "$(fingerprint runs/again)" ] || fail "$1, $2: other bits when run twice"
    rm -r runs/once runs/again
}

for model in cnn vgg; do
    declare -n job=$model
    expect 0 "$paceline" train "${job[@]}" "${common[@]}" --steps 10 --no-checkpoint --run $model
    for strategy in "${strategies[@]}"; do
        for workers in 1 2 3 4; do
            free $model $strategy $workers $model-$strategy-$workers --no-checkpoint
        done
    done
done
for strategy in "${strategies[@]}" ddp:overlap=on,bucket=256K,first=64K; do
    twice cnn $strategy 4
done
twice vgg ddp 3

# restart MODEL STEP STRATEGY WORKERS: one step from the single run's weights before it
restart() {
    local from=runs/$1-steps options=(--steps "$2" --strategy "$3" --workers "$4" --threads 1 --quiet --no-test)
    if [ "$2" = 1 ]; then
        local -n job=$1
        expect 0 "$paceline" train "${job[@]}" "${common[@]}" --momentum 0 "${options[@]}" --run restart
    else
        mkdir -p runs/restart/checkpoints
        cp $from/run.json runs/restart
        cp -al $from/checkpoints/step-$(($2 - 1)) runs/restart/checkpoints
        expect 0 "$paceline" train --resume restart "${options[@]}"
    fi
    "$equal" gradients $1-steps restart "$2" >flips || fail "$1, step $2, $3 on $4 workers: another gradient"
    compared=$((compared + 1))
    flips=$((flips + $(wc -l <flips)))
    rm -r runs/restart
}

for model in cnn vgg; do
    declare -n job=$model
    compared=0 flips=0 turn=0 last=$((full ? 10 : 4))
    expect 0 "$paceline" train "${job[@]}" "${common[@]}" --momentum 0 --steps $last --no-test \
        --checkpoint-every 1 --keep 0 --run $model-steps
    for strategy in "${strategies[@]}"; do
        for workers in 2 3 4; do
            for step in $(seq $last); do
                [ $full = 1 ] || [ $((turn++ % 5)) = 0 ] || continue
                restart $model $step $strategy $workers
            done
        done
    done
    rm -r runs/$model-steps
    echo "$model: $compared gradients, $flips of them with a flip"
    [ $model = vgg ] || [ $flips = 0 ] || fail "without batch-norm a sample is computed as if it were alone: no flips"
    [ $((2 * flips)) -lt $compared ] || fail "so many flips are none"
done
