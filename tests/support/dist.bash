# Shared by tests/dist/*.sh: `source` it with the binary's path as $1. Every test works in its own
# temporary folder, which is removed at the end, and stops at the first thing that is not so.
set -uo pipefail
paceline=$(realpath "${1:?usage: TEST.sh PATH-OF-PACELINE}")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMP_WAIT_POLICY=passive
# Its own memory of kernel timings: tests that run at the same time must not change each other's plans.
export XDG_CACHE_HOME=$work/cache

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Tests with hosts of tools/cluster; ctest counts 77 as skipped.
needs_root() {
    [ "$(id -u)" = 0 ] || { echo "skipped: namespaces need root" && exit 77; }
}

# expect CODE COMMAND…: runs it, with stdout in $work/out and stderr in $work/err.
expect() {
    local want=$1 got=0
    shift
    timeout 300 "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" = "$want" ] || fail "$* ended with $got instead of $want: $(tail -n 5 "$work/err")"
}

# json PYTHON-EXPRESSION: of the object o on stdout, which must be the only thing there.
json() {
    /usr/bin/python3 - "$work/out" "$1" <<'PY' || fail "$1 in $(head -c 2000 "$work/out")"
import json, sys
text = open(sys.argv[1]).read()
assert text.count("\n") == 1, "more than one line"
o = json.loads(text)
assert eval(sys.argv[2]), sys.argv[2]
PY
}

says() { # PATTERN: on stderr
    grep -qE -- "$1" "$work/err" || fail "stderr does not say '$1': $(cat "$work/err")"
}

# The digest of a run's newest weights and optimiser state.
fingerprint() {
    local newest
    newest=$(ls "$1/checkpoints" | grep '^step-' | sort -t- -k2n | tail -n 1)
    cat "$1/checkpoints/$newest/model.safetensors" "$1/checkpoints/$newest/state.safetensors" |
        sha256sum
}
