#!/usr/bin/env bash
# Workers of one host that die, stop or are told to end; agents that die; status meanwhile.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

# kill -9 while running: told at once, reaped, then the next view; the others go on.
job kill --workers 3
eventually in_view kill 1
victim=$(worker_pid kill 2)
eventually grep -q 'worker 1: view 1: rank 0 of 3' kill.err
kill -KILL "$victim"
eventually in_view kill 2
has kill "[x['event'] for x in E if x['event'] in ('lost', 'exit', 'view')] ==
    ['view', 'lost', 'exit', 'view']" || fail "the order of events: $(cat kill.events)"
has kill "e['event'] == 'lost' and e['id'] == 2 and e['view'] == 1" ||
    fail "$(cat kill.events)"
has kill "e['event'] == 'exit' and e['pid'] == $victim and e['signal'] == 9" || fail "no exit"
has kill "e['event'] == 'view' and e['view'] == 2 and e['members'] == [1, 3]" || fail "no view 2"
gone "$victim" || fail "the next view is there and the dead worker is not reaped"
step=$(of kill "min(w['step'] for w in s['workers'])")
eventually eval '[ "$(of kill "min(w[\"step\"] for w in s[\"workers\"])")" -gt '"$step"' ]'

# Status while it runs, for people and as an object; only for those who may.
expect 0 "$paceline" status kill.status
grep -qE '^ +3 +1 +0 +[0-9]+ ready' out || fail "status lacks worker 3: $(cat out)"
expect 0 "$paceline" status kill.status --json
json "o['schema'] == 1 and o['program'] == 'ping' and o['phase'] == 'running' and o['view'] == 2"
json "[(w['id'], w['rank'], w['host']) for w in o['workers']] == [(1, 0, 0), (3, 1, 0)]"
json "o['hosts'][0]['memory'] > 1e6 and o['hosts'][0]['address'] == '127.0.0.1'"
[ "$(stat -c %a kill.status)" = 600 ] || fail "others may open the status socket"
expect 2 "$paceline" status nothing-there
says 'nothing is running'
eventually has kill "e['event'] == 'heartbeat' and e['id'] == 3 and e['step_rate'] > 0"
eventually has kill "e['event'] == 'heartbeat' and e['id'] == 0 and e['load'] >= 0"

# Ctrl-C: all workers finish the round; the result is there, the code tells of the signal.
kill -INT "${agents[kill]}"
ends kill 130
json "o['lost'] == 1 and o['views'] == 2 and o['workers'] == 2 and o['rounds'] > 0"
says '^worker 1: view 1: rank 0 of 3'
[ -e kill.status ] && fail "the status socket is still there"

# SIGSTOP past the deadline: killed and reaped before the next view is published.
job stop --workers 3 --silence 4
eventually in_view stop 1
victim=$(worker_pid stop 3)
kill -STOP "$victim"
eventually in_view stop 2
has stop "[(x['event'], x.get('id')) for x in E if x['event'] in ('lost', 'exit', 'view')] ==
    [('view', None), ('lost', 3), ('exit', 3), ('view', None)]" || fail "$(cat stop.events)"
has stop "e['event'] == 'lost' and 'silent' in e['reason']" || fail "$(cat stop.events)"
has stop "e['event'] == 'exit' and e['signal'] == 9 and e['pid'] == $victim" || fail "no exit"
gone "$victim" || fail "a stopped worker was not reaped before the next view"
grep -q 'was stopped' stop.err || fail "it was not told that a worker was stopped"

# One that is continued in time stays.
victim=$(worker_pid stop 1)
kill -STOP "$victim"
sleep 0.3
kill -CONT "$victim"
round=$(of stop "max(w['step'] for w in s['workers'])")
eventually eval '[ "$(of stop "min(w[\"step\"] for w in s[\"workers\"])")" -gt '"$round"' ]'
in_view stop 3 && fail "a short stop cost a worker"

# A second signal ends everything, even what cannot finish.
workers=$(of stop "*(w['pid'] for w in s['workers']), sep=' '")
kill -STOP "$(worker_pid stop 1)"
kill -INT "${agents[stop]}"
eventually grep -q stopping stop.err
kill -INT "${agents[stop]}"
ends stop 130
# shellcheck disable=SC2086
eventually gone $workers

# An agent that dies takes its workers along.
job agent --workers 3
eventually in_view agent 1
workers=$(of agent "*(w['pid'] for w in s['workers']), sep=' '")
kill -KILL "${agents[agent]}"
# shellcheck disable=SC2086
eventually gone $workers
wait "${agents[agent]}" 2>/dev/null
unset 'agents[agent]'

# Below the least number of workers: the first failed worker is named, with its last lines.
job few --workers 3 --min-workers 3
eventually in_view few 1
victim=$(worker_pid few 2)
eventually grep -q 'worker 2: view 1: rank 1 of 3' few.err
kill -ABRT "$victim"
ends few 1
json "o['error']['code'] == 'peer-lost' and o['error']['id'] == 2"
json "'worker 2 on host ' in o['error']['message'] and '(pid $victim)' in o['error']['message']"
json "'SIGABRT' in o['error']['message'] and 'view 1: rank 1 of 3' in o['error']['message']"
has few "e['event'] == 'stop' and e['failed']" || fail "$(cat few.events)"

# kill -9 while workers come up: as soon as there is a process. The job goes on without it.
for _ in 1 2 3 4 5; do
    job young --workers 3
    children() { pgrep -P "${agents[young]}" -f 'paceline worker' | head -n "$1" | tail -n 1; }
    eventually eval '[ -n "$(children 2)" ]'
    kill -KILL "$(children 2)" 2>/dev/null
    eventually has young "e['event'] == 'view' and len(e['members']) == 2"
    kill -TERM "${agents[young]}"
    ends young 143
    json "o['workers'] == 2"
done

# … and while they end: it comes out well or says who was lost, and never hangs.
for _ in 1 2 3 4 5; do
    rm -f old.*
    "$paceline" ping --workers 3 --count 300 --interval 0.001 --events old.events \
        --status old.status --json >old.out 2>old.err &
    agents[old]=$!
    eventually in_view old 1
    victim=$(worker_pid old 2 2>/dev/null) || victim=
    sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
    [ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null
    code=0
    eventually gone_or_zombie "${agents[old]}"
    wait "${agents[old]}" || code=$?
    unset 'agents[old]'
    cp old.out out
    if [ $code = 0 ]; then
        json "o['rounds'] == 300"
    else
        json "o['error']['id'] == 2 and 'SIGKILL' in o['error']['message']"
    fi
done

# A training: its status by the run's name, its coordinator's events in the run's folder. Workers of
# one host listen nowhere.
"$paceline" train --model mlp:8x1 --data synthetic:train=64,test=16 --workers 2 --threads 1 --epochs 1000000 \
    --log-every 0 --run live --json >live.out 2>live.err </dev/null &
agents[live]=$!
eventually [ -S runs/live/status ]
[ "$(stat -c %a runs/live/status)" = 600 ] || fail "others may open the status socket"
eventually eval '"$paceline" status live --json | grep -q "\"program\":\"train\".*\"state\":\"ready\""'
ln -s runs/live/cluster.jsonl live.events
eventually has live "e['event'] == 'heartbeat' and e['id'] == 2 and e['step'] > 0"
in_view live 1 || fail "the run's events begin too late: $(cat live.events)"
/usr/bin/python3 - "${agents[live]}" $(pgrep -P "${agents[live]}") <<'PY' || fail "a port is open"
import os, sys
listening = {line.split()[9] for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}") if line.split()[3] == "0A"}
for pid in sys.argv[1:]:
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            open_file = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:  # closed since: the run writes files all the time
            continue
        assert open_file.removeprefix("socket:[").rstrip("]") not in listening
PY
[ "$(cat "/proc/${agents[live]}/comm")" = paceline ] || fail "top shows another name"
kill -INT "${agents[live]}"
ends live 130
json "o['interrupted'] and o['workers'] == 2"
[ -e runs/live/status ] && fail "the status socket is still there"
expect 2 "$paceline" status live
says 'nothing is running'

# Ctrl-C ends measurements with those there are, and a wait for host 0 at once. A job that is joined
# must be there.
"$paceline" bench collectives --workers 2 --bytes 4096 --seconds 5 --json >slow.out 2>slow.err &
agents[slow]=$!
eventually eval 'grep -qs space/measure "/proc/$(pgrep -P "${agents[slow]}" | head -n 1)/maps"'
kill -INT "${agents[slow]}"
ends slow 130
json "o['interrupted'] and o['workers'] == 2"
"$paceline" ping --num-nodes 2 --rank 1 --master-ip 127.0.0.1 --port "$(free_port)" --json >early.out 2>early.err &
agents[early]=$!
eventually grep -q 'waiting for host 0, 120 s at most: .*refused' early.err
kill -INT "${agents[early]}"
ends early 130
json "o['error']['code'] == 'interrupted'"
expect 1 "$paceline" join 127.0.0.1:"$(free_port)"
says 'no job to join'

# A worker that cannot be started is named, with the cause.
(ulimit -n 24 && expect 1 "$paceline" ping --workers 8 --count 3 --json)
json "o['error']['id'] > 1 and 'Too many open files' in o['error']['message']"

# Without standard streams the log goes nowhere, and not into whatever has their numbers.
"$paceline" ping --workers 2 --count 3 --json <&- 2>&- >out &
agents[mute]=$!
eventually gone_or_zombie "${agents[mute]}"
wait "${agents[mute]}" || fail "without a standard error it ended with $?"
unset 'agents[mute]'
json "o['rounds'] == 3"
exit 0
