#!/usr/bin/env bash
# The ring: on any number of workers, with any number of laps and micro-batches, around or folded, the bits and
# the losses of one worker that accumulates as many pieces; with one micro-batch those of one worker. A worker
# kills itself (-9) at each phase of a step: its neighbour has a copy of its stages, and the others go on at the
# step, after two neighbours are lost, too, where there are three copies; without copies they go back to the newest checkpoint. The weights at the end, and every loss, are those
# of a run without the kill.
source "$(dirname "$0")/../support/dist.bash"

options() { # MODEL
    case $1 in
    mlp) echo --model mlp:24x5 --data synthetic:classes=10,shape=1x12x12,train=60,test=25 --batch 13 --steps 10 ;;
    bn) echo --model bn.model --data synthetic:classes=10,shape=1x12x12,train=60,test=25 --batch 13 --steps 9 ;;
    wide) echo --model mlp:512x5 --data synthetic:classes=10,shape=1x12x12,train=192,test=25 --batch 64 --steps 5 ;;
    mnist-cnn) echo --model mnist-cnn --data synthetic:classes=10,shape=1x28x28,train=60,test=21 --batch 13 --steps 6 ;;
    *) echo --model "$1" --data synthetic:classes=10,shape=3x32x32,train=10,test=5 --batch 5 --steps 3 ;;
    esac
}
cat >bn.model <<'M'
conv 8 3x3 pad=1
bn
relu
save first
conv 8 3x3 pad=1
bn
save second
relu
conv 8 3x3 pad=1
add first
bn
relu
add second
maxpool 2x2
dropout 0.3
flatten
dense classes
softmax
M

train() { # MODEL RUN OPTION…
    # shellcheck disable=SC2046
    expect 0 "$paceline" train $(options "$1") --lr 0.02 --threads 1 --run "$2" --quiet "${@:3}"
}

same() { # RUN RUN: weights, optimiser, every step's loss and the test
    [ "$(fingerprint "runs/$1")" = "$(fingerprint "runs/$2")" ] || fail "$2 has other bits than $1"
    /usr/bin/python3 - "$@" <<'PY' || fail "$2 has other figures than $1"
import json, sys
def figures(run):
    steps = [(e["step"], e["loss"]) for e in map(json.loads, open(f"runs/{run}/events.jsonl")) if e["event"] == "step"]
    return steps, json.load(open(f"runs/{run}/run.json"))["result"]["test"]
a, b = map(figures, sys.argv[1:])
assert a == b and a[0], (a, b)
PY
}

# pipe MODEL MICROBATCHES WORKERS LAPS ORDER [OPTION…]
pipe() {
    local name=$1-$2 ring=$1-$2-$3-$4-$5
    [ -e "runs/$name" ] || train "$1" "$name" --accumulate "$2" "${@:6}"
    train "$1" "$ring" --workers "$3" --strategy "ring:microbatches=$2,laps=$4,place=$5" "${@:6}"
    same "$name" "$ring"
    rm -r "runs/$ring"
}

for workers in 1 2 3 4; do
    for laps in 1 2; do
        pipe mlp 5 $workers $laps ring
        pipe bn 4 $workers $laps fold
    done
    pipe mnist-cnn 3 $workers 1 ring
done
for pieces in 1 2 13; do pipe bn $pieces 3 2 ring; done # fewer micro-batches than workers, one, one a sample
pipe mnist-cnn 7 2 2 fold
for model in vgg11 resnet18; do
    pipe $model 2 2 1 ring
    pipe $model 2 3 2 fold
    pipe $model 2 4 2 ring
done
pipe mlp 4 3 3 fold --transport tcp
pipe bn 3 2 2 ring --optimiser adamw --validation 0.2
# A backward at once, no step before all have done the one before it, no copies: other schedules, the same bits.
for option in split=off overlap=off overlap=off,laps=2 split=off,overlap=off replicate=off replicate=every:4 overlap=off,replicate=every:2 overlap=on laps=2,replicas=3; do
    train mlp "$option" --workers 3 --strategy "ring:microbatches=4,$option"
    same mlp-4 "$option"
done
train mlp told --workers 3 --strategy ring:microbatches=4,overlap=on --no-quiet
says 'ring: 4 micro-batches, .*steps overlap'
train mlp flushed --workers 3 --strategy ring:microbatches=4,overlap=off --no-quiet
grep -q 'steps overlap' err && fail "steps overlap where they may not"
pipe mlp 3 9 1 ring # more workers than stages

# Left to itself it chooses micro-batches, says so, and keeps them where two workers would choose others: when it
# heals, and when it goes on with fewer.
train wide two --workers 2 --strategy ring --steps 1
PACELINE_FAULT=3:forward:2 train wide chosen --workers 4 --strategy ring --steps 3
expect 0 "$paceline" train --resume chosen --workers 2 --strategy ring --steps 5 --quiet
grep -q 'ring: 4 micro-batches, .* idle expected (workers compute' runs/chosen/log-1.txt || fail "it does not say what it chose"
grep -q '"strategy": "ring:microbatches=4"' runs/chosen/run.json || fail "the micro-batches are not in run.json"
grep -q '"strategy": "ring:microbatches=2"' runs/two/run.json || fail "two workers choose as many: this tests nothing"
train wide wide-4 --accumulate 4
same wide-4 chosen

# One micro-batch is no accumulation at all.
train bn whole
train bn whole-ring --workers 3 --strategy ring:microbatches=1
same whole whole-ring

# The norm is of all gradients, on any number of workers.
train mlp clipped --accumulate 3 --clip 0.5
for workers in 1 2 3; do train mlp clipped-$workers --workers $workers --strategy ring:microbatches=3,laps=2 --clip 0.5; done
same clipped-1 clipped-2
same clipped-1 clipped-3
"$root/tests/support/equal.py" losses clipped clipped-3 || fail "clipping is another"

# Without a flush: the same bits on any number of workers and laps, of weights that lack the update of the batch
# before. So steps 1 and 2 have the losses of the weights that the training began with, and step 3 those of others.
async=async=on,replicate=off
for model in mlp bn; do
    train $model $model-async-1 --workers 1 --strategy ring:microbatches=3,$async
    for ring in "2 1 ring" "3 2 fold" "4 1 ring"; do
        read -r workers laps order <<<"$ring"
        train $model async --workers "$workers" --strategy "ring:microbatches=3,laps=$laps,place=$order,$async" --json
        same $model-async-1 async
        json "o['figures']['staleness'] == [-(-o['steps'] // 5), o['steps'] - -(-o['steps'] // 5)]"
        rm -r runs/async
    done
done
train mlp frozen --accumulate 3 --lr 0
/usr/bin/python3 - <<'PY' || fail "the updates that batches lack are others"
import json
def losses(run):
    return {e["step"]: e["loss"] for e in map(json.loads, open(f"runs/{run}/events.jsonl")) if e["event"] == "step"}
late, frozen, exact = losses("mlp-async-1"), losses("frozen"), losses("mlp-3")
assert late[1] == frozen[1] == exact[1] and late[2] == frozen[2] != exact[2], (late, frozen, exact)
assert late[3] not in (frozen[3], exact[3]), (late, frozen, exact)
PY
train mlp async --workers 3 --strategy ring:microbatches=3,$async --no-quiet
says 'no flush: each batch lacks the update of the one before it'
rm -r runs/async
train bn bn-async --workers 3 --strategy ring:microbatches=3,$async --checkpoint-every 4
for phase in forward combine slice; do
    PACELINE_FAULT=2:$phase:7 train bn async --workers 3 --strategy ring:microbatches=3,$async --checkpoint-every 4
    says 'all go back to the checkpoint of step 4'
    [ "$(fingerprint runs/async)" = "$(fingerprint runs/bn-async)" ] || fail "async, lost at $phase: other bits"
    rm -r runs/async
done

# lose OPTIONS ID PHASE STEP LOW HIGH: worker ID is lost, and the others go on after a step between LOW and HIGH.
train bn undisturbed --workers 3 --strategy ring:microbatches=3,laps=2 --checkpoint-every 4
lose() {
    PACELINE_FAULT=$2:$3:$4 train bn lost --workers 3 --strategy "ring:microbatches=3,laps=2$1" --checkpoint-every 4
    [ "$(fingerprint runs/lost)" = "$(fingerprint runs/undisturbed)" ] || fail "$*: other bits than without the kill"
    /usr/bin/python3 - "$2" "$5" "$6" <<'PY' || fail "$*: see above"
import json, sys
victim, low, high = map(int, sys.argv[1:])
def read(run, kind):
    return [e for e in map(json.loads, open(f"runs/{run}/events.jsonl")) if e["event"] == kind]
whole, view = {e["step"]: e["loss"] for e in read("undisturbed", "step")}, read("lost", "view")[-1]
assert view["view"] == 2 and victim not in view["members"] and low <= view["step"] <= high, view
after = [e["step"] for e in read("lost", "step")][view["step"] - 9:] if view["step"] < 9 else []
assert after == list(range(view["step"] + 1, 10)), after
assert all(e["loss"] == whole[e["step"]] for e in read("lost", "step"))
PY
    cp runs/lost/events.jsonl lost-events
    rm -r runs/lost
}

# With replicas a lost worker costs the step; if one has heard of all others that they can make it, all do.
off=,overlap=off
for phase in data forward backward-2 backward-6 replicate combine; do lose $off 2 $phase 7 6 6; done
lose $off 1 update 7 6 7
lose $off 2 update 5 4 5 # the statistics of all are those of step 4, of the neighbours perhaps of step 5
for id in 1 3; do lose $off $id slice 7 6 7; done
lose $off 1 forward 6 5 5

# Where steps overlap a worker can be one ahead of what all know to count. The leg under way has steps 6, 7 and 8.
for phase in data forward backward-2 backward-6; do lose "" 2 $phase 7 5 6; done
for phase in replicate combine; do for id in 1 2 3; do lose "" $id $phase 7 5 6; done; done
for id in 1 2; do lose "" $id update 7 5 6; done
for id in 1 3; do lose "" $id slice 7 5 7; done
lose "" 3 combine 6 5 5
lose "" 2 update 6 5 5
lose "" 1 combine 8 6 7
lose "" 3 evaluation 9 9 9
lose ,place=fold 2 checkpoint 4 4 4

# Replicas that are renewed after steps 3 and 6, and when workers meet: after 4, 5, 8 and 9.
for phase in "data 6 5" "forward 8 6" "combine 7 6" "renew 6 5" "renewed 6 5" "renewed 8 6" "update 8 6" "data 9 8"; do
    read -r phase step back <<<"$phase"
    for also in "" $off; do lose ",replicate=every:3$also" 2 "$phase" "$step" "$back" "$back"; done
done
lose ,replicate=every:3 1 forward 8 6 6
lose ,replicate=every:3 3 backward-6 8 6 6
says 'all go back from step 7 to step 6, at which replicas were renewed last'
grep -q '"event":"back","from":7,"step":6' lost-events || fail "no event tells of the return"
# A job that cannot go on does not go back either.
PACELINE_FAULT=2:forward:8 expect 1 "$paceline" train --model mlp:16x6 --data synthetic:classes=4,shape=1x8x8,train=64,test=8 \
    --batch 8 --steps 9 --threads 1 --workers 3 --min-workers 3 --strategy ring:microbatches=4,replicate=every:3 --run ended
says '2 of at least 3 workers are left'
grep -q 'all go back' err && fail "the job has ended and tells of a return: $(cat err)"
grep -q '"event":"back"' runs/ended/events.jsonl && fail "the job has ended, and an event tells of a return"

# Without them, the checkpoint of step 4, or the beginning.
for phase in forward replicate update; do
    lose ,replicate=off 2 $phase 7 4 4
    says 'all go back to the checkpoint of step 4'
done
lose ,replicate=off 3 backward-1 3 0 0
says 'all go back to the beginning'
lose ,replicate=off 2 checkpoint 4 0 0
lose ,replicate=off 1 saved 8 8 8

# Two neighbours at once had all copies of a stage. A worker that is stopped is lost like one that died.
PACELINE_FAULT=2,3:data:7 train bn both --workers 4 --strategy ring:microbatches=3 --checkpoint-every 4
says 'all go back to the checkpoint of step 4'
PACELINE_FAULT=2:backward-2:7:STOP train bn still --workers 3 --strategy ring:microbatches=3 --silence 1
# With three copies they are two losses like any other.
PACELINE_FAULT=2,3:data:7 train bn three --workers 4 --strategy ring:microbatches=3,replicas=3 --checkpoint-every 4 --no-quiet
says 'ring: 3 micro-batches, .*, each stage on 3 workers'
says 'view [23]: workers 1,4 go on after step [56]'
PACELINE_FAULT=2,3:data:8 train bn rare --workers 4 --strategy ring:microbatches=3,replicas=3,replicate=every:3 --checkpoint-every 4 --no-quiet
says 'view [23]: workers 1,4 go on after step 6'
for run in both still three rare; do
    [ "$(fingerprint runs/$run)" = "$(fingerprint runs/undisturbed)" ] || fail "$run has other bits than without the loss"
done

# A worker comes back, and the layers are divided anew.
rm err
PACELINE_FAULT=2:forward:7 "$paceline" train --model bn.model --data synthetic:classes=10,shape=1x12x12,train=60,test=25 \
    --batch 13 --threads 1 --workers 3 --strategy ring:microbatches=3 --restart-workers --epochs 100000 --log-every 0 \
    --no-test --run again >out 2>err &
agent=$!
for _ in $(seq 1500); do grep -qs 'view 3: workers 1,3,4' err && break; sleep 0.02; done
kill -INT $agent
wait $agent
[ $? = 130 ] || fail "it does not stop as asked: $(tail -n 3 err)"
says 'view 2: workers 1,3 go on after step [56]' # steps overlap
says 'view 3: workers 1,3,4 go on'

# What does not go together.
bad() { # OPTION… MESSAGE
    # shellcheck disable=SC2046
    expect 2 "$paceline" train $(options mlp) --workers 2 --strategy ring "${@:1:$#-1}"
    says "${*: -1}"
}
bad --accumulate 2 'in place of --accumulate 2 give it microbatches=2'
bad --sync-bn 'leave out --sync-bn'
bad --record 0 '--record needs all layers on a worker'
bad --model lda 'is computed in one step'
bad --strategy ring:laps=9 'laps'
bad --strategy ring:replicas=1 'replicas'
bad --strategy ring:async=on 'async=on does not go with replicas'
bad --strategy ring:async=on,replicate=off,overlap=off 'leave out overlap=off'
bad --strategy ring:async=on,replicate=off --clip 1 'ring:async=on does not go with --clip'
bad --strategy ring:replicas=3,replicate=off 'replicas=3 does not go with replicate=off'
for text in every every: every:0 every:2x sometimes; do
    bad --strategy ring:replicate=$text "replicate=$text: give on, off, or every:K"
done
