#!/usr/bin/env bash
# What a run's folder and the exit code tell after endings of which tests/support/chaos.py found that
# they did not tell the truth.
source "$(dirname "$0")/../support/dist.bash"
source "$root/tests/support/cluster.bash"

job=(--data synthetic:train=96,test=16 --model mlp:8x1 --batch 16 --threads 1 --epochs 2 --kernels onednn)

# Killed after an epoch's checkpoint: run.json has that epoch, also after the rest is trained.
PACELINE_FAULT=1:saved:6 expect 1 "$paceline" train "${job[@]}" --workers 1 --port 0 --run saved
expect 0 "$paceline" train --resume saved --workers 1
/usr/bin/python3 -c '
import json
epochs = [e["epoch"] for e in json.load(open("runs/saved/run.json"))["epochs"]]
assert epochs == [1, 2], epochs' || fail "an epoch is missing in run.json"

# The status socket of an agent that was killed goes when the run goes on in one process.
