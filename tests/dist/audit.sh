#!/usr/bin/env bash
# Poisoned data: a copy with fake users is written on request only, an audit finds them, a training goes
# without them, is resumed and evaluated without them; samples of images are left out likewise; mistakes cost one sentence.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" data make ratings --users 800 --items 1500 --ratings 50000 -o honest.csv
expect 2 "$paceline" data poison honest.csv -o bad.csv
says "say so with --yes-attack"
[ ! -e bad.csv ] || fail "a poisoned copy was written unasked"
expect 2 "$paceline" data poison honest.csv --yes-attack
says "-o FILE is missing"
expect 0 "$paceline" data poison honest.csv -o bad.csv --seed 7 --yes-attack --json
json "o['fakes'] == 40 and o['users'] == 839 and o['shill'] == 'mixed'"

# Precision and recall by the index of what was poisoned.
expect 0 "$paceline" audit bad.csv --drop drop.json --json
/usr/bin/python3 - <<'PY' || fail "the audit does not find what was poisoned"
import json
fakes, dropped = (json.load(open(f)) for f in ("bad.csv.poisoned.json", "drop.json"))
told = {s["user"] for s in json.load(open("out"))["suspects"]}
assert told == set(dropped["users"]) and fakes["set"] == dropped["set"] and fakes["of"] == dropped["of"] == 839
right = len(told & set(fakes["users"]))
assert right >= 0.9 * len(told) and right >= 0.9 * len(fakes["users"]), (right, len(told))
PY
expect 0 "$paceline" audit bad.csv --show 3
grep -q "and .* more" out || fail "--show 3 shows all: $(cat out)"

# Trained without them: as many ratings fewer; resumed and evaluated without them, too.
train() { # CODE ARGUMENT…
    expect "$1" "$paceline" train --threads 1 --quiet --json "${@:2}"
}
train 0 --model bias-gd:sweeps=4 --data bad.csv --exclude drop.json --run clean
json "o['test']['samples'] > 0"
samples=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['test']['samples'])")
train 0 --model bias-gd:sweeps=4 --data bad.csv --run dirty
json "o['test']['samples'] > $samples"
expect 0 "$paceline" eval clean --json
json "o['test']['samples'] == $samples"
train 0 --model bias-gd:sweeps=4 --data bad.csv --exclude drop.json --steps 2 --run cut
train 0 --resume cut --steps -1
json "o['test']['samples'] == $samples"
/usr/bin/python3 -c "
import json
a, b = (json.load(open(f'runs/{r}/run.json')) for r in ('clean', 'cut'))
assert len(a['excluded']) == 64 and a['excluded'] == b['excluded']
assert a['about']['settings']['exclude'] == 'drop.json'" || fail "run.json does not tell what was left out"
expect 0 "$paceline" audit clean --json # of a run: what it was trained on
json "len(o['suspects']) >= 36"

# Another index, none where there was one, one where there was none, one of another set.
train 0 --model bias-gd:sweeps=4 --data bad.csv --exclude drop.json --steps 2 --run other
expect 1 "$paceline" train --resume other --steps -1 --exclude bad.csv.poisoned.json
says "does not list what run other was trained without"
train 0 --model bias-gd:sweeps=4 --data bad.csv --steps 2 --run none
expect 2 "$paceline" train --resume none --steps -1 --exclude drop.json
says "run none was trained on all samples"
expect 1 "$paceline" train --model bias-gd --data honest.csv --exclude drop.json --run no
says "the index is of another data set"
expect 1 "$paceline" train --model bias-gd --data bad.csv --exclude missing.json --run no
says "missing.json"

# Samples of images, on two workers; an index of users is not for them.
images=synthetic:train=64,test=16
expect 0 "$paceline" data info $images --json
/usr/bin/python3 - <<'PY'
import json
digest = json.load(open("out"))["digest"]
json.dump({"set": digest, "of": 64, "samples": list(range(0, 64, 4))}, open("images.json", "w"))
json.dump({"set": digest, "of": 64, "samples": [64]}, open("outside.json", "w"))
PY
train 0 --model mlp:8x1 --data $images --batch 16 --epochs 1 --workers 2 --exclude images.json --run few
json "o['steps'] == 3"
expect 1 "$paceline" train --model mlp:8x1 --data $images --exclude outside.json --run no
says "entry 0 of its samples is not from 0 to 63"
expect 1 "$paceline" train --model mlp:8x1 --data $images --exclude drop.json --run no
says "the index lists users, but the data is samples"
expect 2 "$paceline" audit few
says "few is no rating model"
