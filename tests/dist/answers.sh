#!/usr/bin/env bash
# What people asked for is on standard output, messages on standard error: eval, runs, compare, status, model, data.
source "$(dirname "$0")/../support/dist.bash"

small=(--model mlp:8x1 --data synthetic:train=320,test=100 --batch 32)
expect 0 "$paceline" train "${small[@]}" --epochs 1 --run one

answers() { # PATTERN ARGUMENT…: the answer has the pattern, and there is no message beside it
    expect 0 "$paceline" "${@:2}"
    grep -qE -- "$1" out || fail "the answer of '${*:2}' lacks '$1': $(cat out)"
    [ ! -s err ] || fail "'${*:2}' says on standard error: $(cat err)"
}
answers 'accuracy .* of 100 samples' eval one
answers 'precision' eval one --quiet
answers '^one ' runs
answers '^one ' compare one
answers 'parameters' model show mlp:8x1
answers '^mnist-cnn' model list
answers '^mnist' data list
answers 'samples' data info synthetic:train=64,test=16
answers '^ddp' strategies
expect 0 "$paceline" eval one --json
json "o['test']['accuracy'] >= 0"
expect 0 "$paceline" runs --runs-dir nowhere # no runs: an empty answer, and a message
[ ! -s out ] || fail "no runs, but: $(cat out)"
says 'no runs in nowhere'
