#!/usr/bin/env bash
# A run that is cut and resumed ends with the same bits as one that was not: cut by SIGTERM in the
# middle of an epoch, by SIGKILL, by a damaged checkpoint; with dropout, augmentation, momentum, a
# schedule, clipping, accumulation and adamw in play.
source "$(dirname "$0")/../support/dist.bash"

job=(--model mnist-cnn --data synthetic:train=2560,test=100 --batch 32 --epochs 2 --lr 0.02 --pad 2
    --flip --balanced --schedule cosine --warmup 0.2 --validation 0.1 --clip 5 --accumulate 2
    --threads 2 --checkpoint-every 7 --log-every 5)
total=144 # 2 epochs of 2304 samples: long enough to be stopped in the middle on a busy machine

expect 0 "$paceline" train "${job[@]}" --run whole --json
json "o['steps'] == $total and o['epochs'] == 2 and not o['interrupted']"
whole=$(fingerprint runs/whole)

# Ended by a signal after a step that shows in the events.
stop_at_step() { # NAME SIGNAL STEP [ARGUMENT…]: of train; else those of `job`
    local pid code=0 arguments=("${@:4}")
    [ $# -gt 3 ] || arguments=("${job[@]}" --run "$1")
    "$paceline" train "${arguments[@]}" >"$work/out" 2>"$work/err" &
    pid=$!
    for _ in $(seq 3000); do
        grep -qs "\"event\":\"step\",\"step\":$3," "runs/$1/events.jsonl" && break
        kill -0 $pid 2>/dev/null || grep -qs "\"step\":$3," "runs/$1/events.jsonl" ||
            fail "$1 ended before step $3: $(cat "$work/err")"
        sleep 0.01
    done
    kill "-$2" $pid
    wait $pid || code=$?
    echo $code
}

code=$(stop_at_step cut TERM 5)
[ "$code" = 143 ] || fail "SIGTERM ended with $code instead of 143"
says 'stopped after step [0-9]+ \(saved\); go on with: paceline train --resume cut'
grep -q '"status": "interrupted"' runs/cut/run.json || fail "run.json does not say interrupted"
code=$(stop_at_step cut HUP 60 --resume cut)
[ "$code" = 129 ] || fail "SIGHUP ended with $code instead of 129"
expect 0 "$paceline" train --resume cut
[ "$(fingerprint runs/cut)" = "$whole" ] || fail "after SIGTERM and SIGHUP the bits differ"
grep -q '"status": "done"' runs/cut/run.json || fail "run.json does not say done"

code=$(stop_at_step killed KILL 16)
[ "$code" = 137 ] || fail "SIGKILL ended with $code"
"$paceline" runs >"$work/out" 2>&1
grep -qE '^killed +lost' "$work/out" || fail "runs does not call it lost: $(cat "$work/out")"
expect 0 "$paceline" train --resume killed
says 'goes on after step [1-9][0-9]*$'
[ "$(fingerprint runs/killed)" = "$whole" ] || fail "after SIGKILL the bits differ"

expect 0 "$paceline" train --like whole --run like
[ "$(fingerprint runs/like)" = "$whole" ] || fail "the same run twice, by --like, gives other bits"
losses() { # RUN: of its first steps
    grep '"event":"step"' "runs/$1/events.jsonl" | head -n 3 | grep -oE '"loss":[^,]*'
}
expect 0 "$paceline" train --like whole --seed 2 --steps 3 --run other
[ "$(losses like)" = "$(losses whole)" ] || fail "the same bits, but other losses"
[ "$(losses other)" != "$(losses whole)" ] || fail "another seed gives the same losses"

# More epochs than asked for at first, and adamw.
adam=(--model mlp:16x1 --data synthetic:train=256,test=64 --optimiser adamw --lr 0.001)
expect 0 "$paceline" train "${adam[@]}" --epochs 3 --run a3
expect 0 "$paceline" train "${adam[@]}" --epochs 1 --run a1
expect 0 "$paceline" train --resume a1 --epochs 3
[ "$(fingerprint runs/a3)" = "$(fingerprint runs/a1)" ] || fail "1 + 2 epochs are not 3"

# Cut while an epoch is validated (one step, then 9000 samples, so that nearly every moment is one
# of those): the validation is made up for, so the best checkpoint and the patience are those of
# the run that was not cut.
job=(--model mlp:16x1 --data synthetic:train=10000,labels=shuffled --batch 1000 --lr 0.5
    --validation 0.9 --patience 2 --epochs 30 --no-test --json)
position() { # RUN: of its newest checkpoint, and the best one's name
    /usr/bin/python3 - "runs/$1/checkpoints" <<'PY'
import json, os, sys
newest = max((n for n in os.listdir(sys.argv[1]) if n.startswith("step-")), key=lambda n: int(n[5:]))
print(json.load(open(f"{sys.argv[1]}/{newest}/manifest.json"))["position"])
print(open(sys.argv[1] + "/best").read() if os.path.exists(sys.argv[1] + "/best") else "no best")
PY
}
expect 0 "$paceline" train "${job[@]}" --run early
for try in 1 2 3 4 5 6 7 8; do
    code=$(stop_at_step "open$try" TERM 1)
    [ "$code" = 0 ] && continue # done before the signal came
    [ "$code" = 143 ] || fail "SIGTERM ended with $code instead of 143"
    json "o['interrupted'] and o['test'] is None and o['train']['loss'] > 0"
    [[ $(position "open$try") == *"'cursor': 1000"* ]] && break
done
[[ $(position "open$try") == *"'cursor': 1000"* ]] || fail "no try was cut in a validation"
expect 0 "$paceline" train --resume "open$try" --quiet
[ "$(position "open$try")" = "$(position early)" ] || fail "cut in a validation, it goes another way"
[ "$(fingerprint "runs/open$try")" = "$(fingerprint runs/early)" ] || fail "… and to other bits"
# The same in the run's last epoch: the checkpoint that it ends with has that epoch closed.
job+=(--epochs 1)
expect 0 "$paceline" train "${job[@]}" --run last
for try in 1 2 3 4 5 6 7 8; do
    code=$(stop_at_step "last$try" TERM 1)
    [ "$code" = 143 ] && [[ $(position "last$try") == *"'cursor': 1000"* ]] && break
done
[[ $(position "last$try") == *"'cursor': 1000"* ]] || fail "no try was cut in the last validation"
expect 0 "$paceline" train --resume "last$try" --quiet
[ "$(position "last$try")" = "$(position last)" ] || fail "done, but its newest checkpoint is not: $(position "last$try")"
job+=(--no-checkpoint --epochs 1000 --patience 1000)
code=$(stop_at_step unsaved TERM 1)
says 'stopped after step [0-9]+; nothing was saved'
expect 2 "$paceline" train --resume early
says 'run early is done: 2 epochs.*raise --patience'

# The folder is taken away while the run trains, long before the epoch's end, so that it is not
# writing there: the run says so and saves into a new one.
"$paceline" train --model mlp:16x1 --data synthetic:train=60000,test=64 --batch 16 --run away 2>err &
pid=$!
for _ in $(seq 3000); do
    grep -qs '"event":"step","step":5,' runs/away/events.jsonl && break
    sleep 0.01
done
kill -STOP $pid
mv runs/away away.old
kill -TERM $pid
kill -CONT $pid
code=0
wait $pid || code=$?
[ $code = 143 ] || fail "a run whose folder was moved ended with $code: $(cat err)"
says 'the folder runs/away was removed or moved while the run trains; the run goes on in a new one'
says 'stopped after step [0-9]+ \(saved\)'
grep -q '"status": "interrupted"' runs/away/run.json || fail "the new folder has no run.json that tells the end"
[ -s runs/away/events.jsonl ] || fail "the new folder has no events"
expect 0 "$paceline" eval away

# A finished run has nothing to resume, and keeps its results.
cp runs/a1/run.json finished.json
expect 2 "$paceline" train --resume a1 --epochs 2
says 'run a1 is done after step 12; to go on raise --epochs or --steps'
cmp -s runs/a1/run.json finished.json || fail "resuming a finished run changed its run.json"

# Nor is one done because it is resumed to a step that it has passed.
sed -i 's/"status": "done"/"status": "interrupted"/' runs/a1/run.json
cp runs/a1/run.json interrupted.json
expect 2 "$paceline" train --resume a1 --epochs 2
says 'run a1 is past step 8, its last one by this command: it has made 12; raise --epochs or --steps'
cmp -s runs/a1/run.json interrupted.json || fail "resuming a run to a step that it has passed changed its run.json"
mv finished.json runs/a1/run.json

# Nothing was saved before the end came: from the beginning, to the same bits.
expect 0 "$paceline" train "${adam[@]}" --epochs 3 --no-checkpoint --run bare
sed -i 's/"status": "done"/"status": "running"/' runs/bare/run.json
mkdir -p runs/bare/checkpoints/.step-4.tmp-999999999
expect 0 "$paceline" train --resume bare --checkpoint
says 'no checkpoint yet: it starts from the beginning'
[ "$(fingerprint runs/bare)" = "$(fingerprint runs/a3)" ] || fail "begun anew, the bits differ"

# Two processes never train the same run.
exec 9<runs/a1
flock -n 9 || fail "the lock of a run that ended is still held"
expect 2 "$paceline" train --resume a1 --epochs 4
says 'run a1 is being trained by another process'
exec 9<&-
expect 2 "$paceline" train --resume a1 --run elsewhere
says '--run names a new run'

# What cannot change, cannot; a run that is there is not overwritten.
expect 2 "$paceline" train --resume a1 --lr 1
says '--lr cannot change in a resumed run without --override; --like a1 --init a1 --lr … starts anew from its weights'
expect 2 "$paceline" train --resume a1 --override --batch 8
says '--batch cannot change in a resumed run; --like a1'
expect 2 "$paceline" train --like a1 --override --lr 1
says '--override is for --resume'
expect 2 "$paceline" train --model mlp:16x1 --data synthetic --run a1
says 'run a1 exists already'

# The newest checkpoint is damaged: the one before it serves, and it is said.
newest=$(ls runs/like/checkpoints | grep '^step-' | sort -t- -k2n | tail -n 1)
truncate -s -1 "runs/like/checkpoints/$newest/model.safetensors"
expect 0 "$paceline" train --resume like
says "$newest"
[ "$(fingerprint runs/like)" = "$whole" ] || fail "after falling back the bits differ"

# … unless the person insists: the steps that follow have the other rate, which run.json keeps.
for workers in 1 2; do
    expect 0 "$paceline" train --model mlp:16x1 --data synthetic:train=64,test=16 --batch 16 --epochs 1 --lr 0.01 \
        --workers $workers --run rate-$workers
    expect 0 "$paceline" train --resume rate-$workers --override --lr 0.002 --optimiser adamw --epochs 2
    /usr/bin/python3 - runs/rate-$workers <<'PY' || fail "--override does not change the learning rate"
import json, sys
steps = [e for e in map(json.loads, open(f"{sys.argv[1]}/events.jsonl")) if e["event"] == "step"]
assert [e["lr"] for e in steps] == [0.01] * 4 + [0.002] * 4, steps
settings = json.load(open(f"{sys.argv[1]}/run.json"))["about"]["settings"]
assert settings["lr"] == 0.002 and settings["optimiser"] == "adamw"
PY
done

# Ctrl-C inside a long step is answered at once; the second one does not wait for the step.
for workers in 1 2; do
    rm -f err
    "$paceline" train --model mlp:2048x4 --data synthetic:train=4000,test=10 --batch 512 --threads 1 --workers $workers \
        --no-checkpoint --run long-$workers 2>err &
    pid=$!
    for _ in $(seq 3000); do # until it trains and catches SIGINT, bit 1
        grep -qs "run runs/long-$workers" err && grep -q '^SigCgt:.*[2367abef]$' /proc/$pid/status && break
        sleep 0.01
    done
    kill -INT $pid
    for _ in $(seq 100); do grep -q '^finishing the step; Ctrl-C again quits at once$' err && break; sleep 0.01; done
    says '^finishing the step; Ctrl-C again quits at once$'
    kill -INT $pid 2>/dev/null || fail "the step was not long: $(cat err)"
    wait $pid
    [ $? = 130 ] || fail "a second Ctrl-C with $workers workers: $(cat err)"
    ! grep -q 'stopped after' err || fail "the step was finished all the same: $(cat err)"
done
