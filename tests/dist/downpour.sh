#!/usr/bin/env bash
# Downpour: all its forms count every sample once; workers and the manager killed at the phases of a round, a
# worker that is stopped, one that sends rubbish, one that is slow, a quorum that goes on without it, one that
# joins, a stop. Nothing hangs, no block is counted twice or lost.
source "$(dirname "$0")/../support/dist.bash"

job=(--model mlp:32x1 --data synthetic:classes=10,shape=1x12x12,train=960,test=100 --batch 48 --epochs 3 --lr 0.05
    --threads 1 --kernels auto --workers 3 --log-every 0)

# rounds RUN EXPRESSION: of the events `r` ("round", one for each that was committed) and the result `o`.
rounds() {
    /usr/bin/python3 - "$@" <<'PY' || fail "$*: see above"
import json, sys
r = [e for e in map(json.loads, open(f"runs/{sys.argv[1]}/events.jsonl")) if e["event"] == "round"]
o = json.load(open(f"runs/{sys.argv[1]}/run.json"))["result"]
assert eval(sys.argv[2]), (sys.argv[2], r, {k: o[k] for k in ("steps", "epochs", "ranks")})
PY
}
once="[e['samples'] for e in r] == [960] * 3 and o['steps'] == 60 and o['epochs'] == 3"

# hit PATTERN COMMAND…: the command ends well, with that on stderr. On a machine that is busy enough a worker is
# late, and another one computes the block that was to go wrong: then once more.
hit() {
    for _ in 1 2 3 4 5; do
        rm -rf runs/lost runs/wrong
        expect 0 "${@:2}"
        grep -qE -- "$1" err && return
    done
    says "$1"
}

# Every form, and each aggregator; the loss falls as in a training of one worker.
for form in downpour downpour:split=equal downpour:split=class downpour:apart downpour:push-every=4,fetch-every=2; do
    expect 0 "$paceline" train "${job[@]}" --strategy $form --run form --json
    json "o['figures']['rounds'] == 3 and o['ranks'][0]['roles'][-1] == 'manager' and o['ranks'][1]['roles'] == ['worker']"
    json "0 < o['train']['loss'] < 2.3 and sum(s['samples'] for s in o['ranks']) == 3 * 960"
    rounds form "$once and all(e['refused'] == e['late'] == e['left_out'] == 0 for e in r)"
    [ $form != downpour:apart ] || rounds form "o['ranks'][0]['samples'] == 0 and r[0]['blocks'] == 2"
    rm -r runs/form
done
for aggregate in weighted:bound=3 trust-weighted median trimmed-mean:share=0.4 mixed:rule=multi-krum/keep=2; do
    expect 0 "$paceline" train "${job[@]}" --strategy downpour --aggregate $aggregate --validation 0.1 --run form
    rounds form "[e['samples'] for e in r] == [864] * 3"
    [ $aggregate != median ] || says '--aggregate median: 1 of 3 updates may be anything'
    [[ $aggregate != mixed* ]] || says '--aggregate mixed stands no wrong update of 3'
    rm -r runs/form
done
# Workers that attack on purpose: a rule that stands it learns, the mean does not; only who says so gets it.
expect 2 "$paceline" train "${job[@]}" --strategy downpour --attack 3:sign-flip --run attacked
says 'add --yes-attack'
expect 2 "$paceline" train "${job[@]}" --strategy local-sgd --attack 3:sign-flip --yes-attack --run attacked
says 'of which strategy local-sgd has no use'
expect 2 "$paceline" train "${job[@]}" --strategy downpour --attack 3:lie --yes-attack --run attacked
says 'strategy downpour has one'
for aggregate in average median auto; do
    expect 0 "$paceline" train "${job[@]}" --strategy downpour --aggregate $aggregate --attack 3:sign-flip=9,7:mimic \
        --yes-attack --run $aggregate
    says 'this run is attacked on purpose: worker 3 sign-flip, worker 7 mimic'
    says 'there is no worker 7 now'
done
/usr/bin/python3 - <<'PY' || fail "an attack, with and without a defence"
import json
runs = [json.load(open(f"runs/{name}/run.json")) for name in ("average", "median", "auto")]
assert all(run["about"]["settings"]["attack"] == "3:sign-flip=9,7:mimic" for run in runs)
losses = [run["result"]["train"]["loss"] for run in runs]
assert losses[0] > 4 and max(losses[1:]) < 2.3, losses
events = list(map(json.loads, open("runs/auto/events.jsonl")))
rounds = [e for e in events if e["event"] == "round"]
suspects = {e["step"]: e["workers"] for e in events if e["event"] == "suspects"}
# Where a block was late another worker may have computed that of worker 3, and nothing was forged.
whole = [e["step"] for e, before in zip(rounds, [{"reissued": 0}] + rounds) if e["reissued"] == before["reissued"]]
assert len(rounds) == 3 and suspects and all(3 in suspects.get(step, []) for step in whole), (rounds, suspects)
PY
says "updates are unlike: .*worker 3's is [0-9.]+ times as far from the others as usual.*; all are mixed and clipped"
rm -r runs/average runs/median runs/auto
# A backdoor: the result says how often it opens; compare --damage who attacked and who was flagged.
expect 0 "$paceline" train "${job[@]}" --strategy downpour --run clean
expect 0 "$paceline" train "${job[@]}" --strategy downpour --aggregate auto --attack 1:trigger=50,3:sign-flip=9 --yes-attack --run doors --json
json "o['backdoor']['target'] == '0' and o['backdoor']['samples'] > 0"
expect 2 "$paceline" compare clean doors --damage --sort loss
says "does not --sort"
expect 0 "$paceline" compare clean doors --damage --json
json "[r['attack'] for r in o['runs']] == [None, '1:trigger=50,3:sign-flip=9'] and o['runs'][0]['points'] == 0 == len(o['runs'][0]['flagged'])"
json "any(f['worker'] == 3 and f['hostile'] and f['unlike'] > 0 for f in o['runs'][1]['flagged'])"
rm -r runs/clean runs/doors
expect 0 "$paceline" train "${job[@]}" --strategy downpour --attack 1:label-flip,2:slow=1,3:stall=0.2 --yes-attack --run attacked
rounds attacked "$once"
expect 0 "$paceline" train "${job[@]}" --workers 2 --transport tcp --strategy downpour:push-every=5 --run tcp
rounds tcp "$once"

# Changes in a wire format, both ways: fewer bytes by the format's factor, and the loss falls as without.
for form in split=equal,momentum=0.5 push-every=4,fetch-every=3; do
    for case in fp32:1 int8:3.9 topk/share=0.1:20; do
        wire=${case%:*}
        expect 0 "$paceline" train "${job[@]}" --transport tcp --strategy downpour:$form,wire=$wire --run wire
        rounds wire "$once and o['train']['loss'] < 2.3"
        bytes=$(/usr/bin/python3 -c "import json; f = json.load(open('runs/wire/run.json'))['result']['figures']; print(f['bytes_pushed'] + f['bytes_pulled'])")
        [ $wire = fp32 ] && whole=$bytes
        /usr/bin/python3 -c "import sys; sys.exit($bytes * ${case#*:} > $whole)" || fail "$form, $wire: $bytes bytes, $whole as floats"
        [ $wire = topk/share=0.1 ] || rm -r runs/wire
    done
    # What is left out is in the checkpoint, for any number of workers, and so are their running means.
    expect 0 "$paceline" train --resume wire --workers 2 --epochs 4 --no-quiet
    ! grep -q 'starts at zero\|dropped' err || fail "the residual is lost: $(cat err)"
    /usr/bin/python3 - $form <<'PY' || fail "$form: no residual in the checkpoint: see above"
import json, struct, sys
with open("runs/wire/checkpoints/step-80/state.safetensors", "rb") as file:
    length, = struct.unpack("<Q", file.read(8))
    head = json.loads(file.read(length))
    for extra in ["residual"] + ["momentum"] * ("momentum" in sys.argv[1]):
        begin, end = head[next(n for n in head if n.startswith(f"strategy.{extra}."))]["data_offsets"]
        file.seek(8 + length + begin)
        assert any(file.read(end - begin)), extra
PY
    rm -r runs/wire
done
# One worker is the single run: the same batches in the same order.
one=("${job[@]}" --workers 1 --steps 10 --quiet)
expect 0 "$paceline" train "${one[@]}" --strategy single --run alone
expect 0 "$paceline" train "${one[@]}" --strategy downpour --run manager
"$root/tests/support/equal.py" losses alone manager || fail "one worker under a manager is not one worker"

# Killed at the phases of the second round (its first step is 21): what was done of the round before counts. A
# defence is on.
for fault in 2:block-issued 2:update 2:block-done 1:block-issued 1:block-done 1:aggregate 1:checkpoint; do
    [ $fault = 1:checkpoint ] && step=20 || step=21
    PACELINE_FAULT=$fault:$step hit "worker ${fault%%:*} .*signal 9" "$paceline" train "${job[@]}" \
        --strategy downpour:momentum=0.5 --aggregate auto --run lost
    # The manager takes the events with it that were not yet written.
    [ ${fault%%:*} = 1 ] && want="[e['samples'] for e in r][-1] == 960 and o['steps'] == 60" || want=$once
    rounds lost "$want and o['workers'] == 2"
    rm -r runs/lost
done
# A result that was on its way, or had come, when a worker was lost: packed again, it counts once.
for fault in 2:block-done 1:block-done; do
    PACELINE_FAULT=$fault:21 hit "worker ${fault%%:*} .*signal 9" "$paceline" train "${job[@]}" --strategy downpour:wire=topk/share=0.3 --run lost
    rounds lost "[e['samples'] for e in r][-1] == 960 and o['steps'] == 60 and o['workers'] == 2 and o['train']['loss'] < 2.3"
done
PACELINE_FAULT=3:rubbish-nan:21 hit 'worker 3 sent a result .*it does not count' "$paceline" train "${job[@]}" \
    --strategy downpour:wire=int8 --run wrong
rounds wrong "$once and r[2]['refused'] >= 1"
PACELINE_FAULT=2:update:30 hit 'worker 2 .*signal 9' "$paceline" train "${job[@]}" --strategy downpour:push-every=4 --run lost
rounds lost "$once and o['workers'] == 2"
rm -r runs/lost
# Results of a round that lost a worker are kept: fewer samples are computed than in a round that begins anew.
PACELINE_FAULT=2:block-done:21 hit 'worker 2 .*signal 9' "$paceline" train "${job[@]}" --strategy downpour --run lost
rounds lost "$once and r[1]['blocks'] == 3 and r[2]['blocks'] == 2"
rm -r runs/lost

# What is no result of its block is refused, and another worker computes the block.
for kind in nan size epoch block; do
    for id in 1 3; do
        [ $id$kind != 1size ] || continue # the worker beside the manager hands over memory, which has one size
        PACELINE_FAULT=$id:rubbish-$kind:21 hit "worker $id sent a result .*it does not count" \
            "$paceline" train "${job[@]}" --strategy downpour --run wrong
        rounds wrong "$once and r[0]['refused'] == 0 and r[2]['refused'] >= 1"
        rm -r runs/wrong
    done
done
# … unless there is no other one: then the job ends, and says why.
PACELINE_FAULT=1:rubbish-nan:21 expect 1 "$paceline" train "${job[@]}" --workers 1 --min-workers 1 --restart-workers \
    --strategy downpour --run wrong
says 'no worker has a result for a block: worker 1 sent a result that is not finite'
rm -r runs/wrong

# A worker that is stopped for a while is late, by its peers' median: its block is computed by another one, and it
# is not lost.
PACELINE_FAULT=2:update:25:STOP "$paceline" train "${job[@]}" --strategy downpour --silence 60 --run slow >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'was stopped' err && break; sleep 0.02; done
sleep 3
kill -CONT "$(sed -nE 's/.*worker 2 \(pid ([0-9]+)\) was stopped/\1/p' err)"
wait $agent || fail "a worker that was stopped for a while: $(tail -n 3 err)"
rounds slow "$once and o['workers'] == 3 and r[1]['reissued'] >= 1"
# With a quorum the round does not wait for it; what it had under way counts in the next one, with its age.
PACELINE_FAULT=2:update:25:STOP "$paceline" train "${job[@]}" --strategy downpour:quorum=0.6,grace=0.1 --silence 60 \
    --run quorum >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'was stopped' err && break; sleep 0.02; done
sleep 3
kill -CONT "$(sed -nE 's/.*worker 2 \(pid ([0-9]+)\) was stopped/\1/p' err)"
wait $agent || fail "a quorum without a worker that was stopped: $(tail -n 3 err)"
rounds quorum "o['steps'] == 60 and len(r) == 3 and sum(e['samples'] for e in r) + 320 * (r[2]['left_out'] - r[2]['late']) == 3 * 960"
expect 0 "$paceline" compare slow quorum --json
json "[r['late_results'] for r in o['runs']] == [0, o['runs'][1]['late_results']] and o['runs'][0]['reissued'] >= 1"
json "o['runs'][1]['late_results'] >= 0 and o['runs'][0]['roles'] == {'worker': 3, 'manager': 1}"
# Stopped for good: it is lost, and the others have its block.
PACELINE_FAULT=2:update:25:STOP expect 0 "$paceline" train "${job[@]}" --strategy downpour --silence 3 --run stopped
rounds stopped "$once and o['workers'] == 2"

# A stop ends the round at once, without it, and the run goes on from there.
"$paceline" train "${job[@]}" --epochs 100000 --strategy downpour --run long >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs '"event":"round"' runs/long/events.jsonl && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
says 'paceline train --resume long'
steps=$(/usr/bin/python3 -c "import json; print(json.load(open('runs/long/run.json'))['result']['steps'])")
expect 0 "$paceline" train --resume long --steps $((steps + 20)) --epochs 100000 --workers 2 --json
json "o['steps'] == $steps + 20"

# Each worker has data of its own, of which only shape and classes are the same.
/usr/bin/python3 - <<'PY'
import os, random
random.seed(3)
for folder, rows, columns in ("a", 240, 3), ("b", 480, 3), ("c", 240, 4):
    os.mkdir(folder)
    with open(f"{folder}/rows.csv", "w") as file:
        print(",".join(f"x{i}" for i in range(columns)) + ",kind", file=file)
        for i in range(rows):
            kind = i % 2
            print(",".join(f"{random.gauss(2 * kind - 1, 1):.3f}" for _ in range(columns)) + f",{'ab'[kind]}", file=file)
PY
host() { # RANK FOLDER OPTION…
    (cd "$2" && exec timeout 100 "$paceline" train --model mlp:16x1 --data rows.csv --target kind --batch 24 --epochs 6 --lr 0.1 \
        --threads 1 --workers 1 --num-nodes 2 --rank "$1" --master-ip 127.0.0.1 --strategy downpour:split=local --run own \
        "${@:3}" >"$work/$2.out" 2>"$work/$2.err")
}
both() { # FOLDER FOLDER
    rm -f ./*.err
    host 0 "$1" --port 0 --json &
    for _ in $(seq 1500); do grep -qs 'listens on' "$1.err" && break; sleep 0.02; done
    host 1 "$2" --port "$(sed -nE 's/^host 0 listens on 127.0.0.1:([0-9]+).*/\1/p' "$1.err")"
    wait %%
}
both a b || fail "workers with data of their own: $(tail -n 3 a.err b.err)"
cp a.out out
# A fifth of the rows is kept for tests: 192 and 384 are left, in 6 epochs of the first worker's.
json "o['epochs'] == 6 and [r['samples'] for r in o['ranks']] == [1152, 2304] and o['test']['accuracy'] > 0.9"
both a c && fail "data of another shape is not refused"
grep -q 'has not the same shape and classes' c.err || fail "no word about the shape: $(cat c.err)"

# Settings that do not go together, and names that are unknown.
expect 2 "$paceline" train "${job[@]}" --strategy downpour --aggregate mean --run bad
says "unknown aggregator 'mean'"
expect 2 "$paceline" train "${job[@]}" --strategy zero --aggregate median --run bad
says 'no use for --aggregate median'
expect 2 "$paceline" train "${job[@]}" --strategy downpour --aggregate trust-weighted --run bad
says 'add --validation'
expect 2 "$paceline" train "${job[@]}" --strategy downpour --sync-bn --run bad
says 'leave one out'
expect 2 "$paceline" train "${job[@]}" --strategy downpour:push-every=2,quorum=0.5 --run bad
says 'as they come'
expect 2 "$paceline" train "${job[@]}" --strategy downpour:apart --aggregate fltrust --run bad
says 'which downpour:apart leaves out'
expect 2 "$paceline" train "${job[@]}" --strategy downpour:push-every=2 --attack 2:alie --yes-attack --run bad
says 'adds changes as they come'
expect 2 "$paceline" train "${job[@]}" --strategy downpour:fetch-every=2 --run bad
says 'for push-every alone'
