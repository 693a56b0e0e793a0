#!/usr/bin/env bash
# `paceline report`, `plot` and `events`: pages of runs of several kinds in a headless Chromium, at three widths, show what
# run.json says; runs that are under way, interrupted, empty or damaged have a page, too.
source "$(dirname "$0")/../support/dist.bash"

train() { # RUN OPTION…
    expect 0 "$paceline" train --model mnist-cnn --data synthetic:classes=4,shape=1x8x8,train=160,test=40 --batch 16 \
        --threads 1 --run "$1" --quiet --no-checkpoint "${@:2}"
}
train one --epochs 3 --validation 0.2
train pair --epochs 2 --workers 2 --strategy local-sgd --lr 0.02
PACELINE_FAULT=2:data:6 train lossy --epochs 2 --workers 3 --strategy allreduce
train again --epochs 1 --workers 2 --checkpoint
expect 0 "$paceline" train --resume again --epochs 2 --quiet
expect 0 "$paceline" data make ratings --users 60 --items 30 --ratings 900 -o ratings.csv
expect 0 "$paceline" train --model mf:k=8,sweeps=6 --data ratings.csv --run films --quiet
{ echo size,colour,price && for i in {1..60}; do echo "$i,red$((i % 3)),$((i * i))"; done; } >'<shop>.csv'
expect 0 "$paceline" train --model mlp:0x0 --data '<shop>.csv' --epochs 2 --run number --quiet --no-checkpoint
{ echo size,kind && for i in {1..30}; do printf '%s\n' "$i,<b onload=x>" "-$i,\"\"\"&\""; done; } >kinds.csv
expect 0 "$paceline" train --model mlp:0x0 --data kinds.csv --epochs 2 --run kinds --quiet --no-checkpoint

# ---- pages ----
for run in one pair lossy films number kinds again; do
    expect 0 "$paceline" report $run --json
    json "o['file'] == 'runs/$run/report.html' and o['runs'] == 1 and o['bytes'] == $(stat -c %s runs/$run/report.html)"
done
grep -q 'paceline trace one -o trace.json' runs/one/report.html || fail "the page does not say how to trace"
expect 0 "$paceline" trace one -o runs/one/trace.json
expect 0 "$paceline" report one
grep -q 'href="trace.json"' runs/one/report.html || fail "the page does not lead to the trace"
expect 0 "$paceline" report one -o elsewhere.html
grep -qF "href=\"$(realpath runs/one/trace.json)\"" elsewhere.html || fail "the trace is not found from elsewhere"
grep -q 'lost worker 2' runs/lossy/report.html || fail "no word of the lost worker"
grep -q '1 worker was lost on the way' runs/lossy/report.html || fail "the summary has no word of the lost worker"
grep -q 'worker 2, session 2' runs/again/report.html || fail "workers of a resumed run are not told apart"
grep -q ' since it was resumed' runs/again/report.html || fail "the time is taken for that of the whole run"
grep -qF '&lt;shop&gt;' runs/number/report.html || fail "the page does not name its data"
grep -qF '&lt;b onload=x&gt;' runs/kinds/report.html || fail "the page does not name its classes"
grep -qF '&quot;&amp;' runs/kinds/report.html || fail "the page does not name its second class"
grep -q -e '<shop' -e '<b onload' -e '"&<' runs/*/report.html && fail "a name is not escaped"
expect 0 "$paceline" report one pair lossy films
[ -s report.html ] || fail "several runs have no page"
expect 0 "$paceline" report one pair lossy films
mkdir other && echo '<p>my own</p>' >other/report.html
(cd other && expect 2 "$paceline" report one pair --runs-dir ../runs && says 'name the page with -o') || exit 1
grep -q 'my own' other/report.html || fail "a page of other origin was replaced"
grep -q '<th>lr</th>' report.html || fail "the comparison lacks a setting that differs"
expect 0 "$paceline" compare one pair films --json
json "[r['settings']['epochs'] for r in o['runs']] == [3, 2, None]"

# ---- runs that are not as they should be ----
cp -r runs/one runs/damaged
printf 'rubbish\n{"event":"step","step":7,"loss":[\n\0\0\n{"event":"st' >>runs/damaged/events.jsonl
cp -r runs/one runs/bare
rm runs/bare/events.jsonl
cp -r runs/one runs/begun
sed -i 1q runs/begun/events.jsonl
/usr/bin/python3 - <<'PY'
import json
run = json.load(open("runs/begun/run.json"))
del run["result"]
run.update(status="running", epochs=[], name="begun")
json.dump(run, open("runs/begun/run.json", "w"))
run.update(status="failed", error={"code": "diverged", "message": "the loss is <not> a number"})
import os
os.mkdir("runs/failed")
json.dump(run, open("runs/failed/run.json", "w"))
PY
for pair in 'damaged:3 lines of the events' 'bare:no events.jsonl' 'begun:made no step yet' 'begun:ended without a result' \
    'begun:trained by 1 worker (strategy <b>auto</b>): 0 steps; planned: 3 epochs.' \
    'failed:The run failed: the loss is &lt;not&gt; a number'; do
    expect 0 "$paceline" report "${pair%%:*}"
    grep -qF "${pair#*:}" "runs/${pair%%:*}/report.html" || fail "the page of ${pair%%:*} does not say: ${pair#*:}"
done
expect 0 "$paceline" report one begun failed -o mixed.html

if command -v chromedriver >/dev/null; then
    timeout 500 /usr/bin/python3 "$root/tests/support/report.py" $(printf ' runs/%s/report.html=runs/%s/run.json' \
        one one pair pair lossy lossy films films number number kinds kinds) report.html mixed.html runs/damaged/report.html \
        runs/begun/report.html || fail "a page in the browser"
fi

# ---- one chart ----
expect 0 "$paceline" plot one
grep -q 'one: loss, over step' out || fail "no title: $(cat out)"
grep -q '⠒b validation' out || fail "no legend"
[ "$(wc -l <out)" -le 24 ] || fail "higher than a terminal"
expect 0 "$paceline" plot one pair --y accuracy --x time -o accuracy.svg --json
json "o['file'] == 'accuracy.svg' and o['series'] == 5"
/usr/bin/python3 -c 'import xml.etree.ElementTree as e; e.parse("accuracy.svg")' || fail "the picture is not XML"
expect 0 "$paceline" plot films --y rmse --x epoch
grep -q '⠒⠒ test' out || fail "no RMSE of a rating model"
expect 0 "$paceline" plot films
grep -q 'films: rmse, over step' out || fail "a rating run's own figure is not drawn: $(cat out)"
expect 0 "$paceline" plot one films
says 'run films has no loss and is left out'
expect 2 "$paceline" plot one --y los
says 'run one has no los to draw; it has: loss, accuracy, lr, rate, .*step.loss'
expect 2 "$paceline" plot one --y ''
says '[-]-y names what to draw'
expect 2 "$paceline" plot one -o picture.png
expect 2 "$paceline" plot missing
expect 2 "$paceline" report one -o page.txt
expect 2 "$paceline" report missing

# ---- CSV ----
expect 0 "$paceline" events one --csv step.step step.loss
/usr/bin/python3 - <<'PY' || fail "the table of losses: $(head -n 3 out)"
import csv, json
rows = list(csv.DictReader(open("out")))
told = [e for e in map(json.loads, open("runs/one/events.jsonl")) if e["event"] == "step"]
assert [(int(r["step"]), float(r["loss"])) for r in rows] == [(e["step"], e["loss"]) for e in told] and rows
PY
expect 0 "$paceline" events lossy --csv lost heartbeat.memory view
/usr/bin/python3 - <<'PY' || fail "a table of several kinds: $(head -n 3 out)"
import csv, json
rows = list(csv.DictReader(open("out")))
assert {r["event"] for r in rows} >= {"lost", "view"}, rows
assert [r["reason"] for r in rows if r["event"] == "lost"] == ["died"]
assert [json.loads(r["members"]) for r in rows if r["event"] == "view"][0] == [1, 2, 3]
assert all(r["memory"] and not r["time"] for r in rows if r["event"] == "heartbeat")
PY
expect 0 "$paceline" events damaged --json
says '3 lines of the events cannot be read'
json "next(e for e in o['events'] if e['event'] == 'step')['count'] == 24"
expect 2 "$paceline" events one --csv step.los
says "unknown field 'los'; did you mean 'loss'"
expect 2 "$paceline" events one --csv stp
says "unknown series 'stp'; did you mean 'step'"
expect 2 "$paceline" events one step
says 'with --csv'
expect 1 "$paceline" events bare
says 'events.jsonl'
mkdir runs/odd && cp runs/one/run.json runs/odd
/usr/bin/python3 - <<'PY'
with open("runs/odd/events.jsonl", "wb") as f:
    f.write(b'{"event":"a,b","x":1}\n{"event":"\xff","x":2}\n')
    for kind in "cde":
        f.write(b'{"event":"%s",%s}\n' % (kind.encode(), b",".join(b'"%s%d":1' % (kind.encode(), i) for i in range(30))))
    f.write(b"".join(b'{"event":"k%d","x":1}\n' % i for i in range(40)))
PY
expect 0 "$paceline" events odd --csv a,b k1
grep -qx '"a,b",1' out || fail "a kind is not quoted: $(cat out)"
says 'more than 32 kinds of events'
expect 0 "$paceline" events odd --json
json "[e['event'] for e in o['events']][:3] == ['a,b', '?', 'c'] and len(o['events']) == 32"
expect 2 "$paceline" events odd --csv c d e
says 'more than 64 columns'
