#!/usr/bin/env bash
# Several agents, as on several hosts, all on loopback: with and without a token, refusals that
# disturb no job, hosts that join, die, or lose host 0; launchers' environments.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

ids() { # NAME: of the view's workers
    of "$1" "*(w['id'] for w in s['workers']), sep=' '"
}

# Two hosts of two workers, each started with another spelling; host 1 comes first.
port=$(free_port)
job b --nnodes 2 --node-rank 1 --master-addr 127.0.0.1 --master-port "$port" --nproc-per-node 2
job a --num-nodes 2 --rank 0 --master_ip localhost --port "$port" --workers 2
eventually in_view a 1
[ "$(ids a)" = '1 2 3 4' ] || fail "workers $(ids a)"
of a "*[(w['id'], w['host'], w['rank']) for w in s['workers']]" |
    grep -qF '(1, 0, 0) (2, 0, 1) (3, 1, 2) (4, 1, 3)' || fail "$(of a s)"

# A worker of host 1 dies: all others are told, and go on.
eventually grep -q 'worker 1: view 1: rank 0 of 4' a.err # a worker that has not seen a view misses none of it
kill -KILL "$(worker_pid a 3)"
eventually in_view a 2
has a "[(x['event'], x.get('id')) for x in E if x['event'] in ('lost', 'exit', 'view')] ==
    [('view', None), ('lost', 3), ('exit', 3), ('view', None)]" || fail "$(cat a.events)"
eventually grep -q 'worker 1: worker 3 was lost from view 1' a.err
eventually grep -q 'worker 4: worker 3 was lost from view 1' b.err

# … and one stops for too long: killed by its own agent before the next view.
victim=$(worker_pid a 4)
eventually grep -q 'worker 1: view 2: rank 0 of 3' a.err
kill -STOP "$victim"
eventually in_view a 3
gone "$victim" || fail "view 3 is there and the stopped worker of host 1 is not reaped"
[ "$(ids a)" = '1 2' ] || fail "workers $(ids a)"

# Workers join, and a host that was lost comes back as a new one.
"$paceline" join "127.0.0.1:$port" --workers 2 >join.out 2>join.err &
agents[join]=$!
eventually has a "e['event'] == 'view' and e['members'] == [1, 2, 5, 6]"
has a "e['event'] == 'join' and e['host'] == 2 and e['workers'] == 2" || fail "$(cat a.events)"
eventually grep -q 'worker 6: view .: rank 3 of 4' join.err
step=$(of a "max(w['step'] for w in s['workers'])")
eventually eval '[ "$(of a "min(w[\"step\"] for w in s[\"workers\"])")" -gt '"$step"' ]'
kill -KILL "${agents[join]}"
wait "${agents[join]}" 2>/dev/null
unset 'agents[join]'
eventually has a "E[-1] is not None and [x for x in E if x['event'] == 'view'][-1]['members'] == [1, 2]"

# A guest whose worker is killed has nothing to do any more, and says why.
"$paceline" join "127.0.0.1:$port" >join.out 2>join.err &
agents[join]=$!
eventually has a "e['event'] == 'view' and e['members'] == [1, 2, 7]"
eventually grep -q "worker 1: view $(of a "s['view']"): rank 0 of 3" a.err
sleep 11 # longer than strangers may stay: it is none
kill -KILL "$(worker_pid a 7)"
ends join 1
says 'worker 7 on host .* \(signal 9, SIGKILL\)'
eventually has a "[x for x in E if x['event'] == 'view'][-1]['members'] == [1, 2]"

# Strangers: another job, another number of hosts, a token where there is none, nonsense.
expect 2 "$paceline" ping --num-nodes 3 --rank 2 --master-ip 127.0.0.1 --port "$port" --gather 5 \
    --count 1000000000 --interval 0.001
says 'host 2 is not one of 2'
expect 2 "$paceline" ping --num-nodes 2 --rank 1 --master-ip 127.0.0.1 --port "$port" --count 7
says 'this host.s "count" is not the one of host 0'
expect 0 "$paceline" token wrong.token
expect 1 "$paceline" join "127.0.0.1:$port" --token-file wrong.token
says 'token'
head -c 4096 /dev/urandom >"/dev/tcp/127.0.0.1/$port"
step=$(of a "max(w['step'] for w in s['workers'])")
eventually eval '[ "$(of a "min(w[\"step\"] for w in s[\"workers\"])")" -gt '"$step"' ]'
has a "[x for x in E if x['event'] == 'view'][-1]['members'] == [1, 2]" || fail "strangers disturbed it"

# Ctrl-C on any host ends them all.
kill -INT "${agents[b]}"
ends a 0
json "o['workers'] == 2 and o['lost'] == 5"
ends b 130

# Three hosts with a token; a wrong one, none, and a file that others may read are refused.
expect 0 "$paceline" token job.token
port=$(free_port)
three() { # NAME RANK ARGUMENT…
    job "$1" --num-nodes 3 --rank "$2" --master-ip 127.0.0.1 --port "$port" "${@:3}"
}
three a 0 --token-file job.token
PACELINE_TOKEN=$(cat job.token) three b 1
eventually has a "e['event'] == 'join' and e['host'] == 1"
expect 1 "$paceline" ping --num-nodes 3 --rank 2 --master-ip 127.0.0.1 --port "$port" \
    --token-file wrong.token --gather 5
says 'token'
expect 1 "$paceline" ping --num-nodes 3 --rank 2 --master-ip 127.0.0.1 --port "$port" --gather 5
chmod 644 wrong.token
expect 2 "$paceline" join "127.0.0.1:$port" --token-file wrong.token
says 'others'
three c 2 --token-file job.token
eventually in_view a 1
for pid in $(of a "*(w['pid'] for w in s['workers']), sep=' '"); do
    grep -qF "$(cut -c5- job.token)" "/proc/$pid/"{environ,cmdline} && fail "the token shows in a child"
done

# A host dies as a whole: agent and workers. The others go on, and so does the last one without host 0.
workers=$(of a "*(w['pid'] for w in s['workers'] if w['host'] == 1), sep=' '")
kill -KILL "${agents[b]}"
wait "${agents[b]}" 2>/dev/null
unset 'agents[b]'
# shellcheck disable=SC2086
eventually gone $workers
eventually has a "e['event'] == 'view' and e['members'] == [1, 3]"
workers=$(of a "*(w['pid'] for w in s['workers']), sep=' '")
kill -KILL "${agents[a]}"
wait "${agents[a]}" 2>/dev/null
unset 'agents[a]'
# shellcheck disable=SC2086
eventually gone $(head -n 1 <<<"$workers" | cut -d' ' -f1)
eventually has c "e['event'] == 'view' and e['members'] == [3]"
has c "e['event'] == 'succession' and e['host'] == 2 and e['term'] > 0" || fail "$(cat c.events)"
grep -q 'host 2 at 127.0.0.1:[0-9]* coordinates now' c.err || fail "it does not say so: $(cat c.err)"
kill -INT "${agents[c]}"
ends c 130
json "o['workers'] == 1 and o['lost'] == 2"

# Beyond loopback nothing listens without a token; hosts that do not come end the wait.
expect 2 "$paceline" ping --num-nodes 2 --rank 0 --master-ip 192.0.2.1
says 'token'
expect 1 "$paceline" ping --num-nodes 2 --rank 0 --master-ip 127.0.0.1 --port 0 --gather 1 --json
json "o['error']['code'] == 'timeout' and 'host 1 of 2 did not come' in o['error']['message']"
expect 1 "$paceline" ping --num-nodes 2 --rank 1 --master-ip 127.0.0.1 --port "$(free_port)" --gather 1
says 'host 0 did not come'

# Environments: each process as its launcher would start it. Rank 1 of a host has nothing to do.
port=$(free_port)
launched() { # NAME VARIABLE…
    env "${@:2}" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" "$paceline" ping --count 20 --json \
        >"$1.out" 2>"$1.err" &
    agents[$1]=$!
}
for r in 0 1 2 3; do
    launched "t$r" RANK=$r WORLD_SIZE=4 LOCAL_RANK=$((r % 2)) LOCAL_WORLD_SIZE=2 GROUP_RANK=$((r / 2))
done
for r in 3 2 1; do ends t$r 0; done
says 'torchrun launched this: host 0 of 2, 2 workers; another process'
ends t0 0
says 'torchrun launched this: host 0 of 2, 2 workers$'
json "o['workers'] == 4 and o['hosts'] == 2 and o['rounds'] == 20"
for r in 0 1; do
    launched "o$r" OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 \
        OMPI_COMM_WORLD_LOCAL_SIZE=1
done
ends o1 0
ends o0 0
says 'Open MPI launched this: host 0 of 2'
for r in 0 1; do
    launched "s$r" SLURM_PROCID=$r SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_LOCALID=0 \
        SLURM_NODEID=$r 'SLURM_STEP_TASKS_PER_NODE=1(x2)'
done
ends s1 0
ends s0 0
says 'Slurm launched this: host 0 of 2'
exit 0
