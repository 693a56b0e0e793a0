#!/usr/bin/env bash
# With no flags but --workers 3: a training survives kill -9 of any worker, rank 0 included, under every
# strategy of several workers, and says once who died and of what. What must still end a job does.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" strategies --json
strategies=$(/usr/bin/python3 -c "
import json
print(*(s['name'] for s in json.load(open('out'))['strategies'] if not s['alone']))")
[ "$(wc -w <<<"$strategies")" -ge 4 ] || fail "strategies of several workers: $strategies"
common=(--model mlp:8x1 --data synthetic:train=72,test=16 --batch 24 --steps 9 --epochs 100 --lr 0.01 --json)

# tells_once ID WORDS: exactly one line has a signal in it, and it names worker ID.
tells_once() {
    [ "$(grep -c SIG err)" = 1 ] || fail "not one line tells of the loss: $(cat err)"
    says "^warning: worker $1 on host .* \(pid [0-9]+\) .*\(signal 9, SIGKILL\); $2\$"
}

for strategy in $strategies; do
    for victim in 1 3; do
        PACELINE_FAULT=$victim:data:3 expect 0 "$paceline" train "${common[@]}" --workers 3 --strategy "$strategy" \
            --quiet --run "$strategy-$victim"
        json "o['steps'] == 9 and o['workers'] == 2 and $victim not in [r['id'] for r in o['ranks']]"
        tells_once $victim '2 workers go on'
        [ "$(wc -l <err)" = 1 ] || fail "more than that is said: $(cat err)"
    done
    PACELINE_FAULT=1:data:3 expect 0 "$paceline" train "${common[@]}" --workers 3 --strategy "$strategy" \
        --quiet --restart-workers --run "$strategy-again"
    json "o['steps'] == 9"
    tells_once 1 'worker 4 is started in its place, 2 workers go on'
done

# From outside, while worker 3 stands still, so that the moment is certain. Only one is left, then.
rm err
PACELINE_FAULT=3:data:4:STOP "$paceline" train "${common[@]}" --workers 3 --silence 60 --run outside >out 2>err </dev/null &
agent=$!
for _ in $(seq 1500); do grep -q 'worker 3 .* was stopped' err && break; sleep 0.02; done
pid_of() { "$paceline" status outside --json | /usr/bin/python3 -c "
import json, sys
print(*(w['pid'] for w in json.load(sys.stdin)['workers'] if w['id'] == $1))"; }
third=$(pid_of 3)
kill -KILL "$(pid_of 1)"
for _ in $(seq 1500); do grep -q SIGKILL err && break; sleep 0.02; done
tells_once 1 '2 workers go on'
kill -KILL "$(pid_of 2)"
while kill -CONT "$third" 2>/dev/null; do sleep 0.02; done # it comes to that step again
wait $agent || fail "kill -9 from outside: $(tail -n 5 err)"
json "o['steps'] == 9 and [r['id'] for r in o['ranks']] == [3]"
[ "$(grep -c 'SIGKILL' err)" = 2 ] || fail "two losses, two lines: $(cat err)"
says '^warning: worker 2 on host .* died \(signal 9, SIGKILL\); 1 worker goes on$'
/usr/bin/python3 - <<'PY' || fail "the coordinator's events do not tell of the losses: $(cat runs/outside/cluster.jsonl)"
import json
events = [json.loads(line) for line in open("runs/outside/cluster.jsonl")]
assert [e["id"] for e in events if e["event"] == "lost"] == [1, 2]
assert [(e["id"], e["signal"]) for e in events if e["event"] == "exit"] == [(1, 9), (2, 9), (3, 0)]
PY

# A failure of a worker's own is no loss: the job ends with it. So it does where all workers are needed.
expect 1 "$paceline" train "${common[@]}" --workers 3 --lr 1e6 --run diverges
json "o['error']['code'] == 'peer-lost' and 'ended with a failure (exit code 1)' in o['error']['message']"
grep -q 'go on$' err && fail "a failure counts as a loss: $(cat err)"
"$paceline" bench collectives --workers 3 --bytes 4096 --seconds 5 --json >out 2>err </dev/null &
agent=$!
for _ in $(seq 1500); do [ "$(pgrep -P $agent | wc -l)" = 3 ] && break; sleep 0.02; done
kill -KILL "$(pgrep -P $agent | tail -n 1)"
wait $agent
[ $? = 1 ] || fail "bench collectives goes on after a loss: $(cat out err)"
json "o['error']['code'] == 'peer-lost' and 'SIGKILL' in o['error']['message']"
[ "$(grep -c SIG err)" = 1 ] || fail "it is told twice: $(cat err)"

exit 0
