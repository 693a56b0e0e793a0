#!/usr/bin/env bash
# Predictions of files, folders and data sets: converted as in training, whatever their form, in the
# three forms of output; bad files, the worst first, a large set in bounded memory, Ctrl-C.
source "$(dirname "$0")/../support/dist.bash"

# png COLOUR SIZE LEVEL FILE…: squares of one level; COLOUR is 1 (gray) or 3.
cat >png.py <<'PY'
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
channels, side, level = (int(word) for word in sys.argv[1:4])
for path in sys.argv[4:]:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">2I5B", side, side, 8, 2 if channels == 3 else 0, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress((b"\0" + bytes([level]) * side * channels) * side)) + chunk(b"IEND", b""))
PY
png() { /usr/bin/python3 png.py "$@"; }
predict() { expect "$1" "$paceline" predict "${@:2}"; }
out_is() { [ "$(cat out)" = "$1" ] || fail "not '$1' but '$(cat out)'"; }
# csv PYTHON-EXPRESSION: of the rows r (dictionaries) on stdout.
csv() {
    /usr/bin/python3 -c 'import csv, sys; r = list(csv.DictReader(open("out", newline=""), strict=True)); assert eval(sys.argv[1]), r' \
        "$1" || fail "$1"
}

for part in train test; do
    png 1 4 20 set/$part/ant/{1..8}.png
    png 1 4 120 set/$part/bee/{1..8}.png
    png 1 4 230 set/$part/cat/{1..8}.png
done
expect 0 "$paceline" train --model mlp:8x1 --batch 4 --threads 1 --seed 3 --data set --epochs 20 --lr 0.05 --run own

# Files: other sizes, colour and JPEG-like names do not matter; the run's shape and labels do.
png 1 4 120 a.png
png 1 9 120 b.png
png 3 40 120 c.jpg
predict 0 own a.png b.png c.jpg --top 1 --json
json "[p['classes'][0]['class'] for p in o['predictions']] == ['bee'] * 3 and o['samples'] == 3"
json "len({p['classes'][0]['probability'] for p in o['predictions']}) == 1 and [p['file'] for p in o['predictions']] == ['a.png', 'b.png', 'c.jpg']"
json "all('label' not in p and 'loss' not in p for p in o['predictions']) and o['accuracy'] is None and o['labelled'] == 0"
predict 0 own a.png --quiet
grep -qE '^a.png: bee [0-9.]+ %, (ant|cat) [0-9.]+ %, (ant|cat) [0-9.]+ %$' out || fail "for people: $(cat out)"
[ ! -s err ] || fail "--quiet says $(cat err)"
predict 0 own a.png --top 99 --csv
csv "len(r) == 1 and abs(sum(float(r[0][k]) for k in ('probability', 'probability_2', 'probability_3')) - 1) < 1e-6"
predict 0 runs/own/checkpoints/step-120 a.png --top 1
grep -q '^a.png: bee' out || fail "by a checkpoint: $(cat out)"
files=()
for i in {1..40}; do files+=(a.png); done # more than options may be repeated
predict 0 own "${files[@]}" --csv --batch 7
csv "len(r) == 40 and {x['class'] for x in r} == {'bee'}"

# Names that need care in each form.
odd=$'odd, "name"\nof two lines.png'
cp a.png "$odd"
predict 0 own "$odd" --csv --top 1
csv "len(r) == 1 and r[0]['file'] == 'odd, \"name\"\nof two lines.png' and r[0]['class'] == 'bee'"
predict 0 own "$odd" --json
json "o['predictions'][0]['file'] == 'odd, \"name\"\nof two lines.png'"
predict 0 own "$odd"
[ "$(wc -l <out)" = 1 ] || fail "a name broke a line: $(cat out)"

# Folders: without classes, with them, with some and with strange ones.
png 1 6 20 flat/{1..3}.png
png 1 6 230 flat/deeper/1.png
touch flat/notes.txt flat/4.webp
predict 0 own flat --csv
csv "[x['file'] for x in r] == ['flat/1.png', 'flat/2.png', 'flat/3.png'] and {x['class'] for x in r} == {'ant'} and r[0]['label'] == ''"
says 'flat: ignored 1 .webp'
says 'folders in it are not read, such as flat/deeper'
png 1 6 120 tree/bee/{1..12}.png
png 1 6 230 tree/cat/{1..12}.png
predict 0 own tree --csv
csv "len(r) == 24 and all(x['label'] == x['class'] for x in r) and float(r[0]['loss']) > 0"
mv tree/bee tree/dog
predict 0 own tree --json
says "tree: 1 of 2 classes, such as 'dog', is not the model's"
json "o['labelled'] == 12 and o['accuracy'] == 1 and sum('label' in p for p in o['predictions']) == 12"
json "[p['classes'][0]['class'] for p in o['predictions']] == ['cat'] * 12 + ['bee'] * 12"
predict 0 own set --json
json "o['samples'] == 24 and o['accuracy'] == 1 and o['predictions'][0]['file'] == 'set/test/ant/1.png'"
predict 0 own set --part train --csv --top 1
csv "len(r) == 24 and r[0]['file'] == 'set/train/ant/1.png' and set(r[0]) == {'file', 'label', 'loss', 'class', 'probability'}"
cp a.png set/stray.png # a set with parts stays one
predict 0 own set --csv
csv "len(r) == 24 and all(x['label'] for x in r)"
predict 0 own flat tree a.png set --csv
csv "len(r) == 3 + 24 + 1 + 24 and r[27]['file'] == 'a.png'"
expect 0 "$paceline" eval own --json
json "True"
loss=$(/usr/bin/python3 -c 'import json; print(json.load(open("out"))["test"]["loss"])')
predict 0 own set --json
json "abs(o['loss'] - $loss) < 1e-6"

# The worst first: two images that lie.
png 1 4 230 set/test/ant/9.png
png 1 4 120 set/test/ant/8.png
predict 0 own set --errors 3 --csv --batch 5
csv "[x['file'] for x in r][:2] == ['set/test/ant/9.png', 'set/test/ant/8.png'] and len(r) == 3"
csv "[float(x['loss']) for x in r] == sorted((float(x['loss']) for x in r), reverse=True) and r[0]['label'] == 'ant' and r[0]['class'] == 'cat'"
predict 0 own set --errors 1000 --json
json "len(o['predictions']) == 25 == o['samples'] and abs(o['accuracy'] - 23 / 25) < 1e-9"
json "(lambda l: l == sorted(l, reverse=True))([p['loss'] for p in o['predictions']])"
predict 2 own flat --errors 3
says 'errors compares with labels'

# Bad files are told, counted, and the others go on.
head -c 50 a.png >broken.png
predict 1 own a.png broken.png missing.png c.jpg --csv
csv "[x['file'] for x in r] == ['a.png', 'c.jpg']"
says 'broken.png: not a sound PNG'
says 'cannot open missing.png'
says '2 of 4 could not be read'
predict 1 own broken.png
says '0 of 1 predicted$'
expect 0 bash -c '"$0" predict own a.png b.png 2>&1 | tail -n 1' "$paceline"
grep -q '^2 of 2 predicted, [0-9]*/s$' out || fail "the answers are not before what is said of them: $(cat out)"
predict 1 own a.png broken.png --json
json "o['bad'] == 1 and o['samples'] == 1 and o['predictions'][1]['error'].startswith('broken.png: not a sound PNG') and o['error']['code'] == 'data'"
predict 0 own a.png broken.png --skip-bad 1
says 'broken.png: not a sound PNG'
predict 1 own a.png broken.png png.py --skip-bad 1
says 'png.py: neither PNG nor JPEG'

# What is refused before anything is computed.
predict 2 own
says 'needs another argument'
predict 2 nothing a.png --json
json "'no run or checkpoint' in o['error']['message']"
predict 2 own a.png --json --csv
json "'take one' in o['error']['message']"
predict 2 own a.png --top 0
predict 2 own nosuchset
says "unknown data set \(no such file or folder either\) 'nosuchset'"
predict 1 own no/such/set
says 'file or folder not found: no/such/set'
predict 1 own synthetic:shape=3x8x8
says 'is 3x8x8 with 10 classes, the model was trained on 1x4x4 with 3'
mkdir empty
predict 1 own empty
says 'empty is in no format'
expect 1 bash -c '"$0" predict own a.png >/dev/full' "$paceline"
says 'cannot write to standard output: No space left'

# A data set, a colour model, and a large set: memory stays what it is for a small one.
synthetic=synthetic:shape=3x16x16,classes=4,train=64,noise=200
printf 'conv 8 3x3 pad=1\nrelu\ngavgpool\ndense classes\n' >small.model
expect 0 "$paceline" train --model small.model --data $synthetic,test=64 --steps 4 --batch 16 --no-test --run colour
predict 0 colour a.png $synthetic,test=64 --csv --top 2
csv "len(r) == 65 and r[64]['file'].endswith('/test/63') and r[64]['label'] != ''"
predict 0 colour $synthetic,test=2000 --json --top 2
json "o['samples'] == 2000"
peak=$(/usr/bin/python3 -c 'import json; print(json.load(open("out"))["peak_memory_bytes"])')
predict 0 colour $synthetic,test=200000 --json --top 2
json "o['samples'] == 200000 == len(o['predictions']) and o['peak_memory_bytes'] < $peak + 16e6"

# A reader that has enough ends it.
"$paceline" predict colour $synthetic,test=2000000 --csv 2>err | head -n 2 >out
[ "${PIPESTATUS[0]}" = 1 ] || fail "a closed pipe did not end it with 1: $(cat err)"
says 'cannot write to standard output: Broken pipe'

# Ctrl-C, once some rows are there: complete JSON, a CSV of whole lines, exit code 130.
interrupted() { # FORM
    local pid code=0 i
    : >out # the rows of an earlier call are not what is waited for
    "$paceline" predict colour $synthetic,test=2000000 "$1" --top 1 >out 2>err &
    pid=$!
    for ((i = 0; i < 2400; i++)); do
        [ "$(stat -c %s out)" -lt 100000 ] || break
        kill -0 $pid 2>/dev/null || fail "it ended by itself: $(cat err)"
        sleep 0.05
    done
    kill -INT $pid
    wait $pid || code=$?
    [ $code = 130 ] || fail "Ctrl-C ended it with $code: $(cat err)"
    says 'stopped while predicting'
}
interrupted --json
json "o['interrupted'] is True and 0 < o['samples'] == len(o['predictions']) < 2000000"
interrupted --csv
csv "100 < len(r) < 2000000 and all(x['probability'] for x in r)"
