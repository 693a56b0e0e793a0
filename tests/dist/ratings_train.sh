#!/usr/bin/env bash
# paceline train of rating models: every model trains, is tested and saved; a run that was cut short goes
# on to the same bits, on any number of workers, also where one is killed at any phase of a sweep; a
# checkpoint goes from one to three to two workers; a validation part stops it early; mistakes cost one sentence.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" data make ratings --users 300 --items 150 --ratings 9000 -o ratings.csv
train() { # CODE RUN ARGUMENT…
    local code=$1 run=$2
    shift 2
    expect "$code" "$paceline" train --data ratings.csv --threads 1 --quiet --json --run "$run" "$@"
}

# The tensors of a run's newest checkpoint.
bits() {
    local newest
    newest=$(ls "runs/$1/checkpoints" | grep '^step-' | sort -t- -k2n | tail -n 1)
    (cd "runs/$1/checkpoints/$newest" && sha256sum ./*.safetensors && echo "$newest")
}
same() { # RUN RUN
    [ "$(bits "$1")" = "$(bits "$2")" ] || fail "$1 and $2 differ: $(bits "$1") $(bits "$2")"
}

# Every model; the same as a benchmark of it says; resumed; evaluated from its files alone.
for model in bias-stat bias-als bias-gd:sweeps=6 mf:sweeps=6 ials:k=16,sweeps=6 bmf:k=16,sweeps=12 \
    bmf:k=8,sweeps=6,likelihood=ordinal bmf:k=8,sweeps=6,time=30; do
    train 0 whole --model "$model"
    json "0 < o['test']['mae'] < o['test']['rmse'] < 2 and o['updates_per_second'] > 0 and o['epoch_seconds'] > 0"
    cp out trained
    expect 0 "$paceline" bench ratings ratings.csv --model "$model" --threads 2 --json
    /usr/bin/python3 -c "
import json
a, b = (json.load(open(f))['test'] for f in ('trained', 'out'))
assert all(abs(a[k] - b[k]) < 1e-6 for k in ('mae', 'rmse')), (a, b)" || fail "$model: a benchmark says otherwise"
    expect 0 "$paceline" eval whole --json
    /usr/bin/python3 -c "
import json
a, b = (json.load(open(f))['test'] for f in ('trained', 'out'))
assert all(abs(a[k] - b[k]) < 1e-6 for k in a), (a, b)" || fail "$model: an evaluation says otherwise"
    case $model in bias-stat) ;; *)
        train 0 cut --model "$model" --steps 3
        expect 0 "$paceline" train --resume cut --steps -1 --quiet
        same whole cut
        ;;
    esac
    rm -rf runs
done

# Any number of workers, shared memory and tcp; killed at every phase; from one to three to two.
for model in bias-gd:sweeps=4 ials:k=16,sweeps=4 bmf:k=16,sweeps=6; do
    train 0 one --model $model
    for workers in 2 4; do
        train 0 w$workers --model $model --workers $workers
        json "o['strategy'] == 'rows' and o['workers'] == $workers"
        same one w$workers
    done
    train 0 tcp --model $model --workers 2 --transport tcp --shares speed
    same one tcp
    train 0 any --model $model --steps 1
    expect 0 "$paceline" train --resume any --workers 3 --steps 3 --quiet
    expect 0 "$paceline" train --resume any --workers 2 --steps -1 --quiet
    same one any
    case $model in bmf*) phases="phase-1 phase-2 phase-4 combine update checkpoint" ;;
    *) phases="phase-2" ;; esac
    victim=3
    for phase in $phases; do
        PACELINE_FAULT=$victim:$phase:3 train 0 lost --model $model --workers 3
        json "o['workers'] == 2"
        same one lost
        rm -r runs/lost
        victim=$((4 - victim)) # the last rank and rank 0 by turns
    done
    rm -rf runs
done

# A signal saves; the run goes on to the same bits.
train 0 whole --model bmf:k=16,sweeps=3000,keep=2 --steps 400
expect 0 bash -c "\"$paceline\" train --model bmf:k=16,sweeps=3000,keep=2 --data ratings.csv --threads 1 --quiet --run cut &
    until [ -s runs/cut/events.jsonl ]; do sleep 0.02; done
    kill -TERM \$!; wait \$! || [ \$? = 143 ]"
expect 0 "$paceline" train --resume cut --steps 400 --quiet
same whole cut

# Splits; all of it for training; what the data has; ids and words.
train 0 fold --model bias-als --split fold:2/5
train 0 all --model bias-als --split none
json "o['test'] is None"
train 0 other --model bias-als --split 0.1
expect 1 "$paceline" eval all
says 'has no test ratings'
expect 0 "$paceline" eval all --part train
head -n 500 ratings.csv >some.csv
expect 0 "$paceline" eval all --data some.csv --json
json "o['test']['samples'] == 499"
expect 0 "$paceline" runs
grep -q 'RMSE0\.' out || fail "no RMSE in: $(cat out)"
expect 0 "$paceline" compare fold other
grep -q RMSE out || fail "no RMSE in: $(cat out)"
expect 0 "$paceline" train --model auto --data ratings.csv --steps 1
says 'model bmf \(auto\): the most accurate'
awk -F, 'NR > 1 { $3 = 1 } { print $1 "," $2 "," $3 }' ratings.csv >clicks.csv
expect 0 "$paceline" train --model auto --data clicks.csv --steps 1
says 'model ials \(auto\)'
awk -F, 'NR > 1 { print "u" $1 "|" $3 "|i" $2 }' ratings.csv >odd.txt
train 0 odd --model bias-stat --data odd.txt --columns user,rating,item
expect 0 "$paceline" eval odd

# Validation: ratings kept apart say which checkpoint is best and when to stop, the same for any number of workers; the
# tests are then those of the best weights. The sweeps in which a chain settles are not judged.
for workers in 1 2; do
    train 0 early$workers --model mf:k=32,sweeps=60,lambda=1e-5,rate=0.1 --validation 0.2 --patience 6 --workers $workers
    json "o['best_step'] < o['steps'] < 60 and o['validation']['rmse'] > 0"
    cp out trained
    expect 0 "$paceline" eval early$workers --best --json
    /usr/bin/python3 -c "
import json
a, b = (json.load(open(f)) for f in ('trained', 'out'))
assert b['steps'] == a['best_step'], (a, b)
assert all(abs(a['test'][k] - b['test'][k]) < 1e-6 for k in b['test']), (a, b)" || fail "not the best weights were tested"
    expect 2 "$paceline" train --resume early$workers
    says 'raise --patience'
done
for workers in 1 3; do
    train 0 judged$workers --model bias-als:sweeps=40,user-damping=0,item-damping=0 --validation 0.1 --patience 10 \
        --eval-every 1 --workers $workers
    json "10 < o['steps'] == o['best_step'] + 10 < 40"
done
same judged1 judged3
train 0 settled --model bmf:k=8,sweeps=14,burn=9 --validation 0.1 --patience 1 --eval-every 1
json "o['best_step'] > 9"

# Mistakes.
train 2 no --model bias-stat --validation 0.1 --patience 2
says 'bias-stat makes one sweep'
train 2 no --model mf --patience 2
says '--patience needs a validation part'
train 2 no --model mf --lr 0.1
says '--lr is for networks; mf is a rating model'
train 2 no --model mlp:8x1 --split 0.2
says '--split is for rating models; mlp:8x1 is a network'
train 2 no --model mf --strategy ddp
says 'strategy ddp does not serve rating models; these do: rotate, rows'
train 2 no --model mlp:8x1 --strategy rows
says 'strategy rows does not serve'
train 2 no --model mf --strategy rows --workers 2
says 'strategy rows cannot divide'
train 2 no --model bmf:k=7
says 'k is a multiple of 8, not 7'
train 2 no --model mf:depth=3
says "model mf has no option 'depth'"
train 2 no --model mf --split 7
says 'is no split'
expect 2 "$paceline" train --model auto --data synthetic
says 'has no ratings'
expect 2 "$paceline" predict fold x
says 'is a rating model, which answers `paceline recommend`'
expect 2 "$paceline" train --resume fold
says 'run fold is done: bias-als has made its'
[ ! -e runs/no ] || fail "a folder of a run that was refused"

# The figures of a test are sums over users; they are the same to the last bit however users are divided.
for workers in 1 2 3 4; do
    train 0 sums-$workers --model bias-als --workers $workers
    /usr/bin/python3 -c "import json; t = json.load(open('out'))['test']; print(repr(t['rmse']), repr(t['mae']))" >>sums
done
[ "$(sort -u sums | wc -l)" = 1 ] || fail "other figures with other numbers of workers: $(cat sums)"
