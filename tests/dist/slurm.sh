#!/usr/bin/env bash
# A real Slurm: two nodes with hyphens and padded numbers in their names, started by hand on this
# machine. `srun` without MASTER_ADDR, with one and with several tasks a node, and deploy/slurm.sbatch: a
# training, one that is cancelled, and another job that goes on with it. Slurm has namespaces of its own: its ports, its processes, and
# /etc/hosts with the names of its nodes end with the test.
source "$(dirname "$0")/../support/dist.bash"
needs_root
for program in slurmctld slurmd srun munged unshare; do
    command -v $program >/dev/null || { echo "skipped: no $program (Debian: slurm-wlm, munge)" && exit 77; }
done
if [ -z "${SLURM_TEST-}" ]; then # pid 1 of the namespace: what is left dies with it
    SLURM_TEST=inside TMPDIR=$work unshare --mount --net --pid --uts --fork --kill-child \
        --mount-proc bash "$root/tests/dist/slurm.sh" "$paceline"
    exit
fi
trap - EXIT # the folder is in the one that the outer call removes

# ---- the cluster ----
chmod 755 "$work/.." "$work"
ip link set lo up
hostname control
for n in 1 2 3; do ip address add 10.77.0.$n/32 dev lo; done
printf '127.0.0.1 localhost\n10.77.0.1 control\n10.77.0.2 gpu-01\n10.77.0.3 gpu-02\n' >hosts
mount --bind hosts /etc/hosts
dd if=/dev/urandom of=key bs=128 count=1 2>/dev/null
chmod 400 key
mkdir munge state spool-gpu-01 spool-gpu-02
cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=control(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
MpiDefault=none
KillWait=5
NodeName=gpu-01 NodeAddr=10.77.0.2 Port=17001 CPUs=2
NodeName=gpu-02 NodeAddr=10.77.0.3 Port=17002 CPUs=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
munged -F --force --key-file="$work/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
    >munge.out 2>&1 &
for _ in $(seq 100); do [ -S munge/socket ] && break; sleep 0.05; done
slurmctld -D >slurmctld.out 2>&1 &
for node in gpu-01 gpu-02; do
    slurmd -D -N $node >slurmd-$node.out 2>&1 &
done
for _ in $(seq 100); do
    [ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
    sleep 0.1
done
[ "$(timeout 5 sinfo -h -t idle -o %D)" = 2 ] || fail "Slurm's nodes did not come up: $(tail -n 5 ./*.log ./*.out)"

# ---- jobs ----
PACELINE_TOKEN=$("$paceline" token)
export PACELINE_TOKEN

# One task a node, then several: Slurm's node list tells every host where host 0 is.
expect 0 srun -N 2 "$paceline" ping --count 20 --json
json "o['workers'] == 2 and o['rounds'] == 20"
says 'Slurm launched this: host 1 of 2, 1 workers'
expect 0 srun -N 2 -n 4 "$paceline" ping --count 20 --json
json "o['workers'] == 4 and o['rounds'] == 20"
expect 0 srun -N 1 -n 2 -w gpu-02 "$paceline" ping --count 20 --json
json "o['workers'] == 2 and o['rounds'] == 20"

# A training of the batch script gives what one process gives.
mkdir bin && ln -s "$paceline" bin/paceline
export PATH=$work/bin:$PATH
unset PACELINE_TOKEN # the script makes its own
train=(--data synthetic:train=96,test=16 --model mlp:8x1 --batch 16 --kernels onednn --threads 1)
expect 0 paceline train "${train[@]}" --steps 8 --quiet --run alone --json
cp out alone.json
send() { # NAME OPTION…: beside this script
    sbatch -W -J "$1" -o "$1.out" -e "$1.err" "$root/deploy/slurm.sbatch" "${train[@]}" "${@:2}" >sent 2>&1
}
RUN=batch send batch --steps 8 --quiet --json || fail "the batch script: $(cat sent batch.err)"
cp batch.out out
json "o['workers'] == 2 and abs(o['test']['loss'] - json.load(open('alone.json'))['test']['loss']) < 1e-4"

# scancel: the step is finished and saved. A second job goes on with the run, and is cancelled, too.
newest() { ls runs/long/checkpoints 2>/dev/null | sed -n 's/^step-//p' | sort -n | tail -n 1; }
for job in first second; do
    before=$(newest)
    RUN=long send $job --steps 100000000 &
    waiting=$!
    for _ in $(seq 300); do grep -q '^step ' $job.err 2>/dev/null && break; sleep 0.1; done
    grep -q '^step ' $job.err || fail "the $job job does not begin: $(cat sent; tail -n 5 $job.err)"
    scancel --name $job
    wait $waiting && fail "a cancelled job ended well"
    for _ in $(seq 100); do grep -q '"running"' runs/long/run.json || break; sleep 0.1; done
    grep -q '"interrupted"' runs/long/run.json || fail "run.json does not tell the interruption: $(tail -n 5 $job.err)"
    [ "$(newest)" -gt "${before:-0}" ] || fail "nothing was saved after step ${before:-0}: $(ls runs/long/checkpoints)"
done
grep -q 'run long goes on after step' second.err || fail "the second job does not go on: $(cat second.err)"
