#!/usr/bin/env bash
# Strategy rotate: as accurate as one worker, the same bits for the same workers over any transport, also
# where workers are killed at any phase of a sweep; checkpoints go from three workers to one to two;
# what it does not serve is refused.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" data make ratings --users 600 --items 150 --ratings 30000 -o ratings.csv
train() { # CODE RUN ARGUMENT…
    local code=$1 run=$2
    shift 2
    expect "$code" "$paceline" train --data ratings.csv --threads 1 --quiet --json --model mf:k=16,sweeps=6 \
        --run "$run" "$@"
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
close() { # FILE: its RMSE is that of one worker
    /usr/bin/python3 -c "
import json, sys
a, b = (json.load(open(f))['test']['rmse'] for f in ('one.json', sys.argv[1]))
assert abs(a - b) < 0.002, (a, b)" "$1" || fail "$1: another RMSE than one worker's"
}

# One worker: the bits of rows. Several: the same RMSE, `auto` takes it; and what is saved is what was tested. On one
# host neither rows nor bundles travel, which would be 600 and 4 times 150 rows of 16 floats a sweep.
train 0 one
cp out one.json
train 0 alone --strategy rotate
same one alone
for workers in 2 3 4; do
    train 0 w$workers --workers $workers
    json "o['strategy'] == 'rotate' and o['workers'] == $workers and o['test']['samples'] > 5000"
    json "sum(r['bytes_sent'] for r in o['ranks']) < 6 * 600 * 16 * 4"
    cp out trained.json
    close trained.json
    expect 0 "$paceline" eval w$workers --json
    /usr/bin/python3 -c "
import json
a, b = (json.load(open(f))['test'] for f in ('trained.json', 'out'))
assert all(abs(a[k] - b[k]) < 1e-6 for k in a), (a, b)" || fail "$workers workers: an evaluation says otherwise"
done
train 0 tcp --workers 3 --transport tcp --strategy rotate:replicas=1
same w3 tcp
train 0 threads --workers 2 --threads 2
close out

# A worker is lost: the sweep under way is done again by the others, in their own division.
for phase in turn-1 turn-6 combine meet update checkpoint; do
    for victim in 1 3; do
        # In the middle of a sweep, and in its meeting, also without shared memory.
        transports="shm $(case $victim:$phase in 3:turn-6 | 3:meet) echo tcp ;; esac)"
        for transport in $transports; do
            PACELINE_FAULT=$victim:$phase:3 train 0 lost --workers 3 --transport "$transport"
            json "o['workers'] == 2 and o['steps'] == 6 and o['lost_steps'] == 0"
            close out
            rm -r runs/lost
        done
    done
done
# In the meeting, and no worker may go on without it: what the other one saves is a whole sweep, from which two go on to
# the same bits.
PACELINE_FAULT=2:meet:3 train 1 ends --workers 2 --min-workers 2 --checkpoint-every 100
[ "$(ls runs/ends/checkpoints | grep -c '^step-[23]$')" = 1 ] || fail "not saved: $(ls runs/ends/checkpoints)"
expect 0 "$paceline" train --resume ends --workers 2 --quiet
same ends w2
# Down to one, which has all rows: two workers keep each other's.
PACELINE_FAULT=1:turn-3:2 train 0 lost --workers 2
json "o['workers'] == 1 and o['lost_steps'] == 0"
close out
# With one copy all go back to the newest checkpoint.
PACELINE_FAULT=2:turn-2:4 train 0 back --workers 3 --strategy rotate:replicas=1 --checkpoint-every 2
json "o['workers'] == 2 and o['steps'] == 6 and o['lost_steps'] == 1"
close out

# From three workers to one to two.
train 0 any --workers 3 --steps 2
expect 0 "$paceline" train --resume any --workers 1 --steps 4 --quiet
expect 0 "$paceline" train --resume any --workers 2 --steps -1 --quiet --json
json "o['strategy'] == 'rotate' and o['steps'] == 6"
close out

# What it does not serve.
train 2 no --strategy rotate --model bias-gd --workers 2
says 'strategy rotate does not serve bias-gd; it is for mf'
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --strategy rotate
says 'strategy rotate does not serve'
train 2 no --strategy rows --workers 2
says 'cannot divide between 2 workers; strategy rotate can'
