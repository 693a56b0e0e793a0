#!/usr/bin/env bash
# Every strategy on 1 to 4 workers is the single run (equal.sh: of the zoo's models), here with batch-norm
# and shares that are empty; the same bits when run twice; a worker that joins; a stop.
source "$(dirname "$0")/../support/dist.bash"

data=synthetic:classes=10,shape=1x28x28,train=90,test=40
cnn=(--model mnist-cnn --data $data --batch 24 --steps 10 --lr 0.05 --kernels onednn --threads 1 --quiet)
cat >bn.model <<'M'
conv 16 3x3 pad=1
bn
relu
maxpool 2x2
conv 16 3x3 pad=1
bn
relu
gavgpool
flatten
dense classes
softmax
M
bn=(--model bn.model --data synthetic:classes=10,shape=3x8x8,train=51,test=20 --batch 16 --steps 10 --lr 0.02
    --kernels onednn --threads 1 --quiet --sync-bn)

equal() { # RUN RUN
    "$root/tests/support/equal.py" losses "$@" || fail "$2 is not $1"
}

expect 0 "$paceline" train "${cnn[@]}" --run cnn
expect 0 "$paceline" train "${bn[@]}" --run bn
for strategy in gather-scatter allreduce ddp ddp:overlap=on,bucket=4K,first=1K; do
    for workers in 1 2 3 4; do
        name=${strategy//[:=,]/-}-$workers
        expect 0 "$paceline" train "${bn[@]}" --strategy $strategy --workers $workers --run bn-$name
        equal bn bn-$name
    done
    expect 0 "$paceline" train "${bn[@]}" --strategy $strategy --workers 4 --run again-$name
    [ "$(fingerprint runs/bn-$name)" = "$(fingerprint runs/again-$name)" ] || fail "$name: other bits when run twice"
done
[ "$(fingerprint runs/bn-ddp-3)" = "$(fingerprint runs/bn-allreduce-3)" ] || fail "ddp and allreduce differ on one host"

# local-sgd: a round a step without momentum is the single run; all its forms count every sample once.
plain=("${bn[@]/--sync-bn/--no-sync-bn}" --model plain.model --momentum 0)
grep -v '^bn$' bn.model >plain.model
expect 0 "$paceline" train "${plain[@]}" --batch 17 --run alone
expect 0 "$paceline" train "${plain[@]}" --batch 17 --workers 2 --strategy local-sgd:k=3,warmup=1,slots=on --run some --json
json "sum(r['samples'] for r in o['ranks']) == 10 * 17 and o['steps'] == 10"
expect 0 "$paceline" train "${plain[@]}" --batch 17 --workers 2 --strategy local-sgd:k=3,outer-lr=0.7 --run outer --json
json "o['steps'] == 10 and 0 < o['train']['loss'] < 3"
expect 0 "$paceline" train "${plain[@]}" --batch 17 --workers 1 --strategy local-sgd:k=4 --run one
equal alone one

# Batches by worker; gradients over tcp, rounded on their way.
expect 0 "$paceline" train "${bn[@]/#--batch/--batch-per-worker}" --workers 2 --run each --json
json "o['batch'] == 32 and o['strategy'] == 'ddp' and o['workers'] == 2"
expect 0 "$paceline" train "${cnn[@]}" --strategy ddp:wire=bf16 --workers 2 --transport tcp --run rounded --json
json "o['steps'] == 10 and all(r['bytes_sent'] > 10 * 1199882 for r in o['ranks'])"

# Runs side by side.
expect 0 "$paceline" compare cnn rounded --json
json "[r['name'] for r in o['runs']] == ['cnn', 'rounded'] and o['runs'][0]['speedup'] == 1 and o['runs'][1]['bytes_sent'] > 0"
expect 0 "$paceline" compare cnn rounded
[ "$(wc -l <out)" = 3 ] || fail "a line for each run and one above: $(cat out)"
expect 2 "$paceline" compare cnn nowhere
says "no run 'nowhere'"

# Averages of weights are by samples: of rounds of one plain step, with shares of 2, 1 and none, they are
# the strategy that averages gradients.
plain=(--model mlp:16x1 --data synthetic:train=51,test=20 --batch 16 --epochs 2 --momentum 0 --lr 0.3 --threads 1 --quiet)
expect 0 "$paceline" train "${plain[@]}" --workers 4 --strategy allreduce --run gradients
expect 0 "$paceline" train "${plain[@]}" --workers 4 --strategy local-sgd:k=1 --run weights
/usr/bin/python3 - <<'PY' || fail "local-sgd does not weigh its workers"
import json
a, b = (json.load(open(f"runs/{run}/run.json"))["result"]["test"]["loss"] for run in ("gradients", "weights"))
assert abs(a - b) < 1e-4 * a, (a, b)
PY

# What is wrong is refused before a worker is started.
expect 2 "$paceline" train "${cnn[@]}" --workers 2 --strategy alreduce
says "did you mean 'allreduce'"
expect 2 "$paceline" train "${cnn[@]}" --workers 2 --strategy ddp:bucket=blue
says 'takes bytes'
expect 2 "$paceline" train "${bn[@]}" --workers 2 --accumulate 2
says 'sync-bn'

# A signal: all stop at the same step, it is saved, and goes on with another number of workers.
long=(--model bn.model --data synthetic:classes=10,shape=3x8x8,train=4000,test=20 --batch 16 --kernels onednn
    --threads 1 --log-every 1)
"$paceline" train "${long[@]}" --epochs 1000 --workers 2 --run stopped >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -q 'step  *5 ' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "a stopped training ends with 130: $(tail -n 3 err)"
says 'stopped after step [0-9]* \(saved\); go on with: paceline train --resume stopped'
step=$(sed -nE 's/.*stopped after step ([0-9]*) .*/\1/p' err)
expect 0 "$paceline" train --resume stopped --steps $((step + 3)) --workers 3 --json
json "o['steps'] == $step + 3 and o['workers'] == 3"

# A worker that joins gets the state and its share. Ctrl-C where it was started makes it leave, no more.
"$paceline" train "${long[@]}" --epochs 1000 --workers 1 --port 0 --strategy ddp --run joined >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -q 'step  *5 ' err && break; sleep 0.02; done
port=$(sed -nE 's/^host 0 listens on 127.0.0.1:([0-9]+).*/\1/p' err)
"$paceline" join "127.0.0.1:$port" --workers 1 >join.out 2>&1 &
joiner=$!
for _ in $(seq 1500); do grep -q 'view 2: workers 1,2' err && break; sleep 0.02; done
kill -INT $joiner
wait $joiner
[ $? = 130 ] || fail "a guest that leaves ends with 130: $(cat join.out)"
for _ in $(seq 1500); do grep -q 'view 3: workers 1 go on' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "a stopped training ends with 130: $(tail -n 3 err)"
says 'view 2: workers 1,2 go on'
says 'view 3: workers 1 go on'

# One that has other data is turned away, and the others go on.
/usr/bin/python3 - <<'PY'
import os, struct
for folder, seed in (("here/set", 1), ("there/set", 2)):
    os.makedirs(folder)
    for split in ("train", "t10k"):
        with open(f"{folder}/{split}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">IIII", 2051, 40, 12, 12) + bytes(seed * i % 251 for i in range(40 * 144)))
        with open(f"{folder}/{split}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">II", 2049, 40) + bytes(i % 10 for i in range(40)))
PY
rm err
(cd here && exec "$paceline" train --model "$work/bn.model" --data set --batch 16 --epochs 100000 --kernels onednn --threads 1 \
    --workers 1 --port 0 --strategy ddp --log-every 20 --no-test >"$work/out" 2>"$work/err") &
agent=$!
for _ in $(seq 1500); do grep -qs 'step  *20 ' err && break; sleep 0.02; done
port=$(sed -nE 's/^host 0 listens on 127.0.0.1:([0-9]+).*/\1/p' err)
(cd there && exec "$paceline" join "127.0.0.1:$port" --workers 1 >"$work/join.out" 2>&1) &
joiner=$!
for _ in $(seq 1500); do grep -q 'view 3: workers 1 go on' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "a worker with other data ended the training: $(tail -n 3 err)"
wait $joiner
[ $? = 1 ] || fail "a guest whose worker was turned away ends with 1: $(cat join.out)"
says 'view 3: workers 1 go on'
grep -q 'set is not the same data for worker 1 and worker 2' join.out || fail "why it left: $(cat join.out)"
