#!/usr/bin/env bash
# --shares speed: of two hosts, one with a quarter of the other's CPU, the fast one computes more of every
# batch, or more rows of a rating model; the losses are still those of one worker, or the bits. Other strategies refuse it.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

expect 2 "$paceline" train --model mlp:8x1 --data synthetic --strategy ps --workers 2 --shares speed
says '^paceline: --shares speed is for .*ddp.*, not for ps$'
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --shares fast
says "^paceline: unknown shares 'fast'; known: even, speed"
needs_root

common=(--model mlp:512x4 --data synthetic:train=8192,test=64 --batch 256 --steps 16 --threads 1 --log-every 1 --no-test)
expect 0 "$paceline" train "${common[@]}" --run one
for strategy in ddp local-sgd:k=4; do
    expect 0 timeout 120 "$root/tools/cluster" train --loopback --cpu 0.4,0.1 --period 10 -- "$paceline" train "${common[@]}" \
        --workers=2 --strategy $strategy --shares speed --run "by-$strategy"
    /usr/bin/python3 - "$strategy" <<'PY' || fail "$strategy: $(cat err)"
import json, sys
def events(run):
    return [json.loads(line) for line in open(f"runs/{run}/events.jsonl")]
run = events("by-" + sys.argv[1])
shares = [e["samples"] for e in run if e["event"] == "shares"]
assert shares and all(sum(s) == 256 and min(s) > 0 for s in shares), shares
assert shares[-1][0] > 1.5 * shares[-1][1], shares
if "local" not in sys.argv[1]:
    losses = [[e["loss"] for e in x if e["event"] == "step"] for x in (run, events("one"))]
    assert len(losses[0]) == len(losses[1]) == 16
    assert all(abs(a - b) < 1e-4 for a, b in zip(*losses)), losses
PY
done

expect 0 "$paceline" data make ratings --users 1500 --items 500 --ratings 150000 -o ratings.csv
rated=(--model bmf:k=32,sweeps=60,keep=4 --data ratings.csv --threads 1 --no-test)
expect 0 "$paceline" train "${rated[@]}" --run rated
expect 0 timeout 120 "$root/tools/cluster" train --loopback --cpu 0.4,0.1 --period 10 -- "$paceline" train "${rated[@]}" \
    --workers=2 --shares speed --run by-rows
cmp runs/rated/checkpoints/step-60/model.safetensors runs/by-rows/checkpoints/step-60/model.safetensors ||
    fail "rows that are divided by speed have other bits"
