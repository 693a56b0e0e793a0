#!/usr/bin/env bash
# Completion of values in bash: names of registries, of data sets, of the runs that are there; and that the scripts for
# zsh and fish parse, where these shells are.
source "$(dirname "$0")/../support/dist.bash"

mkdir -p runs/{first,second} others/third runs/no-run
touch runs/{first,second}/run.json others/third/run.json
expect 0 "$paceline" completion bash
source out || fail "bash does not read the script"

completes() { # WORDS WANT…: the last word becomes one of these
    read -ra COMP_WORDS <<<"paceline $1"
    [ "${1: -1}" = ' ' ] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _paceline
    [ "${COMPREPLY[*]}" = "${*:2}" ] || fail "'paceline $1' becomes '${COMPREPLY[*]}', not '${*:2}'"
}
completes 'tra' trace train
completes 'dri'
completes 'train --model vgg' vgg11 vgg16
completes 'train --model = vgg' vgg11 vgg16
completes 'train --data cif' cifar10
completes 'train --schedule cos' cosine
completes 'train --optimizer ada' adam adamw
completes 'train --strategy local' local-sgd
completes 'train --transport sh' shm
completes 'train --kernels one' onednn
completes 'train --resume f' first
completes 'train --runs-dir others --like t' third
completes 'train --lr '
completes 'train --learn' # an alias is taken, not offered
completes 'train --batch-p' --batch-per-worker
completes 'eval --part t' test train
completes 'eval s' second
completes 'compare first s' second
completes 'report first s' second
completes 'plot first --x t' time
completes 'watch f' first
completes 'top --runs-dir others t' third
completes 'status ' --runs-dir --json --help first second
completes 'set f' first
completes 'runs r' rm
completes 'runs rm f' first
completes 'data g' get
completes 'data get ml-1' ml-100k ml-1m
completes 'model show res' resnet18
completes 'bench step mnist' mnist-cnn
completes 'help stra' strategies
completes 'lab s' s0 s1 s2 s3 s4
completes 'completion f' fish

for shell in zsh fish; do
    expect 0 "$paceline" completion $shell
    cp out script
    if command -v $shell >/dev/null; then
        $shell -n script || fail "$shell does not read its script"
    fi
done
grep -qF -- "-l schedule -r -a 'constant" script || fail "fish does not know the schedules"
expect 2 "$paceline" completion csh
says "unknown shell 'csh'"
