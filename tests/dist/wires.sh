#!/usr/bin/env bash
# local-sgd with changes of weights in wire formats: exact where the format is, fewer bytes where it
# is not; workers are lost while changes and means are under way; what was left out is in checkpoints
# and goes on with another number of workers; k=auto.
source "$(dirname "$0")/../support/dist.bash"

plain=(--model mlp:64x1 --data synthetic:classes=4,shape=1x8x8,train=480,test=80 --batch 48 --epochs 2 --lr 0.1
    --momentum 0.9 --threads 1 --quiet --json)
train() { # RUN WORKERS STRATEGY …
    expect 0 "$paceline" train "${plain[@]}" --run "$1" --workers "$2" --strategy "$3" "${@:4}"
}

# near A B: the same losses but for rounding.
near() {
    /usr/bin/python3 - "$@" <<'PY' || fail "$1 and $2 differ: see above"
import json, sys
a, b = (json.load(open(f"runs/{run}/run.json"))["result"] for run in sys.argv[1:])
assert abs(a["test"]["loss"] - b["test"]["loss"]) < 1e-4 * a["test"]["loss"], (a["test"], b["test"])
PY
}
sent() { /usr/bin/python3 -c "import json; print(sum(r['bytes_sent'] for r in json.load(open('runs/$1/run.json'))['result']['ranks']))"; }

# Exact: with shares that differ, in shared memory and over tcp, with an outer step.
for workers in 1 3 5; do
    train weights-$workers $workers local-sgd:k=3
    train changes-$workers $workers local-sgd:k=3,wire=fp32
    near weights-$workers changes-$workers
done
train tcp 3 local-sgd:k=3,wire=fp32 --transport tcp
near weights-3 tcp
train outer 3 local-sgd:k=3,outer-lr=0.7
train outer-changes 3 local-sgd:k=3,outer-lr=0.7,wire=fp32
near outer outer-changes
train auto 3 local-sgd:k=auto,base=3
json "o['steps'] == 20"

# Fewer bytes, and it still learns.
train whole 4 local-sgd:k=2 --transport tcp --no-checkpoint
for case in bf16:1.8 int8:3.2 int4:5 topk/share=0.05:12; do
    wire=${case%:*}
    train less 4 local-sgd:k=2,wire=$wire --transport tcp --no-checkpoint
    json "o['train']['loss'] < 1.2"
    /usr/bin/python3 -c "import sys; a, b, ratio = map(float, sys.argv[1:]); sys.exit(a < ratio * b)" \
        "$(sent whole)" "$(sent less)" "${case#*:}" || fail "$wire: $(sent less) bytes in place of $(sent whole)"
    rm -r runs/less
done

# Lost while changes or means are under way: the round is made again by those that are left, or has
# been made. (The weights are compared in every view by the program.)
for fault in 2:change:6 3:change:6 1:mean:6 2:mean:6; do
    for wire in int8 topk/share=0.1; do
        PACELINE_FAULT=$fault expect 0 "$paceline" train "${plain[@]}" --run lost --workers 3 \
            --strategy local-sgd:k=3,wire=$wire,outer-lr=0.9,outer-momentum=0.3
        /usr/bin/python3 - "$fault" <<'PY' || fail "$fault, $wire: see above"
import json, sys
events = [json.loads(line) for line in open("runs/lost/events.jsonl")]
view = [e for e in events if e["event"] == "view"][-1]
assert len(view["members"]) == 2 and view["step"] in (3, 6), view
result = json.load(open("runs/lost/run.json"))["result"]
assert result["steps"] == 20 and result["train"]["loss"] < 1.3, result["train"]
PY
        rm -r runs/lost
    done
done

# A new worker in place of a lost one gets what the strategy keeps.
rm -f err
PACELINE_FAULT=2:mean:6 "$paceline" train "${plain[@]}" --no-quiet --run again --workers 3 --restart-workers --epochs 100000 --log-every 0 \
    --no-test --strategy local-sgd:k=1,wire=topk/share=0.1,outer-lr=0.9,outer-momentum=0.3 >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'view 3: workers 1,3,4' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
says 'view 3: workers 1,3,4 go on'
json "o['workers'] == 3 and o['train']['loss'] < 3"

# Checkpoints have it, for any number of workers; another strategy drops it and says so.
train kept 3 local-sgd:k=5,wire=topk/share=0.02,outer-lr=0.9,outer-momentum=0.3
/usr/bin/python3 - <<'PY' || fail "the checkpoint lacks what the strategy keeps: see above"
import json, struct
with open("runs/kept/checkpoints/step-20/state.safetensors", "rb") as file:
    length, = struct.unpack("<Q", file.read(8))
    head = json.loads(file.read(length))
    for name in ("strategy.residual", "strategy.outer_velocity"):
        tensors = [n for n in head if n.startswith(name + ".")]
        assert len(tensors) == 4, (name, list(head))
        begin, end = head[tensors[0]]["data_offsets"]
        file.seek(8 + length + begin)
        values = struct.unpack(f"<{(end - begin) // 4}f", file.read(end - begin))
        assert any(v != 0 for v in values), name
PY
for strategy in local-sgd:k=5,wire=topk/share=0.02,outer-lr=0.9,outer-momentum=0.3 local-sgd:k=5,wire=int8 ddp; do
    cp -r runs/kept runs/on
    expect 0 "$paceline" train --resume on --workers 2 --strategy $strategy --epochs 3 --json --no-quiet
    json "o['steps'] == 30 and o['workers'] == 2"
    case $strategy in
    *outer*) grep -q 'starts at zero\|dropped' err && fail "something is lost: $(cat err)" ;;
    *int8) says '4 tensors of another strategy, which are dropped' ;;
    *) says '8 tensors of another strategy, which are dropped' ;;
    esac
    rm -r runs/on
done

# A survivor that saves alone, from the middle of a view, has its residual in the same unit as between views: what it
# keeps when it goes on alone.
residual() { # RUN: of its newest checkpoint, a digest
    /usr/bin/python3 - "$1" <<'PY'
import glob, hashlib, json, struct, sys
path = max(glob.glob(f"runs/{sys.argv[1]}/checkpoints/step-*/state.safetensors"), key=lambda p: int(p.split("/")[3][5:]))
with open(path, "rb") as file:
    length, = struct.unpack("<Q", file.read(8))
    head, rest = json.loads(file.read(length)), file.read()
spans = [head[n]["data_offsets"] for n in sorted(head) if n.startswith("strategy.residual.")]
assert spans and any(any(rest[a:b]) for a, b in spans)
print(hashlib.sha256(b"".join(rest[a:b] for a, b in spans)).hexdigest())
PY
}
PACELINE_FAULT=2:change:6 train goes-on 2 local-sgd:k=3,wire=topk/share=0.05 --steps 6
PACELINE_FAULT=2:change:6 expect 1 "$paceline" train "${plain[@]}" --run few --workers 2 --min-workers 2 \
    --strategy local-sgd:k=3,wire=topk/share=0.05
says 'saved after step 3'
[ "$(residual goes-on)" = "$(residual few)" ] || fail "the survivor saved another residual than it has"

# Ctrl-C ends a round, and what goes on from there is what goes on undisturbed, bit for bit where all arrives.
rm -f err
"$paceline" train "${plain[@]}" --momentum 0 --run broken --workers 2 --epochs 100000 --log-every 0 --no-test \
    --strategy local-sgd:k=3,wire=fp32 >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs '"event":"epoch"' runs/broken/events.jsonl && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
steps=$(($(/usr/bin/python3 -c "import json; print(json.load(open('runs/broken/run.json'))['result']['steps'])") + 12))
expect 0 "$paceline" train --resume broken --steps $steps --quiet
train whole-$steps 2 local-sgd:k=3,wire=fp32 --momentum 0 --epochs 100000 --log-every 0 --no-test --steps $steps
[ "$(fingerprint runs/broken)" = "$(fingerprint runs/whole-$steps)" ] || fail "a run that was stopped goes on differently"

# What is wrong is refused before a worker is started.
for case in "wire=int9|unknown wire 'int9'" "wire=topk/bits=1|bits" "wire=topk/part=2|no option 'part'" "k=-1|k takes" \
    "k=some|k takes" "k=auto,base=0|base"; do
    expect 2 "$paceline" train "${plain[@]}" --workers 2 --strategy "local-sgd:${case%|*}"
    says "${case#*|}"
done
