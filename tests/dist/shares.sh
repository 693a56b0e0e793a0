#!/usr/bin/env bash
# --shares speed: of two hosts, one with a quarter of the other's CPU, the fast one computes more of every
# batch; the losses are still those of one worker. Under rotate users move to the fast one while it trains. Other strategies refuse it.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

expect 2 "$paceline" train --model mlp:8x1 --data synthetic --strategy ps --workers 2 --shares speed
says '^paceline: strategy ps does not follow --shares speed; these do: .*ddp.*rotate.*$'
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --shares fast
says "^paceline: unknown shares 'fast'; known: even, speed"
needs_root

# Speed is measured for a second at least: a fast machine makes more steps until then, and the training
# is ended once shares have changed and steps were made with them.
common=(--model mlp:512x4 --data synthetic:train=8192,test=64 --batch 256 --threads 1 --log-every 1 --no-test)
expect 0 "$paceline" train "${common[@]}" --steps 16 --run one
changed() { # RUN: is step 12 done, and a step after the second change of shares or 20 after the first?
    /usr/bin/python3 - "$1" 2>/dev/null <<'PY'
import json, sys
events = [json.loads(line) for line in open(f"runs/{sys.argv[1]}/events.jsonl")]
shares = [e["step"] for e in events if e["event"] == "shares"]
step = max(e["step"] for e in events if e["event"] == "step")
sys.exit(not (step >= 12 and shares and (step >= shares[0] + 20 or len(shares) > 1 and step >= shares[1])))
PY
}
for strategy in ddp local-sgd:k=64; do
    run=by-${strategy%%:*}
    timeout 120 "$root/tools/cluster" train --loopback --cpu 0.4,0.1 --period 10 -- "$paceline" train "${common[@]}" \
        --workers=2 --strategy $strategy --shares speed --epochs 1000 --run "$run" >out 2>err &
    pid=$!
    for _ in $(seq 500); do
        changed "$run" && break
        kill -0 $pid 2>/dev/null || fail "it ended by itself: $(cat err)"
        sleep 0.2
    done
    kill -TERM $pid
    wait $pid || true # by the signal
    /usr/bin/python3 - "$run" <<'PY' || fail "$strategy: $(cat err)"
import json, sys
def events(run):
    return [json.loads(line) for line in open(f"runs/{run}/events.jsonl")]
run = events(sys.argv[1])
shares = [e["samples"] for e in run if e["event"] == "shares"]
assert shares and all(sum(s) == 256 and min(s) > 0 for s in shares), shares
assert shares[-1][0] > 1.2 * shares[-1][1], shares  # four times the CPU; the machine may be busy
if "local" in sys.argv[1]:  # the first rounds are short: speeds are known before a whole one is over
    assert [e["step"] for e in run if e["event"] == "shares"][0] < 64, run
else:
    losses = [[e["loss"] for e in x if e["event"] == "step"][:16] for x in (run, events("one"))]
    assert len(losses[0]) >= 12
    assert all(abs(a - b) < 1e-4 for a, b in zip(*losses)), losses
PY
done

# Users and their rows move between sweeps, and every later test and checkpoint goes by the new dealing; dealt
# evenly the same sweeps come to the same error.
expect 0 "$paceline" data make ratings --users 8000 --items 1000 --ratings 1500000 -o ratings.csv
expect 0 "$paceline" data info ratings.csv
model=(--model mf:k=128,sweeps=120 --data ratings.csv --threads 1)
timeout 300 "$root/tools/cluster" train --loopback --cpu 0.4,0.1 --period 10 -- "$paceline" train "${model[@]}" \
    --workers=2 --strategy rotate --shares speed --run by-rotate >out 2>err || fail "rotate: $(cat err)"
expect 0 "$paceline" eval by-rotate --json
rmse=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['test']['rmse'])")
/usr/bin/python3 - "$rmse" <<'PY' || fail "rotate: $(cat err)"
import json, sys
run = [json.loads(line) for line in open("runs/by-rotate/events.jsonl")]
shares = [e["samples"] for e in run if e["event"] == "shares"]
assert shares and all(sum(s) == sum(shares[0]) and min(s) > 0 for s in shares), shares
assert shares[-1][0] > 1.2 * shares[-1][1], shares
PY
expect 0 "$paceline" train "${model[@]}" --workers 2 --strategy rotate --json --quiet
json "abs(o['test']['rmse'] - $rmse) < 0.002"
