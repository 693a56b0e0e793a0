#!/usr/bin/env bash
# With no flags but --workers 3: a training survives kill -9 of any worker, rank 0 included, under every
# strategy of several workers, and says once who died and of what. What must still end a job does. A run
# that goes on, or is repeated, has as many workers as it had.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" strategies --json
strategies=$(/usr/bin/python3 -c "
import json
print(*(s['name'] for s in json.load(open('out'))['strategies'] if not s['alone'] and 'network' in s['tasks']))")
divides=$(/usr/bin/python3 -c "
import json
print(*(s['name'] for s in json.load(open('out'))['strategies'] if s['commit_unit'].startswith('checkpoint')))")
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
        if [[ " $divides " = *" $strategy "* ]]; then
            says 'all go back to the beginning'
            sed -i '/all go back to the beginning/d' err
        fi
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
json "o['error']['code'] == 'diverged' and o['error']['message'].startswith('the loss is')"
grep -q 'go on$' err && fail "a failure counts as a loss: $(cat err)"
"$paceline" bench collectives --workers 3 --bytes 4096 --seconds 5 --json >out 2>err </dev/null &
agent=$!
for _ in $(seq 1500); do [ "$(pgrep -P $agent | wc -l)" = 3 ] && break; sleep 0.02; done
kill -KILL "$(pgrep -P $agent | tail -n 1)"
wait $agent
[ $? = 1 ] || fail "bench collectives goes on after a loss: $(cat out err)"
json "o['error']['code'] == 'peer-lost' and 'SIGKILL' in o['error']['message']"
[ "$(grep -c SIG err)" = 1 ] || fail "it is told twice: $(cat err)"

# --resume and --like: the workers of the run, and its threads where nothing else has changed.
cores=$(/usr/bin/python3 -c "import os; print(len(os.sched_getaffinity(0)))")
each=$((cores / 2 > 1 ? cores / 2 : 1))
launch() { # RUN WORKERS HOSTS: what run.json tells
    /usr/bin/python3 -c "
import json
assert json.load(open('runs/$1/run.json'))['launch'] == {'workers': $2, 'hosts': $3}" || fail "$1: $(cat "runs/$1/run.json")"
}
relaunch() { # RUN JSON|None: run.json tells something else
    /usr/bin/python3 - "$@" <<'PY'
import json, sys
path = f"runs/{sys.argv[1]}/run.json"
run = json.load(open(path))
del run["launch"]
if eval(sys.argv[2]):
    run["launch"] = eval(sys.argv[2])
json.dump(run, open(path, "w"))
PY
}
PACELINE_FAULT=1:data:3 expect 0 "$paceline" train "${common[@]}" --workers 3 --threads 3 --run three
launch three 3 1 # as it was started, not as it ended
expect 0 "$paceline" train --resume three --steps 12 --json
json "o['workers'] == 3 and o['threads'] == 3 and o['steps'] == 12"
expect 0 "$paceline" train --like three --run copy --json
json "o['workers'] == 3 and o['threads'] == 3"
expect 0 "$paceline" train --like three --run lonely --strategy single --json
json "o['workers'] == 1 and o['threads'] == $cores"
expect 0 "$paceline" train --like three --run alone --workers 1 --json
json "o['workers'] == 1 and o['threads'] == $cores and o['strategy'] == 'single'"
launch alone 1 1
expect 0 "$paceline" train --resume three --steps 14 --workers 2 --json
json "o['workers'] == 2 and o['threads'] == $each"
launch three 2 1
expect 0 "$paceline" train --resume three --steps 16 --workers 3 --threads 1 --json
json "o['workers'] == 3 and o['threads'] == 1"

relaunch three "{'workers': 2, 'hosts': 2}"
expect 0 "$paceline" train --resume three --steps 18 --json --quiet
json "o['workers'] == 2 and o['hosts'] == 1"
says 'this run had 2 hosts .* --num-nodes 2 --rank R --master-ip IP --workers 2$'
relaunch three None # a run of an older paceline
expect 0 "$paceline" train --resume three --steps 20 --json
json "o['workers'] == 1"
relaunch three "{'workers': 1000, 'hosts': 1}"
expect 1 "$paceline" train --resume three --steps 22 --json
json "o['error']['code'] == 'data' and 'runs/three/run.json' in o['error']['message']"
relaunch three "{'workers': 'two', 'hosts': 1}"
expect 1 "$paceline" train --resume three --steps 22 --json
json "o['error']['code'] == 'data'"

# What the last words say works as it is printed.
rm err
"$paceline" train "${common[@]}" --workers 3 --steps 100000000 --epochs 1000000 --log-every 0 --no-test --run stopped >out 2>err </dev/null &
agent=$!
for _ in $(seq 1500); do [ -S runs/stopped/status ] && break; sleep 0.02; done
kill -INT $agent
wait $agent
json "o['interrupted']"
steps=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['steps'] + 3)")
hint=$(sed -nE 's/.*go on with: paceline (train --resume stopped)$/\1/p' err)
# shellcheck disable=SC2086
expect 0 "$paceline" ${hint:?"$(cat err)"} --steps "$steps" --json
json "o['workers'] == 3 and o['steps'] == $steps"
exit 0
