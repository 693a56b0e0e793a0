#!/usr/bin/env bash
# The estimate of a worker's memory: near what the process has at its peak; a training that does not
# fit is refused with figures, and what the refusal says would fit does.
source "$(dirname "$0")/../support/dist.bash"

deep=(--model mlp:512x12 --data synthetic:train=256,test=32 --batch 64 --threads 1 --quiet)
wide=(--model vgg11 --data synthetic:shape=3x32x32,train=512,test=32 --batch 256 --threads 1 --quiet)

# Every strategy of the registry that trains networks: the estimate is between nine
# tenths and five quarters of the peak.
expect 0 "$paceline" strategies --json
for strategy in $(/usr/bin/python3 -c "
import json, sys
print(*(s['name'] for s in json.load(open('out'))['strategies']
        if not s['alone'] and 'network' in s['tasks']))"); do
    for workers in 1 2 3; do
        expect 0 "$paceline" train "${deep[@]}" --steps 3 --strategy "$strategy" --workers $workers --json
        json "0.9 < o['memory']['resident_bytes'] / o['peak_memory_bytes'] < 1.25"
        json "o['memory']['worker_bytes'] <= o['memory']['resident_bytes']"
    done
done
expect 0 "$paceline" train "${wide[@]}" --steps 2 --json
json "0.9 < o['memory']['resident_bytes'] / o['peak_memory_bytes'] < 1.25"
json "sum(o['memory'][k] for k in ('weights', 'gradients', 'optimiser', 'copies', 'activations', 'communication',
    'data', 'program')) - o['memory']['worker_bytes'] in range(-8, 9)"

# refused PATTERN ARGUMENT…: before the run's folder is made; then each of what would fit trains.
refused() {
    local pattern=$1 way
    local -a ways
    shift
    expect 1 "$paceline" train "$@" --run refused --json
    json "o['error']['code'] == 'memory'"
    says "$pattern"
    [ ! -e runs/refused ] || fail "a refused training has a folder"
    mapfile -t ways < <(sed -nE 's/.*What would fit: //p' err | sed 's/, or /\n/g; s/ on this host//')
    for way in "${ways[@]}"; do
        # shellcheck disable=SC2086 # an option and its value
        expect 0 "$paceline" train "$@" --no-checkpoint --steps 1 $way
    done
    [ ${#ways[@]} -gt 0 ]
}
refused 'vgg11 with 256 samples at a time needs [0-9]+ MB a worker on this host \(activations [0-9]+ MB, weights 37.0 MB.*--memory gives it 315 MB. What would fit: --accumulate 2, or --batch 128$' \
    "${wide[@]}" --memory 300M || fail "nothing fits"
refused '128 samples at a time .*fit: --batch-per-worker 32' \
    "${wide[@]}" --sync-bn --batch-per-worker 128 --workers 2 --strategy allreduce --memory 210M || fail "nothing fits"
refused 'mlp:512x12 .* \(copies [0-9.]+ MB, .*fit: --workers 1 on this host, or --strategy allreduce' \
    "${deep[@]}" --workers 2 --strategy ddp --memory 65M || fail "nothing fits"
refused 'gather-scatter|communication [0-9.]+ MB.*fit: .*--strategy (allreduce|ddp)' \
    "${deep[@]}" --workers 3 --strategy gather-scatter --memory 75M || fail "nothing fits"
refused 'fit: --strategy ring:replicate=off,split=off$' "${deep[@]}" --workers 3 --strategy ddp --memory 32M || fail "nothing fits"
refused 'no smaller batch, number of workers or strategy known here fits$' \
    "${deep[@]}" --memory 20M && fail "something fits: $(cat err)"

# A resumed run may be given another budget, and keeps its own otherwise.
expect 0 "$paceline" train "${deep[@]}" --steps 1 --memory 100M --run kept
expect 0 "$paceline" train --resume kept --steps 2 --quiet
grep -q '"memory": *104857600' runs/kept/run.json || fail "run.json lacks the budget"
expect 1 "$paceline" train --resume kept --steps 3 --memory 20M --quiet
says 'needs [0-9.]+ MB a worker.*--memory gives it 21.0 MB'
expect 2 "$paceline" train "${deep[@]}" --memory lots
says 'memory takes bytes, such as'

# auto says what it stands for.
expect 0 "$paceline" train "${deep[@]::6}" --steps 1 --workers 2 --strategy auto
says '^strategy ddp \(auto\): '
says '^memory [0-9.]+ MB a worker: .*(weights|gradients) [0-9.]+ MB'
expect 0 "$paceline" strategies
grep -qE '^ +one worker +single: ' out && grep -qE '^ +several +ddp: ' out || fail "$(cat out)"

# The limit of a control group counts like memory: host 1 has too little of it and says so; with a
# little more than the estimate it trains.
[ "$(id -u)" = 0 ] || exit 0
host() { # HOST
    "$root/tools/cluster" exec "$1" "$paceline" train --num-nodes 2 --rank "$1" --master-ip 127.77.0.1 \
        "${deep[@]}" --steps 2 --no-checkpoint
}
pair() { # LIMIT CODE: of host 1 and of host 0
    local got=0
    export -f host
    export root paceline work
    declare -p deep >deep.bash
    timeout 120 "$root/tools/cluster" run 2 --loopback --memory "none,$1" -- bash -c '
        source deep.bash
        host 1 >host1.out 2>host1.err & other=$!
        host 0 >out 2>err; got=$?
        wait $other
        exit $got' || got=$?
    [ "$got" = "$2" ] || fail "with $1 host 0 ended with $got: $(cat err host1.err)"
}
pair 40M 1
grep -qE 'needs [0-9.]+ MB on host 1 \(.*which has 41.9 MB' err host1.err || fail "$(cat err host1.err)"
pair 96M 0
