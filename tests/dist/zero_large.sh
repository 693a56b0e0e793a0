#!/usr/bin/env bash
# A model that is larger than the memory of any worker: four test hosts of tools/cluster, each with a limit,
# one worker on each. ddp refuses it, and says how much it needs; zero:stage=3 trains it, saves it, goes on
# from there, with another number of workers too, and one limited host evaluates it.
source "$(dirname "$0")/../support/dist.bash"
needs_root

if [ -z "${CLUSTER:-}" ]; then
    timeout 280 "$root/tools/cluster" run 4 --loopback --memory 150M -- bash "$root/tests/dist/zero_large.sh" "$paceline"
    exit
fi

# 12.6 M weights: 50 MB, with gradients and adam's state 202 MB.
job=(--model mlp:512x48 --data synthetic:shape=1x28x28,classes=10,train=64,test=20 --batch 16 --optimiser adam
    --threads 1 --quiet --runs-dir "$work/runs" --run large)

# train HOSTS CODE ARGUMENT…: a job of that many hosts; host 0's output in out and err.
train() {
    local hosts=$1 code=$2 got=0 master
    master=$("$root/tools/cluster" address 0)
    shift 2
    for ((rank = 1; rank < hosts; rank++)); do
        timeout 200 "$root/tools/cluster" exec $rank "$paceline" train "$@" --num-nodes "$hosts" --rank $rank \
            --master-ip "$master" >/dev/null 2>"err-$rank" </dev/null &
    done
    timeout 200 "$root/tools/cluster" exec 0 "$paceline" train "$@" --num-nodes "$hosts" --rank 0 \
        --master-ip "$master" --json >out 2>err </dev/null || got=$?
    wait
    [ $got = "$code" ] || fail "train $* ended with $got instead of $code: $(tail -n 3 err err-*)"
}

train 4 1 "${job[@]}" --strategy ddp --steps 2
says 'mlp:512x48 .*needs .*MB'

train 4 0 "${job[@]}" --strategy zero:stage=3 --steps 2
json "o['steps'] == 2 and all(r['peak_memory_bytes'] < 150e6 for r in o['ranks'])"
train 3 0 --resume large --runs-dir "$work/runs" --threads 1 --quiet --strategy zero:stage=3 --steps 4
json "o['steps'] == 4 and o['workers'] == 3"
timeout 100 "$root/tools/cluster" exec 1 "$paceline" eval large --runs-dir "$work/runs" --batch 8 --json >out 2>err ||
    fail "eval: $(cat err)"
json "sum(c['support'] for c in o['test']['per_class']) == 20 and 0 < o['test']['loss'] < 10"
