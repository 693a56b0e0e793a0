#!/usr/bin/env bash
# Time of a training step, by model and number of threads, on data that costs next to nothing to
# make. Prints the median; the first step (which sets up kernels) is apart.
set -euo pipefail
program=$1
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

printf '%-10s %5s %7s %12s %12s %12s\n' model batch threads 'first step' 'median step' samples/s
while read -r model data batch steps; do
    for threads in $(printf '%s\n' 1 "$(nproc)" | sort -un); do
        "$program" train --model "$model" --data "$data" --batch "$batch" --steps "$steps" \
            --threads "$threads" --runs-dir "$runs" --no-checkpoint --no-test --quiet --json |
            python3 -c '
import json, sys
r = json.load(sys.stdin)
t = r["step_seconds"]
first, median = t["first"] * 1e3, t["median"] * 1e3
rate = r["samples_per_second"]
model, batch, threads = r["model"], r["batch"], r["threads"]
print(f"{model:10} {batch:5} {threads:7} {first:9.1f} ms {median:9.2f} ms {rate:12.0f}")'
    done
done <<'END'
mnist-cnn synthetic 64 200
vgg11 synthetic:shape=3x32x32 64 12
resnet18 synthetic:shape=3x32x32 64 6
END
