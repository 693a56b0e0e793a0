#!/usr/bin/env bash
# Any to any: every strategy of the registry, with each of its examples, on 1, 2 and 3 workers writes a
# checkpoint that `single` loads, and loads one that `single` wrote; the losses after it are right. With one
# reference in the middle the test grows with the number of strategies and not with its square. The neural
# recommender, too, whose strategies are the same: with their defaults, on 2 workers.
source "$(dirname "$0")/../support/dist.bash"

every=(--optimiser adam --schedule constant --checkpoint-every 4 --keep 0 --threads 1 --quiet)
network=(--model mlp:40x2 --data synthetic:classes=10,shape=1x12x12,train=96,test=40 --batch 12 --lr 0.05 "${every[@]}")
ncf=(--model ncf:size=6,layers=12x8,dropout=0.1 --data ratings.csv --batch 60 "${every[@]}")
expect 0 "$paceline" data make ratings --users 200 --items 100 --ratings 2000 -o ratings.csv

expect 0 "$paceline" strategies --json
/usr/bin/python3 - <<'PY' >all
import json
for s in json.load(open("out"))["strategies"]:
    unit = s["commit_unit"].split()[0].rstrip(",")
    if "ncf" in s["tasks"] and not s["alone"]:
        print("ncf", s["name"], 2, unit)
    if "network" not in s["tasks"]:
        continue
    for options in s["examples"] or [""]:
        for workers in [1] if s["alone"] else [1, 2, 3]:
            print("network", s["name"] + (":" + options if options else ""), workers, unit)
PY
[ "$(grep -c ^network all)" -ge 20 ] || fail "the registry has more than this: $(cat all)"
[ "$(grep -c ^ncf all)" -ge 8 ] || fail "more strategies than these train the recommender: $(cat all)"

# right TASK NAME UNIT: steps 5 to 8 have the losses of the reference. A strategy whose steps are not those of one
# worker (a round, a push, a batch that lacks an update) is compared at the first of them, where the weights are the
# reference's, or only roughly.
right() {
    /usr/bin/python3 - "$@" <<'PY' || fail "$*: see above"
import json, sys
task, name, unit = sys.argv[1:]
def losses(run):
    return {e["step"]: e["loss"] for e in map(json.loads, open(f"runs/{run}/events.jsonl")) if e["event"] == "step"}
a, b = losses(task), losses(name)
exact = unit in ("step", "checkpoint") or task == "ncf" and unit == "update"  # ps, whose defaults wait for all
exact &= "-async-" not in name
told = [step for step in range(5, 9) if step in b]
assert len(told) >= (0 if "-apart" in name else 1 if unit == "round" else 4), b  # a manager apart has no steps
for step in told:
    assert abs(a[step] - b[step]) <= (1e-4 if exact else 0.5) * a[step], (step, a[step], b[step])
PY
}

for task in network ncf; do
    declare -n job=$task
    expect 0 "$paceline" train "${job[@]}" --steps 8 --strategy single --run $task
done
while read -r task strategy workers unit; do
    declare -n job=$task
    name=$task-${strategy//[:=,\/]/-}-$workers
    # It writes, `single` loads: what both say of the test part, and the steps that follow.
    expect 0 "$paceline" train "${job[@]}" --steps 4 --strategy "$strategy" --workers "$workers" --run "$name" --json
    tested=$(/usr/bin/python3 -c "import json; print(json.load(open('out'))['test']['loss'])")
    expect 0 "$paceline" eval "runs/$name" --threads 1 --json
    json "abs(o['test']['loss'] - $tested) <= 1e-5 * $tested"
    expect 0 "$paceline" train --resume "$name" --steps 8 --strategy single --workers 1 --quiet
    right "$task" "$name" "$unit"
    # `single` has written, it loads.
    mkdir -p "runs/back-$name/checkpoints"
    cp "runs/$task/run.json" "runs/back-$name"
    cp -r "runs/$task/checkpoints/step-4" "runs/back-$name/checkpoints"
    sed -i 's/"status": "done"/"status": "interrupted"/' "runs/back-$name/run.json"
    expect 0 "$paceline" train --resume "back-$name" --steps 8 --strategy "$strategy" --workers "$workers" --quiet
    right "$task" "back-$name" "$unit"
    rm -r "runs/$name" "runs/back-$name"
done <all
