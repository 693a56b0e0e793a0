#!/usr/bin/env bash
# Every error a person can cause: one sentence that names the thing and the remedy, the right exit
# code, nothing on stdout (one JSON object with --json), no run folder left behind.
source "$(dirname "$0")/../support/dist.bash"

printf 'conv 8 3x3\ndense 7\n' >seven.model
printf 'conv eight 3x3\n' >word.model
printf 'convv 8 3x3\n' >typo.model
printf 'conv 8 40x40\n' >large.model
printf 'relu\nadd nobody\n' >nobody.model
printf '' >empty.model
printf 'dense 1000000\nrelu\ndense 1000000\nrelu\ndense classes\nsoftmax\n' >wide.model
mkfifo fifo.model
mkdir empty idx labels
printf 'not an idx file at all' >idx/train-images-idx3-ubyte
printf 'nor this' >idx/train-labels-idx1-ubyte
/usr/bin/python3 - <<'PY'
import struct
def idx(path, magic, dims, data):
    head = struct.pack(">I", magic) + b"".join(struct.pack(">I", d) for d in dims)
    open(path, "wb").write(head + data)
for part in "train", "t10k":
    idx(f"labels/{part}-images-idx3-ubyte", 0x803, (4, 3, 3), bytes(36))
    idx(f"labels/{part}-labels-idx1-ubyte", 0x801, (5,), bytes(5))
PY
mkdir cifar
for i in 1 2 3 4 5; do
    head -c 3073 /dev/zero >cifar/data_batch_$i.bin
done
(printf '\310' && head -c 3072 /dev/zero) >cifar/test_batch.bin # label 200
ok="--model mlp:8x1 --data synthetic:train=64,test=16"

# CODE | arguments | what the message must contain
while IFS='|' read -r code arguments pattern; do
    # The table's words are meant to be split.
    # shellcheck disable=SC2086
    expect "$code" "$paceline" $arguments
    [ "$(wc -l <err)" = 1 ] || fail "'$arguments' does not say one line: $(cat err)"
    says "$pattern"
    [ ! -s out ] || fail "'$arguments' printed on stdout: $(cat out)"
    # shellcheck disable=SC2086
    expect "$code" "$paceline" $arguments --json
    json "o['schema'] == 1 and set(o['error']) == {'code','message','id','host'}"
    [ -e runs ] && fail "'$arguments' left a run folder"
done <<TABLE
2|trian|unknown command 'trian'; did you mean 'train'
2|train|--model is missing
2|train --model mlp:8x1|--data is missing
2|train --model mlp:8x1 --dta x|unknown option --dta; did you mean --data
2|train $ok --epochs many|--epochs takes a whole number, not 'many'
2|train $ok --workers 0|--workers takes a whole number from 1 to [0-9]+ or auto, not 0
2|train $ok --workers autoo|--workers takes a whole number or auto, not 'autoo'
2|train $ok --batch 0|--batch takes a whole number from 1
2|train $ok --lr fast|--lr takes a number, not 'fast'
2|train $ok --momentum 2|--momentum takes a number from 0
2|train $ok --aggregate median|strategy single has one way to combine, and no use for --aggregate median
2|train $ok --attack 1:mimic --yes-attack|of which strategy single has no use
2|train $ok --workers 1 --strategy downpour --attack 1:mimic|add --yes-attack
2|train --model bmff:k=8 --data none.csv --split last|unknown model .* 'bmff'; did you mean 'bmf'.*mlp
2|train --model bmf:kk=8 --data none.csv|model bmf has no option 'kk'
2|train --model bmf --data none.csv --run a/b|'a/b' is no name for a run
2|train --model auto --data none.csv --run .b|'.b' is no name for a run
2|model show bmff|unknown model .* 'bmff'; did you mean 'bmf'
2|model show bmf --text|bmf is a rating model: it has no layers
2|train $ok --optimiser adamm|unknown optimiser 'adamm'.*adamw
2|train $ok --schedule cosin|unknown schedule 'cosin'.*cosine
2|train $ok --strategy dpp|unknown strategy 'dpp'.*single
2|train --model mnist-cnn --data synthetic:train=64,test=16 --kernels magic|unknown.*magic.*onednn
2|train $ok --flip=maybe|--flip takes on or off, not 'maybe'
2|train $ok --workers 2 --optimizer adamm|unknown optimiser 'adamm'.*adamw
2|train $ok --workers 2 --schedule cosin|unknown schedule 'cosin'.*cosine
2|train $ok --workers 2 --kernels wingrad2|unknown convolution kernel .or auto. 'wingrad2'; did you mean 'winograd2'.*onednn
2|train $ok --workers 2 --kernels first=magic|unknown convolution kernel .or auto. 'magic'.*onednn
2|train $ok --workers 2 --transport pigeon|unknown transport 'pigeon'.*shm.*tcp
2|train $ok --workers 2 --strategy dpp|unknown strategy 'dpp'.*single
2|train $ok --workers 2 --strategy single|strategy single is for one worker, but there are 2
2|train $ok --workers 2 --strategy ddp:wire=fp16|strategy ddp: unknown wire 'fp16'.*fp32.*bf16
2|train $ok --workers 2 --strategy ddp:overlap=yes|strategy ddp: unknown overlap 'yes'.*auto, on, off
2|train $ok --workers 2 --strategy ring:overlap=on --clip 1|ring:overlap=on does not go with --clip
2|train $ok --workers 2 --strategy ps:overlap=on --clip 1|ps:overlap=on does not go with --clip
2|train $ok --workers 2 --strategy local-sgd:slots=x|strategy local-sgd: slots takes on or off, not 'x'
2|train --model vgg12 --data synthetic --workers 2|vgg12.*vgg11
2|train $ok --workers 2 --init nothing|^paceline: --init nothing: no such
2|train $ok --workers 2 --record conv9|^paceline: .*conv9
2|train $ok --workers 2 --run ../x|^paceline: .*no name for a run
2|train --model mlp:8x1 --workers 2 --data fashon-mnist|^paceline: .*fashion-mnist
1|train --model mlp:8x1 --workers 2 --data /nowhere/at/all|^paceline: .*/nowhere/at/all
1|train --model mlp:8x1 --workers 2 --data idx|^paceline: .*idx.*magic
1|train --model word.model --workers 2 --data synthetic|^paceline: word.model.*line 1.*eight
2|ping --workers 2 --transport pigeon|unknown transport 'pigeon'.*shm.*tcp
2|bench collectives --workers 2 --transport pigeon|unknown transport 'pigeon'.*shm.*tcp
2|bench step mnist-cnn --kernels magic|unknown.*magic.*onednn
2|eval nothing --part tset|unknown part 'tset'.*known: test, train
2|train $ok --patience 3|--patience needs a validation part
2|train $ok --accumulate 128|--accumulate 128
2|train $ok --run ../x|no name for a run
2|train $ok extra|'extra' is one argument too many
2|train --resume nothing|no run 'nothing'
2|train --like nothing|no run 'nothing'
2|train $ok --init nothing|--init nothing: no such
2|train $ok --record conv9|conv9
2|train --model vgg12 --data synthetic|vgg12.*vgg11
2|train --model missing.model --data synthetic|missing.model
1|train --model empty.model --data synthetic|empty.model
1|train --model fifo.model --data synthetic|fifo.model is not a file
1|train --model word.model --data synthetic|word.model.*line 1.*eight
1|train --model typo.model --data synthetic|line 1.*convv.*conv
1|train --model large.model --data synthetic|line 1
1|train --model nobody.model --data synthetic|line 2.*nobody
1|train --model wide.model --data synthetic|wide.model with 64 samples at a time needs [0-9.]+ [GT]B on this host .*weights 4.00 TB.*which has [0-9.]+ [GT]B; no smaller
1|train --model vgg11 --data synthetic:shape=3x32x32,train=1000000,test=1 --batch 1000000|needs [0-9]+ GB.*activations [0-9.]+ GB, data [0-9.]+ GB.*fit: --batch [0-9]+
1|train --model seven.model --data synthetic|seven.model line 2.*7 scores for 10 classes
1|train --model vgg11 --data synthetic:shape=1x4x4|vgg11 line 17.*does not fit.*1x4x4
2|train --model mlp:ax2 --data synthetic|mlp
2|train --model mlp:8x1 --data fashon-mnist|fashion-mnist
1|train --model mlp:8x1 --data /nowhere/at/all|/nowhere/at/all
1|train --model mlp:8x1 --data empty|empty
1|train --model mlp:8x1 --data idx|idx.*magic
1|train --model mlp:8x1 --data labels|labels
1|train --model mlp:8x1 --data cifar|test_batch.bin.*label
1|train --model mlp:8x1 --data synthetic:classes=0|classes
1|train --model mlp:8x1 --data synthetic:colour=red|colour
2|eval nothing|no run or checkpoint 'nothing'.*paceline runs
2|drll|unknown command 'drll'; known: .*data, eval
2|train $ok --run --lr|'--lr' is no name for a run
2|eval|eval needs an argument
2|bench collectives --collective all-reduce=rng|unknown all-reduce 'rng'; did you mean 'ring'
2|bench collectives --collective nope|unknown.*'nope'; known: direct.*halving-doubling
2|bench collectives --bytes 7|--bytes 7
2|model|model needs an argument
2|model sho vgg11|unknown verb 'sho'; did you mean 'show'
2|model show vgg12|vgg12
2|model show vgg11 --input 3x32|--input takes CxHxW
2|data gte mnist|gte
2|data get mnits|mnits.*mnist
TABLE

# A launcher says how many workers there are.
export SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1
expect 2 "$paceline" train $ok --workers auto
says '--workers auto is not for jobs of Slurm, which says how many'
unset "${!SLURM_@}"
"$paceline" train --help >help
grep -qe '--workers W .*\[one, or what the launcher says\].*nproc-per-node)$' help || fail "--help: $(grep -e --workers help)"

# The code of what a worker found wrong.
expect 1 "$paceline" train --model mlp:8x1 --workers 2 --data idx --json
json "o['error']['code'] == 'data'"
expect 1 "$paceline" train --model word.model --workers 2 --data synthetic --json
json "o['error']['code'] == 'model'"

expect 2 "$paceline" train --model mlp:8x1 --lr
says '--lr needs a value: --lr X'

expect 2 "$paceline" train --model mlp:8x1 --data synthetic --no-test=true
says '--no-test takes no value'
for on in true on; do
    expect 2 "$paceline" train --model mlp:8x1 --json=$on
    json "o['error']['code'] == 'usage'"
done

# Control characters in the name of a run.
for name in $'a\nb' $'a\tb' $'a\x7f' ''; do
    expect 2 "$paceline" train $ok --run "$name" --json
    json "o['error']['code'] == 'usage' and 'no name for a run' in o['error']['message']"
done
[ -e runs ] && fail "a run folder was left behind"

# Bytes that are not UTF-8, which JSON cannot hold: of an argument, of a class, of a model file.
expect 2 "$paceline" train $ok --run $'x\xff' --json
json "o['error']['code'] == 'usage' and 'UTF-8' in o['error']['message']"
mkdir -p images/{a,$'b\xff'}
/usr/bin/python3 - images/{a,$'b\xff'}/1.png <<'PY'
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for path in sys.argv[1:]:
    open(os.fsencode(path), "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">2I5B", 4, 4, 8, 0, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress(bytes(20))) + chunk(b"IEND", b""))
PY
expect 1 "$paceline" data info images --json
json "o['error']['code'] == 'data' and 'class 1' in o['error']['message'] and 'UTF-8' in o['error']['message']"
printf 'conv\xff 8\n' >bytes.model
expect 1 "$paceline" train --model bytes.model --data synthetic --json
json "'bytes.model line 1' in o['error']['message']"
[ -e runs ] && fail "a run folder was left behind"

# No room for run.json: no folder that looks like a run is left.
(
    ulimit -f 1
    expect 1 "$paceline" train $ok --steps 1 --run small --quiet
    says 'cannot write runs/small/run.json: File too large; raise the limit.*ulimit -f'
) || exit 1
[ -e runs/small ] && fail "a run that could not begin left its folder"

# A full disk: the message names the file, and what was there before still loads. A limit on the
# size of files gives the same failed write as a full disk.
expect 0 "$paceline" train --model mlp:256x1 --data synthetic:train=64,test=16 --steps 1 --run full
(
    ulimit -f 100 # units of 1024 bytes; the checkpoint has 800 kB
    expect 1 "$paceline" train --resume full --steps 2
    says 'cannot write .*model.safetensors.*[Ff]ile too large.*; paceline train --resume full goes on from step 1$'
    [ "$(grep -c 'goes on from' err)" = 1 ] || fail "not said once: $(cat err)"
    grep -q '"message": .*--resume full goes on from step 1"' runs/full/run.json || fail "run.json does not say it"
    expect 1 "$paceline" train --resume full --steps 2 --workers 2 --transport tcp
    says '^paceline: cannot write .*--resume full goes on from step 1'
    grep -q '^worker 2:.*goes on from' err && fail "a worker without the folder says it, too"
    true
) || exit 1
# A signal makes the training save; that the disk is full is a failure all the same.
(
    ulimit -f 100
    "$paceline" train --model mlp:256x1 --data synthetic:train=60000,test=16 --batch 1 --lr 1e-6 --run filled 2>err &
    for _ in $(seq 3000); do
        grep -qs '"event":"step"' runs/filled/events.jsonl && break
        sleep 0.01
    done
    code=0
    kill $!
    wait $! || code=$?
    [ $code = 1 ] || fail "a signal while the disk is full ended with $code: $(cat err)"
    grep -q '"status": "failed"' runs/filled/run.json || fail "the run is not failed: $(cat runs/filled/run.json)"
) || exit 1
[ "$(ls -A runs/full/checkpoints)" = step-1 ] ||
    fail "the failed checkpoint left something: $(ls -A runs/full/checkpoints)"
expect 0 "$paceline" eval full

# Data that is cut short while it is trained on: the file is named, and the run tells how it ended.
mkdir cut
/usr/bin/python3 - <<'PY'
import struct
with open("cut/train-images-idx3-ubyte", "wb") as f:
    f.write(struct.pack(">4I", 0x803, 40000, 28, 28))
    f.truncate(16 + 40000 * 28 * 28)
with open("cut/train-labels-idx1-ubyte", "wb") as f:
    f.write(struct.pack(">2I", 0x801, 40000) + bytes(range(10)) * 4000)
PY
"$paceline" train --model mlp:8x1 --data cut --batch 16 --epochs 100 --run cut >out 2>err &
pid=$!
for _ in $(seq 3000); do
    grep -qs '"event":"step","step":5,' runs/cut/events.jsonl && break
    sleep 0.01
done
truncate -s 16 cut/train-images-idx3-ubyte
code=0
wait $pid || code=$?
[ $code = 1 ] || fail "a run whose data was cut ended with $code: $(cat err)"
says '^paceline: .*cut/train-images-idx3-ubyte was cut short while it was in use'
grep -q '"status": "failed"' runs/cut/run.json || fail "run.json does not tell how it ended"
