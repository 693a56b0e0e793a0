#!/usr/bin/env bash
# Parameter servers: in step (bsp) they have the bits of allreduce, at any number of servers. A worker or a
# server kills itself (-9) at each phase of a step: with two servers the others go on where they were, with
# one they go back to the newest checkpoint. Every sample counts once also where workers go at their own pace.
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
    --kernels onednn --threads 1 --checkpoint-every 4 --quiet)

for workers in 1 3; do
    expect 0 "$paceline" train "${job[@]}" --sync-bn --workers $workers --strategy allreduce --run sum-$workers
    for options in servers=0 servers=1 servers=3 servers=3,overlap=on,bucket=1K; do
        expect 0 "$paceline" train "${job[@]}" --sync-bn --workers $workers --strategy ps:$options --run ps-$workers-$options
        [ "$(fingerprint runs/ps-$workers-$options)" = "$(fingerprint runs/sum-$workers)" ] ||
            fail "ps:$options on $workers workers has other bits than allreduce"
    done
done
for extra in "--workers 3 --optimiser adamw --accumulate 2" "--workers 2 --transport tcp"; do
    expect 0 "$paceline" train "${job[@]}" $extra --strategy allreduce --run "sum$extra"
    expect 0 "$paceline" train "${job[@]}" $extra --strategy ps --run "ps$extra"
    [ "$(fingerprint "runs/ps$extra")" = "$(fingerprint "runs/sum$extra")" ] || fail "ps $extra has other bits than allreduce"
done

# Servers that do nothing else: the other two work as two workers of allreduce do.
for run in "3 servers=1" "4 servers=2"; do
    read -r workers servers <<<"$run"
    expect 0 "$paceline" train "${job[@]}" --workers $workers --strategy ps:apart=on,$servers --run apart-$workers --json
    [ "$(fingerprint runs/apart-$workers)" = "$(fingerprint "runs/sum--workers 2 --transport tcp")" ] ||
        fail "ps:apart=on,$servers on $workers processes has other bits than allreduce on two workers"
    json "[r['roles'] for r in o['ranks']] == [['server']] * ($workers - 2) + [['worker']] * 2"
    json "[r['samples'] for r in o['ranks']] == [0] * ($workers - 2) + [120] * 2"
done
expect 2 "$paceline" train "${job[@]}" --workers 2 --strategy ps:apart=on,servers=2
says 'ps:apart,servers=2 needs more than 2 processes'

# same ID BACK: every step of `lost` has the loss of the undisturbed run; BACK: all went back to step 4.
same() {
    /usr/bin/python3 - "$@" <<'PY' || fail "see above: $(tail -n 3 err)"
import json, sys
victim, back = map(int, sys.argv[1:])
def read(name, kind):
    return [e for e in map(json.loads, open(f"runs/{name}/events.jsonl")) if e["event"] == kind]
steps, cut, view, gone = read("sum-3", "step"), read("lost", "step"), read("lost", "view")[-1], read("lost", "back")
assert view["view"] == 2 and victim not in view["members"], view
assert view["step"] == 4 if back else 6 <= view["step"] <= 7, view
assert bool(gone) == bool(back), gone
behind = [e["step"] for e in cut][-(len(steps) - view["step"]):]
assert behind == list(range(view["step"] + 1, len(steps) + 1)), behind
for b in cut:
    a = steps[b["step"] - 1]
    assert abs(a["loss"] - b["loss"]) <= 1e-4 * abs(a["loss"]) and a["samples"] == b["samples"], (a, b)
a, b = (json.load(open(f"runs/{name}/run.json"))["result"]["test"] for name in ("sum-3", "lost"))
assert abs(a["loss"] - b["loss"]) <= 1e-4 * a["loss"], (a, b)
PY
}

lose() { # OPTIONS ID PHASE BACK
    PACELINE_FAULT=$2:$3:7 expect 0 "$paceline" train "${job[@]}" --sync-bn --workers 3 --strategy "ps:$1" --run lost
    same "$2" "$4"
    rm -r runs/lost
}

for phase in await-1 forward combine push-0 push-1 update answer pull; do lose servers=2 1 $phase 0; done
for phase in push-0 update answer; do lose servers=2 2 $phase 0; done
for phase in push-0 update; do lose servers=2 3 $phase 0; done
# A worker that pushes while backward goes on, and of whose push some servers have some values.
for phase in backward-1 backward-4 push-0; do lose servers=2,overlap=on,bucket=1K 2 $phase 0; done
lose servers=1 2 push-0 0
for phase in push-0 update; do lose servers=1 1 $phase 1; done

# Lost while a leg begins, when no server has anything yet: all have the state of the meeting before it.
for id in 1 2 3; do
    PACELINE_FAULT=$id:leg:6 expect 0 "$paceline" train "${job[@]}" --no-checkpoint --workers 3 --strategy ps --run lost --json
    json "o['steps'] == 10 and o['lost_steps'] == 0 and o['workers'] == 2"
    rm -r runs/lost
done

# At their own pace: each sample once, whatever is lost.
whole() { # RUN
    /usr/bin/python3 - "$1" <<'PY' || fail "see above: $(tail -n 3 err)"
import json, sys
events = [json.loads(line) for line in open(f"runs/{sys.argv[1]}/events.jsonl")]
steps = [e for e in events if e["event"] == "step"]
assert [e["step"] for e in steps] == list(range(1, 11)), [e["step"] for e in steps]
assert sum(e["samples"] for e in steps) == 240, [e["samples"] for e in steps]
PY
}
lose_at_pace() { # OPTIONS ID PHASE; a worker at its own pace need not have a block of every step
    PACELINE_FAULT=$2:$3:2+ expect 0 "$paceline" train "${job[@]}" --workers 3 --strategy "ps:$1" --run lost --json
    json "o['steps'] == 10 and o['lost_steps'] == 0 and o['workers'] == 2"
    [ "$2" = 1 ] || whole lost # rank 0 takes its last events with it
    rm -r runs/lost
}
for options in consistency=asp consistency=ssp,staleness=1 backup=1,overlap=on,bucket=1K consistency=asp,servers=3,correct=on; do
    expect 0 "$paceline" train "${job[@]}" --workers 3 --strategy ps:$options --run pace --json
    json "o['steps'] == 10 and sum(r['samples'] for r in o['ranks']) == 240 and o['ranks'][0]['roles'] == ['worker', 'server']"
    json "sum(o['figures']['staleness']) >= 10 and 0 < o['train']['loss'] < 3"
    whole pace
    for phase in push-1 update; do lose_at_pace $options 3 $phase; done
    lose_at_pace $options 1 update
    rm -r runs/pace
done

# The same where servers are apart, of a server and of one of the two workers; roles are dealt anew.
for case in "1:serve asp" "2:serve asp" "4:update bsp"; do # under asp a worker need not make step 5
    read -r fault consistency <<<"$case"
    PACELINE_FAULT=$fault:5 expect 0 "$paceline" train "${job[@]}" --workers 4 --strategy ps:apart=on,consistency=$consistency --run lost --json
    json "o['steps'] == 10 and o['lost_steps'] == 0 and [r['roles'] for r in o['ranks']] == [['server'], ['server'], ['worker']]"
    [ $fault = 1:serve ] || whole lost
    rm -r runs/lost
done

# Under ssp no worker reads older than the bound: the one that computes its block c has read every update that
# any worker made with its block c - S - 1 or before. Of 10,000 recorded reads, with random stalls.
PACELINE_READS=$work/reads PACELINE_STALL=0.01:0.002 expect 0 "$paceline" train --model mlp:4x1 --data synthetic:classes=2,shape=1x4x4,train=30000,test=10 \
    --batch 9 --epochs 1 --threads 1 --log-every 0 --no-checkpoint --workers 3 --strategy ps:consistency=ssp,staleness=2 --run bound
/usr/bin/python3 - "$work/reads" 2 <<'PY' || fail "see above"
import sys
staleness, entries, reads = int(sys.argv[2]), {}, []
for line in open(sys.argv[1]):
    rank, clock, read, entry = map(int, line.split())
    entries[rank, clock] = entry
    reads.append((rank, clock, read))
assert len(reads) == 10000 and {rank for rank, _, _ in reads} == {0, 1, 2}, len(reads)
for rank, clock, read in reads:
    for other in range(3):
        last = entries.get((other, clock - staleness - 1), 0) # its entries are in order: this one is the newest
        assert last <= read, f"worker {rank} at {clock} had read up to {read}, not {last} of worker {other}"
PY

# A push that is rubbish does not count: another worker computes the block, and every sample counts once. All
# workers sleep in every block, so that each gets some of them, and has a second push that can be rubbish.
for case in servers=2:1:nan servers=2:3:size servers=1:2:block backup=1:3:nan consistency=asp:3:nan consistency=ssp:2:size \
    overlap=on,bucket=1K:2:nan overlap=on,bucket=1K:3:size; do
    IFS=: read -r options id kind <<<"$case"
    PACELINE_FAULT=$id:rubbish-$kind:2 PACELINE_STALL=1:0.02 expect 0 "$paceline" train "${job[@]}" --workers 3 --strategy ps:$options --run wrong --json
    json "o['steps'] == 10 and o['workers'] == 3 and sum(r['samples'] for r in o['ranks']) == 240"
    whole wrong
    rm -r runs/wrong
    says "worker $id pushed gradients .*do not count"
    [ "$(grep -c "worker $id pushed gradients" err)" = 1 ] || fail "it is told more than once: $(cat err)"
    json "o['figures']['refused'] >= 1"
done
# Also where it has the only sample of the epoch's last batch.
PACELINE_FAULT=3:rubbish-nan:6 expect 0 "$paceline" train "${job[@]}" --data synthetic:classes=10,shape=1x12x12,train=121,test=20 --workers 3 \
    --strategy ps --json
json "o['steps'] == 12 and sum(r['samples'] for r in o['ranks']) == 242 and o['figures']['refused'] == 1"
# Where there is no other worker, or all push rubbish, the job ends and says why.
PACELINE_FAULT=1:rubbish-nan:5 expect 1 "$paceline" train "${job[@]}" --workers 1 --min-workers 1 --restart-workers --strategy ps
says 'no worker is left whose gradients are finite'
for options in servers=2 consistency=asp; do
    expect 1 "$paceline" train "${job[@]}" --workers 3 --lr 1e6 --strategy ps:$options --json
    json "o['error']['code'] == 'diverged'"
done

# Another consistency in a job that runs, and back; then a stop.
long=(--model bn.model --data synthetic:classes=10,shape=1x12x12,train=2400,test=20 --batch 24 --kernels onednn --threads 1 --log-every 20)
"$paceline" train "${long[@]}" --epochs 1000 --workers 2 --strategy ps --run changed >out 2>err &
agent=$!
for wanted in asp ssp bsp; do
    for _ in $(seq 1500); do grep -q 'step  *20 ' err && break; sleep 0.02; done
    "$paceline" set changed consistency=$wanted >set.out 2>&1 || fail "set: $(cat set.out)"
    for _ in $(seq 1500); do grep -q "consistency=$wanted from step" err && break; sleep 0.02; done
    says "consistency=$wanted from step"
done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "a stopped training ends with 130: $(tail -n 3 err)"
says 'go on with: paceline train --resume changed'

expect 2 "$paceline" train "${job[@]}" --workers 2 --strategy ps:consistency=asp,backup=1
says 'backup is for consistency=bsp'
expect 2 "$paceline" train "${job[@]}" --workers 2 --strategy ps:correct=on
says 'correct=on is for consistency=ssp or asp'
expect 2 "$paceline" train "${job[@]}" --workers 2 --strategy ps:consistency=often
