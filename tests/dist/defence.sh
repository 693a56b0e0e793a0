#!/usr/bin/env bash
# Rules of --aggregate under ddp and allreduce, without a server: workers that share no memory get the bits of
# those that do; a worker that lies, breaks its promise or accuses others is evicted, and no other one; workers
# that attack with their gradients; momentum, batch-norm, a kill at the phases of a step; what is refused.
source "$(dirname "$0")/../support/dist.bash"

job=(--model mlp:32x1 --data synthetic:classes=10,shape=1x12x12,train=960,test=100 --batch 48 --steps 30 --lr 0.05
    --threads 1 --kernels auto --log-every 0 --no-test)
four=("${job[@]}" --workers 4)

same() { # RUN RUN
    [ "$(fingerprint runs/$1)" = "$(fingerprint runs/$2)" ] || fail "$1 and $2 have other bits"
}

# With memory that workers share and without, under both strategies; the usual rule is the sum.
cat >bn.model <<'M'
conv 8 3x3 pad=1
bn
relu
gavgpool
flatten
dense classes
softmax
M
for rule in mixed:rule=centered-clipping auto; do
    expect 0 "$paceline" train "${four[@]}" --model bn.model --strategy ddp:momentum=0.5 --aggregate $rule --run near
    says 'they are not checked'
    expect 0 "$paceline" train "${four[@]}" --model bn.model --strategy allreduce:momentum=0.5 --aggregate $rule \
        --transport tcp --run far
    same near far
    rm -r runs/near runs/far
done
expect 0 "$paceline" train "${four[@]}" --strategy ddp --aggregate average --run near
expect 0 "$paceline" train "${four[@]}" --strategy ddp --run far
same near far
# One worker has one gradient; shares that are uneven, and batches with less samples than workers.
expect 0 "$paceline" train "${job[@]}" --workers 1 --strategy ddp --aggregate median --run one
expect 0 "$paceline" train "${job[@]}" --strategy single --run alone
same alone one
expect 0 "$paceline" train "${four[@]}" --batch 319 --shares at:1=31/64/95/129 --strategy ddp --aggregate geometric-median \
    --transport tcp --run uneven --json
json "o['steps'] == 30 and sum(r['samples'] for r in o['ranks']) == 7 * 960 + 2 * 319"

# Who lies goes, by the word of all others, and the others go on.
for kind in lie lie=0.2 break-promise accuse; do
    expect 0 "$paceline" train "${four[@]}" --strategy ddp --aggregate median --transport tcp --attack 3:$kind \
        --yes-attack --run liar --json
    json "o['steps'] == 30 and o['workers'] == 3 and o['train']['loss'] < 2.4"
    says 'worker 3 .*say 3 of 4 workers'
    says 'this run is attacked on purpose: worker 3'
    grep -qE 'worker [124] on host' err && fail "an honest worker was lost: $(cat err)"
    rm -r runs/liar
done
# Two honest workers and a liar are a majority, too; one honest worker is none, and the job ends.
expect 0 "$paceline" train "${job[@]}" --workers 3 --strategy allreduce --aggregate median --transport tcp --attack 1:lie \
    --yes-attack --run liar
says 'worker 1 .*say 2 of 3 workers'

# A gradient in the opposite direction: the sum does not stand it.
for rule in average median; do
    expect 0 "$paceline" train "${four[@]}" --strategy ddp --aggregate $rule --attack 2:sign-flip=9,3:slow=0.1 --yes-attack \
        --run flip-$rule
done
/usr/bin/python3 - <<'PY' || fail "a gradient in the opposite direction, with and without a defence"
import json
average, median = (json.load(open(f"runs/flip-{rule}/run.json"))["result"]["train"]["loss"] for rule in ("average", "median"))
assert median < 2.35 and not average < median + 0.3, (average, median)
PY

# A worker is killed at the phases of a step, with a defence; the momentum goes through a checkpoint.
for fault in 2:combine 3:update; do
    PACELINE_FAULT=$fault:7 expect 0 "$paceline" train "${four[@]}" --strategy ddp:momentum=0.9 --aggregate auto \
        --transport tcp --run lost --json
    json "o['steps'] == 30 and o['workers'] == 3"
    says "worker ${fault%%:*} .*signal 9"
    rm -r runs/lost
done
expect 0 "$paceline" train "${four[@]}" --strategy ddp:momentum=0.9 --aggregate median --steps 15 --run twice
expect 0 "$paceline" train --resume twice --steps 30 --workers 4
grep -q strategy.momentum runs/twice/checkpoints/step-30/state.safetensors || fail "no momentum in the checkpoint"

# What does not go together.
refused() { # PATTERN OPTION…
    expect 2 "$paceline" train "${four[@]}" --run bad "${@:2}"
    says "$1"
}
refused 'leave out --sync-bn' --strategy ddp --aggregate median --sync-bn
refused 'wire=bf16 rounds sums' --strategy ddp:wire=bf16 --aggregate median
refused 'overlap=on sends' --strategy ddp:overlap=on --aggregate median
refused 'needs a manager' --strategy ddp --aggregate fltrust
refused 'which is no defence' --strategy allreduce --aggregate weighted
refused 'say --shares even' --strategy ddp --aggregate median --shares speed
refused 'say --on-slow tell' --strategy ddp --aggregate median --on-slow rebalance
refused 'add --aggregate auto' --strategy ddp:momentum=0.9
refused 'measure it under downpour' --strategy ddp --aggregate median --attack 3:alie --yes-attack
refused 'add --aggregate' --strategy ddp --attack 3:lie --yes-attack
refused 'has no updates to choose from' --strategy ddp --aggregate median --model lda
