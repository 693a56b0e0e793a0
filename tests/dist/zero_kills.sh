#!/usr/bin/env bash
# A worker under zero kills itself (-9) at each phase of a step, in every stage. With two copies of each
# slice the others go on from the last step, or from the one that the lost worker may have completed.
# With one copy they go back to the newest checkpoint, or to the beginning, inside the job, and say so. No
# loss of any step is another than without the kill.
source "$(dirname "$0")/../support/dist.bash"

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

for stage in 1 2 3; do
    case $stage in
    1) phases="data forward backward-1 backward-3 combine" ;;
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
