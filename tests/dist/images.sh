#!/usr/bin/env bash
# Folders of a person's own images: other folders for eval, moved ones, mixed and broken files.
source "$(dirname "$0")/../support/dist.bash"

# png SIZE LEVEL FILE…: grey squares of one level.
cat >png.py <<'PY'
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
side, level = int(sys.argv[1]), int(sys.argv[2])
for path in sys.argv[3:]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">2I5B", side, side, 8, 0, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress((b"\0" + bytes([level]) * side) * side)) + chunk(b"IEND", b""))
PY
png() { /usr/bin/python3 png.py "$@"; }
train=(--model mlp:8x1 --batch 4 --threads 1 --seed 3)

for part in train test; do
    png 4 20 set/$part/ant/{1..8}.png
    png 4 120 set/$part/bee/{1..8}.png
    png 4 230 set/$part/cat/{1..8}.png
done
expect 0 "$paceline" train "${train[@]}" --data set --epochs 20 --lr 0.05 --run own --json
json "o['test']['accuracy'] == 1"

# Another folder: some of the classes, test/ alone, images of another size. Classes go by name.
png 9 120 some/test/bee/{1..5}.png
png 9 230 some/test/cat/{1..5}.png
expect 0 "$paceline" eval own --data some --json
json "o['test']['accuracy'] == 1 and [c['support'] for c in o['test']['per_class']] == [0, 5, 5]"
json "[c['name'] for c in o['test']['per_class']] == ['ant', 'bee', 'cat']"
expect 1 "$paceline" train "${train[@]}" --data some
says 'some has no training samples'
mv some/test/bee some/test/dog
expect 1 "$paceline" eval own --data some --json
json "\"some: class 'dog' is not one of the model's 3: ant, bee, cat\" == o['error']['message']"

# The run knows where its data is, from any folder, and is told when the data has moved.
expect 0 "$paceline" train "${train[@]}" --data set --epochs 1 --run moved
mkdir elsewhere
(cd elsewhere && expect 0 "$paceline" eval moved --runs-dir ../runs) || exit 1
(cd elsewhere && expect 0 "$paceline" train --resume moved --runs-dir ../runs --epochs 2) || exit 1
mv set put
expect 1 "$paceline" train --resume moved --epochs 3
says "folder not found: .*$work/set; if it was moved, say where it is now with --data"
expect 1 "$paceline" eval moved
says "folder not found: .*$work/set"
expect 0 "$paceline" train --resume moved --epochs 3 --data put
expect 0 "$paceline" eval moved
grep -q "\"path\": \"$work/put\"" runs/moved/run.json || fail "run.json does not tell where the data is now"
cp -r put other
png 4 21 other/train/ant/9.png
expect 1 "$paceline" train --resume moved --epochs 4 --data other
says 'other is not the data that run moved was trained on'
mv put set

# Mixed sizes: the median of them, not the first; large ones are made smaller; told, and kept.
png 300 20 mixed/train/ant/1.png
png 8 20 mixed/train/ant/{2..4}.png
png 8 200 mixed/train/bee/{1..4}.png
expect 0 "$paceline" train "${train[@]}" --data mixed --epochs 1 --run mixed --json
says 'images of mixed are 8 to 300 high and 8 to 300 wide; all are scaled to 8x8'
grep -qz '"input": \[\s*1,\s*8,\s*8\s*\]' runs/mixed/run.json || fail "the median is not 8x8"
expect 0 "$paceline" train "${train[@]}" --data mixed --epochs 1 --image-size 6x10 --channels 3 --run wished
grep -qz '"input": \[\s*3,\s*6,\s*10\s*\]' runs/wished/run.json || fail "--image-size 6x10 --channels 3 is not followed"
grep -q 'scaled' err && fail "a wish is not to be warned of: $(cat err)"
expect 0 "$paceline" train --resume wished --epochs 2
expect 0 "$paceline" eval wished --part train
png 300 20 large/train/{ant,bee}/{1..2}.png
expect 0 "$paceline" train "${train[@]}" --data large --epochs 1 --run large
says 'images of large are 300x300 .* scaled to 256x256'
for wrong in 0x4 4 4x 4x4x4 5000x4 -1x4; do
    expect 2 "$paceline" train "${train[@]}" --data mixed --image-size $wrong
    says "not '$wrong'"
done
expect 2 "$paceline" train "${train[@]}" --data mixed --channels 2
expect 2 "$paceline" train "${train[@]}" --data synthetic --image-size 4x4
says 'images of a folder; those of synthetic'

# Cropped instead of stretched: told in the settings and the manifest, so that eval does the same; a
# random part in training is the centre in tests, and the same part whenever the seed is the same.
/usr/bin/python3 - <<'PY'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
# 8 high, 24 wide: the class is in the middle third alone, the rest misleads.
for part in ("train", "test"):
    for label, level in (("ant", 30), ("bee", 220)):
        os.makedirs(f"wide/{part}/{label}")
        for i in range(6):
            edge = bytes([(255 - level) if part == "test" else 128 + 9 * i] * 8)
            row = b"\0" + edge + bytes([level + i] * 8) + edge
            open(f"wide/{part}/{label}/{i}.png", "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(
                b"IHDR", struct.pack(">2I5B", 24, 8, 8, 0, 0, 0, 0)) + chunk(
                b"IDAT", zlib.compress(row * 8)) + chunk(b"IEND", b""))
PY
expect 0 "$paceline" train "${train[@]}" --data wide --image-size 8x8 --crop centre --epochs 30 --lr 0.05 --run centre --json
json "o['test']['accuracy'] == 1"
grep -q '"crop": "centre"' runs/centre/run.json || fail "the crop is not in run.json"
expect 0 "$paceline" eval centre --json
json "o['test']['accuracy'] == 1"
expect 0 "$paceline" predict centre wide/test/ant/0.png wide/test/bee/0.png --json
json "[p['classes'][0]['class'] for p in o['predictions']] == ['ant', 'bee']"
for run in r1 r2; do
    expect 0 "$paceline" train "${train[@]}" --data wide --image-size 8x8 --crop random --epochs 2 --run $run
done
[ "$(fingerprint runs/r1)" = "$(fingerprint runs/r2)" ] || fail "random crops differ from run to run"
grep -q '"crop": "random"' runs/r1/run.json || fail "the setting is not in run.json"
grep -rq '"crop": *"centre"' runs/r1/checkpoints/*/manifest.json || fail "the manifest does not say how images are cut"
expect 0 "$paceline" train "${train[@]}" --data wide --image-size 8x8 --epochs 2 --run whole
[ "$(fingerprint runs/r1)" != "$(fingerprint runs/whole)" ] || fail "--crop random changes nothing"
expect 0 "$paceline" train --resume r1 --epochs 3
expect 2 "$paceline" train --resume r1 --epochs 4 --crop none
says '--crop cannot change in a resumed run without --override'
expect 2 "$paceline" train "${train[@]}" --data wide --crop middle
says 'known: none, centre, random'
expect 2 "$paceline" train "${train[@]}" --data synthetic --crop centre
says 'cuts the images of a folder; those of synthetic'

# A file that breaks off: check names all such, the training saves before it fails and goes on after
# the repair, and --skip-bad leaves them out.
cp -r set bad
cp bad/train/bee/5.png sound.png
head -c 50 sound.png >bad/train/bee/5.png
broken="bad/train/bee/5.png: not a sound PNG"
expect 0 "$paceline" data check set
grep -q 'set: all 48 images can be read' out || fail "a sound folder: $(cat out)"
expect 1 "$paceline" data check bad
grep -q "^$broken" out || fail "a broken file is not named: $(cat out)"
says '1 of 48 images of bad cannot be read'
expect 1 "$paceline" data check bad --json
json "o['error']['code'] == 'data' and '$broken' in o['error']['message']"
for workers in 1 2; do
    head -c 50 sound.png >bad/train/bee/5.png
    expect 1 "$paceline" train "${train[@]}" --data bad --no-normalise --epochs 2 --workers $workers --run bad$workers
    if [ $workers = 1 ]; then
        says "$broken.*data check bad.*--resume bad1 goes on from step [1-5]$"
    else
        says "$broken"
        says 'saved after step [1-5]; go on with: .*--resume bad2'
    fi
    cp sound.png bad/train/bee/5.png
    expect 0 "$paceline" train --resume bad$workers
    says 'files of bad have other sizes'
done
expect 0 "$paceline" train "${train[@]}" --data set --no-normalise --epochs 2 --run sound
[ "$(fingerprint runs/bad1)" = "$(fingerprint runs/sound)" ] || fail "a repaired run has other weights"
head -c 50 sound.png >bad/train/bee/5.png
printf 'no image' >bad/test/ant/3.png
expect 1 "$paceline" train "${train[@]}" --data bad --epochs 1 --skip-bad 1
says '2 files cannot be read, more than --skip-bad 1'
expect 0 "$paceline" train "${train[@]}" --data bad --epochs 1 --skip-bad 2 --run skips
says "left out: $broken"
says 'left out: bad/test/ant/3.png: neither PNG nor JPEG'
says '2 files of bad left out'
says '23 training,'
expect 0 "$paceline" eval skips --json
json "o['test']['per_class'][0]['support'] == 7"
expect 1 "$paceline" eval skips --skip-bad 0
says '3.png: neither PNG nor JPEG'

# What is not read is told; an empty class is left out; a class without test images does not count
# in the means; folders that are too deep get one sentence.
cp -r set odd
rm -r odd/test/ant
mkdir odd/train/dog
printf x >odd/train/ant/a.webp
printf x >odd/train/bee/b.webp
printf x >odd/train/bee/c.GIF
png 4 120 odd/train/bee/deep/1.png
expect 0 "$paceline" train "${train[@]}" --data odd --epochs 20 --lr 0.05 --run odd
says 'odd: ignored 2 .webp, 1 .gif; only .png, .jpg and .jpeg are read'
says 'odd/train/dog holds no .png, .jpg or .jpeg and is left out'
says 'folders inside class folders are not read, such as odd/train/bee/deep'
says '24 training,.* samples of 1x4x4, 3 classes'
grep -q '^mean  *1.0000  *1.0000  *1.0000' runs/odd/report.txt || fail "a class without tests spoils the means: $(cat runs/odd/report.txt)"
mkdir deep
cp -r set/train deep/animals
expect 0 "$paceline" data info deep/animals
mkdir deeper
mv deep deeper/all
expect 1 "$paceline" data info deeper
[ "$(wc -l <err)" = 1 ] || fail "more than a line: $(cat err)"
says 'images in deeper/all/animals/ant are not in folders of classes: deeper needs train/CLASS/ and test/CLASS/, or CLASS/'
expect 1 "$paceline" data info set/train/ant
says 'images in set/train/ant are not in folders of classes'

# val/ or valid/ is the validation part: the best checkpoint and --patience go by it.
for name in val valid; do
    cp -r set with-$name
    mv with-$name/test with-$name/$name
    rm with-$name/$name/cat/8.png
    expect 0 "$paceline" data info with-$name
    grep -q ' 24 train, 0 test, 23 validation' out || fail "$name/ is not seen: $(cat out)"
    expect 0 "$paceline" train "${train[@]}" --data with-$name --epochs 2 --patience 2 --run $name
    says 'epoch 2 .*validation loss [0-9.]+'
    [ -e runs/$name/checkpoints/best ] || fail "no best checkpoint with $name/"
done
expect 2 "$paceline" train "${train[@]}" --data with-val --validation 0.2
says 'with-val: has a validation part of its own'
expect 2 "$paceline" train "${train[@]}" --data set --patience 2
says '--patience needs a validation part'
