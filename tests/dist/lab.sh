#!/usr/bin/env bash
# paceline lab: a tiny grid with its table, JSON, CSV and pictures; what is done is not done again; a
# lab that was interrupted goes on; a run that fails does not take the others with it; a file that
# is wrong is refused before anything runs.
source "$(dirname "$0")/../support/dist.bash"

cat >tiny.json <<'JSON'
{
  "schema": 1,
  "about": "a lab for a test <&>",
  "train": {"model": "mlp:16x1", "data": "synthetic:train=256,test=64", "epochs": 2, "threads": 1, "checkpoint": false},
  "cases": [
    {"name": "one", "train": {"strategy": "single"}, "theirs": {"accuracy": 0.5, "seconds": 9}},
    {"train": {"strategy": ["ddp", "local-sgd:k=2"], "workers": [1, 2]}}
  ],
  "seeds": 2,
  "parallel": true,
  "baseline": "one",
  "columns": ["accuracy@1", "accuracy", "seconds", "speedup", "bytes_sent", "time.wait"],
  "plots": [
    {"name": "epochs", "title": "<accuracy> & \"epochs\"", "kind": "lines", "x": "epoch", "y": "accuracy"},
    {"name": "workers", "kind": "lines", "x": "workers", "y": "accuracy", "series": "strategy", "log_x": true},
    {"name": "steps", "kind": "lines", "x": "step", "y": "loss", "only": ["one", "ddp workers=2"]},
    {"name": "seconds", "kind": "bars", "y": "seconds"},
    {"name": "frontier", "kind": "scatter", "x": "samples_per_second", "y": "accuracy", "log_x": true}
  ],
  "quick": {"train": {"epochs": 1}, "seeds": 1}
}
JSON

# Nothing is run, nothing is written.
expect 0 "$paceline" lab tiny.json --dry-run
grep -qx 'ddp workers=2: 0 of 2 done, [12] cores\?' out || fail "the plan lacks a case: $(cat out)"
grep -q 'paceline train --model=mlp:16x1 .* --strategy=local-sgd:k=2 --workers=2$' out || fail "no command: $(cat out)"
tail -n 1 out | grep -qx '5 cases, 10 runs, 10 to go' || fail "the count is wrong: $(cat out)"
expect 0 "$paceline" lab tiny.json --dry-run --json --quick --only ddp
json "o['runs'] == 2 and o['done'] == 0 and [c['case'] for c in o['cases']] == ['ddp workers=1', 'ddp workers=2']"
expect 0 "$paceline" lab tiny.json --dry-run --only one --set "data=it's a b.csv"
grep -qF -- "--data='it'\\''s a b.csv' " out || fail "a shell cannot read it: $(cat out)"
[ ! -e labs-out ] || fail "--dry-run left something behind"

expect 0 "$paceline" lab tiny.json --csv runs.csv
says 'one, seed 1 in .*; [0-9]+ of 10 runs'
says 'results are in labs-out/tiny'
says 'open labs-out/tiny/report.html in a browser'
[ "$(wc -l <out)" = 6 ] || fail "not a row a case: $(cat out)"
grep -qE '^case +runs +accuracy@1 % +accuracy % +theirs +seconds +theirs +speed-up +MB sent +time.wait$' out ||
    fail "other columns: $(cat out)"
grep -qE '^one +2 .* ± .* 50\.00 .* 9\.0' out || fail "no means, or not theirs: $(cat out)"
cp out table.txt
/usr/bin/python3 - <<'PY' || fail "files of the lab"
import csv, json, os, statistics, xml.etree.ElementTree as xml
results = json.load(open("labs-out/tiny/results.json"))
runs = list(results["runs"].values())
assert len(runs) == 10 and results["schema"] == 1 and results["lab"] == "tiny"
for run in runs:
    assert run["result"]["epochs"] == 2 and len(run["epochs"]) == 2 and run["wall_seconds"] > 0
    assert json.load(open(run["result"]["run"] + "/run.json"))["result"] is not None
rows = list(csv.DictReader(open("runs.csv")))
assert len(rows) == 10 and rows[0]["strategy"] == "single" and rows[0]["workers"] == ""
assert {(r["case"], r["seed"]) for r in rows} == {(r["case"], str(r["seed"])) for r in runs}
mean = statistics.mean(float(r["accuracy"]) for r in rows if r["case"] == "one")
assert f"{100 * mean:.2f} ±" in open("table.txt").read()
space = "{http://www.w3.org/2000/svg}"
for name, lines in ("epochs", 5), ("steps", 2), ("workers", 3), ("frontier", 1), ("seconds", 0):
    root = xml.parse(f"labs-out/tiny/{name}.svg").getroot()
    assert root.tag == space + "svg" and len(root.findall(space + "path")) == lines, name
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    title = root.find(space + "title").text
    assert title == ('<accuracy> & "epochs"' if name == "epochs" else title) and title
# The page: the table, ours beside theirs, every plot, and a page for each run.
import html.parser
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.cards, self.links, self.rows, self.tags = [], [], [], set()
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.cards += [attributes["data-card"]] if "data-card" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        self.rows += [[]] if tag == "tr" else []
    def handle_data(self, data):
        self.rows and data.strip() and self.rows[-1].append(data)
page = Page()
page.feed(open("labs-out/tiny/report.html").read())
assert page.cards == ["figures", "epochs", "workers", "steps", "seconds", "frontier", "runs", "how"], page.cards
assert not page.tags & {"script", "iframe"} and "svg" in page.tags
table = [line.split() for line in open("table.txt")]
assert " ".join(page.rows[1]).split() == table[1], page.rows[1]
assert "theirs" in page.rows[0] and "50.00" in page.rows[1]
assert len(page.links) == 10 and all("data-card" in open("labs-out/tiny/" + link).read() for link in page.links)
assert ["command", "paceline lab tiny.json --csv runs.csv"] in page.rows, page.rows[-4:]
texts = [e.text for e in root.findall(space + "text")]
assert "ours" in texts and "theirs" in texts and "local-sgd:k=2 workers=2" in texts, texts
PY

# Nothing to do: the same numbers, the same pictures.
before=$(sha256sum labs-out/tiny/*.svg labs-out/tiny/results.json)
expect 0 "$paceline" lab tiny.json
cmp -s out table.txt || fail "another table: $(cat out)"
[ "$(sha256sum labs-out/tiny/*.svg labs-out/tiny/results.json)" = "$before" ] || fail "other files"
expect 0 "$paceline" lab tiny.json --json --quiet
[ ! -s err ] || fail "--quiet says: $(cat err)"
json "o['runs'] == o['done'] == 10 and o['failures'] == [] and not o['interrupted'] and len(o['plots']) == 5"
json "o['cases'][0]['figures']['accuracy']['theirs'] == 0.5 and o['cases'][0]['figures']['speedup']['mean'] == 1"
# A seed more is two runs for two cases; --set is another lab in the same folder.
expect 0 "$paceline" lab tiny.json --seeds 3 --only ddp --json
json "o['runs'] == 6 and o['done'] == 6 and len(o['cases']) == 2"
[ "$(grep -c 'seed 3 in' err)" = 2 ] && ! grep -q 'seed 1 in' err || fail "what is done was done again: $(cat err)"
expect 0 "$paceline" lab tiny.json --only one --set epochs=1 --set lr=0.5 --seeds 1 --json
json "o['cases'][0]['options']['lr'] == 0.5 and o['cases'][0]['options']['epochs'] == 1"
expect 0 "$paceline" lab tiny.json --quick --only one --json
json "o['folder'] == 'labs-out/tiny-quick' and o['done'] == 1"
expect 0 "$paceline" lab tiny.json --fresh --only one --json
[ "$(grep -c 'one, seed' err)" = 2 ] || fail "--fresh remembers: $(cat err)"

# A lab that is interrupted: the run under way is ended and does not count; the next call goes on.
cat >long.json <<'JSON'
{
  "schema": 1,
  "about": "one short run, one long one",
  "train": {"model": "mlp:16x1", "data": "synthetic:train=256,test=64", "threads": 1},
  "cases": [{"name": "short", "train": {"epochs": 1}}, {"name": "long", "train": {"epochs": 100000, "log-every": 1}}]
}
JSON
interrupt() { # SIGNAL COMMAND…
    local pid code=0
    "${@:2}" >out 2>err &
    pid=$!
    for _ in $(seq 3000); do
        grep -qs '"event":"step","step":5,' labs-out/long/runs/long-*/events.jsonl && break
        kill -0 $pid 2>/dev/null || fail "the lab ended by itself: $(cat err)"
        sleep 0.01
    done
    kill "-$1" $pid
    wait $pid || code=$?
    echo $code
}
code=$(interrupt INT "$paceline" lab long.json --json)
[ "$code" = 130 ] || fail "SIGINT ended with $code: $(cat err)"
json "o['interrupted'] and o['done'] == 1 and o['runs'] == 2 and o['failures'] == []"
says 'interrupted after 1 of 2 runs; the same command goes on with the others'
grep -q '"status": "interrupted"' labs-out/long/runs/long-*/run.json || fail "the run was not ended politely"
code=$(rm -rf labs-out/long/runs/long-* && interrupt TERM "$paceline" lab long.json)
[ "$code" = 143 ] || fail "SIGTERM ended with $code: $(cat err)"
grep -q 'short, seed' err && fail "the short run was done twice: $(cat err)"
code=$(rm -rf labs-out/long/runs/long-* && interrupt INT "$paceline" lab long.json --fresh)
[ "$code" = 130 ] || fail "SIGINT ended with $code: $(cat err)"
says 'interrupted after 1 of 2 runs; the same command without --fresh goes on with the others'
sed -i 's/100000/2/' long.json
expect 0 "$paceline" lab long.json
says '^long, seed 1 in .*; 2 of 2 runs'
grep -q 'short, seed' err && fail "the short run was done twice: $(cat err)"
# The lab is killed: its child ends by itself, and the folder is free.
rm -rf labs-out/long && sed -i 's/"epochs": 2,/"epochs": 100000,/' long.json
code=$(interrupt KILL "$paceline" lab long.json)
[ "$code" = 137 ] || fail "SIGKILL ended with $code"
for _ in $(seq 3000); do
    grep -qs '"status": "interrupted"' labs-out/long/runs/long-*/run.json && break
    sleep 0.01
done
grep -q '"status": "interrupted"' labs-out/long/runs/long-*/run.json || fail "the child of a killed lab goes on"
sed -i 's/100000/2/' long.json
expect 0 "$paceline" lab long.json

# A run that fails is told, the others go on, and the end counts.
cat >wild.json <<'JSON'
{
  "schema": 1,
  "about": "a learning rate that diverges",
  "train": {"model": "mlp:16x1", "data": "synthetic:train=256,test=64", "epochs": 9},
  "cases": [{"train": {"lr": [1000000, 0.01]}}]
}
JSON
expect 1 "$paceline" lab wild.json
says 'lr=1000000, seed 1 failed: .*step'
says 'lr=0.01, seed 1 in'
says '^paceline: 1 of 2 runs failed; the same command tries them again$'
grep -qE '^lr=1000000 +0 +- ' out || fail "no row for what failed: $(cat out)"
expect 1 "$paceline" lab wild.json --json
json "o['error']['message'].startswith('1 of 2 runs failed') and o['failures'][0]['case'] == 'lr=1000000' and o['done'] == 1"

# Runs that something else starts.
cat >launched.json <<'JSON'
{
  "schema": 1,
  "about": "with and without a launcher",
  "launch": ["sh", "-c", "echo \"$2 $3\" >launched; exec \"$@\"", "-"],
  "train": {"model": "mlp:16x1", "data": "synthetic:train=256,test=64", "epochs": 1},
  "cases": [{"name": "launched", "train": {}}, {"name": "nowhere", "train": {}, "launch": ["no such program"]}]
}
JSON
expect 0 "$paceline" lab launched.json --dry-run
grep -qF "sh -c 'echo \"\$2 \$3\" >launched; exec \"\$@\"' - paceline train --model=mlp:16x1" out || fail "no launcher: $(cat out)"
expect 1 "$paceline" lab launched.json --json
json "o['done'] == 1 and [f['case'] for f in o['failures']] == ['nowhere']"
says 'nowhere, seed 1 failed: .* cannot be started'
[ "$(cat launched)" = 'train --model=mlp:16x1' ] || fail "it was started in another way: $(cat launched)"

# Data of cases that --only leaves out is not fetched.
cat >far.json <<'JSON'
{
  "schema": 1,
  "about": "data that is not here",
  "train": {"model": "mlp:16x1", "epochs": 1},
  "cases": [{"name": "near", "train": {"data": "synthetic:train=256,test=64"}}, {"name": "far", "train": {"data": "cifar10"}}]
}
JSON
expect 0 env PACELINE_DATA="$work/nowhere" PACELINE_MIRROR=http://127.0.0.1:9 "$paceline" lab far.json --only near
[ ! -e nowhere ] || fail "data of a case that was left out is fetched: $(ls nowhere)"

# A sweep: its options make the cases, validation marks the best, the same command goes on.
small="--model mlp:16x1 --data synthetic:train=256,test=64 --threads 1"
expect 0 "$paceline" lab sweep --lr 0.001..0.1 --points 3 $small --epochs 1 --json
json "[c['case'] for c in o['cases']] == ['lr=0.001', 'lr=0.01', 'lr=0.1'] and o['done'] == 3"
json "o['best'] == min(o['cases'], key=lambda c: c['figures']['validation_loss']['mean'])['case']"
expect 0 "$paceline" lab sweep --lr=0.001..0.1 --points 3 $small --epochs 1
tail -n 1 out | grep -qE '^best validation loss: lr=' || fail "no best: $(cat out)"
grep -q 'class="marked"><td>lr=' labs-out/sweep/report.html || fail "the page marks no row"
[ "$(grep -c 'seed 1 in' err)" = 0 ] || fail "what is done was done again: $(cat err)"
expect 0 "$paceline" lab sweep --batch 16..64 --momentum 0..0.9 --points 3 $small --dry-run --json
json "o['runs'] == 9 and [c['options']['batch'] for c in o['cases'][::3]] == [16, 32, 64] and o['cases'][1]['options']['momentum'] == 0.45"
expect 2 "$paceline" lab sweep $small
says 'lab sweep needs a range, as in --lr 0.001..0.3'
expect 2 "$paceline" lab s4 --lr 0.1
says 'it is changed with --set lr=VALUE'

# A learning rate finder: a run whose rate rises to where it diverges, and a suggestion well below that.
expect 0 "$paceline" lab lr $small --batch 16 --steps 120 --lr 1e-5..100 --json
json "1e-4 < o['suggested'] <= o['lowest'] < 20 and o['diverged'] and 20 <= len(o['points']) <= 120"
json "abs(o['points'][1]['lr'] / o['points'][0]['lr'] - 1e7 ** (1 / 119)) < 1e-6 and o['points'][0]['lr'] == 1e-5"
grep -q 'learning rate' labs-out/lr/lr.svg || fail "no picture"
expect 0 "$paceline" lab lr $small --batch 16 --steps 120 --lr 1e-5..100
tail -n 1 out | grep -qE '^suggested: --lr [0-9]' || fail "no suggestion: $(cat out)"
expect 2 "$paceline" lab lr --model mlp:16x --data synthetic
for wrong in '--lr 0.1' '--lr 0..1' '--steps 3' '--schedule cosine' '--seeds 2'; do
    expect 2 "$paceline" lab lr $small $wrong
    says 'lab lr'
done

# Values of an option side by side: one attack against one defence, of the lab that has many.
expect 0 "$paceline" lab poison --quick --only 'uneven, 1 of 10 10:gaussian' --set 'aggregate=median'
grep -qE '^accuracy % +median$' out || fail "no table across an option: $(cat out)"
grep -qE '^uneven, 1 of 10 10:gaussian +[0-9.]+$' out || fail "no row in the table across an option: $(cat out)"

# Wrong files: a sentence with the place, no folder left.
wrong() { # CODE TEXT PATTERN
    printf '%s' "$2" >wrong.json
    expect "$1" "$paceline" lab wrong.json --out none
    [ "$(wc -l <err)" = 1 ] || fail "'$2' does not say one line: $(cat err)"
    says "$3"
    [ ! -s out ] && [ ! -e none ] || fail "'$2' left something: $(cat out)"
}
head='{"schema":1,"about":"x","train":{"model":"mlp:8x1","data":"synthetic"}'
wrong 1 '{' '^paceline: wrong.json: not valid JSON, line 1'
wrong 1 "$head}" '^paceline: lab wrong: "cases" is missing, a list expected'
wrong 1 "$head,\"casess\":[]}" "unknown key 'casess'; did you mean 'cases'"
wrong 2 "$head,\"cases\":[{\"train\":{}},{\"train\":{\"wrokers\":2}}]}" "lab wrong: case 'wrokers=2': unknown option --wrokers; did you mean --workers"
wrong 2 "$head,\"cases\":[{\"train\":{\"strategy\":\"dpd\"}}]}" "case 'dpd': unknown strategy 'dpd'"
wrong 2 "$head,\"cases\":[{\"train\":{\"strategy\":\"ddp:bukket=1M\"}}]}" "case 'ddp:bukket=1M': .*bukket"
wrong 2 "$head,\"cases\":[{\"train\":{\"strategy\":\"single\",\"workers\":2}}]}" 'strategy single is for one worker'
wrong 2 "$head,\"cases\":[{\"train\":{\"lr\":\"fast\"}}]}" "case 'fast': --lr"
wrong 2 "$head,\"cases\":[{\"train\":{\"batch\":0}}]}" "case 'batch=0': --batch"
wrong 1 "$head,\"cases\":[{\"train\":{\"json\":true}}]}" 'case 1: the lab itself sets json'
expect 2 "$paceline" lab s44
says "unknown lab .* 's44'; did you mean"
expect 2 "$paceline" lab
says 'lab needs a name or a file'
expect 2 "$paceline" lab tiny.json --only nothing
says "unknown case 'nothing'"
expect 2 "$paceline" lab long.json --quick
says 'this lab has no "quick" form'
echo '{"schema":2}' >labs-out/long/results.json
expect 1 "$paceline" lab long.json
says 'results.json cannot be gone on with \(--fresh forgets it\): "schema" is 2'

# The labs of the program: listed, printed as files that mean the same, and all of their quick forms are trainings.
expect 0 "$paceline" lab --list --json
json "[l['lab'] for l in o['labs']] == ['poison', 's0', 's1', 's2', 's3', 's4', 'ten'] and all(l['about'] and l['runs'] > 0 for l in o['labs'])"
images=synthetic:train=256,test=32,shape=3x32x32,classes=10
for lab in s0 s1 s2 s3 s4 ten; do
    expect 0 "$paceline" lab $lab --print
    cp out printed.json
    sed -i "s/cifar10/$images/" printed.json
    sed -i "s/\"mnist\"/\"synthetic\"/" printed.json
    expect 0 "$paceline" lab printed.json --dry-run --json
    expect 0 "$paceline" lab printed.json --dry-run --quick
done
# S4's lab with everything in it but the two of 50 epochs: as many cases, on a set of a few samples.
expect 0 "$paceline" lab s4 --dry-run --json --set data=synthetic
json "o['runs'] == 17 * 3 + 2 and {'ten, no test', 'ten, 50 epochs', 'ten, latency downpour:latency=0.05'} < {c['case'] for c in o['cases']}"
expect 0 "$paceline" lab s4 --print
sed 's/"workers": *10/"workers": 3/' out >printed.json
expect 0 "$paceline" lab printed.json --quick --only 'no test' --only latency=0.05 --set data=synthetic:train=640,test=20 --json
json "o['done'] == o['runs'] == 3 and all(c['figures']['seconds']['mean'] > 0 for c in o['cases'])"
json "all(0 < c['figures']['figures.most_split_seconds']['mean'] < 60 for c in o['cases'])"
json "[c['figures']['accuracy']['mean'] is None for c in o['cases']] == [True, False, False]"
expect 0 "$paceline" data make ratings --users 50 --items 90 --ratings 900 -o s0-500.csv
expect 0 "$paceline" lab s0 --quick --only '500 users' --json
json "o['done'] == 2 and all(0 < c['figures']['rmse']['mean'] < 2 for c in o['cases'])"
# The others' quick forms run through; that of s2 without the hosts of its launchers.
expect 0 "$paceline" lab s2 --quick --set data=synthetic:train=1024,test=64 --set threads=1 --json
json "o['done'] == o['runs'] == 3 and o['report'] == 'labs-out/s2-quick/report.html'"
expect 0 "$paceline" lab s3 --quick --set data=$images --set threads=1 --set batch=8 --json
json "o['done'] == o['runs'] == 4 and len({c['figures']['loss']['mean'] for c in o['cases'][1:]}) == 1"
grep -q 'The quick form' labs-out/s3-quick/report.html && ! grep -q '<th>theirs' labs-out/s3-quick/report.html ||
    fail "a quick form stands beside the figures of others"
expect 0 "$paceline" lab s1 --quick --set data=$images --json
json "o['done'] == 2 and o['cases'][1]['figures']['step_seconds']['theirs'] is None and o['plots'] == ['labs-out/s1-quick/step_seconds.svg']"
