#!/usr/bin/env bash
# Gradients of whole networks at a small batch against PyTorch in fp64: with every convolution
# algorithm forced in turn, and with the plan the machine would choose. After one step of plain
# momentum the optimiser's buffer is the gradient. Beside the bound stands what PyTorch's own fp32
# loses on the same network.
source "$(dirname "$0")/../support/dist.bash"
/usr/bin/python3 -c 'import numpy, torch' 2>/dev/null ||
    fail "needs PyTorch; install it with: apt-get install python3-torch python3-numpy"
export PYTHONPATH="$root/tools" PYTHONDONTWRITEBYTECODE=1

# The zoo's text without its dropout, whose mask PyTorch does not have.
expect 0 "$paceline" model show mnist-cnn --text
grep -v dropout "$work/out" >mnist-cnn.model
expect 0 "$paceline" model show vgg11 --text
cp "$work/out" vgg11.model

/usr/bin/python3 - <<'PY' || fail "PyTorch could not make the gradients"
import os
import struct
import numpy as np
import torch
import torch_models
from safetensors import save

torch.manual_seed(11)
random = np.random.default_rng(11)


def gradients(model, x, labels):
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(x), labels).backward()
    return {name: p.grad.numpy().copy() for name, p in model.named_parameters()}


for name, make, shape in (("mnist-cnn", torch_models.MnistCnn, (1, 28, 28)),
                          ("vgg11", torch_models.Vgg11, (3, 32, 32))):
    pixels = random.integers(0, 256, (8, *shape), dtype=np.uint8)
    labels = random.integers(0, 10, 8, dtype=np.uint8)
    os.makedirs(f"data/{name}")
    if name == "vgg11":
        records = [bytes([label]) + image.tobytes() for label, image in zip(labels, pixels)]
        for number in range(1, 6):
            with open(f"data/{name}/data_batch_{number}.bin", "wb") as file:
                file.write(b"".join(records[number - 1 :: 5]))
        with open(f"data/{name}/test_batch.bin", "wb") as file:
            file.write(records[0])
    else:
        for split in ("train", "t10k"):
            with open(f"data/{name}/{split}-images-idx3-ubyte", "wb") as file:
                file.write(struct.pack(">IIII", 2051, 8, *shape[1:]) + pixels.tobytes())
            with open(f"data/{name}/{split}-labels-idx1-ubyte", "wb") as file:
                file.write(struct.pack(">II", 2049, 8) + labels.tobytes())
    model = make().train()
    save(f"{name}.safetensors", {key: value.numpy() for key, value in model.state_dict().items()})
    x, y = torch.tensor(pixels) / 255, torch.tensor(labels.astype(np.int64))
    single = gradients(model, x, y)
    exact = gradients(model.double(), torch.tensor(pixels).double() / 255, y)
    np.savez(f"{name}-fp32.npz", **single)
    np.savez(f"{name}-fp64.npz", **exact)
PY

check() { # NAME KERNELS MOST: L2-relative distance of any tensor's gradient
    expect 0 "$paceline" train --model "$1.model" --data "data/$1" --no-normalise --init "$1.safetensors" \
        --batch 8 --steps 1 --lr 0.01 --momentum 0.9 --no-test --kernels "$2" --run "$1-$2" --threads 2
    /usr/bin/python3 - "$@" <<'PY' || fail "$1 with --kernels $2: see above"
import sys
import numpy as np
from safetensors import load

name, kernels, most = sys.argv[1], sys.argv[2], float(sys.argv[3])
exact, single = np.load(f"{name}-fp64.npz"), np.load(f"{name}-fp32.npz")
ours = load(f"runs/{name}-{kernels}/checkpoints/step-1/state.safetensors")


def distance(a, b):
    return float(np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b))


worst = {}
for key in exact.files:
    if np.linalg.norm(exact[key]) < 1e-12:
        continue  # a bias in front of a batch-norm: zero, and only rounding would be compared
    mine = ours["momentum_buffer." + key]
    worst[key] = (distance(mine, exact[key]), distance(single[key], exact[key]))
key = max(worst, key=lambda k: worst[k][0])
print(f"{name} {kernels}: {worst[key][0]:.2e} at {key} (PyTorch in fp32 {worst[key][1]:.2e}); "
      f"PyTorch's worst {max(v[1] for v in worst.values()):.2e}", file=sys.stderr)
assert len(worst) >= 8 and worst[key][0] <= most, worst
PY
}

for kernels in auto onednn winograd4 winograd2 direct; do
    check mnist-cnn $kernels 5e-6
    check vgg11 $kernels 3e-5
done
check vgg11 toeplitz2 3e-5
