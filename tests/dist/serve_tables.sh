#!/usr/bin/env bash
# Models of tables behind HTTP: rows as JSON get what paceline predict says, classes as classes and
# numbers in the target's units; what is no row, or pixels, is refused.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/serving.bash"

/usr/bin/python3 - <<'PY'
import csv, json, random
random.seed(4)
rows = [[round(random.uniform(1, 9), 2), random.choice(["red", "blue", "green"])] for _ in range(200)]
def write(name, head, rows):
    with open(name, "w", newline="") as f:
        csv.writer(f).writerows([head] + rows)
add = {"red": 100, "blue": 0, "green": -60}
write("prices.csv", ["size", "colour", "price"], [r + [30 * r[0] + add[r[1]]] for r in rows])
write("kinds.csv", ["size", "colour", "kind"], [r + ["big" if r[0] > 5 else "small"] for r in rows])
new = [[5, "red"], ["", "blue"], [2.5, "mauve"]]
write("new.csv", ["size", "colour"], new)
json.dump([dict(zip(["size", "colour"], r)) for r in new], open("new.json", "w"))
PY
for name in prices kinds; do
    expect 0 "$paceline" train --data $name.csv --model mlp:16x1 --run $name --epochs 20 --batch 16 --optimiser adam \
        --lr 0.01 --threads 1 --quiet
done
serve --model prices --model kinds --threads 1
grep -qF "curl $inference/predictions/kinds -T rows.json" serve.err || fail "no curl line: $(cat serve.err)"

expect 0 "$paceline" predict prices new.csv --json --threads 1
/usr/bin/python3 -c 'import json; print([p["prediction"] for p in json.load(open("out"))["predictions"]])' >prices
answers 200 "$inference/predictions/prices" -T new.json
body "[list(a) for a in o] == [['price']] * 3 and all(abs(a['price'] - b) < 1e-3 for a, b in zip(o, $(cat prices)))"
body "o[0]['price'] > 150" # in its own units: 250 is right
cp out rows
answers 200 "$inference/predictions/prices" -d '{"size": 5, "colour": "red"}'
body "o == json.load(open('rows'))[0]"
answers 200 "$inference/predictions/prices" -d '[5, "red"]'
body "o == json.load(open('rows'))[0]"
answers 200 "$inference/predictions/prices" -F data=@new.json
body "o == json.load(open('rows'))"
answers 200 "$inference/v1/models/prices:predict" -d "{\"instances\": $(cat new.json)}"
body "o == {'predictions': json.load(open('rows'))}"

expect 0 "$paceline" predict kinds new.csv --json --threads 1
/usr/bin/python3 -c 'import json; print([{c["class"]: c["probability"] for c in p["classes"]} for p in json.load(open("out"))["predictions"]])' >kinds
answers 200 "$inference/predictions/kinds" -T new.json
body "all(a.keys() == b.keys() and all(abs(a[k] - b[k]) < 1e-5 for k in a) for a, b in zip(o, $(cat kinds))) and len(o) == 3"

# ---- what is no row ----
answers 400 "$inference/predictions/prices" -d '{"size": 5}'
body "\"column 'colour' is missing\" in o['message']"
answers 400 "$inference/predictions/prices" -d '{"size": 5, "color": "red"}'
body "\"did you mean 'colour'?\" in o['message']"
answers 400 "$inference/predictions/prices" -d '[["large", "red"]]'
body "o['message'].startswith('row 1: ')"
make_png image.png 1
answers 400 "$inference/predictions/prices" -T image.png
body "'not images' in o['message']"

# ---- tensors: features as the network takes them, never pixels ----
answers 200 "$inference/v2/models/prices"
body "o['inputs'][0]['shape'] == [-1, 4, 1, 1]"
v2() { # TYPE
    echo "{\"inputs\": [{\"name\": \"x\", \"shape\": [1, 4], \"datatype\": \"$1\", \"data\": [0, 0, 0, 1]}]}"
}
answers 200 "$inference/v2/models/prices/infer" -d "$(v2 FP32)"
body "o['outputs'][0]['data'][0] > 150" # in the target's units, too
answers 400 "$inference/v2/models/prices/infer" -d "$(v2 UINT8)"
body "'pixels' in o['error']"
stop
exit 0
