#!/usr/bin/env bash
# Zero, stages 2 and 3: gradients and weights are lent group by group. The bits are those of allreduce at the
# same number of workers, on one host and over tcp, and a step sends as many bytes as it should. A worker
# kills itself (-9) at each phase of a step: with two copies of each slice the others go on from the last
# step, or from the one that the lost worker may have completed; with one copy they go back to the newest
# checkpoint, or to the beginning, inside the job, and say so. No loss of any step is another than without
# the kill. Stage 1: zero.sh.
source "$(dirname "$0")/../support/dist.bash"

# bits NAME WORKERS TRIES "OPTIONS…" ARGUMENT…: each of the options gives the bits of allreduce. Where a
# measurement decides the order of sums (tcp, from three workers on) a run and allreduce's may have to try
# again until they had the same order.
bits() {
    local name=$1 workers=$2 tries=$3 options sum
    local common=("${@:5}" --kernels onednn --threads 1 --quiet --workers "$workers")
    local reference=("$paceline" train "${common[@]}" --strategy allreduce --run sum)
    expect 0 "${reference[@]}"
    for options in $4; do
        for ((i = 1; ; i++)); do
            sum=$(fingerprint runs/sum)
            expect 0 "$paceline" train "${common[@]}" --strategy "zero:$options" --run zero
            [ "$(fingerprint runs/zero)" != "$sum" ] || break
            ((i < tries)) || fail "$name: zero:$options on $workers workers has other bits than allreduce"
            rm -r runs
            expect 0 "${reference[@]}"
        done
        rm -r runs/zero
    done
    rm -r runs
}

mlp=(--model mlp:200x6 --data synthetic:train=90,test=41 --batch 24 --steps 6)
cnn=(--model mnist-cnn --data synthetic:classes=10,shape=1x28x28,train=90,test=41 --batch 22 --epochs 1) # dropout
vgg=(--model vgg11 --data synthetic:classes=10,shape=3x32x32,train=16,test=5 --batch 8 --steps 2)
both="stage=2 stage=3"
for workers in 2 3 4; do
    bits mlp $workers 1 "$both" "${mlp[@]}"
    bits cnn $workers 1 "stage=2,replicas=2 stage=3,replicas=2" "${cnn[@]}"
done
bits alone 1 1 stage=3 "${cnn[@]}" --accumulate 2
bits vgg 3 1 "$both" "${vgg[@]}"
bits sync-bn 2 1 "$both" "${vgg[@]}" --sync-bn
bits adamw 3 1 "$both" "${cnn[@]}" --optimiser adamw --clip 0.5
bits gaps 3 1 "$both" "${mlp[@]}" --clip 0.5 # its tensors have gaps between them, which are no gradients
bits pieces 3 1 "$both" "${cnn[@]}" --accumulate 3 # the last batch has shares of 1 and 2 samples
bits empty 4 1 "$both" "${mlp[@]}" --batch 3
bits tcp 2 1 "$both" "${cnn[@]}" --transport tcp
bits tcp 4 5 "stage=2,replicas=2 stage=3,replicas=2" "${cnn[@]}" --transport tcp

# Bytes of a step: W = G bytes of weights and of gradients, N workers. In all, allreduce sends 2(N-1)W; zero
# sends (N-1)W for each sum and each gathering of weights: 2 in stage 2, 3 in stage 3; and W for each more
# copy of the sums. Messages have headers, and a step has its head: 2 % and some KB.
sent() { # STRATEGY STEPS: bytes that all workers have sent; in `parameters` those of the model
    expect 0 "$paceline" train --model mlp:200x6 --data synthetic:train=900,test=41 --batch 24 --steps "$2" --workers 3 \
        --transport tcp --threads 1 --quiet --strategy "$1" --run bytes --json
    /usr/bin/python3 -c 'import json; o = json.load(open("out")); print(sum(r["bytes_sent"] for r in o["ranks"]), o["parameters"])'
    rm -r runs
}
for case in allreduce:4 zero:stage=2:4 zero:stage=3:6 zero:stage=3,replicas=2:7; do
    /usr/bin/python3 - $(sent "${case%:*}" 5) $(sent "${case%:*}" 25) "${case##*:}" <<'PY' || fail "${case%:*} sends other amounts of bytes"
import sys
few, _, many, parameters, times = map(int, sys.argv[1:])
wanted, sent = times * 4 * parameters, (many - few) / 20
print(f"{sent:.0f} bytes a step of all workers, {wanted} wanted", file=sys.stderr)
assert wanted <= sent <= 1.04 * wanted + 20000
PY
done

# A model that is computed in one step is not lent.
expect 2 "$paceline" train --model lda --data synthetic:train=90,test=20 --workers 2 --strategy zero:stage=3
says "computed in one step"

expect 0 "$paceline" model show mnist-cnn --text
grep -v dropout out >cnn.model
job=(--model cnn.model --data synthetic:classes=10,shape=1x28x28,train=90,test=20 --batch 24 --epochs 2 --lr 0.02
    --kernels onednn --threads 1 --workers 3 --quiet)
expect 0 "$paceline" train "${job[@]}" --strategy allreduce --run whole

# same RUN LOW HIGH ID: every step has the loss of the undisturbed run, also those that were made again;
# after the loss of ID the others went on after one of the steps LOW … HIGH, to the end.
same() {
    /usr/bin/python3 - "$@" <<'PY' || fail "$1: see above"
import json, sys
run, low, high, victim = sys.argv[1], *map(int, sys.argv[2:])
def read(name, kind):
    return [e for e in map(json.loads, open(f"runs/{name}/events.jsonl")) if e["event"] == kind]
whole, cut = read("whole", "step"), read(run, "step")
view = read(run, "view")[-1]
assert view["view"] == 2 and len(view["members"]) == 2 and victim not in view["members"], view
assert low <= view["step"] <= high, view
seen, rest = [e["step"] for e in cut], list(range(view["step"] + 1, len(whole) + 1))
assert not rest or seen[-len(rest):] == rest, (seen, view)
for b in cut:
    a = whole[b["step"] - 1]
    assert abs(a["loss"] - b["loss"]) <= 1e-4 * abs(a["loss"]) and a["samples"] == b["samples"], (a, b)
a, b = (json.load(open(f"runs/{name}/run.json")) for name in ("whole", run))
assert [e["step"] for e in a["epochs"]] == [e["step"] for e in b["epochs"]], b["epochs"]
assert abs(a["result"]["test"]["loss"] - b["result"]["test"]["loss"]) <= 1e-4 * a["result"]["test"]["loss"]
PY
}

# lose OPTIONS ID PHASE STEP LOW HIGH
lose() {
    PACELINE_FAULT=$2:$3:$4 expect 0 "$paceline" train "${job[@]}" --strategy "zero:$1" --run lost
    same lost "$5" "$6" "$2"
    cp err said
    rm -r runs/lost
}

for stage in 2 3; do
    case $stage in
    2) phases="data forward borrow-1 borrow-3 backward-1 backward-3 combine" ;;
    3) phases="data borrow-1 borrow-3 forward borrow-4 backward-1 borrow-6 backward-3 combine" ;;
    esac
    for phase in $phases; do
        lose stage=$stage,replicas=2 2 $phase 3 2 2
    done
    # It has met the others, or it may have.
    for phase in update meet slice gather; do
        lose stage=$stage,replicas=2 2 $phase 3 2 3
    done
    lose stage=$stage,replicas=2 1 combine 3 2 2
    lose stage=$stage,replicas=2 1 checkpoint 4 4 4
    lose stage=$stage,replicas=2 3 evaluation 4 3 4

    # One copy: there is a checkpoint of each epoch's end, which is step 4.
    for phase in data meet gather; do
        lose stage=$stage 2 $phase 3 0 0
        grep -q 'had the only copy of a part of the state' said || fail "stage $stage, $phase: no word of it"
    done
    for phase in forward update slice; do
        lose stage=$stage 3 $phase 6 4 4
        grep -q 'all go back to the checkpoint of step 4' said || fail "stage $stage, $phase: no word of it"
    done
    lose stage=$stage 1 combine 6 4 4
    lose stage=$stage 1 checkpoint 4 0 4
done
