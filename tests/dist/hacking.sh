#!/usr/bin/env bash
# Follows docs/HACKING.md and docs/plugins.md to the letter: puts their example files into a copy of
# the tree, builds that without touching anything else, and uses every one of them.
source "$(dirname "$0")/../support/dist.bash"

mkdir tree
cp -a "$root"/{src,tests,cmake,labs,tools,CMakeLists.txt,.clang-format} tree/ || fail "cannot copy the tree"
/usr/bin/python3 - "$root"/docs/{HACKING,plugins}.md <<'PY' >added.txt || fail "cannot take the examples out"
import pathlib, re, sys
for page in sys.argv[1:]:
    text = pathlib.Path(page).read_text()
    for path, body in re.findall(r"^```c file=(\S+)\n(.*?)^```$", text, re.M | re.S):
        file = pathlib.Path("tree", path)
        assert file.parent.is_dir() and not file.exists(), path
        file.write_text(body)
        print(path)
PY
[ "$(wc -l <added.txt)" = 10 ] || fail "10 example files expected: $(cat added.txt)"

expect 0 tree/tools/arrows
expect 0 tree/tools/format
expect 0 cmake -G Ninja -S tree -B tree/build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1
timeout 500 cmake --build tree/build -j 2 --target paceline conform-layers_test unit-nn-conv_test conform-collectives_test conform-aggregators_test \
    >build.txt 2>&1 || fail "the examples do not build: $(tail -n 30 build.txt)"
# With little of the optimiser gcc warns of other files; the examples must be clean at any level.
grep -Ff added.txt build.txt | grep -E 'warning:|error:' && fail "an example draws warnings"
new=$PWD/tree/build/paceline

# The suites that go over the registries: the new layer and the new kernel are in them.
expect 0 "$new" model list
grep -q '^  leaky \[slope=0.01\] ' out || fail "the registry of layers lacks leaky: $(cat out)"
expect 0 tree/build/tests/conform-layers_test
expect 0 tree/build/tests/unit-nn-conv_test

expect 0 tree/build/tests/conform-collectives_test shm
expect 0 tree/build/tests/conform-aggregators_test
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
