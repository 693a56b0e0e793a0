#!/usr/bin/env bash
# Ratings on the command line: made in every format, looked at, cached, broken, refused.
source "$(dirname "$0")/../support/dist.bash"

shows() { grep -qE -- "$1" "$work/out" || fail "'$1' is not in: $(cat "$work/out")"; }
make=(data make ratings --users 300 --items 120 --ratings 9000)

# The same ratings in every format; all is said of them.
digest=
for format in csv dat tab; do
    expect 0 "$paceline" "${make[@]}" --format $format -o r.$format --json
    json "o['ratings'] == 9000 and o['format'] == '$format' and o['file'] == 'r.$format' and o['seed'] == 1"
    expect 0 "$paceline" data info r.$format --json
    json "o['kind'] == 'ratings' and o['format'] == '$format' and not o['cached'] and o['ratings'] == 9000"
    json "o['users'] == 300 and o['items'] == 120 and abs(o['density'] - 0.25) < 1e-6 and 3 < o['mean'] < 4"
    json "o['scale'] == {'lowest': 1, 'highest': 5, 'step': 1, 'levels': 5}"
    json "sum(v['count'] for v in o['values']) == 9000 and [v['from'] for v in o['values']] == [1, 2, 3, 4, 5]"
    json "sum(b['count'] for b in o['per_user']['histogram']) == 300 and o['per_user']['mean'] == 30"
    json "sum(b['count'] for b in o['per_item']['histogram']) == 120 and o['per_item']['mean'] == 75"
    json "'1999-11-11' <= o['times']['first'] < o['times']['last'] < '2006' and o['times']['last'][-1] == 'Z'"
    json "o['bad_lines'] == 0 and o['duplicates'] == 0 and o['cache'].endswith('/r.$format.paceline')"
    this=$(/usr/bin/python3 -c 'import json, sys; print(json.load(open("out"))["digest"])')
    [ "${digest:=$this}" = "$this" ] || fail "$format has other ratings"
    expect 0 "$paceline" data info r.$format --json
    json "o['cached'] and o['digest'] == '$digest'"
done
expect 0 "$paceline" "${make[@]}" --format netflix -o r.txt
expect 0 "$paceline" data info r.txt
shows '^r.txt: ratings \(netflix\)$'
shows '9000 of 120 items by 300 users'
shows '1 … 5 in steps of 1'
shows '^  times +1999-'
mkdir training_set
awk '/:$/ { name = sprintf("training_set/mv_%07d.txt", $1) } { print >name }' r.txt
expect 0 "$paceline" data info training_set --json
json "o['ratings'] == 9000 and o['cache'].endswith('/training_set/ratings.paceline')"
expect 0 "$paceline" data info training_set --json --no-cache
json "not o['cached'] and o['cache'] is None"

# A seed is a set; half stars; threads change nothing.
expect 0 "$paceline" "${make[@]}" -o again.csv --threads 3
cmp -s again.csv r.csv || fail 'the same command makes another file'
expect 0 "$paceline" "${make[@]}" -o other.csv --seed 2 --half-stars
! cmp -s other.csv r.csv || fail 'another seed makes the same file'
expect 0 "$paceline" data info other.csv --threads 2 --json
json "o['scale']['step'] == 0.5 and o['scale']['levels'] == 10"
expect 2 "$paceline" "${make[@]}" -o x.csv --ratings 99999
says 'have no 99999 pairs'
expect 2 "$paceline" "${make[@]}" -o x.csv --format xml
says "csv, dat, netflix, tab"
expect 2 "$paceline" "${make[@]}"
says '-o FILE is missing'
expect 2 "$paceline" data make pictures
says 'paceline data make ratings'
expect 1 "$paceline" "${make[@]}" -o nowhere/x.csv
says 'cannot write nowhere/x.csv'
[ ! -e x.csv ] || fail 'a refused command left a file'

# Lines that are no ratings: counted, told, refused on demand. A cache of them tells the same.
printf 'user,item,rating\nann,x,5\nann,y\nbob,x,nan\nbob,y,3\nann,x,4\neve,x,1\n' >bad.csv
for cached in False True; do
    expect 0 "$paceline" data info bad.csv --json
    json "o['cached'] == $cached and o['bad_lines'] == 2 and o['duplicates'] == 1 and o['ratings'] == 3"
    says 'bad.csv: 2 lines were left out because they are no rating'
    says 'bad.csv, line 3: it has 2 fields'
    says "bad.csv, line 4: the rating 'nan' is not a number"
    says 'bad.csv, line 6: user ann rates item x again; the last rating counts'
    expect 1 "$paceline" data info bad.csv --strict
    says 'has 2 bad lines and 1 duplicate, which --strict refuses; bad.csv, line 3'
done
echo 'tim,x,2' >>bad.csv
expect 0 "$paceline" data info bad.csv --json
json "not o['cached'] and o['users'] == 4 and o['times'] is None"
printf x | dd of=bad.csv.paceline bs=1 seek=4100 conv=notrunc 2>/dev/null
expect 0 "$paceline" data info bad.csv --json
json "not o['cached'] and o['users'] == 4"

# A cache that others may write to, or that is another user's, is passed over and written anew, whatever the umask.
printf 'user,item,rating\n1,1,5\n2,1,4\n' >open.csv
(umask 0 && "$paceline" data info open.csv >/dev/null 2>&1) || fail 'no info with umask 0'
[ "$(stat -c %a open.csv.paceline)" = 644 ] || fail "the cache has mode $(stat -c %a open.csv.paceline)"
distrusted() { # WHY
    expect 0 "$paceline" data info open.csv --json
    json "not o['cached']"
    says "a cache is passed over: .*/open.csv.paceline: $1"
    [ "$(grep -c 'passed over' err)" = 1 ] || fail "it says so twice: $(cat err)"
    expect 0 "$paceline" data info open.csv --json
    json "o['cached']"
}
chmod 664 open.csv.paceline
distrusted 'other users may write to it'
if [ "$(id -u)" = 0 ]; then
    chown 4242 open.csv.paceline
    distrusted 'it belongs to another user'
    chown 4242 open.csv open.csv.paceline
    expect 0 "$paceline" data info open.csv --json
    json "o['cached']" # the text's owner is free to change both
    chown 0 open.csv
fi

# Of processes that read one text at once, one waits for the other and says so; without a cache there is nothing to wait for.
printf 'user,item,rating\n1,1,5\n2,1,4\n' >locked.csv
mkfifo release
flock locked.csv cat release >/dev/null &
while flock -n locked.csv true; do sleep 0.01; done
expect 0 timeout 100 "$paceline" data info locked.csv --no-cache
"$paceline" data info locked.csv >waited 2>waiting &
pid=$!
for _ in $(seq 3000); do
    grep -q 'waiting for another process that reads locked.csv' waiting && break
    sleep 0.01
done
grep -q 'waiting for another process' waiting || fail "it does not say that it waits: $(cat waiting)"
echo >release
wait $pid || fail "it does not go on: $(cat waiting)"

# Columns that a person names, and what is not ratings.
printf 'ann 3 1\nbob 4 2\n' >plain.txt
expect 1 "$paceline" data info plain.txt
expect 0 "$paceline" data info plain.txt --columns user,rating,item --json
json "o['format'] == 'columns' and o['users'] == 2 and o['scale']['highest'] == 4"
expect 2 "$paceline" data info plain.txt --columns user,rating
says 'must name user and item'
expect 1 "$paceline" data info plain.txt --columns user,item
says 'is not 2 fields'
printf 'userId,movieId,rating\n1,2,3\n2,1,4\n3,3,5\n1,3,1\n' >both.csv
expect 0 "$paceline" data info both.csv --json
json "o['kind'] == 'ratings'"
expect 0 "$paceline" data info both.csv --target rating --json
json "o['kind'] == 'table'"
expect 0 "$paceline" data --help
shows 'paceline data make ratings --users 5000'
echo 'ratings: every format, caches, faults and columns are as documented'
