#!/usr/bin/env bash
# The neural recommender: trains by batches, is tested, saved and resumed; sends the rows that a batch touches;
# answers from its files as it was tested; folds new users in; mistakes cost one sentence.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" data make ratings --users 200 --items 100 --ratings 6000 -o ratings.csv
train() { # CODE RUN ARGUMENT…
    local code=$1 run=$2
    shift 2
    expect "$code" "$paceline" train --data ratings.csv --threads 1 --quiet --json --run "$run" "$@"
}
model=(--model ncf:size=6,layers=12x8,dropout=0.1 --batch 60 --schedule constant)

# Learns; an evaluation of its files says the same; what follows a resumed checkpoint has the same bits.
train 0 whole "${model[@]}" --epochs 4 --checkpoint-every 100 --keep 0
json "0 < o['test']['mae'] < o['test']['rmse'] < 1.2 and o['strategy'] == 'single'"
cp out trained
expect 0 "$paceline" eval whole --json
/usr/bin/python3 -c "
import json
a, b = (json.load(open(f))['test'] for f in ('trained', 'out'))
assert all(abs(a[k] - b[k]) < 1e-4 for k in ('loss', 'mae', 'rmse')) and a['samples'] == b['samples'], (a, b)" ||
    fail "an evaluation says otherwise"
train 0 cut "${model[@]}" --steps 100
expect 0 "$paceline" train --resume cut --steps -1 --epochs 4 --quiet
last=$(ls runs/whole/checkpoints | grep '^step-' | sort -t- -k2n | tail -n 1)
cmp "runs/whole/checkpoints/$last/model.safetensors" "runs/cut/checkpoints/$last/model.safetensors" ||
    fail "a resumed run has other bits"

# Every strategy trains it (any.sh compares the steps of most with those of one worker). Where steps are not those of
# one worker, four epochs bring the error clearly below that of the weights which training begins with.
train 0 begin "${model[@]}" --steps 1 --lr 1e-9
untrained=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['test']['rmse'])")
train 0 one "${model[@]}" --steps 8
one=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['test']['rmse'])")
expect 0 "$paceline" strategies --json
/usr/bin/python3 - <<'PY' >all
import json
for s in json.load(open("out"))["strategies"]:
    if "ncf" in s["tasks"] and s["commit_unit"].split()[0].rstrip(",") not in ("step", "checkpoint", "update"):
        print(s["name"])
PY
[ "$(wc -l <all)" -ge 2 ] || fail "more strategies than these have steps of their own: $(cat all)"
while read -r strategy; do
    train 0 several "${model[@]}" --steps 320 --workers 2 --strategy "$strategy"
    expect 0 "$paceline" eval several --threads 1 --json
    json "0 < o['test']['rmse'] < 0.9 * $untrained"
    rm -r runs/several
done <all

# Rows of embeddings travel where they are touched, and no others: fewer bytes than whole gradients, 2·(N-1)/N of 200+100
# rows of 7 floats, and the bits of their sum in shared memory. Without hidden layers all weights are such rows.
rows=(--model ncf:size=6,layers=none --batch 60 --steps 81 --workers 3)
train 0 shared "${rows[@]}" --strategy ddp
for strategy in allreduce ddp allreduce:wire=bf16; do
    train 0 rows "${rows[@]}" --strategy $strategy --transport tcp
    json "all(r['bytes_sent'] / o['steps'] < 0.5 * 2 * 2 / 3 * 300 * 7 * 4 for r in o['ranks'])"
    [ "$(fingerprint runs/shared)" = "$(fingerprint runs/rows)" ] || fail "$strategy: rows have other sums"
    rm -r runs/rows
done
train 0 rows "${rows[@]}" --strategy allreduce --accumulate 3
json "abs(o['test']['rmse'] - $(/usr/bin/python3 -c "import json; print(json.load(open('runs/shared/run.json'))['result']['test']['rmse'])")) < 1e-3"

# A worker is lost while rows are under way: the others make the step again.
for transport in shm tcp; do
    PACELINE_FAULT=2:rows:5 expect 0 "$paceline" train --data ratings.csv --threads 1 --quiet --json --run lost-$transport \
        "${model[@]}" --steps 8 --workers 3 --strategy allreduce --transport $transport
    json "o['steps'] == 8 and o['workers'] == 2 and abs(o['test']['rmse'] - $one) <= 1e-3 * $one"
    grep -q '"event":"view","view":2,.*"step":4,' runs/lost-$transport/events.jsonl || fail "no view after step 4"
done

# Users: known, new, of all; items that are alike.
expect 0 "$paceline" recommend whole --user 7 -n 5 --explain
printf 'user,item,rating\nme,3,5\nme,8,1\nme,11,4\n' >mine.csv
expect 0 "$paceline" recommend whole --new mine.csv -n 5 --explain
expect 0 "$paceline" recommend whole --all -o lists.csv
expect 0 "$paceline" similar whole --item 3 -n 3
expect 0 "$paceline" eval whole --lists 5

# Mistakes.
train 2 wrong --model ncf:layers=12y8
says 'layers=12y8 is not'
train 2 wrong --model ncf --pad 2
says 'networks on images and tables'
train 2 wrong --model ncf --strategy rows
says 'does not serve the neural recommender'
expect 2 "$paceline" bench ratings ratings.csv --model ncf
says 'trained by batches'
