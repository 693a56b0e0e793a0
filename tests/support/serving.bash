# Shared by tests of `paceline serve`: sourced after dist.bash. Servers listen on ports that the
# system chose; $inference, $management and $metrics are their addresses.
server=
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null; rm -rf "$work"' EXIT

eventually() { # COMMAND…: until it succeeds, a minute at most
    local end=$((SECONDS + 60))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not within a minute: $*: $(tail -n 3 serve.err)"
        sleep 0.05
    done
}

address() { # PORT-NAME
    sed -E "s/.*\"$1\":\"([^\"]*)\".*/\1/" ready.json
}

is_ready() {
    [ -s ready.json ] || kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat serve.err)"
    [ -s ready.json ]
}

serve() { # ARGUMENTS…: in the background, until it answers
    rm -f ready.json
    "$paceline" serve --port 0 --management-port 0 --metrics-port 0 --ready-file ready.json "$@" \
        >serve.out 2>serve.err &
    server=$!
    eventually is_ready
    inference=$(address inference) management=$(address management) metrics=$(address metrics)
}

stop() { # [SIGNAL [CODE]]
    local code=0
    kill "-${1:-TERM}" "$server"
    wait "$server" || code=$?
    server=
    [ "$code" = "${2:-143}" ] || fail "the server ended with $code: $(cat serve.err)"
}

# answers CODE CURL-ARGUMENTS…: the body is in $work/out
answers() {
    local want=$1 got
    shift
    got=$(curl -sS --max-time 60 -o "$work/out" -w '%{http_code}' "$@" 2>"$work/err") ||
        fail "curl $*: $(cat "$work/err")"
    [ "$got" = "$want" ] || fail "curl $* got $got instead of $want: $(cat "$work/out")"
}

body() { # PYTHON-EXPRESSION: of the JSON value o in $work/out
    /usr/bin/python3 - "$work/out" "$1" <<'PY' || fail "$1 in $(head -c 2000 "$work/out")"
import json, sys
o = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), sys.argv[2]
PY
}

make_png() { # FILE SEED: 28x28 pixels of noise
    /usr/bin/python3 - "$1" "$2" <<'PY'
import random, struct, sys, zlib
random.seed(int(sys.argv[2]))
rows = b"".join(b"\0" + bytes(random.randrange(256) for _ in range(28)) for _ in range(28))
def part(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open(sys.argv[1], "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0))
               + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
PY
}
