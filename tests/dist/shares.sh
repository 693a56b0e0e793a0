#!/usr/bin/env bash
# --shares: of two hosts, one with a quarter of the other's CPU, the fast one computes more of every batch,
# by itself under ddp; the losses are still those of one worker, and with the same shares once more the bits are
# the same. A worker whose host loses CPU in mid-run is found, with the cause. Under rotate users move to the fast one while it trains. Other strategies refuse it.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

expect 2 "$paceline" train --model mlp:8x1 --data synthetic --strategy ps --workers 2 --shares speed
says '^paceline: strategy ps does not follow --shares speed; these do: .*ddp.*rotate.*$'
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --shares fast
says "^paceline: unknown shares 'fast'; known: auto, even, speed, recorded"
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --shares recorded
says '^paceline: --shares recorded is for --like'
for text in at: at:0=1/2 at:3=0/2 at:3=1/2,3=2/1 at:3=1/2,5 at:9=1/2x at:1=1000000000/1000000000; do
    expect 2 "$paceline" train --model mlp:8x1 --data synthetic --shares "$text"
    says 'is not of the form at:STEP='
done
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --workers 2 --shares at:3=10/20/34 --run sizes
says 'the shares of step 3 are those of 3 workers; there are 2'
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --on-slow complain
says "^paceline: unknown --on-slow 'complain'; known: tell, rebalance, evict"
expect 2 "$paceline" train --model mlp:8x1 --data synthetic --workers 2 --on-slow evict
says '^paceline: --on-slow evict needs --min-workers'
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
# stop RUN: as Ctrl-C at host 0 does. A signal to tools/cluster would end the hosts one after another, and the last one
# would make steps alone.
stop() {
    local agent
    agent=$("$paceline" status "$1" --json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["hosts"][0]["pid"])')
    kill -TERM "$agent"
    wait $pid || true # by the signal
}
for strategy in ddp local-sgd:k=64; do
    run=by-${strategy%%:*} how=(--shares speed)
    [ $strategy != ddp ] || how=()
    timeout 240 "$root/tools/cluster" train --loopback --cpu 0.5,0.1 --period 10 -- "$paceline" train "${common[@]}" \
        --workers=2 --strategy $strategy "${how[@]}" --epochs 1000 --run "$run" >out 2>err &
    pid=$!
    for _ in $(seq 1000); do
        changed "$run" && break
        kill -0 $pid 2>/dev/null || fail "it ended by itself: $(cat err)"
        sleep 0.2
    done
    stop "$run"
    cp err said-${strategy%%:*}
    /usr/bin/python3 - "$run" <<'PY' || fail "$strategy: $(cat err)"
import json, sys
def events(run):
    return [json.loads(line) for line in open(f"runs/{run}/events.jsonl")]
run = events(sys.argv[1])
shares = [e["samples"] for e in run if e["event"] == "shares"]
assert shares and all(sum(s) == 256 and min(s) > 0 for s in shares), shares
# Five times the CPU, for as long as the machine gives it: later shares follow what else it does.
assert any(s[0] > 1.2 * s[1] for s in shares), shares
if "local" in sys.argv[1]:  # the first rounds are short: speeds are known before a whole one is over
    assert [e["step"] for e in run if e["event"] == "shares"][0] < 64, run
else:
    losses = [[e["loss"] for e in x if e["event"] == "step"][:16] for x in (run, events("one"))]
    assert len(losses[0]) >= 12
    assert all(abs(a - b) < 1e-4 for a, b in zip(*losses)), losses
PY
done

grep -qE 'worker [0-9]+ on host 1 computes [0-9]+ samples a second, a worker in the mean [0-9]+' said-ddp ||
    fail "it does not say why shares change: $(cat said-ddp)"
steps=$(/usr/bin/python3 -c 'import json; print(json.load(open("runs/by-ddp/run.json"))["result"]["steps"])')
expect 0 "$paceline" train --like by-ddp --workers 2 --shares recorded --steps "$steps" --run again
grep -q '"shares": "at:' runs/again/run.json || fail "the recorded shares are not in run.json"
[ "$(fingerprint runs/again)" = "$(fingerprint runs/by-ddp)" ] || fail "the same shares give other bits"
[ "$(grep -c '"event":"shares"' runs/again/events.jsonl)" = "$(grep -c '"event":"shares"' runs/by-ddp/events.jsonl)" ] ||
    fail "not all shares were taken"

# A host's CPU quota shrinks in the middle of a run: its worker is found and the cause named; shares follow, or it leaves.
holds() { # PYTHON: is it so of the events e so far?
    kill -0 $pid 2>/dev/null || fail "it ended by itself: $(cat err)"
    /usr/bin/python3 -c 'import json, sys
e = [json.loads(line) for line in open("runs/" + sys.argv[1] + "/events.jsonl")]
sys.exit(not eval(sys.argv[2]))' "$how" "$1" 2>/dev/null
}
await() { # COMMAND…
    for _ in $(seq 500); do "$@" && return; sleep 0.2; done
    fail "never: $*; $(tail -n 3 err runs/$how/events.jsonl)"
}
tells_slow() { "$paceline" status "$how" | grep -qE '^worker [0-9]+ on host 1: compute [0-9.]+x its peers.*CPU quota'; }
for how in ${FULL:+rebalance} evict; do # both in make soak
    export CLUSTER=$how$$
    timeout 250 "$root/tools/cluster" train --loopback --cpu 0.2 --period 10 -- "$paceline" train "${common[@]}" \
        --workers=2 --shares even --on-slow $how --min-workers 1 --epochs 100000 --run $how >out 2>err &
    pid=$!
    await holds 'sum(x["seconds"] for x in e if x["event"] == "step") > 25'
    "$root/tools/cluster" limit 1 --cpu 0.02 --period 50
    await holds 'any(x["event"] == "anomaly" and x["host"] == 1 and x["slow"] for x in e)'
    holds "[x['cause'] + x['action'] for x in e if x['event'] == 'anomaly' and x['host'] == 1][-1] == 'cpu-quota$how'" ||
        fail "another cause or action: $(grep anomaly runs/$how/events.jsonl)"
    if [ $how = rebalance ]; then
        await holds 'any(x["event"] == "shares" and x["samples"][0] > x["samples"][1] for x in e)'
        await tells_slow
    else # and the other goes on
        await holds 'any(x["event"] == "view" and len(x["members"]) == 1 and e[-1].get("step", 0) > x["step"] for x in e)'
    fi
    stop $how
    unset CLUSTER
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
