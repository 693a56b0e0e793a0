#!/usr/bin/env bash
# A server with more requests than it can answer: 200 or 503 and no other, and its memory stays flat.
# FULL=1: ten minutes of it.
source "$(dirname "$0")/../support/dist.bash"
command -v wrk >/dev/null || { echo "skipped: no wrk (tools/deps test installs it)" && exit 77; }
ulimit -n 4096 || fail "4096 files at a time are needed"
seconds=12
[ "${FULL-0}" = 0 ] || seconds=600
timeout $((seconds + 300)) "$root/tests/support/saturate.py" "$paceline" --seconds $seconds || fail "the server"
