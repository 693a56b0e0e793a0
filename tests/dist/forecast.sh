#!/usr/bin/env bash
# `paceline plan`: every strategy of networks is there, what it says about memory is what a training counts, what does
# not fit is refused by a training, too; --strategy auto takes what fits, --workers auto what is fastest. No time is judged: only that there is one.
source "$(dirname "$0")/../support/dist.bash"

set=(--data synthetic:classes=4,shape=1x8x8,train=64,test=8 --batch 16)
expect 0 "$paceline" plan --model mlp:32x3 "${set[@]}" --workers 2 --threads 1 --json
json "{s['strategy'].split(':')[0] for s in o['strategies']} == {'allreduce', 'ddp', 'downpour', 'gather-scatter', 'local-sgd', 'ps', 'ring', 'zero'}"
json "all(s['step_seconds'] > 0 and 0 <= s['idle'] < 1 and s['fits'] and s['workers'] == 2 for s in o['strategies'])"
json "all(s['shared_bytes'] > 0 and s['link_bytes'] == 0 for s in o['strategies'])"
json "o['choice']['strategy'] in o['command'] and o['link'] is None"
cp out plan.json

# The same figures as those of trainings, but for what the process is by itself.
for strategy in ddp zero:stage=2 ring; do
    expect 0 "$paceline" train --model mlp:32x3 "${set[@]}" --workers 2 --threads 1 --strategy "$strategy" --steps 1 \
        --json --quiet
    cp out train.json
    /usr/bin/python3 - "$strategy" <<'PY' || fail "the plan of $strategy has other memory than a training"
import json, sys
plan = next(s for s in json.load(open("plan.json"))["strategies"] if s["strategy"] == sys.argv[1])["memory"]
train = json.load(open("train.json"))["memory"]
for kind in ("weights", "gradients", "optimiser", "copies", "activations"):
    assert plan[kind] >= train[kind] * 0.999, (kind, plan, train)  # the plan has the largest worker
PY
done

expect 0 "$paceline" plan --model mlp:32x3 "${set[@]}" --workers 3 --threads 1 --link 100M
grep -q '^ddp ' out || fail "no ddp in $(cat out)"
grep -q 'paceline train --model mlp:32x3' out || fail "no command in $(cat out)"

# 14 MB of weights, and as much of gradients and momentum: ddp needs more than what a worker may have, others less.
large=(--model mlp:700x8 "${set[@]}" --workers 2 --threads 1 --memory 70M)
expect 0 "$paceline" plan "${large[@]}" --deepest --json
json "not next(s for s in o['strategies'] if s['strategy'] == 'ddp')['fits'] and o['choice'] is not None"
json "all(s['deepest']['mlp'].startswith('mlp:700x') for s in o['strategies'] if s['fits'])"
json "'vgg' not in o['strategies'][0]['deepest']" # images of 8x8 are too small
expect 1 "$paceline" train "${large[@]}" --strategy ddp --steps 1 --no-checkpoint
expect 0 "$paceline" train "${large[@]}" --steps 1 --no-checkpoint
says 'strategy (allreduce|zero|ring)[^ ]* \(auto\): ddp needs'
expect 0 "$paceline" train --model mlp:8x1 "${set[@]}" --workers 2 --threads 1 --memory 500M --steps 1 --no-checkpoint
says 'strategy ddp \(auto\)'

expect 2 "$paceline" plan --model mlp:8x1
says '--data'
expect 2 "$paceline" plan --model mlp:8x1 "${set[@]}" --link fast
says '100M'
expect 2 "$paceline" plan --model mf "${set[@]}"
says 'rating model'

# single and ddp stay unless another is faster by 15 %, whatever the number of workers.
expect 0 "$paceline" plan --model mlp:64x2 "${set[@]}" --json
/usr/bin/python3 - <<'PY' || fail "not the choice of the rule: $(cat out)"
import json
plan = json.load(open("out"))
def judged(s):
    return s["step_seconds"] / s["batch"] * (0.85 if s["strategy"] in ("single", "ddp") else 1)
best = min((s for s in plan["strategies"] if s["fits"] and s["exact"] and not s["frail"]), key=judged)
assert {s["strategy"] for s in plan["strategies"] if s["frail"]} == {"ring:replicate=off", "zero:stage=1", "zero:stage=2", "zero:stage=3"}, plan
assert (best["strategy"], best["workers"]) == (plan["choice"]["strategy"], plan["choice"]["workers"]), (best, plan["choice"])
PY

# --workers auto: as many workers and threads as the plan takes, and its strategy.
expect 0 "$paceline" train --model mlp:64x2 "${set[@]}" --workers auto --steps 2 --json --run chosen
says '[0-9]+ workers? of [0-9]+ threads?, strategy [^ ]+ \(auto\): by a short measurement'
/usr/bin/python3 - <<'PY' || fail "another number of workers, or another strategy, than it says: $(cat out err)"
import json, re
said = re.search(r"(\d+) workers? of (\d+) threads?, strategy (\S+) \(auto\)", open("err").read())
result = json.load(open("out"))
assert len(result["ranks"]) == int(said[1]) and result["strategy"].split(":")[0] == said[3].split(":")[0], (said, result)
PY
expect 2 "$paceline" train --model mlp:64x2 "${set[@]}" --workers auto --strategy ddp
says 'chooses the strategy, too'
expect 2 "$paceline" train --model mlp:64x2 "${set[@]}" --workers auto --num-nodes 2 --rank 0 --master-ip 127.0.0.1
says 'for one host'
expect 2 "$paceline" train --model mlp:64x2 "${set[@]}" --workers auto --min-workers 3
says 'may choose fewer than --min-workers 3'
if ! "$paceline" ping --transport mpi 2>&1 | grep -q unknown; then
    expect 2 "$paceline" train --model mlp:64x2 "${set[@]}" --workers auto --transport mpi
    says 'not for --transport mpi'
fi
for model in lda mf; do
    expect 2 "$paceline" train --model $model "${set[@]:0:2}" --workers auto
    says 'leave out --workers auto'
done
expect 2 "$paceline" train --like chosen --workers auto
says 'for new runs'
expect 2 "$paceline" ping --workers auto
says 'is for train'
expect 1 "$paceline" train --model mlp:700x8 "${set[@]}" --workers auto --memory 20M
says 'paceline plan'
# 200 MB of weights, gradients and momentum, which two workers can divide.
if [ "$(nproc)" -gt 1 ]; then
    expect 0 "$paceline" train --model mlp:1024x16 "${set[@]}" --workers auto --memory 150M --steps 1 --no-checkpoint
    says 'workers of .*\(one worker does not fit\)'
    says 'with one copy of its state, a lost worker costs'
fi
