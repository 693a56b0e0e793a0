# Shared by the tests/dist/*.sh that start jobs of several processes; sourced after dist.bash. A job
# is `paceline ping` under a name: NAME.out, NAME.err, NAME.events, NAME.status. Whatever a test
# leaves behind is ended with it.
declare -A agents
trap 'kill -KILL "${agents[@]}" 2>/dev/null; rm -rf "$work"' EXIT

# job NAME ARGUMENT…: starts a ping that runs until it is stopped.
job() {
    local name=$1
    shift
    rm -f "$name".{out,err,events,status}
    "$paceline" ping --count 1000000000 --interval 0.001 --silence 5 --gather 30 \
        --events "$name.events" --status "$name.status" --json "$@" \
        >"$name.out" 2>"$name.err" </dev/null &
    agents[$name]=$!
}

# eventually COMMAND…: waits until it succeeds.
eventually() {
    local end=$((SECONDS + 30))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "never: $*; $(tail -n 5 ./*.err)"
        sleep 0.02
    done
}

# has NAME PYTHON-EXPRESSION: some event e of the job is such; E: all of them so far.
has() {
    /usr/bin/python3 - "$1.events" "$2" 2>/dev/null <<'PY'
import json, sys
E = [json.loads(line) for line in open(sys.argv[1]) if line.endswith("\n")]
sys.exit(0 if any(eval(f"({sys.argv[2]})") for e in E) else 1)
PY
}

in_view() { # NAME NUMBER: the job has come to that view
    has "$1" "e['event'] == 'view' and e['view'] >= $2"
}

# of NAME PYTHON-EXPRESSION: printed, of the job's status s.
of() {
    "$paceline" status "$1.status" --json | /usr/bin/python3 -c "
import json, sys
s = json.load(sys.stdin)
print($2)"
}

worker_pid() { # NAME ID
    of "$1" "[w['pid'] for w in s['workers'] if w['id'] == $2][0]"
}

gone() { # PID…: none of them is there, not even as a zombie
    local pid
    for pid in "$@"; do [ ! -e "/proc/$pid" ] || return 1; done
}

# ends NAME CODE: the agent ends with it, and its standard output becomes $work/out.
ends() {
    local got=0
    eventually gone_or_zombie "${agents[$1]}"
    wait "${agents[$1]}" || got=$?
    unset "agents[$1]"
    [ "$got" = "$2" ] || fail "$1 ended with $got instead of $2: $(tail -n 8 "$1.err")"
    cp "$1.out" out
    cp "$1.err" err
}

gone_or_zombie() {
    ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" 2>/dev/null
}

free_port() {
    /usr/bin/python3 -c "
import socket
s = socket.socket()
s.bind(('127.0.0.1', 0))
print(s.getsockname()[1])"
}
