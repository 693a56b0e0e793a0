#!/usr/bin/env bash
# What a run's folder and the exit code tell after endings of which tests/support/chaos.py found that
# they did not tell the truth.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

job=(--data synthetic:train=96,test=16 --model mlp:8x1 --batch 16 --threads 1 --epochs 2 --kernels onednn)

# Killed after an epoch's checkpoint: run.json has that epoch, also after the rest is trained.
PACELINE_FAULT=1:saved:6 expect 1 "$paceline" train "${job[@]}" --workers 1 --port 0 --run saved
expect 0 "$paceline" train --resume saved --workers 1
/usr/bin/python3 -c '
import json
epochs = [e["epoch"] for e in json.load(open("runs/saved/run.json"))["epochs"]]
assert epochs == [1, 2], epochs' || fail "an epoch is missing in run.json"

# The status socket of an agent that was killed goes when the run goes on in one process.
"$paceline" train "${job[@]}" --epochs 1000000 --no-test --checkpoint-every 50 --workers 2 --run socket >log 2>&1 &
agents[socket]=$!
eventually [ -S runs/socket/status ]
eventually eval 'compgen -G "runs/socket/checkpoints/step-*" >/dev/null'
kill -KILL "${agents[socket]}"
wait "${agents[socket]}"
unset 'agents[socket]'
[ -S runs/socket/status ] || fail "a killed agent has removed its socket"
eventually eval '! "$paceline" runs --json | grep -q running'
step=$(ls runs/socket/checkpoints | sed -n 's/^step-//p' | sort -n | tail -n 1)
expect 0 "$paceline" train --resume socket --workers 1 --strategy single --steps $((step + 2))
[ ! -e runs/socket/status ] || fail "the socket of a killed agent is still there"

# A signal at one host interrupts the job: host 0, whose exit code is the job's, does not end with 0.
port=$(free_port)
for rank in 0 1; do
    "$paceline" train "${job[@]}" --epochs 1000000 --no-test --run signal --json --num-nodes 2 --rank $rank \
        --master-ip 127.0.0.1 --port "$port" >"out-$rank" 2>"err-$rank" &
    agents[$rank]=$!
done
eventually grep -qs '"event":"step"' runs/signal/events.jsonl
kill -TERM "${agents[1]}"
for rank in 0 1; do
    code=0
    wait "${agents[$rank]}" || code=$?
    unset "agents[$rank]"
    [ $code = 143 ] || fail "host $rank of an interrupted job ended with $code: $(tail -n 3 "err-$rank")"
done
cp out-0 out
json "o['interrupted']"
grep -q '"status": "interrupted"' runs/signal/run.json || fail "run.json does not say interrupted"

# The step events that rank 0 had not yet written when it was killed are written by the next one.
for strategy in ddp local-sgd:k=3; do
    PACELINE_FAULT=1:update:100 expect 0 "$paceline" train "${job[@]}" --epochs 20 --workers 2 --no-test \
        --no-checkpoint --strategy $strategy --run "told-$strategy"
    grep -q 'worker 1 .*died' err || fail "worker 1 was not lost: $(cat err)"
    /usr/bin/python3 - "runs/told-$strategy/events.jsonl" <<'PY' || fail "$strategy: events are lost with rank 0"
import json, sys
told = [e["step"] for e in map(json.loads, open(sys.argv[1])) if e["event"] == "step"]
assert told == sorted(told) and set(told) == set(range(1, 121)), told
PY
done

# Host 0 is silent: the other one cannot know that it is dead. It has the run's state, and saves it in a
# folder there.
port=$(free_port)
mkdir killed-0 killed-1
for rank in 0 1; do
    (cd "killed-$rank" && exec "$paceline" train "${job[@]}" --epochs 1000000 --no-test --checkpoint-every 1000000 \
        --run killed --silence 2 --num-nodes 2 --rank $rank --master-ip 127.0.0.1 --port "$port") >"err-$rank" 2>&1 &
    agents[$rank]=$!
done
eventually grep -qs '"event":"step"' killed-0/runs/killed/events.jsonl
kill -STOP "${agents[0]}"
code=0
wait "${agents[1]}" || code=$?
kill -KILL "${agents[0]}"
wait "${agents[0]}"
unset 'agents[0]' 'agents[1]'
[ $code = 1 ] || fail "the other host of a lost coordinator ended with $code: $(cat err-1)"
grep -q 'saved after step' err-1 || fail "the other host does not say that it saved: $(cat err-1)"
expect 0 "$paceline" eval killed-1/runs/killed
grep -q '"status": "failed"' killed-1/runs/killed/run.json || fail "$(cat killed-1/runs/killed/run.json)"

# Rank 0 cannot write its events: that is a failure, also where losses are survived and others are done.
(ulimit -f 64 && exec "$paceline" train "${job[@]}" --epochs 100 --no-test --no-checkpoint --workers 3 --transport tcp \
    --restart-workers --run unwritten) >out 2>err && fail "a run without its events ended with 0: $(cat err)"
grep -q '"status": "failed"' runs/unwritten/run.json || fail "$(grep status runs/unwritten/run.json): $(cat err)"
grep -q 'cannot write .*events.jsonl' err || fail "not the failure that was meant: $(cat err)"
