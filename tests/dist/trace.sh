#!/usr/bin/env bash
# `paceline trace`: for every strategy the spans of every worker do not overlap and lie in the step's time; of the
# ring, every micro-batch passes once forward and once backward through every stage in every traced step.
source "$(dirname "$0")/../support/dist.bash"

train() { # RUN OPTION…
    expect 0 "$paceline" train --model mlp:16x6 --data synthetic:classes=4,shape=1x8x8,train=96,test=8 --batch 24 \
        --epochs 3 --threads 1 --run "$1" --quiet --no-checkpoint "${@:2}"
}

# judge RUN WORKERS STAGES MICROBATCHES
judge() {
    expect 0 "$paceline" trace "$1" -o "$1.json"
    expect 0 "$paceline" trace "$1" -o "$1.svg"
    /usr/bin/python3 - "$@" <<'PY' || fail "the trace of $1 is not right"
import collections, json, sys, xml.etree.ElementTree as tree
run, (workers, stages, pieces) = sys.argv[1], map(int, sys.argv[2:])
tree.parse(run + ".svg")
events = json.load(open(run + ".json"))["traceEvents"]
spans = [e for e in events if e["ph"] == "X"]
assert len({e["pid"] for e in events if e["ph"] == "M"}) == workers, events[:3]
assert len({e["pid"] for e in spans}) == workers
assert min(e["ts"] for e in spans) == 0
for worker in {e["pid"] for e in spans}:
    own = sorted((e["ts"], e["dur"]) for e in spans if e["pid"] == worker)
    for (a, length), (b, _) in zip(own, own[1:]):
        assert a + length <= b + 0.2, (worker, a, length, b)  # microseconds, rounded to tenths
kinds = {e["cat"] for e in spans}
assert kinds <= {"compute", "data", "communicate", "wait", "update", "forward", "backward", "weights"}, kinds
passes = collections.Counter((e["args"]["step"], e["cat"], e["args"]["stage"], e["args"]["microbatch"])
                             for e in spans if e["cat"] in ("forward", "backward"))
weights = {(e["args"]["step"], e["args"]["stage"], e["args"]["microbatch"]) for e in spans if e["cat"] == "weights"}
steps = {e["args"]["step"] for e in spans}
assert 1 in steps and max(steps) <= 12, steps
expected = {(step, way, stage, piece) for step in steps for way in ("forward", "backward")
            for stage in range(stages) for piece in range(pieces)}
assert set(passes) == expected and set(passes.values()) <= {1}, passes
learns = {stage for _, stage, _ in weights}  # a stage may have no weights
assert weights == {(step, stage, piece) for step, _, stage, piece in expected if stage in learns}, weights
assert bool(learns) == bool(stages)
assert stages or "compute" in kinds
if stages:
    assert steps == set(range(1, 9)), steps
told = [json.loads(line) for line in open(f"runs/{run}/events.jsonl")]
assert all(0 <= e["idle"] <= 1 for e in told if e["event"] == "trace")
assert all(0 <= rank["idle"] <= 1 for rank in json.load(open(f"runs/{run}/run.json"))["result"]["ranks"])
PY
}

train alone
judge alone 1 0 0
train ring --workers 3 --strategy ring:microbatches=4
judge ring 3 3 4
train laps --workers 2 --strategy ring:microbatches=3,laps=2,place=fold
judge laps 2 4 3
for strategy in ddp ps downpour local-sgd:k=2 zero:stage=3; do
    name=${strategy%%:*}
    train "$name" --workers 2 --strategy "$strategy"
    judge "$name" 2 0 0
done

# Steps that are done again, after a loss and after a resume, are there once.
PACELINE_FAULT=2:data:6 train again --workers 3 --strategy ring:microbatches=4,replicate=off
judge_steps() { # RUN: as many forwards of each step as of step 1
    expect 0 "$paceline" trace "$1" -o "$1.json"
    /usr/bin/python3 - "$1.json" <<'PY' || fail "the trace of $1 has a step twice"
import collections, json, sys
passes = collections.Counter((e["args"]["step"], e["args"]["stage"], e["args"]["microbatch"])
                             for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "forward")
assert passes and set(passes.values()) == {1}, passes
assert {step for step, _, _ in passes} == set(range(1, 9)), passes
PY
}
judge_steps again

expect 0 "$paceline" trace ring -o one.json --step 5
[ "$(grep -o '"step":[0-9]*' one.json | sort -u)" = '"step":5' ] || fail "--step 5 has other steps"
expect 2 "$paceline" trace ring -o one.json --step 11
says "no trace of step 11"
expect 2 "$paceline" trace ring -o one.txt
says "trace.json"
expect 2 "$paceline" trace missing -o one.json
