#!/usr/bin/env bash
# The files of deploy/: what the image is built from is there, nodes of the compose file differ where they must, and
# their commands are ones that `train` takes. With FULL=1, as `make soak` has it, for real: the Debian package is
# installed, used and purged in a clean Debian that mmdebstrap makes, the image is built on that by podman, and of two
# containers that train together one is killed.
#   DEBIAN_ROOT=FILE.tar   that Debian, made before: mmdebstrap --variant=apt bookworm FILE.tar
source "$(dirname "$0")/../support/dist.bash"

# ---- what is written ----
while read -r path; do
    [ -e "$root/$path" ] || fail ".dockerignore lets in $path, which is not there"
done < <(sed -n 's/^!//p' "$root/.dockerignore")
for ignored in $(sed -n 's/^!\([^/]*\).*/\1/p' "$root/.dockerignore"); do
    grep -qxF "/$ignored/" "$root/.gitignore" && fail ".dockerignore lets in $ignored, which is no source"
done
sed -nE 's/^ +command: /paceline /p' "$root/deploy/compose.yaml" | sed -E 's/\$\{[A-Z]+:-([^}]*)\}/\1/g' >commands
[ "$(grep -oE 'rank [0-9]+' commands | sort -u | wc -l)" = 4 ] || fail "ranks of the nodes: $(cat commands)"
[ "$(grep -E '^ +cpuset:' "$root/deploy/compose.yaml" | sort -u | wc -l)" = 4 ] || fail "nodes share a core"
expect 0 /usr/bin/python3 "$root/tests/support/commands.py" "$paceline" commands
[ "$(cat out)" = "4 command lines" ] || fail "commands of the nodes: $(cat out)"
expect 0 sh -n "$root/deploy/slurm.sbatch"
[ -n "${FULL-}" ] || exit 0

# ---- the package in a clean Debian ----
needs_root
for program in mmdebstrap podman podman-compose runc; do
    command -v $program >/dev/null || { echo "skipped: no $program (tools/deps soak installs it)" && exit 77; }
done
slowly() { # COMMAND…: what may take an hour
    timeout 3600 "$@" >log 2>&1 || fail "$* ended with $?: $(tail -n 15 log)"
}
build=$(dirname "$paceline")
slowly cmake --build "$build" --target installables
slowly cpack --config "$build/CPackConfig.cmake" -B "$work/packages"
[ -n "${DEBIAN_ROOT-}" ] || { DEBIAN_ROOT=$work/debian.tar && slowly mmdebstrap --variant=apt bookworm "$DEBIAN_ROOT"; }
mkdir clean && tar -xf "$DEBIAN_ROOT" -C clean --exclude './dev/*'
cp /etc/resolv.conf clean/etc/
cp packages/paceline_*.deb clean/root/
inside() { # COMMAND…: with /proc of its own and no device but null
    slowly unshare --mount --pid --fork sh -c 'mount -t proc proc clean/proc && mount --bind /dev clean/dev && exec chroot clean "$@"' sh \
        env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}
# What other packages leave when they add a group (libopenmpi3 needs ssh) is not ours.
files() { find clean -xdev \( -path clean/proc -o -path clean/dev -o -path clean/var/cache -o -path clean/var/lib/apt -o -path clean/var/log \
    -o -path clean/var/lib/dpkg -o -path clean/etc/ld.so.cache -o -path clean/etc/gshadow- -o -path clean/run -o -path clean/root \) -prune -o -print | sort; }
inside apt-get update
files >before
inside sh -c 'apt-get install -y --no-install-recommends /root/paceline_*.deb'
inside paceline --version
inside sh -c 'cd /root && paceline train --model mlp:8x1 --data synthetic:train=64,test=16 --workers 2 --epochs 1 --quiet --run one && paceline eval one'
grep -q accuracy log || fail "no evaluation in the chroot: $(cat log)"
inside apt-get purge -y --autoremove paceline
files >after
cmp -s before after || fail "the package leaves or takes: $(diff before after)"
! [ -e clean/var/lib/dpkg/info/paceline.list ] || fail "dpkg still knows the package"
rm -rf clean

# ---- containers ----
# Storage, networks and limits of their own; runc, because crun 1.8 refuses hosts with both kinds of control groups.
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
limits="[\"nofile=$(ulimit -Sn):$(ulimit -Sn)\", \"nproc=4096:4096\"]"
printf '[containers]\ndefault_ulimits = %s\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n[network]\nnetwork_config_dir = "%s"\n' \
    "$limits" "$work/networks" >"$CONTAINERS_CONF"
mkdir networks
printf '[storage]\ndriver = "%s"\ngraphroot = "%s/storage"\nrunroot = "%s/storage-run"\n' "${STORAGE_DRIVER-overlay}" "$work" "$work" >"$CONTAINERS_STORAGE_CONF"
podman() { command podman --log-level=error "$@"; }
leave() {
    podman rm -fa >/dev/null 2>&1
    podman network prune -f >/dev/null 2>&1
    umount "$work"/storage/overlay 2>/dev/null
    rm -rf "$work"
}
trap leave EXIT
slowly podman import -q "$DEBIAN_ROOT" localhost/debian:12-slim
slowly podman build --layers=false --network host --build-arg BASE=localhost/debian:12-slim -f "$root/deploy/Dockerfile" -t paceline "$root"
expect 0 podman run --rm localhost/paceline --version
[ "$(cat out)" = "$("$paceline" --version)" ] || fail "another version: $(cat out)"
expect 0 podman run --rm --entrypoint nproc --cpuset-cpus 1 localhost/paceline
[ "$(cat out)" = 1 ] || fail "not pinned: $(cat out) cores"

mkdir runs data && chown 1000 runs
PACELINE_TOKEN=$(podman run --rm localhost/paceline token)
export PACELINE_TOKEN NODES=2 IMAGE=localhost/paceline RUNS=$work/runs DATA=$work/data
export TRAIN='--model mnist-cnn --data synthetic:train=1280,test=64 --batch 32 --epochs 4 --run nodes'
(cd "$work" && exec podman-compose -p paceline -f "$root/deploy/compose.yaml" up node0 node1) >compose.log 2>&1 &
for _ in $(seq 1200); do [ "$(grep -c '"event":"step"' runs/nodes/events.jsonl 2>/dev/null)" -gt 3 ] 2>/dev/null && break; sleep 0.1; done
[ -s runs/nodes/events.jsonl ] || fail "the nodes do not train: $(tail -n 20 compose.log)"
expect 0 podman kill -s KILL paceline_node1_1
for _ in $(seq 3000); do grep -q '"running"' runs/nodes/run.json || break; sleep 0.1; done
/usr/bin/python3 - <<'PY' || fail "the run of two containers: $(tail -n 20 compose.log)"
import json
run = json.load(open("runs/nodes/run.json"))
lost = [e for e in map(json.loads, open("runs/nodes/cluster.jsonl")) if e["event"] == "lost"]
assert run["status"] == "done" and run["result"]["steps"] == 160, run["status"]
assert run["launch"]["hosts"] == 2 and len(lost) == 1, (run["launch"], lost)
PY
