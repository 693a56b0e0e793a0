#!/usr/bin/env bash
# Tables: scikit-learn's sets as CSV, trained with an mlp and lda and compared with scikit-learn;
# resumed, on two workers, evaluated on other files; missing, unknown and broken fields.
source "$(dirname "$0")/../support/dist.bash"
/usr/bin/python3 -c 'import sklearn' 2>/dev/null || { echo 'skipped: needs python3-sklearn' && exit 77; }
tables() { /usr/bin/python3 "$root/tests/support/tables.py" "$@" || fail "tables.py $*"; }
newest() { ls -d "$1"/checkpoints/step-* | sort -t- -k3n | tail -n 1; }
mlp=(--model mlp:32x1 --batch 16 --threads 1 --optimiser adam --lr 0.005 --epochs 30)

for name in iris wine breast_cancer digits diabetes; do
    tables write $name $name
done

# Classes: lda is scikit-learn's, an mlp as good as logistic regression or nearly.
for name in iris wine breast_cancer digits; do
    expect 0 "$paceline" train --model lda --data $name --run lda-$name --json
    json "o['steps'] == 1 and o['epochs'] == 1 and o['test']['accuracy'] > 0.9"
    tables lda $name "$(newest runs/lda-$name)"
    expect 0 "$paceline" train "${mlp[@]}" --data $name --run mlp-$name --json
    json "o['test']['accuracy'] >= $(tables score $name) - 0.04"
done
expect 0 "$paceline" train --model lda:0.2 --data wine --run shrunk
grep -qE '^seconds a step: first [0-9.]+$' runs/shrunk/report.txt || fail 'one step has a mean of the others'
tables lda wine "$(newest runs/shrunk)" 0.2

# Numbers: errors in the target's own units, R² in the range of least squares, no accuracy anywhere.
expect 0 "$paceline" train "${mlp[@]}" --data diabetes --run numbers --validation 0.1
says "target 'kind', a number"
says 'epoch 30  train loss [0-9.]+  validation loss [0-9.]+, R² -?[0-9.]+.*  test loss [0-9.]+, R² [0-9.]+'
says 'test loss [0-9.]+, MAE [0-9.]+, RMSE [0-9.]+, R² [0-9.]+ \(111 samples\)'
! grep -qi accuracy "$work/err" || fail "a regression has an accuracy: $(grep -i accuracy "$work/err")"
! grep -qi accuracy runs/numbers/report.txt || fail 'the report of a regression has an accuracy'
expect 0 "$paceline" eval numbers --json
json "abs(o['test']['r2'] - $(tables score diabetes)) < 0.1 and 35 < o['test']['mae'] < 60"
json "o['test']['rmse'] > o['test']['mae'] and 'accuracy' not in o['test']"
expect 0 "$paceline" train --model mlp:0x0 --data diabetes --optimiser adam --lr 0.01 --epochs 60 --run line --json
json "abs(o['test']['r2'] - $(tables score diabetes)) < 0.03 and o['train']['accuracy'] is None"
expect 0 "$paceline" runs --sort r2
grep -q 'line .*R²  0\.' "$work/out" || fail "no R² in: $(cat "$work/out")"
expect 0 "$paceline" compare numbers line
head -n 1 "$work/out" | grep -q 'R²' || fail "no R² in: $(cat "$work/out")"
! head -n 1 "$work/out" | grep -q accuracy || fail 'runs of a regression are compared by accuracy'
expect 2 "$paceline" train --model lda --data diabetes
says "lda tells classes apart, but the target 'kind' is a number"
printf 'dense classes\nsoftmax\n' >soft.txt
expect 1 "$paceline" train --model soft.txt --data diabetes
says 'ends in a loss of classes; end it with `dense classes` and `mse`'

# Several workers: the sums of lda are the same to rounding, an mlp is equal to the bit of any strategy's.
expect 0 "$paceline" train --model lda --data wine --workers 3 --run three --json
json "o['workers'] == 3 and [r['samples'] for r in o['ranks']] == [44, 44, 45]"
tables lda wine "$(newest runs/three)"
expect 0 "$paceline" train --model lda --data wine --workers 2 --strategy local-sgd --run two
tables lda wine "$(newest runs/two)"
for strategy in allreduce gather-scatter local-sgd; do
    expect 0 "$paceline" train "${mlp[@]}" --data diabetes --workers 2 --strategy $strategy --json
    json "abs(o['test']['r2'] - $(tables score diabetes)) < 0.1"
done

# A run that is cut and resumed is the run that was not.
expect 0 "$paceline" train "${mlp[@]}" --data diabetes --run whole
expect 0 "$paceline" train "${mlp[@]}" --data diabetes --epochs 11 --run cut
expect 0 "$paceline" train --resume cut --epochs 30
[ "$(fingerprint runs/whole)" = "$(fingerprint runs/cut)" ] || fail 'a resumed regression differs'
expect 2 "$paceline" train --resume cut --epochs 31 --target s1
expect 2 "$paceline" train --resume lda-wine
says 'lda-wine is done: lda is computed in one step'

# Its memory is told; off a terminal it says how far it is.
expect 0 "$paceline" model show lda --input 1x60x60 --json
json "o['training_bytes'] > 8 * 3600 * 3601 / 2"
expect 0 "$paceline" train --model lda --data synthetic:classes=4,shape=1x40x40,train=90,test=10 --batch 30 --log-every 2
says 'memory 1[0-9]\.. MB a worker'
says '^summed over 60 of 90 samples$'
says '^solving'
cp wine/train.csv wine.csv
expect 0 "$paceline" train --model lda --data wine.csv
[ -d runs/lda-wine-1 ] || fail "the run of wine.csv is called $(ls runs)"

# Lda of images, and its limit.
theirs=$(tables images digits-images)
images=digits-images
expect 0 "$paceline" train --model lda --data $images --run images --json
json "abs(o['test']['accuracy'] - $theirs) < 1e-9 and o['test']['accuracy'] > 0.9"
expect 0 "$paceline" eval images --json
json "abs(o['test']['accuracy'] - $theirs) < 1e-9"
expect 1 "$paceline" train --model lda --data synthetic:classes=4,shape=3x64x64,train=40,test=10
says 'lda takes up to 4096 features.* there are 12288'

# One file: a fifth of its rows is for tests, the same rows in eval; another file is tested whole,
# its columns in any order.
tail -n +2 iris/test.csv | cat iris/train.csv - >iris.csv
expect 0 "$paceline" train "${mlp[@]}" --data iris.csv --run one --json
json "sum(c['support'] for c in o['test']['per_class']) == 30"
cp "$work/out" trained
expect 0 "$paceline" eval one --json
json "o['test'] == __import__('json').load(open('trained'))['test']"
expect 0 "$paceline" train "${mlp[@]}" --data iris.csv --seed 2 --test-share 0.5 --run half --json
json "sum(c['support'] for c in o['test']['per_class']) == 75"
/usr/bin/python3 - <<'PY'
import csv
rows = list(csv.reader(open("iris/test.csv")))
with open("shuffled.csv", "w", newline="") as f:
    csv.writer(f, delimiter=";").writerows([r[4], r[2], "extra", r[0], r[3], r[1]] for r in rows)
PY
expect 0 "$paceline" eval mlp-iris --json
cp "$work/out" straight
expect 0 "$paceline" eval mlp-iris --data shuffled.csv --json
json "o['test'] == __import__('json').load(open('straight'))['test']"
sed 's/petal width/petal girth/' shuffled.csv >renamed.csv
expect 1 "$paceline" eval mlp-iris --data renamed.csv
says "renamed.csv: there is no column 'petal width \(cm\)' as in the training"
expect 1 "$paceline" eval images --data iris.csv
says 'iris.csv: it is a table, but the model was trained on images'
expect 1 "$paceline" eval mlp-iris --data $images
says 'it is images, but the model was trained on a table'
cut -d, -f1-4 iris.csv >unlabelled.csv
expect 2 "$paceline" predict mlp-iris unlabelled.csv --errors 1
says 'there are none: give rows with the column that is predicted'
expect 1 "$paceline" predict mlp-iris straight
says 'straight is no table, but the model was trained on one'

# The target, and what columns are.
expect 2 "$paceline" train "${mlp[@]}" --data iris.csv --target knid
says "unknown target column 'knid'; did you mean 'kind'?"
expect 2 "$paceline" train "${mlp[@]}" --data iris.csv --column kind=class
says 'unknown kind .class.'
expect 2 "$paceline" train "${mlp[@]}" --data $images --target kind
says '--target and --column are for tables'
expect 2 "$paceline" train "${mlp[@]}" --data iris.csv --flip
says '--pad and --flip are for images'
expect 0 "$paceline" train "${mlp[@]}" --data iris.csv --target 'petal width (cm)' --run width --json
json "o['test']['r2'] > 0.85"
expect 0 "$paceline" data info iris.csv --target 'petal width (cm)' --json
json "o['kind'] == 'table' and o['features'] == 6 and o['target']['kind'] == 'number'"
json "[c['kind'] for c in o['columns']] == ['number'] * 3 + ['category'] and o['classes'] == []"

# Missing values, categories that the training did not have, lines that cannot be used.
/usr/bin/python3 - <<'PY'
import random
random.seed(4)
with open("shop.csv", "w") as f:
    f.write("size,colour,code,price\n")
    for i in range(400):
        colour = random.choice(["red", "blue", "", "green"])
        size = random.choice(["", "NA"]) if i % 20 == 0 else "%.2f" % random.uniform(1, 9)
        price = 3 * (float(size) if size not in ("", "NA") else 5) + {"red": 10, "blue": 0, "": 4, "green": -6}[colour]
        f.write("%s,%s,sku-%d,%.3f\n" % (size, colour, i, price))
PY
expect 0 "$paceline" train "${mlp[@]}" --data shop.csv --run shop --json
says 'missing numbers take the mean of the training part: size 20'
says "column 'code' is left out"
json "o['test']['r2'] > 0.9"
printf 'size,colour,price\n5,red,25\n5,mauve,15\n?,blue,15\n' >new.csv
expect 0 "$paceline" eval shop --data new.csv --json
says "1 field of categories that the training did not have .* 'mauve' in column 'colour', line 3"
says 'missing numbers take the mean of the training part: size 1'
json "o['test']['samples'] == 3"
{ cat shop.csv; printf '1,red\nlarge,red,x,3\n2,red,x,\n3,"red,x,3\n'; } >broken.csv
expect 1 "$paceline" train "${mlp[@]}" --data broken.csv
says 'broken.csv: line 402: 2 fields, but the first line has 4'
expect 1 "$paceline" data check broken.csv
grep -q "line 403: 'large' in column 'size' is not a number" "$work/out" || fail "$(cat "$work/out")"
says '4 of 404 rows of broken.csv cannot be read'
expect 1 "$paceline" train "${mlp[@]}" --data broken.csv --skip-bad 3
says 'more than --skip-bad 3 lines cannot be used'
expect 0 "$paceline" train "${mlp[@]}" --data broken.csv --skip-bad 4 --epochs 2
says '4 lines left out'
expect 0 "$paceline" data check shop.csv

# Predictions: classes and numbers of rows, with and without the target.
cut -d';' -f2- shuffled.csv >unknown.csv
expect 0 "$paceline" predict lda-iris unknown.csv --json
json "o['samples'] == 38 and o['labelled'] == 0 and o['accuracy'] is None"
cp "$work/out" without
expect 0 "$paceline" predict lda-iris shuffled.csv --json
json "[p['classes'] for p in o['predictions']] == [p['classes'] for p in __import__('json').load(open('without'))['predictions']]"
json "o['labelled'] == 38 and o['accuracy'] > 0.9"
expect 0 "$paceline" predict shop new.csv --csv
[ "$(head -n 2 "$work/out" | cut -d, -f1,2)" = $'file,label\nnew.csv/test/0,25' ] || fail "$(cat "$work/out")"
expect 0 "$paceline" predict shop new.csv --json
json "abs(o['predictions'][0]['prediction'] - 25) < 3 and o['labelled'] == 3 and 'accuracy' not in o"
expect 0 "$paceline" eval shop --data new.csv --json
cp "$work/out" evaluated
expect 0 "$paceline" predict shop new.csv --json
json "abs(o['mae'] - __import__('json').load(open('evaluated'))['test']['mae']) < 1e-4"

# Exports: the columns go with the file; rows are not normalised by it.
expect 0 "$paceline" export shop -o shop.onnx
grep -q 'features of a row, made as `table` says, which its metadata has' "$work/out" || fail "$(cat "$work/out")"
/usr/bin/python3 - shop.onnx <<'PY' || fail 'the model text of shop.onnx'
import onnx, sys
model = onnx.load(sys.argv[1])
features = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
text = next(p.value for p in model.metadata_props if p.key == "model")
assert text.startswith(f"input {features}x1x1\nclasses 1\n") and text.count("input ") == 1, text
open("shop.model", "w").write(text)
PY
expect 0 "$paceline" model show shop.model --json
grep -aq '"name":"colour","kind":"category","categories":\["","blue"' shop.onnx || fail 'shop.onnx lacks its columns'
expect 2 "$paceline" export shop -o shop.onnx --normalise
says '--normalise is for pixels'

expect 1 "$paceline" predict shop broken.csv
says 'line 402: 2 fields'
expect 0 "$paceline" predict shop broken.csv --skip-bad 4
