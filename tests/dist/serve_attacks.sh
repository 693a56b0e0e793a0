#!/usr/bin/env bash
# What a server must withstand: hostile requests, images, paths, clients, and the attacks on TorchServe.
# FULL=1: with 500 slow clients.
source "$(dirname "$0")/../support/dist.bash"
ulimit -n 4096 || fail "4096 files at a time are needed"
slow=60
[ "${FULL-0}" = 0 ] || slow=500
timeout 580 "$root/tests/support/attacks.py" "$paceline" --slow $slow || fail "the server"
