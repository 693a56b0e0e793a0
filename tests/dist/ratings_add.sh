#!/usr/bin/env bash
# paceline train --resume RUN --add FILE: every rating model goes on with new ratings, users and items, on
# any number of workers; a run is as it was until the new training has its first checkpoint; mistakes
# cost one sentence.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" data make ratings --users 200 --items 100 --ratings 6000 -o all.csv
/usr/bin/python3 - <<'EOF'
lines = open('all.csv').read().splitlines()
parts = {'old': [], 'new': [], 'newer': []}
for i, line in enumerate(lines[1:]):
    user = int(line.split(',')[0])
    # Every twelfth user is new, and every fifth rating of some others; ids are in no order.
    late = user % 12 == 5 or (user % 3 == 0 and i % 5 == 0)
    parts['old' if not late else 'newer' if user % 2 else 'new'].append(line)
for name, part in parts.items():
    open(name + '.csv', 'w').write('\n'.join([lines[0]] + part) + '\n')
# The same in another form: what is added need not be written as what is there.
rows = [line.split(',') for line in parts['new']]
open('new.dat', 'w').write(''.join('::'.join(row) + '\n' for row in rows))
EOF
train() { # CODE ARGUMENT…
    local code=$1
    shift
    expect "$code" "$paceline" train --threads 1 --quiet --json "$@"
}
rmse() {
    /usr/bin/python3 -c "import json; o = json.load(open('out'))['test']; print(o['rmse'], o['samples'])"
}
bits() {
    local newest
    newest=$(ls "runs/$1/checkpoints" | grep '^step-' | sort -t- -k2n | tail -n 1)
    (cd "runs/$1/checkpoints/$newest" && sha256sum ./*.safetensors && echo "$newest")
}
near() { # RMSE SAMPLES RMSE SAMPLES: the same tests, and about as good
    /usr/bin/python3 -c "assert $2 == $4 and abs($1 - $3) < 0.03" || fail "$model: $1 of $2, not $3 of $4"
}

# From scratch on all, and in two additions: as many workers as there are give the same bits (rows).
for model in bias-stat bias-gd:sweeps=20 mf:k=16 ials:k=16,sweeps=8 bmf:k=8,sweeps=100 \
    bmf:k=8,sweeps=60,time=30; do
    train 0 --data all.csv --model "$model" --run all
    scratch=$(rmse)
    train 0 --data old.csv --model "$model" --run one
    cp -r runs/one runs/two
    train 0 --resume one --add new.dat
    train 0 --resume one --add newer.csv
    near $scratch $(rmse)
    before=$(rmse)
    expect 0 "$paceline" eval one --json
    [ "$(rmse)" = "$before" ] || fail "$model: an evaluation says $(rmse), the training $before"
    train 0 --resume two --workers 2 --add new.dat
    train 0 --resume two --workers 3 --add newer.csv
    near $scratch $(rmse)
    case $model in mf*) json "o['strategy'] == 'rotate'" ;;
    *) [ "$(bits one)" = "$(bits two)" ] || fail "$model: $(bits one) $(bits two)" ;; esac
    rm -rf runs
done
[ "$(ls | grep -c 'newer.csv.*paceline')" = 1 ] || fail "not one cache of all: $(ls)"

# Killed before the first checkpoint: run.json and checkpoints are as they were, and it goes on with or
# without the addition. Killed later: the addition is the run's.
train 0 --data old.csv --model mf:k=8,sweeps=30 --strategy rotate --workers 1 --run kept
about() {
    /usr/bin/python3 -c "import json; print(json.load(open('runs/kept/run.json'))['about'])"
}
was=$(about; ls runs/kept/checkpoints)
PACELINE_FAULT=1:turn-1:32 train 1 --resume kept --add new.csv --checkpoint-every 5
[ "$(about; ls runs/kept/checkpoints)" = "$was" ] || fail "the run has changed: $(about)"
expect 0 "$paceline" eval kept
PACELINE_FAULT=1:turn-1:38 train 1 --resume kept --add new.csv --checkpoint-every 5
expect 0 "$paceline" eval kept --json
json "o['steps'] == 35 and o['test']['samples'] > 1000"
train 0 --resume kept
json "o['steps'] == 45"

# A worker that is lost before the first checkpoint costs a sweep.
PACELINE_FAULT=2:turn-1:47 train 0 --resume kept --workers 2 --add newer.csv
json "o['workers'] == 1"

# Killed before a run's very first checkpoint: what it was started with is what it goes on with.
PACELINE_FAULT=1:turn-1:1 train 1 --data old.csv --model mf:k=8,sweeps=4 --strategy rotate --workers 1 --run early
cp runs/early/run.json before.json
PACELINE_FAULT=1:turn-1:1 train 1 --resume early --add new.csv
cmp before.json runs/early/run.json >/dev/null && fail "the second try left no trace of its own"
/usr/bin/python3 -c "
import json
a, b = (json.load(open(f))['about'] for f in ('before.json', 'runs/early/run.json'))
assert a == b and a['data']['path'].endswith('old.csv'), (a, b)" || fail "an addition that never trained is the run's"
train 0 --resume early --add newer.csv
json "o['steps'] == 4"
expect 0 "$paceline" eval early --json
json "o['test']['samples'] > 1000"

# Mistakes: one sentence, and the run is as it was.
was=$(about; bits kept)
no() { # CODE WORDS ARGUMENT…
    local code=$1 words=$2
    shift 2
    expect "$code" "$paceline" train --quiet "$@"
    says "$words"
    [ "$(about; bits kept)" = "$was" ] || fail "$*: the run has changed"
}
no 2 '--add is for --resume alone' --data old.csv --model mf --add new.csv
no 1 '--add: cannot open none.csv: No such file' --resume kept --add none.csv
: >empty.csv
no 1 'empty.csv is empty' --resume kept --add empty.csv
no 1 'new.csv adds nothing: all of its ratings are known' --resume kept --add new.csv
printf 'userId,movieId,rating,timestamp\n1,1,50,1\n1,2,70,1\n' >percent.csv
no 1 'percent.csv is of another scale' --resume kept --add percent.csv
printf 'userId,movieId,rating\nme,1,5\n' >timeless.csv
no 1 'has times, and .*timeless.csv has none' --resume kept --add timeless.csv
printf 'some words\n' >words.csv
no 1 'words.csv is in no known format' --resume kept --add words.csv
expect 0 "$paceline" train --model mlp:8x1 --data synthetic --steps 1 --quiet --run net
no 2 '--add is for rating models' --resume net --add new.csv

# An id that is a word makes words of all; a rating that comes again replaces the former one.
printf 'userId,movieId,rating,timestamp\nme,1,5,1\n%s\n' "$(sed -n 2p old.csv | cut -d, -f1,2),3,1" >me.csv
train 0 --resume kept --add me.csv
expect 0 "$paceline" recommend kept --user me -n 3
expect 2 "$paceline" train --resume kept --quiet
says 'is done'
