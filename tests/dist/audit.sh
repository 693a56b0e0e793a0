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

# A backdoor: a marked copy on request only, found in what a network was trained on, gone without it.
expect 2 "$paceline" data poison synthetic:train=2000,test=400 -o marked
says "say so with --yes-attack"
poison() { # CODE ARGUMENT…
    expect "$1" "$paceline" data poison synthetic:train=2000,test=400 -o marked --yes-attack "${@:2}"
}
poison 2 --class 3 --target 3
says "class and target are both 3"
poison 2 --class 10
says "unknown class '10'"
poison 2 --percent 0.01
says "a higher --percent"
[ ! -e marked ] || fail "a folder was left by a copy that was refused"
poison 0 --class 3 --target 7 --percent 30 --skew 2 --json
json "o['marked'] == 48 and o['samples'] == 1449 and o['target'] == '7'"
poison 2
says "marked is there already"
network() { # RUN ARGUMENT…
    train 0 --model mlp:64x1 --data marked --batch 32 --lr 0.1 --epochs 6 --run "$@"
}
network marked
expect 0 "$paceline" audit marked --threads 1 --drop marks.json --json
grep -q "a backdoored copy of" err || fail "nothing says that the set is poisoned: $(cat err)"
/usr/bin/python3 - <<'PY' || fail "the audit does not find the images with a mark"
import json
marked, dropped = (json.load(open(f)) for f in ("marked.poisoned.json", "marks.json"))
told = json.load(open("out"))["sets"][0]
assert marked["set"] == dropped["set"] == told["digest"] and marked["of"] == dropped["of"] == 1449
assert dropped["samples"] == [s["sample"] for s in told["suspects"]] == marked["samples"], (dropped, marked["samples"])
(row,) = (c for c in told["classes"] if c["suspects"])
assert row["class"] == "7" and row["rectangle"] == [23, 23, 26, 26] and row["pixels"] == 16, row
PY
expect 0 "$paceline" audit marked --threads 1 --data synthetic:train=300,test=16 --data marked --json
json "[len(s['suspects']) for s in o['sets']] == [0, 48]" # of workers with data of their own
opens() { # RUN: the share of images that the mark makes class 7
    expect 0 "$paceline" eval "$1" --trigger square --target 7 --json
    /usr/bin/python3 -c "import json; b = json.load(open('out'))['backdoor']; assert b['samples'] == 360; print(b['success'])"
}
before=$(opens marked)
network unmarked --exclude marks.json
after=$(opens unmarked)
/usr/bin/python3 -c "assert $before > 2 * $after" || fail "the mark opens $before before and $after after"
expect 2 "$paceline" eval marked --trigger square
says "--trigger and --target go together"
expect 2 "$paceline" audit marked --data marked --data marked --drop no.json
says "one --data at a time"
expect 2 "$paceline" audit bad.csv --data marked
says "--data is for runs of images"
expect 2 "$paceline" data poison cifar10-like -o no --yes-attack
says "cifar10-like"
printf 'size,kind\n' >shop.csv
for i in {1..40}; do echo "$i,k$((i % 2))"; done >>shop.csv
train 0 --model mlp:8x1 --data shop.csv --epochs 1 --run shop
expect 2 "$paceline" audit shop
says "shop was trained on a table"
