#!/usr/bin/env bash
# Under mpirun: the conformance suites of transports and collectives with 2 and 4 ranks, commands
# whose workers mpirun started, and a rank that is killed.
source "$(dirname "$0")/../support/dist.bash"
tests=$(dirname "$paceline")/tests

expect 0 "$paceline" help ping
if ! grep -qw mpi out; then
    echo "built without MPI: nothing to test"
    exit 0
fi
command -v mpirun >/dev/null || fail "built with MPI, but there is no mpirun"
# Ranks that wait give their core away: there are more of them than cores.
mpi() { # RANKS COMMAND…
    echo mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n "$@"
}

for ranks in 2 4; do
    for suite in transports transports_any transports_engine transports_orders transports_parts \
        collectives collectives_loss; do
        expect 0 $(mpi $ranks "$tests/conform-${suite}_test")
        [ "$(grep -c '^over mpi' out)" = $ranks ] || fail "$suite did not run over mpi: $(cat out)"
        grep -q 'FAILED' out && fail "$suite with $ranks ranks: $(cat out)"
    done
    expect 0 $(mpi $ranks "$paceline" ping --transport mpi --count 100 --json)
    json "o['workers'] == $ranks and o['rounds'] == 100"
    expect 0 $(mpi $ranks "$paceline" bench collectives --transport mpi --bytes 4096 --seconds 0.01 --json)
    json "{'native'} <= {r['algorithm'] for r in o['results']} and o['workers'] == $ranks"
done

# A training, and the same one resumed with another number of ranks.
train=(train --data synthetic:train=96,test=16 --model mlp:8x1 --batch 16 --kernels onednn --threads 1 --quiet)
expect 0 "$paceline" "${train[@]}" --steps 8 --run alone --json
cp out alone.json
expect 0 $(mpi 2 "$paceline" "${train[@]}" --transport mpi --steps 4 --run launched --json)
json "o['workers'] == 2 and o['steps'] == 4 and o['strategy'] == 'ddp'"
expect 0 $(mpi 4 "$paceline" train --resume launched --transport mpi --steps 8 --quiet --json)
json "o['workers'] == 4 and abs(o['test']['loss'] - json.load(open('alone.json'))['test']['loss']) < 1e-4"

# Without its launcher the transport says what to do.
expect 2 "$paceline" ping --transport mpi
says 'mpirun -n W paceline'

# Ctrl-C and SIGTERM: mpirun passes them on as SIGTERM and kills what is left after a second. The
# step is finished and saved by then, also where the signal comes in the middle of an evaluation.
for case in INT:16 TERM:16 TERM:4000; do
    rm -rf runs/stopped
    $(mpi 2 "$paceline" "${train[@]}" --data "synthetic:train=96,test=${case#*:}" --transport mpi \
        --steps 100000000 --run stopped) >out 2>err &
    launcher=$!
    for _ in $(seq 300); do
        [ -s runs/stopped/events.jsonl ] && break
        sleep 0.1
    done
    kill -"${case%:*}" $launcher
    wait $launcher && fail "mpirun ended well although it got SIG${case%:*}"
    grep -q '"status": "interrupted"' runs/stopped/run.json ||
        fail "after SIG${case%:*} run.json says $(grep status runs/stopped/run.json): $(tail -n 5 err)"
    says 'stopped after step [0-9]+ \(saved\); go on with: paceline train --resume stopped'
done

# A rank that is killed ends the job within seconds, and the cause is named.
$(mpi 3 "$paceline" ping --transport mpi --count 1000000000) >out 2>err &
launcher=$!
for _ in $(seq 600); do
    [ "$(grep -c 'view 1: rank' err)" = 3 ] && break
    sleep 0.1
done
victim=$(pgrep -P "$launcher" -f 'ping --transport mpi' | head -n 1)
[ -n "$victim" ] || fail "no rank to kill: $(cat err)"
start=$EPOCHREALTIME
kill -9 "$victim"
wait "$launcher" && fail "mpirun ended well although a rank was killed"
awk "BEGIN{exit !($EPOCHREALTIME - $start < 10)}" || fail "the job went on for more than 10 s"
says 'signal 9'
