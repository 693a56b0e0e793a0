#!/usr/bin/env bash
# Parameter servers whose pushes travel in wire formats: exact ones have the bits of floats, lossy ones send fewer bytes; what
# these leave out survives pushes that do not count, lost workers and checkpoints.
source "$(dirname "$0")/../support/dist.bash"

job=(--model mlp:64x1 --data synthetic:classes=4,shape=1x8x8,train=240,test=40 --batch 24 --epochs 2 --lr 0.1 --momentum 0.9
    --threads 1 --quiet --json)
train() { # RUN WORKERS OPTIONS …
    expect 0 "$paceline" train "${job[@]}" --run "$1" --workers "$2" --strategy "ps:$3" "${@:4}"
}
pushed() { /usr/bin/python3 -c "import json; print(json.load(open('runs/$1/run.json'))['result']['figures']['bytes_pushed'])"; }

# The bits of floats, with replicas and without, in shared memory and over tcp.
for workers in 2 3; do
    train plain-$workers $workers servers=0
    for case in fp32:shm sparse:tcp fp32,overlap=on:tcp; do
        wire=${case%:*}
        train exact $workers wire=$wire --transport ${case#*:}
        [ "$(fingerprint runs/exact)" = "$(fingerprint runs/plain-$workers)" ] || fail "wire=$wire on $workers workers has other bits than none"
        # Workers of one host read the weights from shared memory; over tcp they are sent.
        json "(o['figures']['bytes_pulled'] == 0) == ('${case#*:}' == 'shm') and o['figures']['bytes_pushed'] > 0"
        rm -r runs/exact
    done
done

# Fewer bytes, and it learns about as well.
loss=$(/usr/bin/python3 -c "import json; print(json.load(open('runs/plain-3/run.json'))['result']['train']['loss'])")
for case in bf16:1.99 int8:3.9 int4:7 topk/share=0.1:20; do
    wire=${case%:*}
    train less 3 wire=$wire
    json "o['train']['loss'] < $loss + 0.1"
    /usr/bin/python3 -c "import sys; a, b, ratio = map(float, sys.argv[1:]); sys.exit(a < ratio * b)" \
        "$(pushed plain-3)" "$(pushed less)" "${case#*:}" || fail "$wire: $(pushed less) bytes in place of $(pushed plain-3)"
    rm -r runs/less
done

# Lost while pushes are under way: replicas stay the same (the program compares them in every view), every sample counts.
for case in 1:push-1:servers=2 2:update:servers=3 3:push-0:consistency=asp 3:update:apart,servers=1 2:backward-1:servers=3,overlap=on; do
    IFS=: read -r id phase options <<<"$case"
    PACELINE_FAULT=$id:$phase:6 train lost 3 $options,wire=int4
    json "o['steps'] == 20 and o['lost_steps'] == 0 and o['train']['loss'] < 1.3"
    rm -r runs/lost
done
# One server, which is lost: all go back to the checkpoint, residuals too.
PACELINE_FAULT=1:update:16 train lost 3 servers=1,wire=topk/share=0.1
json "o['steps'] == 20 and o['workers'] == 2 and o['train']['loss'] < 1.3"
rm -r runs/lost
# Rubbish in a format, and pushes that come too late.
for case in servers=2:3:nan servers=1:2:size backup=1:3:nan; do
    IFS=: read -r options id kind <<<"$case"
    PACELINE_FAULT=$id:rubbish-$kind:2 PACELINE_STALL=1:0.005 train wrong 3 $options,wire=int8
    says "worker $id pushed gradients that are not finite or not whole"
    json "o['steps'] == 20 and o['figures']['refused'] >= 1 and sum(r['samples'] for r in o['ranks']) == 480 and o['train']['loss'] < 1.3"
    rm -r runs/wrong
done

# A checkpoint has the sum of what all workers have left out, and any number of workers goes on with it: after a step that
# moves no weight and sends a value or two of each slice it has the gradients of that step, too. Without a wire these are
# what the same step moves the weights by. A step that sends nearly everything leaves nearly nothing: processes that only
# serve got no part of it.
train kept 3 wire=topk/share=0.02 --momentum 0 --weight-decay 0
cp -r runs/kept runs/moved
cp -r runs/kept runs/sent
cp -r runs/kept runs/origin
expect 0 "$paceline" train --resume sent --workers 3 --strategy ps:apart,servers=1,wire=topk/share=1/bits=8 --steps 21 --epochs 3
expect 0 "$paceline" train --resume moved --workers 2 --strategy ps --override --lr 1 --steps 21 --epochs 3
says '4 tensors of another strategy, which are dropped'
expect 0 "$paceline" train --resume kept --workers 2 --strategy ps:wire=topk/share=0.000001/bits=8 --override --lr 1e-30 --steps 21 --epochs 3
grep -q 'starts at zero\|dropped' err && fail "something is lost: $(cat err)"
/usr/bin/python3 - <<'PY' || fail "the residual of a checkpoint did not go on: see above"
import json, struct
def read(run, step, file, prefix):
    with open(f"runs/{run}/checkpoints/step-{step}/{file}.safetensors", "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        head, rest = json.loads(file.read(length)), file.read()
    spans = [head[n]["data_offsets"] for n in sorted(head) if n.startswith(prefix) and n != "__metadata__"]
    return [v for a, b in spans for v in struct.unpack_from(f"<{(b - a) // 4}f", rest, a)]
before, after = (read("kept", step, "state", "strategy.push_residual.") for step in (20, 21))
gradients = [a - b for a, b in zip(read("moved", 20, "model", ""), read("moved", 21, "model", ""))]
assert len(before) == len(after) == len(gradients) == 4420, (len(before), len(after), len(gradients))
assert sum(abs(b) > 1e-4 for b in before) > 1000 and sum(abs(g) > 1e-4 for g in gradients) > 1000
sent = read("sent", 21, "state", "strategy.push_residual.")
assert sum(v * v for v in sent) < 0.01 * sum(v * v for v in before), "a part of it waits where no gradient is pushed"
near = sum(abs(b + g - a) <= 1e-6 for b, a, g in zip(before, after, gradients))
assert 4420 - 8 <= near < 4420, near
PY
# A worker is lost while the residual is divided: one server has its part, the other was about to get it through the lost
# worker. What both keep for the next checkpoint must stay the same.
for id in 3 4; do
    cp -r runs/origin runs/cut
    PACELINE_FAULT=$id:divide-0:21 expect 0 "$paceline" train --resume cut --workers 4 --transport tcp --strategy ps:wire=topk/share=0.02 --steps 24 --epochs 3 --json
    json "o['steps'] == 24 and o['workers'] == 3"
    rm -r runs/cut
done
expect 2 "$paceline" train "${job[@]}" --workers 2 --strategy ps:wire=int9
says "unknown wire 'int9'"
