#!/usr/bin/env bash
# A worker kills itself (-9) at each phase of a step, under every strategy: the others go on, and no
# loss of any step is another than without the kill; every sample counts once; the weights are equal
# after every view change (the program itself compares them, and fails if not). A worker that is
# stopped is waited for, and then lost.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" model show mnist-cnn --text
grep -v dropout out >cnn.model
cat >bn.model <<'M'
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
common=(--lr 0.02 --kernels onednn --threads 1 --workers 3 --quiet)
cnn=(--model cnn.model --data synthetic:classes=10,shape=1x28x28,train=90,test=20 --batch 24 --epochs 2 "${common[@]}")
bn=(--model bn.model --data synthetic:classes=10,shape=1x28x28,train=90,test=20 --batch 24 --epochs 2 --validation 0.2
    "${common[@]}")

# same WHOLE RUN LOW HIGH ID: every step of RUN has the loss of the undisturbed one, and after the
# loss of ID it went on between steps LOW and HIGH. Rank 0 takes its last events with it, and of a
# step that it alone did not complete the others know.
same() {
    /usr/bin/python3 - "$@" <<'PY' || fail "$2: see above"
import json, sys
whole, run, low, high, victim = *sys.argv[1:3], *map(int, sys.argv[3:])
def read(name, kind):
    return [e for e in map(json.loads, open(f"runs/{name}/events.jsonl")) if e["event"] == kind]
steps, cut = read(whole, "step"), read(run, "step")
view = read(run, "view")[-1]
assert view["view"] == 2 and len(view["members"]) == 2 and victim not in view["members"], view
assert low <= view["step"] <= high, view
seen, behind = [e["step"] for e in cut], list(range(view["step"] + 1, len(steps) + 1))
assert not behind or seen[-len(behind):] == behind, seen
assert seen == sorted(set(seen)) and (victim == 1 or set(range(1, len(steps) + 1)) - set(seen) <= {view["step"]}), seen
for b in cut:
    a = steps[b["step"] - 1]
    assert abs(a["loss"] - b["loss"]) <= 1e-4 * abs(a["loss"]), (a, b)
    assert a["samples"] == b["samples"], (a, b)
counts = [sum(e["samples"] for e in steps if e["epoch"] == epoch) for epoch in (1, 2)]
assert counts[0] == counts[1] in (90, 72), counts
a, b = (json.load(open(f"runs/{name}/run.json")) for name in (whole, run))
assert [e["step"] for e in a["epochs"]] == [e["step"] for e in b["epochs"]], b["epochs"]
a, b = a["result"]["test"], b["result"]["test"]
assert abs(a["loss"] - b["loss"]) <= 1e-4 * a["loss"]
assert [c["support"] for c in a["per_class"]] == [c["support"] for c in b["per_class"]]
PY
}

# lose JOB STRATEGY ID PHASE STEP LOW HIGH: the view after it goes on between steps LOW and HIGH.
lose() {
    local -n job=$1
    PACELINE_FAULT=$3:$4:$5 expect 0 "$paceline" train "${job[@]}" --strategy "$2" --run lost
    same "$1-$2" lost "$6" "$7" "$3"
    rm -r runs/lost
}

buckets=ddp:overlap=on,bucket=1M,first=64K
for strategy in gather-scatter allreduce ddp $buckets; do
    expect 0 "$paceline" train "${cnn[@]}" --strategy $strategy --run cnn-$strategy
    case $strategy in
    ddp) phases="data combine" ;; # what is before that it has in common with allreduce
    $buckets) phases="backward-1 backward-3 bucket-1 bucket-2 bucket-3 bucket-4 bucket-5 combine" ;;
    *) phases="data forward backward-1 backward-2 backward-3 backward-4 combine" ;;
    esac
    # The victim may be ahead of the others: it has its sum, while rank 0 still sends to worker 3.
    [ $strategy = gather-scatter ] && low=1 || low=2
    for phase in $phases; do lose cnn $strategy 2 $phase 3 $low 2; done
    lose cnn $strategy 2 update 3 2 3
    [ $strategy != ddp ] || lose cnn ddp 2 slice 3 2 3
    # The last bucket: its thread that communicates may complete the sum while it dies.
    [ $strategy != $buckets ] || lose cnn $buckets 2 bucket-6 3 2 3
    lose cnn $strategy 1 combine 3 2 2
    lose cnn $strategy 1 checkpoint 4 4 4
    lose cnn $strategy 3 evaluation 4 3 4 # it may have come there before the others had their sums
done
lose cnn ddp 2 evaluation 8 7 8

# Batch-norm: its sums are in the middle of the passes, and its statistics are put back.
bn+=(--sync-bn)
expect 0 "$paceline" train "${bn[@]}" --strategy ddp --run bn-ddp
for phase in data forward backward-2 backward-4; do lose bn ddp 2 $phase 3 2 2; done
lose bn ddp 1 evaluation 3 2 3
lose bn ddp 1 checkpoint 6 6 6

# local-sgd loses a round: what comes after it is trained again by those that are left.
bn+=(--no-sync-bn)
expect 0 "$paceline" train "${bn[@]}" --strategy local-sgd:k=2 --run local
for phase in data update checkpoint; do
    PACELINE_FAULT=2:$phase:6 expect 0 "$paceline" train "${bn[@]}" --strategy local-sgd:k=2 --run local-$phase
    /usr/bin/python3 - local-$phase <<'PY' || fail "local-$phase: see above"
import json, sys
events, whole = ([json.loads(line) for line in open(f"runs/{run}/events.jsonl")] for run in (sys.argv[1], "local"))
view = [e for e in events if e["event"] == "view"][-1]
assert view["members"] == [1, 3] and view["step"] in (4, 6), view
epochs = [[e for e in list if e["event"] == "epoch"] for list in (events, whole)]
assert [e["step"] for e in epochs[0]] == [3, 6] and epochs[0][0] == epochs[1][0], epochs
assert abs(epochs[0][1]["loss"] - epochs[1][1]["loss"]) < 0.1 * epochs[1][1]["loss"], epochs
ranks = json.load(open(f"runs/{sys.argv[1]}/run.json"))["result"]["ranks"]
assert sum(r["samples"] for r in ranks) == 16 * view["step"] + 24 * (6 - view["step"]), (view, ranks)
PY
done

# Stopped for good: it is killed after --silence seconds, and the rest is as if it had been lost.
PACELINE_FAULT=2:forward:3:STOP expect 0 "$paceline" train "${cnn[@]}" --strategy ddp --silence 5 --run lost --no-quiet
says 'worker 2 \(pid [0-9]+\) was stopped'
same cnn-ddp lost 2 2 2
rm -r runs/lost

# Stopped for a while: no worker is lost.
rm err
PACELINE_FAULT=2:forward:3:STOP "$paceline" train "${cnn[@]}" --strategy ddp --silence 60 --run while --no-quiet >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'was stopped' err && break; sleep 0.02; done
kill -CONT "$(sed -nE 's/.*worker 2 \(pid ([0-9]+)\) was stopped/\1/p' err)"
wait $agent || fail "a worker that was stopped for a while: $(tail -n 3 err)"
says 'was continued'
grep -q '"view":2' runs/while/events.jsonl && fail "a worker that was stopped for a while was lost"

# Back to full strength: a new worker takes the place of the dead one.
rm err
PACELINE_FAULT=2:forward:5 "$paceline" train "${cnn[@]}" --workers 2 --epochs 100000 --log-every 0 --no-test \
    --restart-workers --run again --no-quiet >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'view 3: workers 1,3' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
says 'view 2: workers 1 go on after step 4'
says 'view 3: workers 1,3 go on'

# What would go wrong again is not tried again.
expect 2 "$paceline" train "${cnn[@]}" --restart-workers --data missing.idx --run none --no-quiet
[ "$(grep -c missing.idx err)" = 1 ] || fail "not told once: $(cat err)"
expect 2 "$paceline" train "${cnn[@]}" --min-workers 1 --data missing.idx --run none --no-quiet
[ "$(grep -c missing.idx err)" = 1 ] || fail "not told once: $(cat err)"

# Rank 0 is lost while it saves what is due: the next one does, and marks the best; where the job ends
# with it, the workers that are left save before the end. --quiet hides no warning.
expect 0 "$paceline" train "${bn[@]}" --strategy ddp --run best
best=$(cat runs/best/checkpoints/best)
PACELINE_FAULT=1:checkpoint:${best#step-} expect 0 "$paceline" train "${bn[@]}" --strategy ddp --run best-lost
[ "$(cat runs/best-lost/checkpoints/best)" = "$best" ] || fail "$best is the best: $(cat runs/best-lost/checkpoints/best)"
PACELINE_FAULT=1:checkpoint:4 expect 1 "$paceline" train "${cnn[@]}" --strategy ddp --min-workers 3 --run due
says 'worker [23]: warning: saved after step 4; go on with: paceline train --resume due'
[ -e runs/due/checkpoints/step-4/manifest.json ] || fail "what is said to be saved is not there"

# Rank 0 is lost when all is done but for the last write of run.json: the next one closes the run.
PACELINE_FAULT=1:report:8 expect 0 "$paceline" train "${cnn[@]}" --strategy ddp --run closed
says 'worker 1 .*signal 9'
/usr/bin/python3 - <<'PY' || fail "a run whose rank 0 died at its end: see above"
import json, os
run = json.load(open("runs/closed/run.json"))
assert run["status"] == "done" and run["result"]["steps"] == 8 and run["result"]["workers"] == 3, run
assert not [f for f in os.listdir("runs/closed") if "tmp" in f], os.listdir("runs/closed")
PY

# A worker that is new in a view when the others are done in the one before is not waited for.
for steps in 40 45 50; do
    PACELINE_FAULT=1:backward-1:5 expect 0 timeout 60 "$paceline" train --model mlp:32x1 --data synthetic:train=640,test=20 \
        --batch 64 --steps $steps --epochs 100 --threads 1 --no-checkpoint --workers 2 --restart-workers --run late-$steps
done

# One too few: it is saved, the message says so, and the run goes on with fewer.
PACELINE_FAULT=2:forward:3 expect 1 "$paceline" train "${cnn[@]}" --strategy ddp --min-workers 3 --run few --no-quiet
says '2 of at least 3 workers are left'
says 'saved after step 2; go on with: paceline train --resume few'
expect 0 "$paceline" train --resume few --workers 2 --quiet
/usr/bin/python3 - <<'PY' || fail "a run that went on differs"
import json
def losses(run):
    return {e["step"]: e["loss"] for e in map(json.loads, open(f"runs/{run}/events.jsonl")) if e["event"] == "step"}
a, b = losses("cnn-allreduce"), losses("few")
assert a.keys() == b.keys() and all(abs(a[i] - b[i]) <= 1e-4 * a[i] for i in a), (a, b)
PY

# The founder dies when it has made the folder, before the others know: they take it over.
PACELINE_FAULT=1:folder:0 expect 0 "$paceline" train "${cnn[@]}" --strategy ddp --run lost
[ ! -e runs/lost-2 ] && [ -e runs/lost/report.txt ] || fail "the run is elsewhere: $(ls runs)"
PACELINE_FAULT=1:folder:0 expect 1 "$paceline" train "${cnn[@]}" --min-workers 3 --run early
expect 0 "$paceline" runs
grep -qE '^early +lost' out || fail "a run whose founder died: $(cat out)"
expect 0 "$paceline" train --resume early --workers 2 --quiet
mkdir runs/empty # what is left of one that died before it had written anything
expect 0 "$paceline" train "${cnn[@]}" --workers 1 --strategy single --run empty
cp -r runs/empty before
expect 2 "$paceline" train "${cnn[@]}" --workers 1 --strategy single --run empty
says 'exists already'
expect 2 "$paceline" train "${cnn[@]}" --run empty
says 'exists already'
diff -r before runs/empty || fail "a run that was there is another now"

# Host 0's only worker dies: its neighbour goes on, in a folder of its own host.
mkdir a b
host() { # RANK FOLDER OPTION…
    (cd "$2" && exec "$paceline" train "${cnn[@]/#cnn.model/$work/cnn.model}" --workers 1 --num-nodes 2 --rank "$1" --master-ip 127.0.0.1 \
        --strategy ddp --run moved --no-quiet --silence 60 "${@:3}" >"$work/$2.out" 2>"$work/$2.err")
}
PACELINE_FAULT=1:forward:3 host 0 a --port 0 &
for _ in $(seq 1500); do grep -qs 'listens on' a.err && break; sleep 0.02; done
host 1 b --port "$(sed -nE 's/^host 0 listens on 127.0.0.1:([0-9]+).*/\1/p' a.err)" || fail "host 1: $(tail -n 3 b.err)"
wait %% || fail "host 0: $(tail -n 3 a.err)"
grep -q 'the run goes on in runs/moved of this host' b.err || fail "it is not told where the run goes on: $(cat b.err)"
grep -q '"status": "done"' b/runs/moved/run.json || fail "the run did not go on: $(cat b.err)"
grep -q '^warning: worker 1 on host .*(signal 9, SIGKILL); 1 worker goes on$' a.err || fail "host 0 tells of no loss: $(cat a.err)"
/usr/bin/python3 -c "
import json
assert json.load(open('b/runs/moved/run.json'))['launch'] == {'workers': 1, 'hosts': 2}" || fail "how it was started: $(cat b/runs/moved/run.json)"

for fault in 2:forward 2:forward:x 2:forward:3:CONT nonsense; do
    PACELINE_FAULT=$fault expect 2 "$paceline" train --model mlp:8x1 --data synthetic:train=64,test=16 --run bad
    says 'PACELINE_FAULT'
done
