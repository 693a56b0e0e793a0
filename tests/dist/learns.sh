#!/usr/bin/env bash
# The synthetic images need a network that sees shapes: a linear model stays at 60 % or below, the
# small CNN reaches 95 %, and shuffled labels teach nothing.
source "$(dirname "$0")/../support/dist.bash"

expect 0 "$paceline" train --model mlp:1x0 --data synthetic --epochs 8 --lr 0.01 --json --quiet
json "0.05 < o['test']['accuracy'] <= 0.60"
expect 0 "$paceline" train --model mnist-cnn --data synthetic --epochs 6 --lr 0.02 --json --quiet
json "o['test']['accuracy'] >= 0.95"
expect 0 "$paceline" train --model mnist-cnn --data synthetic:labels=shuffled,train=2000 \
    --epochs 3 --lr 0.02 --json --quiet
json "o['test']['accuracy'] <= 0.16"
