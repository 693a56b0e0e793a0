#!/usr/bin/env bash
# Zero: the bits of allreduce at the same number of workers. A worker kills itself (-9) at each phase of a
# step: where each slice is kept twice the others go on at the step; where the lost worker had the only copy
# of its slice they go back to the newest checkpoint, or to the beginning. No loss of any step is another
# than without the kill, and the weights at the end are those of a run without one.
source "$(dirname "$0")/../support/dist.bash"

cat >bn.model <<'M'
conv 8 3x3 pad=1
bn
relu
maxpool 2x2
flatten
dense 24
relu
dense classes
softmax
M
job=(--model bn.model --data synthetic:classes=10,shape=1x12x12,train=120,test=20 --batch 24 --epochs 2 --lr 0.02
    --kernels onednn --threads 1 --sync-bn --checkpoint-every 4 --quiet)

for workers in 1 2 3 4; do
    expect 0 "$paceline" train "${job[@]}" --workers $workers --strategy allreduce --run sum-$workers
    for options in stage=1 stage=1,replicas=2 stage=1,replicas=64; do
        expect 0 "$paceline" train "${job[@]}" --workers $workers --strategy zero:$options --run zero-$workers-$options
        [ "$(fingerprint runs/zero-$workers-$options)" = "$(fingerprint runs/sum-$workers)" ] ||
            fail "zero:$options on $workers workers has other bits than allreduce"
    done
done
# Over tcp two workers: of more, the order of sums depends on what a view measures when it is opened.
for extra in "--workers 3 --clip 0.5" "--workers 3 --optimiser adamw --accumulate 2 --no-sync-bn" "--workers 2 --momentum 0 --transport tcp"; do
    expect 0 "$paceline" train "${job[@]}" $extra --strategy allreduce --run "sum$extra"
    expect 0 "$paceline" train "${job[@]}" $extra --strategy zero --run "zero$extra"
    [ "$(fingerprint "runs/zero$extra")" = "$(fingerprint "runs/sum$extra")" ] || fail "zero $extra has other bits than allreduce"
done

# same ID LOW HIGH: every step of `lost` has the loss of the undisturbed run, and after the loss of ID it
# went on between steps LOW and HIGH, which is told. Rank 0 takes its last events with it.
same() {
    /usr/bin/python3 - "$@" <<'PY' || fail "see above: $(tail -n 3 err)"
import json, sys
victim, low, high = map(int, sys.argv[1:])
def read(name, kind):
    return [e for e in map(json.loads, open(f"runs/{name}/events.jsonl")) if e["event"] == kind]
steps, cut, view, back = read("sum-3", "step"), read("lost", "step"), read("lost", "view")[-1], read("lost", "back")
assert view["view"] == 2 and victim not in view["members"] and low <= view["step"] <= high, view
if back:
    assert len(back) == 1 and back[0]["step"] == view["step"] <= back[0]["from"] <= 8, back
behind = [e["step"] for e in cut][-(len(steps) - view["step"]):] if view["step"] < len(steps) else []
assert behind == list(range(view["step"] + 1, len(steps) + 1)), behind
for b in cut:
    a = steps[b["step"] - 1]
    assert abs(a["loss"] - b["loss"]) <= 1e-4 * abs(a["loss"]) and a["samples"] == b["samples"], (a, b)
a, b = (json.load(open(f"runs/{name}/run.json")) for name in ("sum-3", "lost"))
assert [e["step"] for e in a["epochs"]] == [e["step"] for e in b["epochs"]], b["epochs"]
assert b["result"]["lost_steps"] == (back[0]["from"] - back[0]["step"] if back else 0), b["result"]["lost_steps"]
a, b = a["result"]["test"], b["result"]["test"]
assert abs(a["loss"] - b["loss"]) <= 1e-4 * a["loss"], (a, b)
PY
}

lose() { # OPTIONS ID PHASE STEP LOW HIGH
    PACELINE_FAULT=$2:$3:$4 expect 0 "$paceline" train "${job[@]}" --workers 3 --strategy "zero:$1" --run lost
    same "$2" "$5" "$6"
    rm -r runs/lost
}

# Each slice twice: the step. In and after the meeting the others have all that it takes to complete it.
for id in 1 2; do
    for phase in data forward backward-2 combine; do lose stage=1,replicas=2 $id $phase 7 6 6; done
    lose stage=1,replicas=2 $id update 7 6 7
    lose stage=1,replicas=2 $id meet 7 6 7
    for phase in slice gather; do lose stage=1,replicas=2 $id $phase 7 7 7; done
    lose stage=1,replicas=2 $id checkpoint 8 8 8
    lose stage=1,replicas=2 $id evaluation 5 5 5
done

# Once: the checkpoint of step 4.
for id in 1 3; do
    for phase in data combine meet slice gather; do
        lose stage=1 $id $phase 7 4 4
        says "all go back to the checkpoint of step 4"
    done
    lose stage=1 $id saved 8 8 8
done
lose stage=1 2 forward 3 0 0
says "all go back to the beginning"

# A job that ends under its workers: none of them has all of the state.
PACELINE_FAULT=2:forward:7 expect 1 "$paceline" train "${job[@]}" --workers 3 --strategy zero --min-workers 3 --run few
says 'step 6 is not saved: no worker has all of it; go on from step 4 with: paceline train --resume few'
expect 0 "$paceline" train --resume few --workers 2 --quiet

# A worker comes back: the slices are divided anew.
rm err
PACELINE_FAULT=2:forward:7 "$paceline" train "${job[@]}" --workers 3 --strategy zero:replicas=2 --restart-workers \
    --epochs 100000 --log-every 0 --no-test --run again --no-quiet >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'view 3: workers 1,3,4' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
says 'view 2: workers 1,3 go on after step 6'
says 'view 3: workers 1,3,4 go on'
