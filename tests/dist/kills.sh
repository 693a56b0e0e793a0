#!/usr/bin/env bash
# A worker kills itself (-9) at each phase of a step, under every strategy: the others go on, and no
# loss of any step is another than without the kill; every sample counts once; the weights are equal
# after every view change (the program itself compares them, and fails if not).
source "$(dirname "$0")/../support/dist.bash"

cat >net.model <<'M'
conv 8 3x3 pad=1
relu
maxpool 2x2
conv 16 3x3 pad=1
bn
relu
flatten
dense 32
relu
dense classes
softmax
M
job=(--model net.model --data synthetic:classes=5,shape=1x12x12,train=130,test=40 --batch 24 --epochs 2
    --lr 0.05 --kernels onednn --quiet --sync-bn --workers 3 --threads 1)

# same STRATEGY RUN LOW HIGH ID: every step of RUN has the loss of the undisturbed one, and after the
# loss of ID it went on between steps LOW and HIGH. Rank 0 takes its last events with it.
same() {
    /usr/bin/python3 - "$@" <<'PY' || fail "$2: see above"
import json, sys
strategy, run, low, high, victim = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
def read(name):
    return [json.loads(line) for line in open(f"runs/{name}/events.jsonl")]
def steps(events):
    return [e for e in events if e["event"] == "step"]
whole, cut = steps(read(strategy)), steps(read(run))
view = [e for e in read(run) if e["event"] == "view"][-1]
assert view["view"] == 2 and len(view["members"]) == 2 and victim not in view["members"], view
assert low <= view["step"] <= high, view
seen = [e["step"] for e in cut]
behind = list(range(view["step"] + 1, 13))
assert seen[-len(behind):] == behind and len(set(seen)) == len(seen), seen
assert seen == list(range(1, 13)) or victim == 1, seen
for b in cut:
    a = whole[b["step"] - 1]
    assert abs(a["loss"] - b["loss"]) <= 1e-4 * abs(a["loss"]), (a, b)
    assert a["samples"] == b["samples"], (a, b)
assert sum(e["samples"] for e in whole) == 2 * 130
a, b = (json.load(open(f"runs/{name}/run.json"))["result"]["test"] for name in (strategy, run))
assert abs(a["loss"] - b["loss"]) <= 1e-4 * a["loss"] and a["per_class"][0]["support"] == b["per_class"][0]["support"]
PY
}

# kill NAME STRATEGY ID PHASE STEP LOW HIGH: the view behind it goes on between steps LOW and HIGH.
kill_at() {
    PACELINE_FAULT=$3:$4:$5 expect 0 "$paceline" train "${job[@]}" --strategy "$2" --min-workers 1 --run "$1"
    same "$2" "$1" "$6" "$7" "$3"
}

for strategy in gather-scatter allreduce ddp:overlap=on,bucket=4K,first=1K; do
    expect 0 "$paceline" train "${job[@]}" --strategy $strategy --run $strategy
    for phase in data forward backward-1 backward-3 backward-5 combine; do
        kill_at $strategy-$phase $strategy 2 $phase 4 3 3
    done
    kill_at $strategy-update $strategy 2 update 4 3 4
    kill_at $strategy-checkpoint $strategy 1 checkpoint 6 6 6
    kill_at $strategy-evaluation $strategy 3 evaluation 6 6 6
    kill_at $strategy-first $strategy 1 combine 4 3 3
done

# local-sgd loses a round: what comes behind it is trained again by those who are left.
expect 0 "$paceline" train "${job[@]}" --no-sync-bn --strategy local-sgd:k=4 --run local
for phase in data update checkpoint; do
    case $phase in checkpoint) step=12 ;; *) step=8 ;; esac
    PACELINE_FAULT=2:$phase:$step expect 0 "$paceline" train "${job[@]}" --no-sync-bn --strategy local-sgd:k=4 \
        --min-workers 1 --run local-$phase
    /usr/bin/python3 - local-$phase <<'PY' || fail "local-$phase: see above"
import json, sys
events = [json.loads(line) for line in open(f"runs/{sys.argv[1]}/events.jsonl")]
whole = [json.loads(line) for line in open("runs/local/events.jsonl")]
view = [e for e in events if e["event"] == "view"][-1]
assert view["members"] == [1, 3] and view["step"] in (6, 8, 12), view
epochs = [[e for e in list if e["event"] == "epoch"] for list in (events, whole)]
assert [e["step"] for e in epochs[0]] == [6, 12] and epochs[0][0] == epochs[1][0], epochs
assert abs(epochs[0][1]["loss"] - epochs[1][1]["loss"]) < 0.1 * epochs[1][1]["loss"], epochs
PY
done

# Back to full strength: a new worker takes the place of the dead one.
long=(--model net.model --data synthetic:classes=5,shape=1x12x12,train=130,test=40 --batch 24 --lr 0.05 --kernels onednn
    --threads 1 --workers 2 --log-every 0)
PACELINE_FAULT=2:forward:5 "$paceline" train "${long[@]}" --epochs 100000 --restart-workers --run again >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -q 'view 3: workers 1,3' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
says 'view 2: workers 1 go on after step 4'
says 'view 3: workers 1,3 go on'

# One too few: it is saved, the message says so, and the run goes on with fewer.
PACELINE_FAULT=2:forward:5 expect 1 "$paceline" train "${job[@]}" --strategy ddp --min-workers 3 --run few --no-quiet
says '2 of at least 3 workers are left'
says 'saved after step 4; go on with: paceline train --resume few'
expect 0 "$paceline" train --resume few --workers 2 --quiet
/usr/bin/python3 - <<'PY' || fail "a run that went on differs"
import json
def losses(run):
    return {e["step"]: e["loss"] for e in map(json.loads, open(f"runs/{run}/events.jsonl")) if e["event"] == "step"}
a, b = losses("allreduce"), losses("few")
assert a.keys() == b.keys() and all(abs(a[i] - b[i]) <= 1e-4 * a[i] for i in a), (a, b)
PY
PACELINE_FAULT=2:forward expect 2 "$paceline" train --model mlp:8x1 --data synthetic:train=64,test=16 --run bad
says 'PACELINE_FAULT'
