#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Are runs of several workers the run of one? In the folder that has runs/:

    equal.py losses RUN RUN          ten steps with the same losses (1e-4) and samples, the same test
    equal.py gradients RUN RUN STEP  the same gradient (1e-5), of runs with --momentum 0, where the
                                     momentum buffer after a step is that step's gradient

Sums in another order differ by rounding. Where that makes a ReLU or an argmax of max-pooling change
sides, gradients below it differ by far more, and that is no fault. It is recognised by its
place: from the loss down, the first tensor that differs does so in the rows of one or two output
channels, and in all other rows agrees as everything above it does. Then it prints "flip"."""
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from safetensors import load  # noqa: E402

LOSSES, GRADIENTS = 1e-4, 1e-5
ZERO = 1e-6  # of the whole gradient: a bias in front of a batch-norm, which is rounding alone
FLIPPED = 2  # channels


def read(run):
    events = [json.loads(line) for line in open(f"runs/{run}/events.jsonl")]
    return [e for e in events if e["event"] == "step"], json.load(open(f"runs/{run}/run.json"))["result"]


def losses(one, other):
    (a, ra), (b, rb) = read(one), read(other)
    assert len(a) == len(b) == 10
    for x, y in zip(a, b):
        assert abs(x["loss"] - y["loss"]) <= LOSSES * x["loss"], (x["step"], x["loss"], y["loss"])
        assert x["samples"] == y["samples"], (x, y)
    assert abs(ra["test"]["loss"] - rb["test"]["loss"]) <= LOSSES * ra["test"]["loss"]
    ranks = rb["ranks"]
    assert len(ranks) == rb["workers"] and sum(r["samples"] for r in ranks) == sum(x["samples"] for x in a)
    for r in ranks:
        parts = sum(r[k] for k in ("compute", "communicate", "wait", "data", "stolen"))
        assert abs(parts - r["total"]) < 1e-3, r


def gradient(run, step):
    tensors = load(f"runs/{run}/checkpoints/step-{step}/state.safetensors")
    return {name.removeprefix("momentum_buffer."): value.astype(np.float64)
            for name, value in tensors.items() if name.startswith("momentum_buffer.")}


def gradients(one, other, step):
    a, b = gradient(one, step), gradient(other, step)
    assert a.keys() == b.keys()
    whole = np.sqrt(sum((g ** 2).sum() for g in a.values()))
    assert whole > 0
    for name in reversed(a):  # from the loss down
        size = np.linalg.norm(a[name])
        if size < ZERO * whole:
            continue
        rows = np.linalg.norm((a[name] - b[name]).reshape(len(a[name]), -1), axis=1) / size
        if np.linalg.norm(rows) <= GRADIENTS:
            continue
        rows.sort()
        assert np.linalg.norm(rows[:-FLIPPED]) <= GRADIENTS, f"{name} differs by {np.linalg.norm(rows):.1e}"
        print("flip")
        return


if __name__ == "__main__":
    {"losses": losses, "gradients": gradients}[sys.argv[1]](*sys.argv[2:])
