#!/usr/bin/env bash
# paceline serve --follow: checkpoints replace the weights while requests go on, none is dropped, and
# every answer is exactly one checkpoint's. Then a training that really runs.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/serving.bash"
requests=${FOLLOW_REQUESTS:-10000}

expect 0 "$paceline" train --data synthetic:train=320,test=32 --model mlp:16x1 --batch 32 --threads 1 \
    --quiet --run whole --steps 6 --checkpoint-every 1 --keep 0
make_png image.png 1

# What each checkpoint answers.
for step in 1 2 3 4 5 6; do
    serve --model "m=runs/whole/checkpoints/step-$step" --threads 1
    answers 200 "$inference/predictions/m" -T image.png
    cp out "answer-$step"
    stop
done
[ "$(cat answer-* | sort -u | wc -l)" -gt 12 ] || fail "the checkpoints answer alike"

# A run that grows as a training's does: its checkpoints appear by a rename.
mkdir -p runs/grows/checkpoints
cp -r runs/whole/checkpoints/step-1 runs/grows/checkpoints/
serve --follow m=grows --workers 2 --threads 1
cat >hammer.py <<'PY'
import collections, http.client, os, sys, threading
address, requests, threads = sys.argv[1].split("//")[1], int(sys.argv[2]), 4
image = open("image.png", "rb").read()
known = {open(f"answer-{step}").read(): step for step in range(1, 7)}
seen, wrong = collections.Counter(), []
def ask():
    connection = http.client.HTTPConnection(address)
    asked = 0
    while asked < requests // threads or not os.path.exists("swapped"):
        asked += 1
        connection.request("POST", "/predictions/m", image)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status == 200 and text in known:
            seen[known[text]] += 1
        else:
            wrong.append((answer.status, text))
        with open("progress", "a") as file:
            file.write(".")
workers = [threading.Thread(target=ask) for _ in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(sum(seen.values()), len(wrong), wrong[:1], dict(sorted(seen.items())))
sys.exit(bool(wrong) or len(seen) != 6)
PY
: >progress
/usr/bin/python3 hammer.py "$inference" "$requests" >hammer.out 2>&1 &
hammer=$!
has_asked() { # COUNT
    [ "$(wc -c <progress)" -ge "$1" ] || ! kill -0 $hammer 2>/dev/null
}
serves_step() { # MODEL STEP
    curl -sS "$management/models/$1" | grep -q "\"step\": $2\b"
}
for step in 2 3 4 5 6; do # five swaps, with requests before, during and after each
    eventually has_asked $(($(wc -c <progress) + requests / 8))
    cp -r "runs/whole/checkpoints/step-$step" runs/grows/checkpoints/.coming
    mv runs/grows/checkpoints/.coming "runs/grows/checkpoints/step-$step"
    eventually serves_step m $step
done
eventually has_asked $(($(wc -c <progress) + requests / 8))
: >swapped
wait $hammer || fail "$(cat hammer.out)"
echo "answers by step: $(cat hammer.out)"
answers 200 "$inference/predictions/m" -T image.png
cmp -s out answer-6 || fail "the last answer is not step 6's"

# A checkpoint that is damaged changes nothing.
cp -r runs/whole/checkpoints/step-6 runs/grows/checkpoints/.coming
printf x >>runs/grows/checkpoints/.coming/model.safetensors
mv runs/grows/checkpoints/.coming runs/grows/checkpoints/step-7
eventually grep -q 'step-7 is passed over' serve.err
answers 200 "$inference/predictions/m" -T image.png
cmp -s out answer-6 || fail "a damaged checkpoint is served"
stop

# A run without a checkpoint: 503 until the first comes.
mkdir runs/soon
serve --follow soon --threads 1
answers 503 "$inference/predictions/soon" -T image.png
body "'no checkpoint yet' in o['message']"
answers 500 "$inference/ping"
mkdir runs/soon/checkpoints
cp -r runs/whole/checkpoints/step-3 runs/soon/checkpoints/.coming
mv runs/soon/checkpoints/.coming runs/soon/checkpoints/step-3
eventually serves_step soon 3
is_served() {
    [ "$(curl -sS -o out -w '%{http_code}' "$inference/predictions/soon" -T image.png)" = 200 ]
}
eventually is_served
cmp -s out answer-3 || fail "the first checkpoint's answer: $(cat out)"
stop

# A run whose newest checkpoint is in use is not read again because another one has a new checkpoint:
# that its file was damaged meanwhile does not show.
rm -r runs/grows/checkpoints/step-7
serve --follow m=grows --follow soon --threads 1
printf x >>runs/grows/checkpoints/step-6/model.safetensors
cp -r runs/whole/checkpoints/step-4 runs/soon/checkpoints/.coming
mv runs/soon/checkpoints/.coming runs/soon/checkpoints/step-4
eventually serves_step soon 4
grep -q 'passed over' serve.err && fail "a run without news was read: $(cat serve.err)"
serves_step m 6 || fail "m serves another step"
stop

# A training that runs: it has no checkpoint when the server starts, and all of them in the end.
"$paceline" train --data synthetic:train=640,test=32 --model mlp:16x1 --batch 32 --threads 1 --quiet \
    --run live --epochs 3 2>train.err &
training=$!
eventually [ -d runs/live ]
serve --follow live --threads 1
wait $training || fail "$(cat train.err)"
eventually serves_step live 60
answers 200 "$inference/predictions/live" -T image.png

# The run is removed: the person is told, once, and the weights stay.
rm -rf runs/live
eventually grep -q 'runs/live is gone; live goes on with its weights' serve.err
answers 200 "$inference/predictions/live" -T image.png
stop
[ "$(grep -c 'is gone' serve.err)" = 1 ] || fail "told more than once: $(cat serve.err)"
exit 0
