#!/usr/bin/env bash
# Exported models of random weights are sound ONNX files, and paceline, PyTorch with the same weights and ONNX Runtime
# give the same probabilities, batch norms folded or not.
source "$(dirname "$0")/../support/dist.bash"
export PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 -c 'import numpy, onnx, torch' 2>/dev/null ||
    fail "needs PyTorch and ONNX; install them with: apt-get install python3-torch python3-onnx"
py() { expect 0 /usr/bin/python3 "$root/tests/support/export.py" "$@"; cat out; }

cat >residual.model <<'MODEL'
conv 8 3x3 pad=1 name=stem
bn name=norm
relu
save a
conv 16 3x3 pad=1 stride=2 bias=off name=main
bn name=mainnorm
save m
load a
conv 16 1x1 stride=2 bias=off name=side
add m
relu
gavgpool
save g
dense 16 name=gate
add g
relu
dense classes name=head
MODEL
# Every kind of pool, groups, one-sided kernels, a batch norm of vectors, dropout, and mse.
cat >pools.model <<'MODEL'
conv 12 3x1 pad=1x0 bias=off name=first
relu
maxpool 3x3 stride=2 pad=1
conv 12 3x3 pad=1 groups=4 name=grouped
bn name=norm
avgpool 3x3 stride=2 pad=1
maxpool 2x1
dropout 0.5
avgpool 1x2 stride=1
gavgpool
flatten
dense 9 bias=off name=hidden
bn eps=1e-3 name=vectors
dense classes name=head
mse
MODEL

# same RUN MODEL SHAPE CLASSES: made, exported in three forms, and predicted.
same() {
    local run=$1 train=(train --model "$2" --data "synthetic:shape=$3,classes=$4,train=64,test=16"
        --batch 16 --steps 0 --no-test --kernels onednn)
    [ -d "set-$3" ] || py images "set-$3" "$3"
    expect 0 "$paceline" "${train[@]}" --run "$run-new"
    cp "runs/$run-new/checkpoints/step-0/model.safetensors" "$run.safetensors"
    py weights "$run.safetensors"
    expect 0 "$paceline" "${train[@]}" --init "$run.safetensors" --run "$run"
    expect 0 "$paceline" export "$run" -o "$run.onnx"
    expect 0 "$paceline" export "$run" --out "$run-folded.onnx" --fold
    expect 0 "$paceline" export "$run" -o "$run-pixels.onnx" --normalise --fold --json
    json "o['opset'] == 17 and o['format'] == 'onnx' and o['normalises'] and o['nodes'] > 3"
    json "o['bytes'] == __import__('os').path.getsize(o['file'])"
    expect 0 "$paceline" predict "$run" "set-$3" --top 100 --json
    cp out "$run.json"
    py check "$run" "set-$3"
}
same mlp mlp:32x2 1x28x28 10
same mnist-cnn mnist-cnn 1x28x28 10
same residual residual.model 3x16x16 4
same pools pools.model 1x18x21 3
same vgg11 vgg11 3x32x32 10
same resnet18 resnet18 3x32x32 10

# What cannot be exported, or not there.
printf 'dense 9\nsave v\ndense 9\nadd v\ndense classes\n' >vectors.model
printf 'conv 9 1x1 name=c\nsave i\nflatten\nsave v\nload i\nadd v\ndense classes\n' >mixed.model
synthetic=(--data synthetic:shape=3x4x4,classes=3,train=32,test=8 --batch 8 --steps 1 --no-test)
expect 0 "$paceline" train --model vectors.model "${synthetic[@]}" --run vectors
expect 0 "$paceline" export vectors -o vectors.onnx
expect 0 "$paceline" train --model mixed.model "${synthetic[@]}" --run mixed --kernels onednn
expect 1 "$paceline" export mixed -o mixed.onnx --json
json "'put \`flatten\` before it' in o['error']['message']"
[ ! -e mixed.onnx ] || fail "a file of a model that cannot be exported"
expect 2 "$paceline" export vectors
says 'which file'
expect 2 "$paceline" export vectors -o vectors.pt
says 'does not end in .onnx'
expect 2 "$paceline" export nothing -o x.onnx
says "no run or checkpoint 'nothing'"
expect 1 "$paceline" export vectors -o nowhere/x.onnx
says 'cannot write nowhere/x.onnx'
before=$(sha256sum vectors.onnx)
expect 1 bash -c 'ulimit -f 1; exec "$0" export vgg11 -o vectors.onnx' "$paceline"
says 'cannot write vectors.onnx'
[ "$before" = "$(sha256sum vectors.onnx)" ] || fail "a failed export changed the file that was there"
[ -z "$(ls | grep '\.tmp-')" ] || fail "left behind: $(ls)"

# ONNX Runtime comes through npm, once for a build folder.
place=$(dirname "$paceline")/onnxruntime
command -v node npm >/dev/null || fail "needs node and npm: tools/deps test installs them"
mkdir -p "$place"
exec {lock}>"$place/lock"
flock "$lock"
if [ ! -d "$place/node_modules/onnxruntime-node/bin" ]; then
    # Its post-install step wants files of a GPU, from elsewhere.
    timeout 280 npm install --ignore-scripts --no-audit --no-fund --prefix "$place" \
        onnxruntime-node@1.30 >npm.log 2>&1 ||
        { echo "skipped ONNX Runtime, all else passed: npm cannot install it: $(tail -n 2 npm.log)" && exit 77; }
fi
flock -u "$lock"
for run in mlp mnist-cnn residual pools vgg11 resnet18; do
    expect 0 node "$root/tests/support/onnx_run.js" "$place/node_modules" "$run.job"
    py compare "$run" -
done
