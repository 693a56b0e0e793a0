#!/usr/bin/env bash
# paceline bench ratings: every rating model on a small made-up set, the same figures for any number of
# threads, and one sentence for what is wrong.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" data make ratings --users 200 --items 120 --ratings 6000 -o ratings.csv
for model in bias-stat bias-als bias-gd mf:sweeps=8 bmf:k=16,sweeps=20 ials:k=16,sweeps=4; do
    for threads in 1 2; do
        expect 0 "$paceline" bench ratings ratings.csv --model "$model" --threads $threads --json
        json "o['train'] + o['tests'] == 6000 and o['updates_per_second'] > 0"
        json "(o['syrk_flops'] > 1e8) == (not o['model'].startswith('bias')) and o['peak_flops'] > 1e8"
        json "0 < o['test']['mae'] < o['test']['rmse'] < 2"
        /usr/bin/python3 -c "
import json
print(json.load(open('out'))['test'])" >"test.$threads"
    done
    cmp test.1 test.2 || fail "$model: other figures with another number of threads"
done
expect 0 "$paceline" bench ratings ratings.csv --model bias-als --split fold:1/5
grep -q 'test RMSE' out || fail "no RMSE in: $(cat out)"

# Lists of every user, and pictures of guesses beside the truth.
expect 0 "$paceline" bench ratings ratings.csv --model bias-als --lists 5 --pictures seen --json
json "o['test']['lists']['n'] == 5 and 0 < o['test']['lists']['ndcg'] < 1"
json "0 < o['test']['lists']['precision'] <= 1 and 0 < o['test']['lists']['coverage'] <= 1"
json "sum(map(sum, o['test']['confusion'])) == o['test']['ratings'] == o['tests']"
for picture in seen/guesses.svg seen/histogram.svg; do
    /usr/bin/python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' $picture
done
expect 0 "$paceline" bench ratings ratings.csv --model ials:k=16,sweeps=2 --lists 5
grep -q 'lists of 5 of all items with 5 ratings or more' out || fail "no lists in: $(cat out)"
expect 2 "$paceline" bench ratings ratings.csv --model ials:k=16,sweeps=2 --pictures seen
says 'preferences, not ratings'

# Ratings of any scale; what diverges is an error and no figures.
awk -F, 'NR > 1 { $3 *= 10 } { print $1 "," $2 "," $3 }' ratings.csv >tens.csv
expect 0 "$paceline" bench ratings tens.csv --json
json "5 < o['test']['mae'] < o['test']['rmse'] < 15"
expect 1 "$paceline" bench ratings ratings.csv --model mf:rate=1,k=64
says 'mf:rate=1,k=64 diverged: its guesses are not numbers'
expect 1 "$paceline" bench ratings ratings.csv --model mf:rate=1,k=64 --json
json "o['error']['code'] == 'diverged'"
expect 2 "$paceline" bench ratings ratings.csv --model mf:rate=1,lambda=1
says 'lambda times rate is 1, not below 1'
expect 2 "$paceline" bench ratings ratings.csv --model bmf:time=0.001
says 'time is 0 or at least 1 day, not 0.001'
awk -F, 'NR > 1 { $3 -= 3 } { print $1 "," $2 "," $3 }' ratings.csv >signed.csv
expect 1 "$paceline" bench ratings signed.csv --model ials
says 'from 0 on, not -2'

# Sets that `data get` knows, by their names.
export PACELINE_DATA=$work/sets
expect 1 "$paceline" bench ratings ml-latest-small
says 'ml-latest-small is not here; get it with: paceline data get ml-latest-small'
cp ratings.csv ml-latest-small
expect 0 "$paceline" bench ratings ml-latest-small --model bias-stat
rm ml-latest-small
mkdir -p sets/ml-latest-small
touch sets/ml-latest-small/{movies,links,tags}.csv sets/ml-latest-small/README.txt
cp ratings.csv sets/ml-latest-small
expect 0 "$paceline" bench ratings ml-latest-small --model bias-als --json
json "o['train'] + o['tests'] == 6000"

expect 2 "$paceline" bench ratings ratings.csv --model bmff
grep -q "did you mean 'bmf'" err || fail "no help for a misspelt model: $(cat err)"
expect 2 "$paceline" bench ratings ratings.csv --model mf:rank=3
grep -q "model mf has no option 'rank'" err || fail "no sentence about an option: $(cat err)"
expect 2 "$paceline" bench ratings
expect 2 "$paceline" bench ratings ratings.csv --split half
expect 1 "$paceline" bench ratings missing.csv
echo 'bench ratings: every model is fitted and scored, alike on any number of threads'
