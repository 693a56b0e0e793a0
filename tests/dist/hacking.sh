#!/usr/bin/env bash
# Follows docs/HACKING.md and docs/plugins.md to the letter: puts their example files into the tree,
# builds that without touching anything else, and uses every one of them. The tree is an overlay over the
# real one, which only the build sees (in a mount namespace): so nothing is built twice.
source "$(dirname "$0")/../support/dist.bash"

build=$(dirname "$paceline")
[[ $build == "$root"/* ]] || fail "$build is not inside of the tree, and an overlay of that would not hold it"
targets=(conform-layers_test unit-nn-conv_test conform-collectives_test conform-aggregators_test)
mkdir upper scratch built
cat >build.bash <<'BUILD'
set -euo pipefail
here=$PWD
mount -t overlay overlay -o lowerdir="$root",upperdir="$here/upper",workdir="$here/scratch" "$root"
cd "$root"
/usr/bin/python3 - docs/{HACKING,plugins}.md <<'PY' >"$here/added.txt"
import pathlib, re, sys
for page in sys.argv[1:]:
    text = pathlib.Path(page).read_text()
    for path, body in re.findall(r"^```c file=(\S+)\n(.*?)^```$", text, re.M | re.S):
        file = pathlib.Path(path)
        assert file.parent.is_dir() and not file.exists(), path
        file.write_text(body)
        print(path)
PY
tools/arrows
tools/format
cmake --build "$build" -j 2 --target paceline "$@"
cp "$build/paceline" "${@/#/$build/tests/}" "$here/built"
BUILD
export root build
mine=()
[ "$(id -u)" = 0 ] || mine=(--map-root-user)
timeout 500 unshare --mount "${mine[@]}" bash build.bash "${targets[@]}" >build.txt 2>&1 || fail "the examples do not build: $(tail -n 30 build.txt)"
[ "$(wc -l <added.txt)" = 10 ] || fail "10 example files expected: $(cat added.txt)"
grep -E 'warning:|error:' build.txt && fail "an example draws warnings"
new=$PWD/built/paceline

# The suites that go over the registries: the new layer and the new kernel are in them.
expect 0 "$new" model list
grep -q '^  leaky \[slope=0.01\] ' out || fail "the registry of layers lacks leaky: $(cat out)"
expect 0 built/conform-layers_test
expect 0 built/unit-nn-conv_test

expect 0 built/conform-collectives_test shm
expect 0 built/conform-aggregators_test
expect 0 "$new" strategies --json
json "'newest' in [a['name'] for a in o['aggregators']]"
expect 0 "$new" bench collectives --workers 3 --collective broadcast=flat --bytes 1000000 --seconds 0.01 --json
json "[r['algorithm'] for r in o['results']] == ['flat']"

# One training with all of them: layer, optimiser, format, schedule, kernel.
/usr/bin/python3 - <<'PY'
import random, struct
random.seed(1)
side, classes, train, test = 8, 4, 64, 16
with open("tiny.rec", "wb") as file:
    file.write(b"PREC" + struct.pack("<4I", side, classes, train, test))
    for i in range(train + test):
        label = i % classes
        pixels = bytes(random.randrange(64) + (128 if k // 16 == label else 0) for k in range(side * side))
        file.write(bytes([label]) + pixels)
PY
printf '%s\n' 'conv 9 3x3 pad=1 name=first' 'leaky slope=0.1' 'conv 8 3x3 name=second' leaky \
    'dense classes' >tiny.model
expect 0 "$new" train --model tiny.model --data tiny.rec --optimiser lion --lr 0.003 --batch 16 \
    --schedule linear --kernels second=plain --epochs 6 --run tiny --json
json "o['test']['accuracy'] == 1.0 and o['steps'] == 24"
grep -q '"kernels": "first=onednn second=plain"' runs/tiny/run.json || fail "the plain kernel was not taken"
expect 0 "$new" eval tiny --json
json "o['test']['accuracy'] == 1.0"
expect 0 "$new" export tiny -o tiny.onnx --json
json "o['nodes'] == 7"
grep -q LeakyRelu tiny.onnx || fail "the layer is not in the exported file"
expect 0 "$new" train --resume tiny --epochs 7
says 'goes on after step 24'

# The strategy gives what one worker gives.
expect 0 "$new" train --like tiny --workers 2 --strategy two-phase --run pair --json
json "o['strategy'] == 'two-phase' and o['workers'] == 2 and o['test']['accuracy'] == 1.0"

# What is wrong is refused: a short file, an option out of range, a shape the kernel does not serve.
head -c 1000 tiny.rec >short.rec
expect 1 "$new" data info short.rec
says 'short.rec: .* bytes follow the header'
printf 'leaky slope=2\ndense classes\n' >steep.model
expect 1 "$new" train --model steep.model --data tiny.rec
says 'line 1.*slope'
expect 2 "$new" train --model tiny.model --data tiny.rec --kernels first=plain
says "'plain' does not serve"

expect 0 "$new" model show lenet --json
json "o['parameters'] == 61706"
expect 0 "$new" cpu --json
json "o['level'] in o['levels']"
expect 0 "$new" help cpu
