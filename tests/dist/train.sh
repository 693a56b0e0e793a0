#!/usr/bin/env bash
# What train, eval and runs say: the JSON contract, evaluation of a checkpoint equals the run's own
# test, accumulation changes nothing, --init keeps what fits, --record, early stopping, divergence.
source "$(dirname "$0")/../support/dist.bash"

small=(--data synthetic:train=320,test=100 --batch 32 --lr 0.02)
cat >net.model <<'M'
conv 8 3x3 pad=1 name=first
relu
maxpool 2
dense classes name=head
M

expect 0 "$paceline" train --model net.model "${small[@]}" --epochs 2 --run one --record first --json
json "list(o) == ['schema','model','data','strategy','workers','hosts','threads','batch','steps','lost_steps',
 'epochs','best_step','parameters','step_seconds','samples_per_second','train','validation','test','time','ranks',
 'figures','memory','peak_memory_bytes','interrupted','run']"
json "o['schema'] == 1 and o['steps'] == 20 and o['parameters'] == 8*9+8 + 8*14*14*10+10"
json "sum(p['support'] for p in o['test']['per_class']) == 100 and len(o['test']['per_class']) == 10"
json "sum(map(sum, o['test']['confusion'])) == 100"
json "abs(sum(o['test']['confusion'][i][i] for i in range(10)) / 100 - o['test']['accuracy']) < 1e-9"
json "abs(sum(o['time'][k] for k in ('compute','communicate','wait','data','stolen')) -
 o['time']['total']) < 1e-6"
json "0 < o['step_seconds']['median'] and o['samples_per_second'] > 0 and o['peak_memory_bytes'] > 1e6"
cp out one.json
for file in run.json events.jsonl report.txt checkpoints/step-20/manifest.json; do
    [ -s runs/one/$file ] || fail "no runs/one/$file"
done
/usr/bin/python3 - <<'PY' || fail "the events are not right"
import json
events = [json.loads(line) for line in open("runs/one/events.jsonl")]
steps = [e for e in events if e["event"] == "step"]
assert [e["step"] for e in steps] == list(range(1, 21)), steps
seen = [e for e in events if e["event"] == "activations"]
assert len(seen) == 1 and seen[0]["step"] == 20, seen  # the logged step, not the test after it
assert seen[0]["layer"] == "first" and len(seen[0]["histogram"]) == 20, seen
assert sum(seen[0]["histogram"]) == 32 * 8 * 28 * 28 and seen[0]["deviation"] > 0, seen
PY

# Whole activations of chosen samples after every epoch, beside the statistics of the same layer: those of the
# last epoch follow from the weights that were saved. The numbers are of the training data before validation.
expect 0 "$paceline" train --model net.model "${small[@]}" --epochs 2 --run whole --record first --record first:npy \
    --record head:npy --record-samples 3..40 --validation 0.5 --normalise=off --batch 16
[ "$(ls runs/whole/activations runs/whole/activations/*/ | tr '\n' ' ')" = \
    'runs/whole/activations: first head samples.npy  runs/whole/activations/first/: epoch-0001.npy epoch-0002.npy  runs/whole/activations/head/: epoch-0001.npy epoch-0002.npy ' ] ||
    fail "other files of activations: $(ls -R runs/whole/activations)"
/usr/bin/python3 - <<'PY' || fail "the activations are not right"
import json, numpy, struct
place = "runs/whole/activations/"
samples = numpy.load(place + "samples.npy")
assert samples.dtype == numpy.uint32 and 5 < len(samples) < 38 and all(numpy.diff(samples.astype(int)) > 0)
assert samples[0] >= 3 and samples[-1] <= 40
epochs = [(numpy.load(f"{place}first/epoch-{e:04}.npy"), numpy.load(f"{place}head/epoch-{e:04}.npy")) for e in (1, 2)]
for first, head in epochs:
    assert first.dtype == head.dtype == numpy.float32
    assert first.shape == (len(samples), 8, 28, 28) and head.shape == (len(samples), 10), (first.shape, head.shape)
assert not numpy.array_equal(epochs[0][1], epochs[1][1])
import glob
raw = open(sorted(glob.glob("runs/whole/checkpoints/step-*/model.safetensors"), key=lambda p: int(p.split("step-")[1].split("/")[0]))[-1], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
about = json.loads(raw[8 : 8 + size])
def tensor(name):
    a, b = about[name]["data_offsets"]
    return numpy.frombuffer(raw[8 + size + a : 8 + size + b], numpy.float32).reshape(about[name]["shape"])
first, head = epochs[1]
pooled = numpy.maximum(first, 0).reshape(len(samples), 8, 14, 2, 14, 2).max((3, 5)).reshape(len(samples), -1)
wanted = pooled @ tensor("head.weight").T + tensor("head.bias")
assert numpy.abs(wanted - head).max() < 1e-3 * numpy.abs(head).max(), numpy.abs(wanted - head).max()
assert [e["step"] for e in map(json.loads, open("runs/whole/events.jsonl")) if e["event"] == "activations"] == [20]
PY
expect 0 "$paceline" train --model net.model "${small[@]}" --steps 3 --run more --record head:npy --workers 2 --record-samples 0..319
[ ! -e runs/more/activations ] || fail "an epoch that did not end is recorded"
refused() { # CODE PATTERN OPTION…
    expect "$1" "$paceline" train --model net.model "${small[@]}" --run refused "${@:3}"
    says "$2"
    [ ! -e runs/refused ] || fail "what is refused left a run"
}
refused 2 "':npz' after the layer's name is not :npy" --record first:npz
refused 2 "^paceline: --record: .*'none'" --record none:npy
refused 2 'none of these is in the training part, which has 320' --record head:npy --record-samples 400..500
refused 1 '^paceline: --record-samples: .*x.json' --record head:npy --record-samples x.json
refused 2 'needs all weights on a worker, which strategy zero divides' --record head:npy --workers 2 --strategy zero:stage=3

# A checkpoint every 10 steps is one at each of these epochs' ends; no step, no training loss.
expect 0 "$paceline" train --model net.model "${small[@]}" --epochs 3 --checkpoint-every 10 \
    --run tens --json
[ "$(ls runs/tens/checkpoints | tr '\n' ' ')" = 'step-10 step-20 step-30 ' ] ||
    fail "--checkpoint-every 10 left $(ls runs/tens/checkpoints)"
expect 0 "$paceline" train --model net.model "${small[@]}" --steps 0 --run none --json
json "o['train'] == {'loss': None, 'accuracy': None} and o['test']['loss'] > 0"

# Stopped inside an epoch, the test is of the last step's weights, not of the last epoch's.
expect 0 "$paceline" train --model net.model "${small[@]}" --steps 15 --run half --json
loss=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['test']['loss'])")
expect 0 "$paceline" eval half --json
json "abs(o['test']['loss'] - $loss) < 1e-6"

# The same numbers from the checkpoint, by run name and by folder; data of another shape is refused.
expect 0 "$paceline" eval one --json
cp out eval.json
/usr/bin/python3 -c "
import json
a, b = json.load(open('one.json')), json.load(open('eval.json'))
assert a['test']['confusion'] == b['test']['confusion']
assert abs(a['test']['loss'] - b['test']['loss']) < 1e-6" || fail "eval differs from train's test"
expect 0 "$paceline" eval runs/one/checkpoints/step-10 --part train --json
json "o['steps'] == 10 and sum(map(sum, o['train']['confusion'])) == 320"
expect 1 "$paceline" eval one --data synthetic:shape=3x32x32 --json
json "o['error']['code'] == 'model' and '3x32x32' in o['error']['message'] and 'host' in o['error']"

# A run may be called like a checkpoint; memory is for the samples there are, not for the batch.
expect 0 "$paceline" train --model mlp:8x1 "${small[@]}" --steps 0 --run step-5
expect 0 "$paceline" eval step-5 --batch 100000 --json
json "o['steps'] == 0 and o['batch'] == 100000 and o['peak_memory_bytes'] < 3e8"

# In pieces it is the same batch: losses agree to rounding.
for m in 1 4; do
    expect 0 "$paceline" train --model net.model "${small[@]}" --steps 10 --accumulate $m --run acc$m
done
/usr/bin/python3 - <<'PY' || fail "--accumulate changes the losses"
import json
def losses(name):
    lines = map(json.loads, open(f"runs/{name}/events.jsonl"))
    return [e["loss"] for e in lines if e["event"] == "step"]
for a, b in zip(losses("acc1"), losses("acc4"), strict=True):
    assert abs(a - b) < 1e-4 * a, (a, b)
PY

# … and each piece moves the running statistics, as PyTorch counts them.
printf 'conv 4 3x3 name=c\nbn name=b\nrelu\ndense classes\n' >bn.model
expect 0 "$paceline" train --model bn.model "${small[@]}" --steps 3 --accumulate 4 --run bn
/usr/bin/python3 - runs/bn/checkpoints/step-3/model.safetensors <<'PY' || fail "num_batches_tracked"
import json, struct, sys
bytes_ = open(sys.argv[1], "rb").read()
length, = struct.unpack("<Q", bytes_[:8])
start, end = json.loads(bytes_[8:8 + length])["b.num_batches_tracked"]["data_offsets"]
assert struct.unpack("<q", bytes_[8 + length + start:8 + length + end]) == (12,)
PY

# A new head where shapes differ; the rest is kept.
sed 's/dense classes name=head/dense 16 name=mid\nrelu\ndense classes name=head/' \
    net.model >deeper.model
expect 0 "$paceline" train --model deeper.model "${small[@]}" --steps 0 --init one --run warm
says '^[0-9]+ of [0-9]+ tensors taken from '
says 'they start new: .*mid.weight.*head.weight'
expect 1 "$paceline" train --model mlp:8x1 "${small[@]}" --steps 0 --init one --run cold
says 'no tensor in common.*it has for example .*, the model '

# Early stopping, the best checkpoint.
expect 0 "$paceline" train --model mlp:16x1 --data synthetic:train=200,test=50,labels=shuffled \
    --validation 0.3 --patience 2 --epochs 60 --lr 0.05 --run early --json
json "o['epochs'] < 60"
says 'no better validation loss for 2 epochs'
says ': 140 training, 60 validation, 50 test samples of '
says '^epoch 1 .* validation loss [0-9.]+, accuracy [0-9.]+ % \(best\)  test loss'
json "0 <= o['validation']['accuracy'] <= 1 and o['validation']['loss'] > 0"
/usr/bin/python3 - <<'PY' || fail "an epoch lacks the accuracy of its validation"
import json
events = [e for e in map(json.loads, open("runs/early/events.jsonl")) if e["event"] == "epoch"]
epochs = json.load(open("runs/early/run.json"))["epochs"]
assert [round(60 * e["validation_accuracy"], 6) % 1 for e in epochs] == [0] * len(epochs)
assert [e["validation_accuracy"] for e in events] == [float("%.9g" % e["validation_accuracy"]) for e in epochs]
PY
grep -qE '^ +epoch +step +train loss +accuracy +validation +accuracy +test$' runs/early/report.txt || fail "report.txt: $(cat runs/early/report.txt)"
last=$(/usr/bin/python3 -c "
import json; print(json.load(open('runs/early/run.json'))['result']['steps'])")
expect 0 "$paceline" eval early --best --json
json "o['steps'] < $last"

# After it the report is of the best weights; the last checkpoint has the last ones still.
for workers in 1 2; do
    expect 0 "$paceline" train --like early --workers $workers --threads 1 --run best-$workers --json
    says '^the best weights, of step [0-9]+: test loss'
    says 'next: paceline eval runs/best-.* --best'
    cp out best.json
    expect 0 "$paceline" eval best-$workers --best --json
    /usr/bin/python3 - out best.json <<'PY' || fail "the report is not of the best weights"
import json, sys
evaluated, result = (json.load(open(path)) for path in sys.argv[1:])
assert result["best_step"] == evaluated["steps"] < result["steps"]
assert abs(evaluated["test"]["loss"] - result["test"]["loss"]) < 1e-6
assert evaluated["test"]["confusion"] == result["test"]["confusion"]
PY
    expect 0 "$paceline" eval best-$workers --json
    /usr/bin/python3 - out best.json <<'PY' || fail "the last checkpoint has the best weights"
import json, sys
last, result = (json.load(open(path)) for path in sys.argv[1:])
assert last["steps"] == result["steps"] and abs(last["test"]["loss"] - result["test"]["loss"]) > 1e-6
PY
done

# Divergence: the step is named, what was saved before is kept and loads.
expect 1 "$paceline" train --model net.model --data synthetic:train=320,test=100 --batch 32 \
    --lr 3e4 --epochs 9 --checkpoint-every 1 --run wild --json
json "o['error']['code'] == 'diverged' and 'step' in o['error']['message']"
grep -q '"status": "failed"' runs/wild/run.json || fail "run.json does not say failed"

# No checkpoints when none are wanted; stdout stays empty without --json.
expect 0 "$paceline" train --model mlp:8x1 "${small[@]}" --epochs 1 --no-checkpoint --run bare
[ -s out ] && fail "something on stdout without --json"
[ -e runs/bare/checkpoints ] && fail "checkpoints although --no-checkpoint"
expect 0 "$paceline" runs --json
json "{r['name']: r['status'] for r in o['runs']}['wild'] == 'failed'"

# Class names of many bytes: cut between characters in the report and on the terminal, whole in JSON.
mkdir names
/usr/bin/python3 - <<'PY'
import struct
for part, n in ("train", 96), ("t10k", 12):
    with open(f"names/{part}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">4I", 0x803, n, 4, 4) + bytes(i * 37 % 256 for i in range(16 * n)))
    with open(f"names/{part}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">2I", 0x801, n) + bytes(range(3)) * (n // 3))
with open("names/classes.txt", "w", encoding="utf-8") as f:
    f.write("größtmöglicher Käfer\nкошка на крыше дома\n猫がたくさんいるところ\n")
PY
expect 0 "$paceline" train --model mlp:8x1 --data names --epochs 1 --run names
/usr/bin/python3 - <<'PY' || fail "class names of many bytes: $(cat runs/names/report.txt)"
import json, unicodedata
report = open("runs/names/report.txt", encoding="utf-8").read()
assert open("err", encoding="utf-8").read().count("größtmöglicher K ") == 2
def width(line):
    return sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in line)
lines = report.splitlines()
start = next(i for i, line in enumerate(lines) if line.startswith("class "))
assert {width(line) for line in lines[start:start + 5]} == {56}, [width(l) for l in lines[start:start + 5]]
assert json.load(open("runs/names/run.json"))["about"]["labels"][1] == "кошка на крыше дома"
PY

# Momentum of weights whose gradient stays away becomes zero, and no number so small that the CPU is slow with it:
# each of 40 columns is filled in one row alone, which comes once in 1500 steps.
/usr/bin/python3 - <<'PY'
rows = [[int(r == 30 * c) for c in range(40)] + [1, "ab"[r % 2]] for r in range(1500)]
with open("rare.csv", "w") as file:
    file.write(",".join([f"x{c}" for c in range(40)] + ["one", "kind"]) + "\n")
    file.writelines(",".join(map(str, row)) + "\n" for row in rows)
PY
expect 0 "$paceline" train --model mlp:4x1 --data rare.csv --target kind --no-normalise --test-share 0 --batch 1 \
    --momentum 0.9 --epochs 1 --run rare --threads 2
/usr/bin/python3 - "$root/tools" <<'PY' || fail "momentum is left with numbers that slow the CPU down"
import glob, sys
sys.path.insert(0, sys.argv[1])
import numpy, safetensors
state = safetensors.load(glob.glob("runs/rare/checkpoints/step-1500/state.safetensors")[0])
values = numpy.abs(numpy.concatenate([t.ravel() for t in state.values() if t.dtype == "float32"]))
assert (values > 0).any() and not ((values > 0) & (values < 2.0 ** -126)).any(), values[values > 0].min()
PY
