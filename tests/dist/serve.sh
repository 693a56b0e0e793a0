#!/usr/bin/env bash
# paceline serve as a person meets it: curl on every endpoint, its refusals, tokens, HTTPS, a restart
# after kill -9, a server that sleeps while idle and drains when it is told to stop.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/serving.bash"

expect 0 "$paceline" train --data synthetic:train=320,test=32 --model mlp:16x1 --batch 32 --threads 1 \
    --quiet --run tiny --checkpoint-every 5 --keep 0
make_png image.png 1
mkdir store
cp -r runs/tiny store/one
cp -r runs/tiny store/two

# ---- what the command line gets wrong ----
expect 2 "$paceline" serve
says 'nothing to serve'
expect 2 "$paceline" serve --model nothing
says "no run or checkpoint 'nothing'"
expect 2 "$paceline" serve --model 'a b=tiny'
says "'a b' can be no model's name"
expect 2 "$paceline" serve --model tiny --model tiny
says 'already registered'
expect 2 "$paceline" serve --store nowhere
says 'the model store nowhere cannot be opened'
expect 2 "$paceline" serve --follow nothing
says 'no run or checkpoint'
expect 2 "$paceline" serve --model tiny --host 0.0.0.0
says 'others can reach 0.0.0.0, so clients need tokens'
expect 2 "$paceline" serve --model tiny --certificate x.pem
says 'HTTPS needs both'
cp -r runs/tiny/checkpoints/step-5 broken
printf x >>broken/model.safetensors
expect 1 "$paceline" serve --model broken
says 'bytes expected|does not match|has .* bytes'
expect 1 "$paceline" serve --model tiny --state nowhere/state.json
says 'nowhere/state.json'
expect 2 "$paceline" serve --model nothing --json
json "o['error']['code'] == 'usage'"

# ---- Ctrl-C and SIGTERM while a model loads, here one of a terabyte, end it at once ----
cp -r runs/tiny/checkpoints/step-5 huge
truncate -s 1T huge/model.safetensors
/usr/bin/python3 - huge/manifest.json <<'PY'
import hashlib, json, sys
text = open(sys.argv[1]).read()
size = json.loads(text)["files"]["model.safetensors"]["bytes"]
rest = text[75:].replace(f'"bytes":{size}', f'"bytes":{1 << 40}').replace(f'"bytes": {size}', f'"bytes": {1 << 40}')
open(sys.argv[1], "w").write(text[:75].replace(json.loads(text)["digest"], hashlib.sha256(rest.encode()).hexdigest()) + rest)
PY
is_loading() {
    ls -l /proc/"$server"/fd 2>/dev/null | grep -q huge/model.safetensors
}
has_ended() {
    ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$server/status" 2>/dev/null
}
for signal in TERM:143 INT:130; do
    "$paceline" serve --model huge --port 0 --management-port 0 --metrics-port 0 >serve.out 2>serve.err &
    server=$!
    eventually is_loading
    kill "-${signal%:*}" "$server"
    eventually has_ended
    wait "$server"
    [ $? = "${signal#*:}" ] || fail "after $signal: $(cat serve.err)"
done
server=

# ---- predictions and health ----
serve --model tiny --threads 1
grep -qF "curl $inference/predictions/tiny -T image.png" serve.err || fail "no curl line: $(cat serve.err)"
expect 1 "$paceline" serve --model tiny --port "${inference##*:}" --management-port 0 --metrics-port 0
says "port ${inference##*:} of 127.0.0.1 is in use"
answers 200 "$inference/ping"
body "o == {'status': 'Healthy'}"
answers 200 "$inference/predictions/tiny" -T image.png
body "len(o) == 5 and list(o.values()) == sorted(o.values(), reverse=True) and 0 < sum(o.values()) <= 1.0001"
cp out first
expect 0 "$paceline" predict tiny image.png --json --threads 1 # the same classes, to the last digit
json "[(c['class'], c['probability']) for c in o['predictions'][0]['classes']] == list($(cat first).items())"
for way in "-X POST $inference/predictions/tiny --data-binary @image.png" "$inference/predictions/tiny -F data=@image.png" \
    "$inference/predictions/tiny/1.0 -T image.png" "$inference/invocations -T image.png" \
    "$inference/models/tiny/invoke -T image.png" "$inference/predictions/tiny -T image.png -H Transfer-Encoding:chunked" \
    "$inference/predictions/tiny -F other=1 -F data=@image.png;type=text/plain"; do
    answers 200 $way
    cmp -s out first || fail "$way answers $(cat out) instead of $(cat first)"
done
/usr/bin/python3 -c 'import json; print(json.dumps([0.0] * 784))' >zeros.json
/usr/bin/python3 -c 'import sys; sys.stdout.buffer.write(bytes(4 * 784))' >zeros.raw
answers 200 "$inference/predictions/tiny" -d @zeros.json
cp out zeros
answers 200 "$inference/predictions/tiny" -T zeros.raw -H 'Content-Type: application/octet-stream'
cmp -s out zeros || fail "float32 and JSON differ"
answers 200 "$inference/v1/models/tiny:predict" -d "{\"instances\": [$(cat zeros.json)]}"
body "o['predictions'] == [$(cat zeros)]"
answers 400 "$inference/predictions/tiny" -d 'hello'
body "o['code'] == 400 and o['type'] == 'BadRequestException' and 'PNG or JPEG' in o['message']"
head -c 100 image.png >cut.png
answers 400 "$inference/predictions/tiny" -T cut.png
answers 404 "$inference/predictions/none" -T image.png
body "o == {'code': 404, 'type': 'ModelNotFoundException', 'message': 'Model not found: none'}"
answers 405 -X DELETE "$inference/predictions/tiny" -D headers
grep -qi '^allow: POST, PUT' headers || fail "headers of 405: $(cat headers)"
[ "$(tail -c 1 out | od -An -c | tr -d ' ')" = '\n' ] || fail "the last line of an answer does not end"
answers 404 "$inference/nothing"
answers 400 --path-as-is "$inference/predictions/../../etc/passwd"
head -c 7000000 /dev/zero >large
answers 413 "$inference/predictions/tiny" -T large
answers 413 "$inference/predictions/tiny" -T large -H 'Expect:' -H 'Transfer-Encoding: chunked'
answers 403 -H 'Host: elsewhere.example' "$inference/ping"
curl -sS -D headers -o out "$inference/predictions/none" -T image.png
grep -qi '^x-request-id: ' headers && grep -qi '^connection: close' headers || fail "headers: $(cat headers)"
answers 200 -X OPTIONS "$inference/"
body "o['openapi'] == '3.0.1' and '/predictions/{model_name}' in o['paths']"
answers 200 "$inference/v2/models/tiny"
body "o['inputs'][0]['shape'] == [-1, 1, 28, 28] and o['versions'] == ['1.0']"
echo "{\"id\": \"x\", \"inputs\": [{\"name\": \"input\", \"shape\": [1, 784], \"datatype\": \"FP32\", \"data\": $(cat zeros.json)}]}" >infer.json
answers 200 "$inference/v2/models/tiny/infer" -d @infer.json
body "o['id'] == 'x' and o['outputs'][0]['shape'] == [1, 10] and abs(sum(o['outputs'][0]['data']) - 1) < 1e-4"
answers 404 "$inference/v2/models/none/infer" -d @infer.json
body "list(o) == ['error']"
answers 200 "$management/models"
body "o['models'] == [{'modelName': 'tiny', 'modelUrl': 'tiny'}]"
answers 400 -X POST "$management/models?url=x"
body "'--store' in o['message']"
answers 200 "$metrics/metrics"
grep -q '^ts_inference_requests_total{model_name="tiny",model_version="1.0"} [1-9]' out || fail "metrics: $(cat out)"
grep -q '^Requests4XX{.*} [1-9]' out || fail "metrics: $(cat out)"

# ---- idle: no thread polls; each port may look once at a deadline of a connection that is gone ----
wakes() {
    cat /proc/"$server"/task/*/status | awk '/^voluntary_ctxt_switches/ {n += $2} END {print n}'
}
is_idle() { # for two seconds; connections that curl has closed are noticed first
    local before
    before=$(wakes)
    sleep 2
    [ $(($(wakes) - before)) -le 3 ]
}
eventually is_idle

# ---- SIGTERM: what is under way is answered, and no request waits for others any more ----
stop TERM 143
serve --model tiny --batch-size 8 --max-batch-delay 100000 --json --threads 1
answers 200 "$management/models/tiny"
curl -sS --max-time 60 -o drained -w '%{http_code}' "$inference/predictions/tiny" -T image.png >code &
asking=$!
is_waiting() {
    answers 200 "$management/models/tiny"
    body "o[0]['jobQueueStatus']['pendingRequests'] == 1" 2>/dev/null
}
eventually eval '(is_waiting) 2>/dev/null'
stop TERM 143
wait $asking
[ "$(cat code)" = 200 ] && cmp -s drained first || fail "drained: $(cat code) $(cat drained)"
cp serve.out out
json "o['schema'] == 1 and o['predictions'] == 1 and o['answers']['2xx'] >= 2"
serve --model tiny --threads 1
stop INT 130

# ---- a second Ctrl-C does not wait for what is under way: here a body that takes hours ----
serve --model tiny --max-body 1073741824 --body-seconds 36000 --drain-seconds 36000
curl -sv --limit-rate 100k -T - "$inference/predictions/tiny" </dev/zero >/dev/null 2>asked &
asking=$!
eventually grep -q '100 Continue' asked
kill -INT "$server"
eventually grep -q 'Ctrl-C again quits at once' serve.err
kill -0 "$server" 2>/dev/null || fail "the request under way was not waited for"
stop INT 130
kill "$asking" 2>/dev/null
wait "$asking"

# ---- management, and a restart after kill -9 ----
serve --store store --threads 1
answers 200 "$management/models"
body "o == {'models': []}"
answers 200 -X POST "$management/models?url=one&initial_workers=1&synchronous=true&batch_size=2&max_batch_delay=1"
answers 409 -X POST "$management/models?url=one"
answers 200 -X POST "$management/models?url=two/checkpoints/step-5&model_name=one&model_version=2.0&initial_workers=2&synchronous=true"
answers 200 -X PUT "$management/models/one/2.0/set-default"
answers 202 -X POST -H 'Content-Type: application/json' -d '{"url": "two", "initial_workers": 1}' "$management/models"
answers 200 -X PUT "$management/models/two?min_worker=2&synchronous=true"
answers 200 "$management/models/one/all"
body "[v['modelVersion'] for v in o] == ['1.0', '2.0'] and o[1]['step'] == 5 and o[0]['batchSize'] == 2"
for attack in 'http://127.0.0.1:1/evil.mar' 'file:///etc/passwd' 'ftp://x/y' 's3://x/y' 'http:%2F%2F127.0.0.1%2Fx'; do
    answers 403 -X POST "$management/models?url=$attack"
done
ln -s "$work/runs/tiny" store/link
for attack in '../runs/tiny' "$work/runs/tiny" 'one/../../runs/tiny' '..%2fruns%2ftiny' link; do
    answers 404 -X POST "$management/models?url=$attack&model_name=evil"
done
answers 404 "$management/models/evil"
answers 200 -X DELETE "$management/models/one/1.0"
grep -q '^one 1.0 is served no more$' serve.err || fail 'which version is served no more?'
answers 200 "$inference/predictions/one" -T image.png
cp out before
kill -KILL "$server"
wait "$server" 2>/dev/null
serve --store store --threads 1
answers 200 "$management/models"
body "[m['modelName'] for m in o['models']] == ['one', 'two']"
answers 200 "$management/models/one"
body "o[0]['modelVersion'] == '2.0' and o[0]['minWorkers'] == 2 and len(o[0]['workers']) == 2"
answers 200 "$management/models/two"
body "o[0]['minWorkers'] == 2"
answers 404 "$management/models/one/1.0"
answers 200 "$inference/predictions/one" -T image.png
cmp -s out before || fail "after the restart: $(cat out) instead of $(cat before)"
stop

# ---- a model that is missing at one start is there at the next ----
mv store/two hidden
serve --store store --threads 1
grep -q 'model two 1.0 of store/.paceline-serve.json is not served: Model not found' serve.err || fail "$(cat serve.err)"
stop
mv hidden store/two
serve --store store --threads 1
answers 200 "$management/models/two"
stop

# ---- options count at every start; of a model that was scaled by a request its workers stay ----
serve --model tiny --state state.json --threads 1
stop
serve --model tiny --state state.json --threads 1 --batch-size 8 --workers 2
answers 200 "$management/models/tiny"
body "o[0]['batchSize'] == 8 and o[0]['minWorkers'] == 2"
answers 200 -X PUT "$management/models/tiny?min_worker=3&synchronous=true"
stop
serve --model tiny --state state.json --threads 1 --batch-size 4 --workers 2
answers 200 "$management/models/tiny"
body "o[0]['batchSize'] == 4 and o[0]['minWorkers'] == 3"
stop

# ---- tokens: apart for inference and management; /ping needs none ----
expect 0 "$paceline" token a.token
expect 0 "$paceline" token b.token
expect 2 "$paceline" serve --model tiny --token-file a.token --management-token-file a.token
says 'must not be that of the management'
chmod 644 b.token
expect 2 "$paceline" serve --model tiny --token-file a.token --management-token-file b.token
says 'chmod 600'
chmod 600 b.token
serve --model tiny --token-file a.token --management-token-file b.token --threads 1
grep -qF "curl -H \"Authorization: Bearer \$(cat a.token)\" $inference/predictions/tiny" serve.err || fail "no curl line: $(cat serve.err)"
grep -q "$(cat a.token)" serve.err && fail "the token is told"
a="Authorization: Bearer $(cat a.token)" b="Authorization: Bearer $(cat b.token)"
answers 200 "$inference/ping"
answers 400 "$inference/predictions/tiny" -T image.png
body "o['code'] == 400 and o['type'] == 'InvalidKeyException'"
answers 400 "$inference/predictions/tiny" -T image.png -H "$b"
answers 400 "$inference/predictions/tiny" -T image.png -H "${a}0"
answers 200 "$inference/predictions/tiny" -T image.png -H "$a"
answers 400 "$management/models"
answers 400 "$management/models" -H "$a"
answers 200 "$management/models" -H "$b"
answers 400 "$management/models?x=/token" -H "$a" # the substring opens nothing
answers 404 "$management/token?type=management" -H "$a"
answers 400 "$metrics/metrics" -H "$a"
answers 200 "$metrics/metrics" -H "$b"
stop
PACELINE_INFERENCE_TOKEN=$(cat a.token) serve --model tiny --threads 1
tr '\0' '\n' </proc/"$server"/environ | grep -q "$(cat a.token)" && fail "the token is in the environment"
answers 400 "$inference/predictions/tiny" -T image.png
answers 200 "$inference/predictions/tiny" -T image.png -H "$a"
stop

# ---- HTTPS ----
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 2>/dev/null || fail "openssl"
expect 2 "$paceline" serve --model tiny --certificate certificate.pem --key certificate.pem --port 0 --management-port 0 --metrics-port 0
says 'certificate and key'
serve --model tiny --certificate certificate.pem --key key.pem --threads 1
case $inference in https://*) ;; *) fail "$inference" ;; esac
answers 200 --cacert certificate.pem "$inference/predictions/tiny" -T image.png
cmp -s out first || fail "HTTPS: $(cat out)"
stop
exit 0
