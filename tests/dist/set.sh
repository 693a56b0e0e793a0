#!/usr/bin/env bash
# `paceline set`: an option of a running job's strategy changes at one step for all workers, also for those that come
# later; what cannot be is refused and leaves the job alone. Roles and the strategy's figures are told.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

# 32 steps an epoch, averaged after each of them at first.
"$paceline" train --model mlp:8x1 --data synthetic:classes=3,shape=1x4x4,train=256,test=16 --batch 8 --epochs 1000000 \
    --workers 2 --restart-workers --strategy local-sgd:k=1 --run it --no-checkpoint --quiet --json >train.out 2>train.err </dev/null &
job=$!
agents[job]=$job
steps() { # N: so many are in the events
    [ "$(grep -c '"event":"step"' runs/it/events.jsonl 2>/dev/null || true)" -ge "$1" ]
}
eventually [ -S runs/it/status ]
eventually steps 100

# Refused, each with a sentence.
while IFS='|' read -r setting words; do
    expect 2 "$paceline" set it "$setting" --json
    says "$words"
    json "o['error']['code'] == 'usage'"
done <<'REFUSED'
k=-1|strategy local-sgd: k takes a whole number from 0
k=many|strategy local-sgd: k takes a whole number or auto, not 'many'
warmup=3|warmup of strategy local-sgd cannot change while the job runs
kk=3|strategy local-sgd has no option 'kk'
k|'k' is not NAME=VALUE
REFUSED
expect 2 "$paceline" set other k=3
says "nothing is running as 'other'"
! grep -q '"event":"set"' runs/it/*.jsonl || fail "a refused setting was taken"

# Accepted: from one step on.
expect 0 "$paceline" set it k=1000 --json
json "o['name'] == 'k' and o['value'] == '1000' and o['number'] == 1 and o['step'] > 100"
step=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['step'])")

# The next worker has it, too. Would it average after each step, the two would not understand each other.
pid() { "$paceline" status it --json | /usr/bin/python3 -c "
import json, sys
print(sorted((w['id'], w['pid']) for w in json.load(sys.stdin)['workers'])[-1][1])"; }
kill -KILL "$(pid)"
grown() { grep -q '"event":"view","view":[0-9]*,"members":\[[0-9]*,3\]' runs/it/events.jsonl; }
eventually grown
seen=$(grep -c '"event":"step"' runs/it/events.jsonl)
eventually steps $((seen + 200))
counted() { # the figures of both workers, in numbers of one second ago
    "$paceline" status it --json >status.json && /usr/bin/python3 - 2>/dev/null <<'PY'
import json
workers = [w for w in json.load(open("status.json"))["workers"] if w["rank"] is not None]
assert len(workers) == 2 and all(w["roles"] == ["worker"] for w in workers), workers
assert all(w["figures"] and w["figures"]["local_steps"] > 0 for w in workers), workers
PY
}
eventually counted
kill -INT $job
wait $job || true
cp train.out out
json "[r['roles'] for r in o['ranks']] == [['worker']] * 2"
json "o['figures']['local_steps'] > 0 and 0 < o['figures']['most_rounds'] < o['figures']['local_steps']"
/usr/bin/python3 - "$step" <<'PY' || fail "k did not change at step $step for all"
import json, sys
since, rounds, before, views = int(sys.argv[1]), set(), set(), 0
for line in open("runs/it/events.jsonl"):
    event = json.loads(line)
    if event["event"] == "view":
        views += 1
        assert event["roles"] == [["worker"]] * len(event["members"]), event
    if event["event"] == "set":
        assert event["step"] == since and event["settings"] == {"k": "1000"}, event
    if event["event"] == "step" and event["communicate"] > 0:
        (before if event["step"] < since else rounds).add(event["step"])
assert len(before) == since - 1, "a step before the change was not averaged"
assert views >= 3 and len(rounds) > 5, (views, len(rounds))
# Beside every thousandth step an epoch ends with a round, and so does a leg that a new view cuts short.
odd = [step for step in rounds if step % 1000 != 0 and step % 32 != 0]
assert len(odd) <= views, odd
PY
grep -q '"event":"set","number":1,"name":"k","value":"1000"' runs/it/cluster.jsonl || fail "cluster.jsonl lacks the change"
expect 2 "$paceline" set it k=2
says 'nothing is running: run it is interrupted'

# A run of one process has no socket.
"$paceline" train --model mlp:8x1 --data synthetic:classes=3,shape=1x4x4,train=256 --epochs 1000000 --run alone --quiet 2>alone.err </dev/null &
alone=$!
agents[alone]=$alone
started() { grep -qs '"event":"step"' runs/alone/events.jsonl; }
eventually started
expect 2 "$paceline" set alone k=2
says 'run alone has no socket here'
kill -INT $alone
wait $alone || true
