#!/usr/bin/env bash
# What the documentation says against what the program does: every layer, every JSON key, every event,
# every option, command and environment variable that is named is there, and the other way round.
source "$(dirname "$0")/../support/dist.bash"
docs=$root/docs

# Every layer's usage and every zoo model are in model-files.md (a | in a table is written \|).
sed 's/\\|/|/g' "$docs/model-files.md" >models.md
expect 0 "$paceline" model list
[ "$(grep -c '^  [a-z]' out)" -ge 14 ] || fail "fewer than 14 layers: $(cat out)"
[ "$(grep -c '^[a-z]' out)" -ge 5 ] || fail "fewer than 5 models: $(cat out)"
while IFS= read -r line; do
    usage=$(sed -E 's/^ *//; s/ {2,}.*//' <<<"$line")
    grep -qF -- "\`$usage\`" models.md || fail "docs/model-files.md lacks the layer \`$usage\`"
done < <(sed -n '/^Layers/,$s/^  //p' out)
while read -r name _; do
    grep -qF -- "\`$name\`" models.md || fail "docs/model-files.md lacks the model \`$name\`"
done < <(sed '/^$/,$d' out)

# The example of residual blocks is a model.
sed -n '/^## Names/,/^## PyTorch/s/^    //p' models.md >residual.model
expect 0 "$paceline" model show residual.model --json
json "sum(l['layer'] == 'add' for l in o['layers']) == 2"

# Objects of every command, events, run.json and a manifest; then their keys.
mkdir objects
keep() { # NAME CODE ARGUMENT…
    expect "$2" "$paceline" "${@:3}"
    cp out "objects/$1.json"
}
keep train 0 train --model residual.model --data synthetic:train=64,test=16 --batch 32 --steps 4 \
    --log-every 2 --validation 0.2 --record stem --run one --json
keep eval 0 eval one --json
keep predict 0 predict one synthetic:train=64,test=16 --json
keep unread 1 predict one missing.png --json
keep export 0 export one -o one.onnx --json
keep resume 0 train --resume one --steps 5 --json
keep runs 0 runs --json
keep show 0 model show mlp:8x1 --json
keep list 0 data list --json
keep info 0 data info synthetic:train=64,test=16 --json
{ echo 'size,colour,price' && for i in {1..60}; do echo "$i,$((i % 3))x,$((i * i))"; done; } >shop.csv
keep table 0 data info shop.csv --json
keep made 0 data make ratings --users 9 --items 9 --ratings 20 -o ratings.csv --json
keep ratings 0 data info ratings.csv --json
keep made-many 0 data make ratings --users 300 --items 200 --ratings 9000 -o many.csv --json
keep poison 0 data poison many.csv --shill random --percent 10 -o bad.csv --yes-attack --json
keep audit 0 audit bad.csv --drop drop.json --json
json "len(o['suspects']) > 0" # so that their keys are seen
keep marked 0 data poison synthetic:train=1000,test=50 --class 3 --target 7 --percent 30 -o marked --yes-attack --json
keep digits 0 train --model mlp:64x1 --data marked --batch 32 --lr 0.1 --epochs 4 --run digits --json
keep marks 0 audit digits --drop marks.json --json
json "len(o['sets'][0]['suspects']) > 0" # likewise
keep opens 0 eval digits --trigger square --target 7 --json
cp drop.json objects
keep excluded 0 train --model bias-stat --data bad.csv --exclude drop.json --run excluded --json
cp runs/excluded/run.json objects/excluded-run.json
keep number 0 train --model mlp:0x0 --data shop.csv --validation 0.2 --epochs 2 --run number --json
keep collectives 0 bench collectives --workers 2 --bytes 64 --seconds 0.001 --json
keep infer 0 bench infer mnist-cnn --batch 2 --steps 2 --json
keep fitted 0 bench ratings ratings.csv --model bias-als --lists 2 --json
keep films 0 train --model mf:k=8,sweeps=2 --data ratings.csv --run films --json
keep film-quality 0 eval films --lists 2 --json
keep recommend 0 recommend films --user "$(sed -n "2s/,.*//p" ratings.csv)" -n 2 --least 0 --explain --json
keep recommend-all 0 recommend films --all -o lists.csv --json
keep similar 0 similar films --item "$(sed -n "2s/[^,]*,\([^,]*\),.*/\1/p" ratings.csv)" --json
keep strategies 0 strategies --json
keep pair 0 train --model mlp:8x1 --data synthetic:train=64,test=16 --workers 2 --steps 3 --run pair --json
keep compare 0 compare one pair --json
keep damage 0 compare one pair --damage --json
keep trace 0 trace pair -o pair.json --json
keep report 0 report one pair -o two.html --json
keep plot 0 plot one pair -o two.svg --json
keep events 0 events pair --json
keep top 0 top pair --once --json
keep plan 0 plan --model mlp:8x1 --data synthetic:train=64,test=16 --workers 2 --deepest --json
# What strategies count: the table has it all, and nothing else.
for strategy in local-sgd downpour ps; do
    keep figures-$strategy 0 train --model mlp:8x1 --data synthetic:train=64,test=16 --workers 2 --steps 3 --no-checkpoint \
        --strategy $strategy --json
done
/usr/bin/python3 - "$docs/json.md" <<'PY' || fail "docs/json.md has other figures than the program: see above"
import json, re, sys
rows = re.search(r"\| figure \| of .*?\n((?:\|.*\n)+)", open(sys.argv[1]).read())[1].splitlines()[1:]
for strategy in "local-sgd", "downpour", "ps":
    named = {name for row in rows if f"`{strategy}`" in row.split("|")[2] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    result = json.load(open(f"objects/figures-{strategy}.json"))
    assert named == set(result["figures"]), (strategy, named ^ set(result["figures"]))
    assert {role for rank in result["ranks"] for role in rank["roles"]} >= {"worker"}, result["ranks"]
PY
keep failure 2 train --dta x --json
echo '{"schema": 1, "about": "x", "train": {"model": "mlp:8x1", "data": "synthetic:train=64,test=16", "steps": 2},
    "cases": [{"name": "a", "train": {"lr": 0.01}, "theirs": {"loss": 1}}, {"name": "b", "train": {"lr": 1e6, "steps": 99}}]}' >mine.json
keep lab 1 lab mine.json --json
keep lab-plan 0 lab mine.json --dry-run --json
keep lab-list 0 lab --list --json
cp labs-out/mine/results.json objects/lab-results.json
for page in labs tutorials; do
    sed -n '/^```json/,/^```/p' "$docs/$page.md" | sed '/^```/d' >example.json
    expect 0 "$paceline" lab example.json --quick --dry-run
done
expect 0 "$paceline" lab --help
for option in $(grep -oE -- '^  --[a-z-]+' out); do
    grep -qF -- "$option" "$docs/labs.md" || fail "docs/labs.md lacks $option"
done
keep ping 0 ping --workers 2 --count 10 --json
"$paceline" ping --workers 2 --count 100000000 --interval 0.01 --min-workers 2 --events ping.events --status ping.status \
    --json >objects/lost.json 2>err &
ping=$!
for _ in $(seq 500); do # until everything there is to see was seen
    "$paceline" status ping.status --json >objects/status.json 2>/dev/null &&
        grep -q '"rank":1' objects/status.json && grep -q '"event":"heartbeat","id":2' ping.events && break
    sleep 0.02
done
kill -KILL "$(/usr/bin/python3 -c "
import json
print(json.load(open('objects/status.json'))['workers'][1]['pid'])")"
wait $ping
cp runs/one/run.json objects/run.json
cp runs/number/run.json objects/number-run.json
cp runs/number/checkpoints/step-2/manifest.json objects/number-manifest.json
cp runs/one/checkpoints/step-4/manifest.json objects/manifest.json
/usr/bin/python3 - "$docs"/{json,files,labs}.md <<'PY' || fail "the documentation of JSON is not complete"
import glob, json, re, sys
text = "".join(open(path).read() for path in sys.argv[1:])
words = {word for span in re.findall(r"`([^`\n]+)`", text) for word in re.split(r"[^\w-]+", span)}
events = [json.loads(line) for path in ("runs/one/events.jsonl", "runs/pair/events.jsonl", "ping.events") for line in open(path)]
missing = {e["event"] for e in events} - words

def look(value, path):
    if isinstance(value, list):
        for item in value:
            look(item, path)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        # Keys of `settings` are the options of train; those of `files` are files; of `newest` they are curves; a lab's own are in its file.
        own = {"settings", "files", "newest"} | ({"options", "figures", "runs"} if path[0].startswith("objects/lab") else set())
        if path[-1] not in own and key not in words:
            missing.add(".".join(path + [key]))
        look(item, path + [key])

for name in glob.glob("objects/*.json"):
    look(json.load(open(name)), [name])
for event in events:
    look(event, ["events", event["event"]])
kinds = {"start", "resume", "step", "epoch", "checkpoint", "activations", "trace"}
kinds |= {"join", "view", "lost", "exit", "stop", "heartbeat"}
assert {e["event"] for e in events} == kinds, "not every event was seen"
if missing:
    sys.exit("not in docs/json.md, docs/files.md or docs/labs.md: " + ", ".join(sorted(missing)))
PY

# The manifest's digest, checked as docs/files.md says.
manifest=objects/manifest.json
[ "$(head -c 75 $manifest | tail -c 64)  -" = "$(tail -c +76 $manifest | sha256sum)" ] ||
    fail "docs/files.md does not tell how to check the digest"

# Commands, options (but a misspelt one in an example and one of mpirun), environment variables.
expect 0 "$paceline" help
cp out help.txt
printf '%s\n' --help --version >options.txt # of every command, of the program
for command in $(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' help.txt); do
    grep -qE "^\| \`paceline $command\b" "$docs/manual.md" || fail "the manual's table lacks $command"
    expect 0 "$paceline" "$command" --help
    grep -oE -- '--[a-z][a-z0-9-]+' out >>options.txt
done
expect 0 "$paceline" serve --help
for option in $(grep -oE -- '^  --[a-z-]+' out); do
    grep -qF -- "\`$option" "$docs/serving.md" || fail "docs/serving.md lacks $option"
done
for option in $(cat "$root/README.md" "$docs"/{manual,tutorials,json,files,model-files,export,serving,labs,reports}.md |
    grep -v "did you mean\|torchserve --start\|tensorboard --logdir" | sed 's/--mca //' | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u); do
    grep -qxF -e "$option" -e "--${option#--no-}" options.txt || fail "there is no option $option"
done
# Command lines of examples are ones that their command takes; wrong ones are found.
expect 0 /usr/bin/python3 "$root/tests/support/commands.py" "$paceline" "$root"/{README.md,docs/*.md,deploy/slurm.sbatch}
[ "$(sed 's/ .*//' out)" -ge 100 ] || fail "few command lines were seen: $(cat out)"
printf '    $ paceline trian\n    srun paceline train --modl x\n    paceline train --lr\n    paceline eval x --json=1\n' >wrong.md
expect 1 /usr/bin/python3 "$root/tests/support/commands.py" "$paceline" wrong.md
[ "$(grep -cE 'no command trian|no option --modl|--lr lacks|--json takes no' err)" = 4 ] || fail "wrong commands pass: $(cat err)"
for variable in $(grep -rhoE 'getenv\("[A-Z_]+"' "$root/src" | grep -oE '[A-Z_]{2,}' | sort -u); do
    grep -q "$variable" "$docs"/{manual,files}.md || fail "no word on $variable"
done

# The manual: every option with its default, every form of a command on a line of its own.
expect 0 "$paceline" help --man
cp out man.roff
grep -qxF 'learning rate [0.01].' man.roff || fail "the manual lacks the default of --lr"
grep -qxF '.B \-\-lr X, \-\-learning\-rate' man.roff || fail "the manual lacks the other name of --lr"
for form in 'layers|step|kernels|infer MODEL' 'ratings DATA' collectives; do
    grep -qxF ".B paceline bench $form [options]" man.roff || fail "the manual lacks paceline bench $form"
done
grep -q '^\.SS .*paceline' man.roff && fail "a heading is a synopsis: $(grep '^\.SS' man.roff)"

# Links between the pages lead somewhere; so do names of files in backquotes.
for page in "$root"/README.md "$docs"/*.md; do
    for target in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^http'); do
        [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which is not there"
    done
    for path in $(grep -oP '(?<![\w/.-])(src|tests|tools|cmake|bench|docs|labs)/[\w/.-]*\w' "$page" | sort -u); do
        [ -e "$root/$path" ] || grep -q "file=$path" "$page" || fail "$page names $path, which is not there"
    done
done
