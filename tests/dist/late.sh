#!/usr/bin/env bash
# What comes late: a host 0 that is mute, or breaks off the first handshakes, before it is there;
# a signal after the work is complete.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

listener() { # PORT COUNT, in the background: breaks off so many connections and ends; 0: accepts one and is mute
    exec /usr/bin/python3 - "$1" "$2" <<'PY'
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open("listening", "w")
count = int(sys.argv[2])
for _ in range(count):
    listener.accept()[0].close()
if count == 0:
    time.sleep(60)
PY
}

# --gather is the whole wait, also where each try costs seconds.
port=$(free_port)
listener "$port" 0 &
mute=$!
eventually [ -e listening ]
start=$EPOCHREALTIME
expect 1 "$paceline" ping --num-nodes 2 --rank 1 --master-ip 127.0.0.1 --port "$port" --gather 2
says 'host 0 did not come within 2 s: .* does not answer'
awk "BEGIN{exit !($EPOCHREALTIME - $start < 5)}" || fail "--gather 2 took $start … $EPOCHREALTIME"
kill $mute
wait $mute 2>/dev/null

# A handshake that breaks off is tried again.
rm listening
port=$(free_port)
listener "$port" 2 &
breaker=$!
agents[breaker]=$breaker
eventually [ -e listening ]
two=(ping --num-nodes 2 --master-ip 127.0.0.1 --port "$port" --gather 30 --count 5 --json)
"$paceline" "${two[@]}" --rank 1 >b.out 2>b.err &
agents[b]=$!
eventually gone_or_zombie $breaker
expect 0 "$paceline" "${two[@]}" --rank 0
json "o['workers'] == 2 and o['rounds'] == 5"
wait "${agents[b]}" || fail "host 1 ended with $?: $(cat b.err)"
unset "agents[b]" "agents[breaker]"

# A signal while the result is printed, into a pipe that is full: the run is done, and all say so.
mkfifo pipe
exec 3<>pipe
for workers in 1 2; do
    /usr/bin/python3 -c '
import os
os.set_blocking(3, False)
try:
    while True: os.write(3, b"#" * 4096)
except BlockingIOError: os.set_blocking(3, True)'
    "$paceline" train --data synthetic:train=96,test=16 --model mlp:8x1 --batch 16 --threads 1 --quiet \
        --kernels onednn --steps 8 --workers $workers --run "late-$workers" --json >&3 2>err &
    agents[late]=$!
    eventually grep -qs '"status": "done"' "runs/late-$workers/run.json"
    eventually grep -qs pipe_write "/proc/${agents[late]}/wchan" "/proc/${agents[late]}/stack"
    kill -TERM "${agents[late]}"
    dd bs=4096 count=16 <&3 >/dev/null 2>&1
    wait "${agents[late]}" || fail "a complete run of $workers workers ended with $?"
    unset 'agents[late]'
    head -n 1 <&3 >out
    json "o['interrupted'] is False and o['steps'] == 8"
    grep -q '"status": "done"' "runs/late-$workers/run.json" || fail "$(cat "runs/late-$workers/run.json")"
done
