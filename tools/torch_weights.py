# SPDX-License-Identifier: MIT
"""Carries weights between PyTorch and paceline; names, shapes, types and bits stay the same
(bfloat16, which numpy does not have, becomes float32, with the same values).

    /usr/bin/python3 tools/torch_weights.py to-paceline MODEL.pt OUT.safetensors
    /usr/bin/python3 tools/torch_weights.py to-torch IN.safetensors OUT.pt

MODEL.pt is what torch.save(model.state_dict(), …) wrote, or a dict with that as "model_state_dict"
or "state_dict"; only plain tensors are unpickled, never code. IN.safetensors may be a checkpoint's model.safetensors. Needs Debian's python3-torch and
python3-numpy, nothing else.
"""
import sys
from collections import OrderedDict

import numpy as np
import torch

import safetensors


def to_paceline(source, target):
    state = torch.load(source, map_location="cpu", weights_only=True)
    for key in "model_state_dict", "state_dict":  # a checkpoint with an optimiser and more beside
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise ValueError(f"{source} does not hold a state_dict; save model.state_dict() instead")
    plain = {n: t.float() if t.dtype == torch.bfloat16 else t for n, t in state.items()}
    safetensors.save(target, {name: tensor.detach().numpy() for name, tensor in plain.items()})
    return len(state)


def to_torch(source, target):
    arrays = safetensors.load(source)
    for name, array in arrays.items():
        if array.dtype == np.dtype("<u4"):
            raise ValueError(f"tensor '{name}': PyTorch has no U32; this is not a model's file")
    state = OrderedDict((name, torch.from_numpy(array)) for name, array in arrays.items())
    torch.save(state, target)
    return len(state)


def main(arguments):
    commands = {"to-paceline": to_paceline, "to-torch": to_torch}
    if len(arguments) != 3 or arguments[0] not in commands:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        count = commands[arguments[0]](*arguments[1:])
    except Exception as error:  # torch raises many kinds; a person needs the sentence, not the trace
        print(f"torch_weights: cannot convert {arguments[1]}: {error}", file=sys.stderr)
        return 1
    print(f"{arguments[2]}: {count} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
