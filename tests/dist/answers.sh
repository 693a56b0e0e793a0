#!/usr/bin/env bash
# What people asked for is on standard output, messages on standard error: eval, runs, compare, status, model, data.
source "$(dirname "$0")/../support/dist.bash"

small=(--model mlp:8x1 --data synthetic:train=320,test=100 --batch 32)
expect 0 "$paceline" train "${small[@]}" --epochs 1 --run one

answers() { # PATTERN ARGUMENT…: the answer has the pattern, and there is no message beside it
    expect 0 "$paceline" "${@:2}"
    grep -qE -- "$1" out || fail "the answer of '${*:2}' lacks '$1': $(cat out)"
    [ ! -s err ] || fail "'${*:2}' says on standard error: $(cat err)"
}
answers 'accuracy .* of 100 samples' eval one
answers 'precision' eval one --quiet
answers '^one ' runs
answers '^one ' compare one
answers 'parameters' model show mlp:8x1
answers '^mnist-cnn' model list
answers '^bmf  +Bayesian' model list
answers '^  time=DAYS ' model show bmf
answers '^mnist' data list
answers 'samples' data info synthetic:train=64,test=16
answers '^ddp' strategies
expect 0 "$paceline" eval one --json
json "o['test']['accuracy'] >= 0"
expect 0 "$paceline" runs --runs-dir nowhere # no runs: an empty answer, and a message
[ ! -s out ] || fail "no runs, but: $(cat out)"
says 'no runs in nowhere'

# Words of a training: one step is not "1 steps", no quantity is rounded to nothing, and what comes next.
expect 0 "$paceline" train "${small[@]}" --steps 1 --epochs 1 --run word
says ': 1 step, 0 epochs in [0-9.]+ s$'
says 'parameters, [0-9.]+ kFLOP a sample'
says '^strategy single \(auto\): '
says '^memory [0-9.]+ [kM]B a worker: .*(program|data) [0-9.]+ [kM]B'
says '^next: paceline eval runs/word$'
answers 'forward [0-9.]+ kFLOP a sample' model show mlp:8x1

# Data sets have names also where there is no place for them.
expect 0 env -u HOME -u XDG_CACHE_HOME -u PACELINE_DATA "$paceline" data list
grep -q '^mnist .*not here' out || fail "data list without HOME: $(cat out)"
says 'set PACELINE_DATA'

# A run is called after its model and data, without hyphens in a row.
mkdir -p own/{cat,dog}
/usr/bin/python3 - own/{cat,dog}/{1..12}.png <<'PY'
import struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for path in sys.argv[1:]:
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">2I5B", 4, 4, 8, 0, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress(bytes(20))) + chunk(b"IEND", b""))
PY
expect 0 "$paceline" train --model mlp:8x1 --data "$work/own//" --batch 4 --steps 1
says '^next: paceline eval runs/mlp-8x1-own-1$'
[ -z "$(compgen -G 'runs/*--*')" ] || fail "hyphens in a row: $(ls runs)"

# Classes have names, in train and in eval.
expect 0 "$paceline" train --model mlp:8x1 --data own --batch 4 --steps 1 --run classes --json
json "[c['name'] for c in o['test']['per_class']] == ['cat', 'dog']"
expect 0 "$paceline" eval classes --json
json "[c['name'] for c in o['test']['per_class']] == ['cat', 'dog']"

# A sweep: columns for settings that differ, losses of every part, sorted by any of them.
for lr in 0.1 0.01; do
    expect 0 "$paceline" train "${small[@]}" --epochs 1 --validation 0.2 --lr $lr --run lr-$lr
done
answers '^run +lr +strategy .*validation +test loss +accuracy$' compare lr-0.1 lr-0.01
expect 0 "$paceline" compare lr-0.1 lr-0.01 --sort lr --json
json "[r['name'] for r in o['runs']] == ['lr-0.01', 'lr-0.1']"
json "[r['settings'] for r in o['runs']] == [{'lr': 0.01}, {'lr': 0.1}] and 'lr' not in o['runs'][0]"
json "all(r['validation_loss'] > 0 and r['test_loss'] > 0 for r in o['runs']) and o['runs'][1]['speedup'] == 1"
expect 0 "$paceline" compare one lr-0.1 lr-0.01 --sort accuracy --json
json "[r['accuracy'] for r in o['runs']] == sorted((r['accuracy'] for r in o['runs']), reverse=True)"
json "{r['name']: r['validation_loss'] for r in o['runs']}['one'] is None"
expect 2 "$paceline" compare lr-0.1 lr-0.01 --sort acuracy
says "unknown column 'acuracy'; did you mean 'accuracy'"

# Runs in another order, and fewer of them: all that are named, or none.
expect 0 "$paceline" train "${small[@]}" --steps 1 --no-test --run untested
expect 0 "$paceline" runs --sort accuracy --json
json "(lambda a: a == sorted(a, reverse=True))([r['test_accuracy'] for r in o['runs'] if r['test_accuracy'] is not None])"
json "None not in [r['test_accuracy'] for r in o['runs']][:3] and o['runs'][-1]['test_accuracy'] is None"
expect 0 "$paceline" runs --sort name --json
json "[r['name'] for r in o['runs']] == sorted(r['name'] for r in o['runs'])"
expect 2 "$paceline" runs --sort nmae
says "unknown sort 'nmae'; did you mean 'name'"
expect 2 "$paceline" runs rm lr-0.1 nothing
says "no run 'nothing'"
[ -e runs/lr-0.1/run.json ] || fail "runs rm removed one although another is wrong"
(flock 9 && expect 2 "$paceline" runs rm lr-0.1 && says 'being trained') 9<runs/lr-0.1 || exit 1
expect 0 "$paceline" runs rm lr-0.1 runs/lr-0.01/ --json
json "o['removed'] == ['runs/lr-0.1', 'runs/lr-0.01']"
[ -z "$(compgen -G 'runs/lr-*')" ] || fail "removed runs are there"
expect 2 "$paceline" runs rm
says 'which runs'
expect 2 "$paceline" runs remove one
says "unknown verb 'remove'"

# A training in one process, while it runs and after it was killed: where it is, its loss and accuracy.
"$paceline" train "${small[@]}" --epochs 100000 --no-checkpoint --run live --quiet </dev/null 2>live.err &
live=$!
trap 'kill -KILL $live 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 500); do
    grep -q '"event":"epoch"' runs/live/events.jsonl 2>/dev/null && break
    sleep 0.02
done
mine="[r for r in o['runs'] if r['name'] == 'live'][0]"
expect 0 "$paceline" runs --json
json "(lambda r: r['status'] == 'running' and r['steps'] > 0 and r['train_loss'] > 0 and r['age_seconds'] < 30)($mine)"
json "0 <= $mine['test_accuracy'] <= 1 and $mine['test_loss'] is None"
answers '^live +running +[1-9][0-9]* +[0-9.]+ +[0-9.]+ % +[0-9]+ s ' runs
answers "^ +0 +0 +0 +$live ready .* [1-9][0-9]* +[0-9.]+ +worker$" status live
expect 0 "$paceline" status runs/live --json
json "o['program'] == 'train' and o['phase'] == 'running' and o['seconds'] >= 0"
json "[w['pid'] for w in o['workers']] == [$live] and o['workers'][0]['step'] > 0 and o['workers'][0]['memory'] > 1e6"
kill -KILL $live
wait $live 2>/dev/null
expect 0 "$paceline" runs --json
json "$mine['status'] == 'lost' and $mine['steps'] > 0 and $mine['train_loss'] > 0"
expect 2 "$paceline" status live
says 'nothing is running: run live is lost'
expect 2 "$paceline" status one
says 'nothing is running: run one is done'

# Events that are no file, and lines that are none: the run is still listed.
rm runs/live/events.jsonl && mkfifo runs/live/events.jsonl
expect 0 timeout 20 "$paceline" runs --json
json "$mine['steps'] is None"
rm runs/live/events.jsonl && printf '{"event":"step","step":7,"lo\n{"event":"step","step":8' >runs/live/events.jsonl
expect 0 "$paceline" runs --json
json "$mine['steps'] is None"
