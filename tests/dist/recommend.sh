#!/usr/bin/env bash
# Lists of a trained rating model: nothing that a user has rated, the best first, exactly N or a sentence
# why not; the same lists from --all, whatever the threads; new users from a file; similar items; the same
# answers over HTTP; one sentence for what is wrong.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/serving.bash"

mkdir set
expect 0 "$paceline" data make ratings --users 200 --items 120 --ratings 6000 -o set/ratings.csv
awk 'BEGIN { print "movieId,title"; for (i = 1; i <= 120; i++) printf "%d,\"Film, no. %d\"\n", i, i }' >set/movies.csv
for model in mf:k=16,sweeps=8 bmf:k=16,sweeps=12 bias-als ials:k=16,sweeps=4; do
    expect 0 "$paceline" train --data set --model $model --run "${model%%:*}" --threads 1 --quiet
done
rm -rf set/ratings.csv.paceline

# ---- a user's list ----
for model in mf bmf bias-als ials; do
    expect 0 "$paceline" recommend $model --user 17 -n 7 --explain --json
    json "len(o['items']) == o['n'] == 7 and o['known'] and o['fewer'] is None and o['user'] == '17'"
    json "all(i['title'] == 'Film, no. ' + i['item'] for i in o['items']) and len({i['item'] for i in o['items']}) == 7"
    json "all(1 <= i['prediction'] <= 5 for i in o['items']) or '$model' == 'ials'"
    json "all(c['part'] > 0 and c['item'] != i['item'] for i in o['items'] for c in i['because'])"
    cp out $model.17
done
/usr/bin/python3 - set/ratings.csv <<'PY' || fail "a list has items that the user rated"
import csv, json, sys
rated = {r["movieId"] for r in csv.DictReader(open(sys.argv[1])) if r["userId"] == "17"}
train = json.load(open("bmf.17"))["rated"]
assert 0 < train <= len(rated)  # a fifth of them are tests, which the model does not know
for model in "mf", "bmf", "bias-als":
    values = [i["prediction"] for i in json.load(open(model + ".17"))["items"]]
    assert values == sorted(values, reverse=True), values
PY
json "all('deviation' in i for i in o['items'])"
expect 0 "$paceline" recommend bmf --user 17 --explain
[ "$(grep -c 'Film, no' out)" -ge 10 ] || fail "ten titles in: $(cat out)"
grep -q '1  .* ± .*Film' out || fail "no uncertainty in: $(cat out)"

# ---- every user, on any number of threads ----
expect 0 "$paceline" recommend mf --all -n 7 -o one.csv --threads 1 --json
json "o['users'] == 200 and o['lines'] == 1400 and o['fewer'] == 0"
expect 0 "$paceline" recommend mf --all -n 7 -o three.csv --threads 3
cmp one.csv three.csv || fail "other lists with other threads"
/usr/bin/python3 - <<'PY' || fail "--all says otherwise than --user"
import csv, json
mine = [r for r in csv.DictReader(open("one.csv")) if r["user"] == "17"]
one = json.load(open("mf.17"))["items"]
assert [r["item"] for r in mine] == [i["item"] for i in one]
assert [int(r["rank"]) for r in mine] == list(range(1, 8)) and mine[0]["title"] == one[0]["title"]
assert all(abs(float(r["prediction"]) - i["prediction"]) < 1e-4 for r, i in zip(mine, one))
PY

# ---- what is left out, and too few left ----
/usr/bin/python3 -c "
import json
print('\n'.join(i['item'] for i in json.load(open('mf.17'))['items'][:3]))" >seen.txt
expect 0 "$paceline" recommend mf --user 17 -n 4 --exclude seen.txt --json
json "[i['item'] for i in o['items']] == [i['item'] for i in json.load(open('mf.17'))['items'][3:]]"
expect 0 "$paceline" recommend mf --user 17 -n 500 --least 0 --json
json "len(o['items']) == 120 - o['rated'] and 'user 17 has rated' in o['fewer']"
says 'only .* items are left: user 17 has rated'
expect 0 "$paceline" recommend mf --user 17 -n 500 --least 1000000 --json
json "o['items'] == [] and '120 are excluded or have fewer than 1000000 ratings' in o['fewer']"
expect 0 "$paceline" recommend mf --user 17 -n 500 --least 0 --include-rated --json
json "len(o['items']) == 120"

# ---- new users, and known ones who rated more ----
printf 'userId,movieId,rating\nme,1,5\nme,2,1\nme,nix,4\n' >mine.csv
expect 0 "$paceline" recommend bmf --new mine.csv -n 5 --explain --json
json "not o['known'] and o['rated'] == 2 and o['user'] == 'me' and not {i['item'] for i in o['items']} & {'1', '2'}"
says '1 rating of items that the model does not know'
printf 'userId,movieId,rating\n17,%s,5\n18,1,3\n' "$(head -n 1 seen.txt)" >more.csv
expect 0 "$paceline" recommend mf --new more.csv --user 17 -n 3 --json
json "o['known'] and '$(head -n 1 seen.txt)' not in [i['item'] for i in o['items']]"
expect 0 "$paceline" recommend mf --new more.csv --all -n 3 -o both.csv
[ "$(wc -l <both.csv)" = 7 ] || fail "two lists of three in: $(cat both.csv)"

# ---- similar items ----
for model in mf bmf ials; do
    expect 0 "$paceline" similar $model --item 5 -n 4 --json
    json "len(o['similar']) == 4 and o['title'] == 'Film, no. 5' and '5' not in [s['item'] for s in o['similar']]"
    json "all(1 >= a['similarity'] >= b['similarity'] >= -1 for a, b in zip(o['similar'], o['similar'][1:]))"
done
expect 2 "$paceline" similar bias-als --item 5
says 'bias-als has no factors'

# ---- over HTTP: what `recommend` says ----
serve --model mf --model bmf --threads 1
grep -qF "curl $inference/predictions/bmf -d '{\"user\": 1, \"n\": 10}'" serve.err || fail "no curl line: $(cat serve.err)"
for model in mf bmf; do
    answers 200 "$inference/predictions/$model" -d '{"user": 17, "n": 7, "explain": true}'
    body "[i['item'] for i in o['items']] == [i['item'] for i in json.load(open('$model.17'))['items']]"
    body "[[c['item'] for c in i['because']] for i in o['items']] == [[c['item'] for c in i['because']] for i in json.load(open('$model.17'))['items']]"
done
answers 200 "$inference/v1/models/mf:predict" -d '{"instances": [{"user": "17", "item": 3}, {"user": "x", "item": 3}]}'
body "1 <= o['predictions'][0]['prediction'] <= 5 and not o['predictions'][1]['user_known']"
answers 200 "$inference/predictions/bmf" -d '{"ratings": [{"item": 1, "rating": 5}, {"item": 2, "rating": 1}], "n": 5}'
body "len(o['items']) == 5 and o['items'][0]['deviation'] > 0"
answers 400 "$inference/predictions/mf" -d '{"user": "x"}'
body "\"user 'x' is not known\" in o['message']"
answers 400 "$inference/predictions/mf" -d '{"user": 17, "n": -1}'
answers 400 "$inference/v2/models/mf/infer" -d '{"inputs": []}'
body "'rating model takes no tensors' in o['error']"
stop

# ---- mistakes ----
expect 2 "$paceline" recommend mf
says 'for whom'
expect 2 "$paceline" recommend mf --user nix
says "user 'nix' is none of the 200 .* --new FILE"
expect 2 "$paceline" recommend mf --user 17 -n 0
expect 2 "$paceline" recommend mf --all
says 'name it with -o FILE'
expect 2 "$paceline" recommend mf --new more.csv
says 'has ratings of 2 users'
expect 2 "$paceline" recommend nix --user 17
says "no run or checkpoint 'nix'"
printf 'userId,movieId,rating\nme,1,9\n' >high.csv
expect 1 "$paceline" recommend mf --new high.csv
says 'item 1 is rated 9; the model.s ratings are 1 … 5'
expect 2 "$paceline" similar mf --item nix
says "item 'nix' is none of the 120"
expect 2 "$paceline" similar mf
expect 0 "$paceline" train --data synthetic:train=16,test=4 --model mlp:4x1 --steps 1 --batch 4 --run net --quiet
expect 2 "$paceline" recommend net --user 17
says 'no rating model'

# ---- arrays of NumPy: the numbers of the checkpoint, and the ids of their rows ----
expect 0 "$paceline" export mf -o arrays --json
json "o['format'] == 'npy' and o['files'] == ['users.npy', 'items.npy', 'users.txt', 'items.txt']"
/usr/bin/python3 - out arrays set/ratings.csv <<'PY' || fail "the arrays are not those of the checkpoint"
import ast, csv, json, struct, sys
run, folder = json.load(open(sys.argv[1]))["run"], sys.argv[2]
tensors = open(f"{run}/model.safetensors", "rb").read()
begin = 8 + struct.unpack_from("<Q", tensors)[0]
about = json.loads(tensors[8:begin])
for name, column in ("users", "userId"), ("items", "movieId"):
    array = open(f"{folder}/{name}.npy", "rb").read()
    size, = struct.unpack_from("<H", array, 8)
    head = ast.literal_eval(array[10:10 + size].decode())
    assert array[:8] == b"\x93NUMPY\1\0" and (10 + size) % 64 == 0 and array[9 + size:10 + size] == b"\n"
    assert head == {"descr": "<f4", "fortran_order": False, "shape": tuple(about[name]["shape"])}
    first, end = about[name]["data_offsets"]
    assert array[10 + size:] == tensors[begin + first:begin + end]
    ids = open(f"{folder}/{name}.txt").read().split()
    assert ids == sorted({r[column] for r in csv.DictReader(open(sys.argv[3]))}, key=int)
    assert len(ids) == head["shape"][0]
PY
expect 0 "$paceline" export mf -o arrays
grep -q 'arrays: 4 files' out || fail "it does not say what was written: $(cat out)"
touch taken
expect 1 "$paceline" export mf -o taken
says 'taken'
expect 2 "$paceline" export mf -o arrays --fold
says 'of networks'
expect 2 "$paceline" export mf -o mf.onnx
says 'rating model'
echo 'recommend: lists, similar items and answers over HTTP agree; new users are folded in'
