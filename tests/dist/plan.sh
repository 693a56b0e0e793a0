#!/usr/bin/env bash
# Which kernels compute: by shape, so that equal trainings give equal bits on a busy machine and with
# an empty memory of timings; by time with --tune alone, which says what it does and is repeated by
# --like and --resume.
source "$(dirname "$0")/../support/dist.bash"

printf '%s\n' 'conv 16 3x3 pad=1 name=a' relu 'conv 24 3x3 pad=1 name=b' relu 'conv 24 3x3 stride=2 pad=1 name=c' \
    relu 'conv 16 1x1 name=d' relu 'dense classes' >net.model
train=(--model net.model --data synthetic:shape=3x12x12,classes=4 --batch 16 --steps 4 --epochs 4 --seed 5 --no-test)
plan() { /usr/bin/python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["about"]["kernels"])' "runs/$1/run.json"; }

# Six trainings beside processes that burn all cores; each has a cache of its own.
burners=()
trap 'kill "${burners[@]}" 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq "$(nproc)"); do
    (while :; do :; done) &
    burners+=($!)
done
for level in "" portable; do
    for i in 1 2 3 4 5 6; do
        XDG_CACHE_HOME=$work/cache$i PACELINE_CPU=$level expect 0 "$paceline" train "${train[@]}" --run "same$level$i"
        [ "$(fingerprint "runs/same$level$i")" = "$(fingerprint "runs/same${level}1")" ] ||
            fail "training $i (level '$level') has other weights: $(plan "same$level$i"), not $(plan "same${level}1")"
        [ "$(plan "same$level$i")" = "$(plan "same${level}1")" ] || fail "training $i has another plan"
        [ ! -e "$work/cache$i/paceline/kernels.json" ] || fail "kernels were timed without --tune"
    done
done
kill "${burners[@]}"
wait "${burners[@]}" 2>/dev/null

# With --tune they are timed, once, and that is told where there is no progress line.
expect 0 "$paceline" train "${train[@]}" --tune --run timed
says 'timing kernels of 4 shapes, about [0-9]+ s'
[ -e "$XDG_CACHE_HOME/paceline/kernels.json" ] || fail "what was timed is not remembered"
expect 0 "$paceline" train "${train[@]}" --tune --run remembered
! grep -q 'timing kernels' err || fail "timed again: $(cat err)"
[ "$(plan remembered)" = "$(plan timed)" ] || fail "another plan from the memory"

# A plan that neither the rule nor another timing would find is repeated by --like and --resume.
forced='a=onednn b=winograd2 c=onednn d=onednn'
sed -i -E 's/"(onednn|direct|winograd[0-9a-z]*|gemm1x1)"/"onednn"/; /24x12x12 k3x3 s1x1/s/"onednn"/"winograd2"/' \
    "$XDG_CACHE_HOME/paceline/kernels.json"
expect 0 "$paceline" train "${train[@]}" --tune --run odd
[ "$(plan odd)" = "$forced" ] || fail "the memory is not followed: $(plan odd)"
rm "$XDG_CACHE_HOME/paceline/kernels.json"
expect 0 "$paceline" train --like odd --run alike
[ "$(plan alike)" = "$forced" ] || fail "--like computes with others: $(plan alike)"
[ "$(fingerprint runs/alike)" = "$(fingerprint runs/odd)" ] || fail "--like gives other bits"
expect 0 "$paceline" train --resume odd --steps 6 --epochs 6
[ "$(plan odd)" = "$forced" ] || fail "--resume computes with others: $(plan odd)"
expect 0 "$paceline" train --like odd --batch 8 --run other # shapes of its own: timed anew
says 'timing kernels of 4 shapes'

expect 2 "$paceline" train "${train[@]}" --tune --kernels onednn
says '--tune chooses the kernels by time, --kernels onednn by name; leave one out'
expect 2 "$paceline" train --resume odd --tune
says '--tune cannot change in a resumed run'

# What the rule knows of a model, beside the times of this machine.
expect 0 "$paceline" bench kernels net.model --input 3x12x12 --classes 4 --batch 4 --threads 1 --steps 1 --json
json "[s['layer'] for s in o['shapes']] == ['a', 'b', 'c', 'd'] and o['shapes'][0]['candidates'][0]['kernel'] == 'onednn'"
json "all(c['estimate'] > 0 and c['error'] < 2e-5 for s in o['shapes'] for c in s['candidates'])"
expect 2 "$paceline" bench kernels
says 'takes one model'
