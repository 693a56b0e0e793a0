#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes the numbers of tests/golden/*.txt with PyTorch (Debian's python3-torch; numpy; no more).

    make_golden.py [FOLDER]      default: beside this script

Models start from the rule of src/nn/tensor.h, so no weight file is needed: element i of the
ordinal-th parameter tensor is (2u-1)*bound, u from stream INIT. A sample of a golden batch is
    label  = word 0 of (seed, TEST, layer 0, sample) % 10
    x[i]   = 0.5 * (2a-1) + 0.5 * (2b-1), a = unit i of (seed, TEST, layer 1, sample = label),
                                          b = unit i of (seed, TEST, layer 2, sample)
with samples numbered on from 0 over the batches: a class pattern under noise, so that the loss
falls. Dropout is off. Networks with batch-norm magnify rounding from step to step (a ReLU or a
maximum flips), so each run is made a second time with every layer's output off by a random 3e-6,
about what one kernel differs from another; the script refuses settings under which that moves
a loss by more than half of the test's tolerance.
"""
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
import philox  # noqa: E402
from torch_models import CLASSES  # noqa: E402

SEED = 20190
STEPS = 10
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
MODELS = {  # batch, learning rate, input shape
    "mnist-cnn": (16, 0.02, (1, 28, 28)),
    "vgg11": (16, 3e-5, (3, 32, 32)),
    "resnet18": (4, 3e-5, (3, 32, 32)),
}
JITTER = 3e-6  # relative, of the outputs of conv and dense in the second run
TOLERATED = 5e-5  # relative, of a loss; the test allows 1e-4


def start(model):
    """PyTorch's default bounds with counter-based numbers; batch-norm keeps its ones and zeros
    but counts in the ordinal."""
    ordinal = 0
    for module in model.modules():
        own = dict(module.named_parameters(recurse=False))
        for name in ("weight", "bias"):
            parameter = own.get(name)
            if parameter is None:
                continue
            if not isinstance(module, nn.BatchNorm2d):
                bound = np.float32(1 / np.sqrt(module.weight[0].numel()))
                u = philox.unit(SEED, philox.INIT, ordinal, 0, 0, parameter.numel())
                values = (np.float32(2) * u - np.float32(1)) * bound
                parameter.data.copy_(torch.from_numpy(values.reshape(parameter.shape)))
            ordinal += 1


def batch_of(number, batch, shape):
    count = int(np.prod(shape))
    samples = np.arange(number * batch, (number + 1) * batch)
    labels = philox.words(SEED, philox.TEST, 0, 0, samples, 1)[:, 0] % 10
    signed = [np.float32(2) * philox.unit(SEED, philox.TEST, layer, 0, sample, count) -
              np.float32(1) for layer, sample in ((1, labels), (2, samples))]
    x = np.float32(0.5) * signed[0] + np.float32(0.5) * signed[1]
    return torch.from_numpy(x.reshape((batch,) + shape)), torch.from_numpy(labels.astype(np.int64))


def jitter(model):
    def scale(_module, _inputs, output):
        return output * (1 + JITTER * (2 * torch.rand_like(output) - 1))

    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            module.register_forward_hook(scale)


def train(name, jittered):
    """(losses, then the evaluation loss of a further batch; model; starting parameters)"""
    batch, lr, shape = MODELS[name]
    model = CLASSES[name]()
    start(model)
    if jittered:
        torch.manual_seed(1)
        jitter(model)
    before = {key: value.detach().clone() for key, value in model.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), lr, MOMENTUM, weight_decay=WEIGHT_DECAY)
    losses = []
    for number in range(STEPS):
        x, labels = batch_of(number, batch, shape)
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    model.eval()
    x, labels = batch_of(STEPS, batch, shape)
    with torch.no_grad():
        losses.append(F.cross_entropy(model(x), labels).item())
    return losses, model, before


def l2(tensor):
    return tensor.detach().double().norm().item()


def golden_model(name):
    batch, lr, _ = MODELS[name]
    losses, model, before = train(name, False)
    other, _, _ = train(name, True)
    drift = max(abs(a - b) / a for a, b in zip(losses, other))
    print(name, " ".join(f"{loss:.4f}" for loss in losses), f"drift {drift:.0e}", file=sys.stderr)
    if drift > TOLERATED:
        raise SystemExit(f"{name}: rounding moves a loss by {drift:.0e}; lower its learning rate")
    lines = [f"# {name} trained by PyTorch {torch.__version__}; "
             f"drift under a jitter of {JITTER}: {drift:.0e}.",
             "# Made by make_golden.py, which defines the samples; read by losses_test.c.",
             "# loss STEP MEAN; evaluation MEAN (next batch); param NAME |w| |w - start|;",
             "# stat NAME |values|.",
             f"model {name}", f"seed {SEED}", f"steps {STEPS}", f"batch {batch}", f"lr {lr}",
             f"momentum {MOMENTUM}", f"weight_decay {WEIGHT_DECAY}"]
    lines += [f"loss {step} {loss:.9g}" for step, loss in enumerate(losses[:STEPS], 1)]
    lines.append(f"evaluation {losses[STEPS]:.9g}")
    lines += [f"param {key} {l2(value):.9g} {l2(value - before[key]):.9g}"
              for key, value in model.named_parameters()]
    lines += [f"stat {key} {l2(value):.9g}" for key, value in model.named_buffers()
              if not key.endswith("num_batches_tracked")]
    return lines


COUNT, UPDATES = 37, 20
OPTIMISERS = {  # name: optimiser and the settings that are not zero
    "plain": ("sgd", dict(lr=0.1)),
    "momentum": ("sgd", dict(lr=0.1, momentum=0.9)),
    "nesterov": ("sgd", dict(lr=0.1, momentum=0.9, nesterov=True)),
    "decay": ("sgd", dict(lr=0.1, momentum=0.9, weight_decay=0.05)),
    "nesterov-decay": ("sgd", dict(lr=0.05, momentum=0.5, nesterov=True, weight_decay=0.01)),
    "clipped": ("sgd", dict(lr=0.1, momentum=0.9, weight_decay=0.05, scale=0.25)),
    "adam": ("adam", dict(lr=0.01, weight_decay=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8)),
    "adam-fast": ("adam", dict(lr=0.1, beta1=0.8, beta2=0.95, epsilon=1e-3, scale=0.5)),
    "adamw": ("adamw", dict(lr=0.01, weight_decay=0.05, beta1=0.9, beta2=0.999, epsilon=1e-8)),
    "adamw-fast": ("adamw", dict(lr=0.1, beta1=0.8, beta2=0.95, epsilon=1e-3, scale=0.5)),
}
FIELDS = ("lr", "momentum", "nesterov", "weight_decay", "beta1", "beta2", "epsilon", "scale")


def vector(layer, sample):
    u = philox.unit(SEED, philox.TEST, layer, 0, sample, COUNT)
    return torch.from_numpy(np.float32(2) * u - np.float32(1))


def golden_optimiser(case):
    kind, given = OPTIMISERS[case]
    settings = {field: given.get(field, 1.0 if field == "scale" else 0) for field in FIELDS}
    weight = nn.Parameter(vector(3, 0).clone())
    if kind == "sgd":
        optimiser = torch.optim.SGD([weight], settings["lr"], settings["momentum"],
                                    nesterov=settings["nesterov"],
                                    weight_decay=settings["weight_decay"])
    else:
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        optimiser = kinds[kind]([weight], settings["lr"], (settings["beta1"], settings["beta2"]),
                                settings["epsilon"], settings["weight_decay"])
    for step in range(1, UPDATES + 1):
        weight.grad = vector(4, step) * settings["scale"]
        optimiser.step()
    lines = [" ".join(["case", case, kind] + [f"{float(settings[field]):g}" for field in FIELDS])]
    lines += [f"weight {i} {value:.9g}" for i, value in enumerate(weight.tolist())]
    for name, slot in optimiser.state[weight].items():
        if torch.is_tensor(slot) and slot.numel() == COUNT:
            lines += [f"slot {name} {i} {value:.9g}" for i, value in enumerate(slot.tolist())]
    return lines


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    philox.check()
    torch.set_num_threads(2)
    for name in MODELS:
        (folder / f"{name}.txt").write_text("\n".join(golden_model(name)) + "\n")
    lines = [f"# {UPDATES} updates of {COUNT} weights by PyTorch {torch.__version__}.",
             "# Made by make_golden.py, read by optimiser_test.c. Start: 2u-1 of (seed, TEST,",
             "# layer 3, sample 0); gradient of step t: 2u-1 of (seed, TEST, layer 4, sample t),",
             "# times the case's scale.", "# case NAME OPTIMISER " + " ".join(FIELDS),
             f"seed {SEED}", f"count {COUNT}", f"updates {UPDATES}"]
    for case in OPTIMISERS:
        lines += golden_optimiser(case)
    (folder / "optimiser.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
