#!/usr/bin/env bash
# vgg11's weights go from PyTorch to paceline and back unchanged: names, shapes, types and bits,
# running statistics and their step counts included, and load_state_dict takes them back strictly.
source "$(dirname "$0")/../support/dist.bash"
/usr/bin/python3 -c 'import numpy, torch' 2>/dev/null ||
    fail "needs PyTorch; install it with: apt-get install python3-torch python3-numpy"
export PYTHONPATH="$root/tools" PYTHONDONTWRITEBYTECODE=1

/usr/bin/python3 - <<'PY' || fail "PyTorch could not write vgg11.pt"
import torch
from torch_models import Vgg11

torch.manual_seed(7)
model = Vgg11()
state = model.state_dict()
for name, tensor in state.items():
    if name.endswith("num_batches_tracked"):
        tensor.fill_(391)
    elif name.endswith("running_var"):
        tensor.uniform_(0.5, 2)
    else:
        tensor.normal_(0, 0.05)
state["features.0.weight"].view(-1)[:2] = torch.tensor([-0.0, 1e-40])  # bits, not values
torch.save(state, "vgg11.pt")
wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
torch.save({"epoch": 3, "model_state_dict": wrapped, "optimizer_state_dict": {}}, "wrapped.pt")
PY

expect 0 /usr/bin/python3 "$root/tools/torch_weights.py" to-paceline vgg11.pt vgg11.safetensors

# Arguments: what `train` gets besides the model and small data of its shape.
train() {
    expect 0 "$paceline" train --model vgg11 --runs-dir runs --batch 16 --no-test \
        --data synthetic:shape=3x32x32,train=64,test=32 "$@"
}

train --init vgg11.safetensors --steps 0 --run back
saved=runs/back/checkpoints/step-0
[ -f "$saved/model.safetensors" ] || fail "no $saved/model.safetensors: $(cat "$work/err")"
expect 0 /usr/bin/python3 "$root/tools/torch_weights.py" to-torch "$saved/model.safetensors" back.pt

# The same file again through a checkpoint instead of a .safetensors file.
train --init "$saved" --steps 0 --run again
cmp "$saved/model.safetensors" runs/again/checkpoints/step-0/model.safetensors ||
    fail "a checkpoint given to --init is saved with other bytes"

# A checkpoint of DataParallel: its weights are inside, under names with "module." before them.
expect 0 /usr/bin/python3 "$root/tools/torch_weights.py" to-paceline wrapped.pt wrapped.safetensors
train --init wrapped.safetensors --steps 0 --run wrapped
says '^([0-9]+) of \1 tensors taken from wrapped.safetensors'
cmp "$saved/model.safetensors" runs/wrapped/checkpoints/step-0/model.safetensors ||
    fail "names with module. give other weights"
expect 1 "$paceline" train --model vgg11 --data synthetic:shape=3x32x32,train=64,test=32 --init vgg11.pt --steps 0
says 'vgg11.pt: a file of PyTorch; convert it: .*torch_weights.py to-paceline'

# `make install` brings the converter, which works from there.
expect 0 cmake --install "$(dirname "$paceline")" --prefix "$work/prefix" --component torch
PYTHONPATH='' expect 0 /usr/bin/python3 prefix/share/paceline/torch_weights.py to-paceline vgg11.pt installed.safetensors
cmp vgg11.safetensors installed.safetensors || fail "the installed converter writes something else"

# One step must change the weights: otherwise everything above could be an empty copy.
train --init vgg11.safetensors --steps 1 --run moved --lr 1e-6
cp runs/moved/checkpoints/step-1/model.safetensors moved.safetensors
expect 0 /usr/bin/python3 "$root/tools/torch_weights.py" to-torch moved.safetensors moved.pt

/usr/bin/python3 - <<'PY' || fail "the weights that came back are not those that went"
import torch
from torch_models import Vgg11

sent, back, moved = (torch.load(f"{name}.pt") for name in ("vgg11", "back", "moved"))
assert set(back) == set(sent), f"names: {set(back) ^ set(sent)}"
for name, tensor in sent.items():
    assert back[name].dtype == tensor.dtype, f"{name}: {back[name].dtype}, not {tensor.dtype}"
    assert back[name].shape == tensor.shape, f"{name}: {back[name].shape}, not {tensor.shape}"
    assert back[name].numpy().tobytes() == tensor.numpy().tobytes(), f"{name}: other bits"
for state in (back, moved):
    Vgg11().load_state_dict(state, strict=True)
assert not torch.equal(moved["features.25.weight"], sent["features.25.weight"])
assert moved["features.1.num_batches_tracked"].item() == 392, "the step was not counted"
PY
