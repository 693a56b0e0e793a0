#!/usr/bin/env bash
# `paceline watch`, `train --watch` and `paceline top`: a run of 64 workers in a headless Chromium, trainings that are watched while
# they go on, lose a worker and end; TensorBoard's files of them; what is not there, or not allowed, is one sentence.
source "$(dirname "$0")/../support/dist.bash"

expect 2 "$paceline" watch missing
says "there is no run 'missing'"
expect 2 "$paceline" top missing
says "there is no run 'missing'"

timeout 500 /usr/bin/python3 "$root/tests/support/watch.py" "$paceline" ||
    fail "a run of 64 workers"
expect 2 "$paceline" watch many --host 0.0.0.0
says 'need a token'
expect 2 "$paceline" watch many --host nonsense

# ---- in the terminal ----
expect 0 "$paceline" top many
grep -qE '^many  [a-z]+  step 20[05]00  epoch 1  loss 0\.[0-9]{4}  ' out || fail "no line: $(cat out)"
[ "$(wc -l <out)" = 1 ] || fail "more than a line of a run that has ended"
expect 0 "$paceline" top many --once
[ "$(grep -cE '^ +[0-9]+ +[0-9]+ +[0-3] (ended|lost) ' out)" = 64 ] || fail "not all workers: $(cat out)"
grep -q '0 <node0> ' out || fail "no hosts"
expect 0 "$paceline" top many --once --json
json "len(o['workers']) == 64 and len(o['hosts']) == 4 and o['newest']['step.lr'] == 0.01 and o['step'] >= 20000"

# ---- trainings ----
eventually() { # COMMAND…: until it succeeds, two minutes at most
    local end=$((SECONDS + 120))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not within two minutes: $*: $(tail -n 3 train.err)"
        sleep 0.05
    done
}
metric() { # NAME PATTERN: of the page whose address the training has told
    address=$(sed -nE 's/.*open (http:.*)/\1/p' train.err)
    [ -n "$address" ] && curl -s --max-time 60 "$address/metrics" | grep -qE "^$1 $2\$"
}
begin() { # RUN OPTION…: a training that does not end by itself
    "$paceline" train --model mlp:8x1 --data synthetic:classes=2,shape=1x8x8,train=64,test=16 --batch 16 --epochs 1000000 \
        --threads 1 --run "$1" --no-checkpoint --eval-every 0 --watch "${@:2}" >train.out 2>train.err &
    training=$!
    trap 'kill -KILL $training 2>/dev/null; rm -rf "$work"' EXIT
}
finish() {
    local code=0
    kill -INT $training
    wait $training || code=$?
    [ $code = 130 ] || fail "the training ended with $code: $(tail -n 5 train.err)"
    curl -s --max-time 60 "$address/metrics" >/dev/null && fail "the page outlives its training"
    trap 'rm -rf "$work"' EXIT
}
begin alone
eventually metric paceline_step '[1-9][0-9]*'
timeout 200 "$paceline" top alone >top.out & # lines while it goes on, until it ends
top=$!
eventually test -s top.out
finish
wait $top || fail "top has not ended with its run: $?"
grep -q '^alone  interrupted  ' top.out || fail "top does not tell the end: $(tail -n 2 top.out)"

begin pair --workers 2 --min-workers 1 --strategy allreduce
eventually metric 'paceline_workers\{state="working"\}' 2
kill -KILL "$(pgrep -P $training -f 'worker' | head -n 1)" || fail "no worker to kill: $(ps --ppid $training -o pid,args)"
eventually metric 'paceline_workers\{state="lost"\}' 1
eventually metric 'paceline_workers\{state="working"\}' 1 # if rank 0 is gone, the other has to take the folder first
expect 0 "$paceline" top pair --once --json
json "sorted(w['state'] for w in o['workers']) == ['lost', 'working'] and any('lost' in e['text'] for e in o['events'])"
finish

# ---- TensorBoard's files ----
boarded() { # RUN OPTION…
    expect 0 "$paceline" train --model mnist-cnn --data synthetic:classes=4,shape=1x8x8,train=96,test=16 --batch 16 --epochs 2 \
        --validation 0.2 --threads 1 --log-every 2 --tensorboard --run "$1" --quiet "${@:2}"
}
boarded curves --record conv1 --record conv2
expect 0 "$paceline" train --resume curves --epochs 3 --quiet
[ "$(ls runs/curves/tensorboard/scalars | wc -l)" = 2 ] || fail "a resumed run has no file of its own"
expect 0 /usr/bin/python3 "$root/tests/support/tfevents.py" runs/curves --layers conv1 conv2
PACELINE_FAULT=1:data:6 boarded heir --workers 2 --strategy allreduce --no-checkpoint # rank 0 is lost, the other goes on
expect 0 /usr/bin/python3 "$root/tests/support/tfevents.py" runs/heir
boarded plain --no-tensorboard
[ ! -e runs/plain/tensorboard ] || fail "files that were not asked for"
if command -v node npm >/dev/null; then # npm's package comes once for a build folder
    place=$(dirname "$paceline")/tfrecord
    mkdir -p "$place"
    exec {lock}>"$place/lock"
    flock "$lock"
    [ -d "$place/node_modules/tfrecord/lib" ] ||
        timeout 200 npm install --ignore-scripts --no-audit --no-fund --prefix "$place" tfrecord@0.2.0 >npm.log 2>&1 ||
        { echo "skipped npm's tfrecord, all else passed: npm cannot install it: $(tail -n 2 npm.log)" && exit 77; }
    flock -u "$lock"
    expect 0 node "$root/tests/support/tfrecord.js" "$place/node_modules" runs/{curves,heir}/tensorboard/*/events.out.tfevents.*
    [ "$(cat out)" -gt 20 ] || fail "npm's tfrecord reads $(cat out) records"
    for file in runs/curves/tensorboard/scalars/*; do break; done
    printf x | dd of="$file" bs=1 seek=40 conv=notrunc status=none
    expect 1 node "$root/tests/support/tfrecord.js" "$place/node_modules" "$file"
fi
