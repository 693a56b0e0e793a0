#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Do paceline, PyTorch and ONNX Runtime say the same of exported models? For tests/dist/export.sh, in
its folder:

    export.py images SET CxHxW     ten PNG files SET/0.png … of random squares
    export.py weights FILE         its weights and statistics become random ones whose answers differ
                                   from image to image, which those of a short training hardly do
    export.py check RUN SET        RUN.onnx, RUN-folded.onnx and RUN-pixels.onnx are sound by ONNX's own
                                   checker and hold the weights of runs/RUN; PyTorch with these weights
                                   gives what RUN.json, `paceline predict --json` of SET, says. Writes
                                   RUN.job for onnx_run.js
    export.py compare RUN SET      and so did ONNX Runtime
"""
import json
import os
import pathlib
import struct
import sys
import zlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
WITHIN, COUNT = 1e-4, 10
FORMS = "", "-folded", "-pixels"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def images(name, shape):
    """Pixels (COUNT,C,H,W) as PNG files, and as SET.npy."""
    c, h, w = (int(n) for n in shape.split("x"))
    squares = np.random.default_rng(5).integers(0, 256, (COUNT, c, h // 4 + 1, w // 4 + 1), dtype=np.uint8)
    pixels = squares.repeat(4, 2).repeat(4, 3)[:, :, :h, :w]
    os.makedirs(name)
    np.save(name, pixels)
    for i, image in enumerate(pixels):
        rows = b"".join(b"\0" + row.tobytes() for row in image.transpose(1, 2, 0))
        header = struct.pack(">2I5B", w, h, 8, 2 if c == 3 else 0, 0, 0, 0)
        with open(f"{name}/{i}.png", "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
                    chunk(b"IEND", b""))


def weights(path):
    from safetensors import load, save
    rng, arrays = np.random.default_rng(7), load(path)
    for name, a in arrays.items():
        if a.ndim > 1:
            new = rng.normal(0, np.sqrt(2 / (a.size / a.shape[0])), a.shape)
        elif name.endswith("running_var"):
            new = rng.uniform(0.5, 2, a.shape)
        elif name.endswith("num_batches_tracked"):
            continue
        else:
            new = rng.normal(1 if name.endswith("weight") else 0, 0.2, a.shape)
            new *= 0.7 if "layer" in name else 1  # what blocks add must not grow from block to block
        arrays[name] = new.astype(np.float32)
    save(path, arrays)


def torch_model(run):
    """What the model file says, written for PyTorch by hand."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    import torch_models

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.main = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
            self.mainnorm = nn.BatchNorm2d(16)
            self.side = nn.Conv2d(8, 16, 1, stride=2, bias=False)
            self.gate, self.head = nn.Linear(16, 16), nn.Linear(16, 4)

        def forward(self, x):
            a = F.relu(self.norm(self.stem(x)))
            x = F.relu(self.side(a) + self.mainnorm(self.main(a)))
            g = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
            return self.head(F.relu(self.gate(g) + g))

    class Pools(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(1, 12, (3, 1), padding=(1, 0), bias=False)
            self.grouped, self.norm = nn.Conv2d(12, 12, 3, padding=1, groups=4), nn.BatchNorm2d(12)
            self.hidden, self.vectors = nn.Linear(12, 9, bias=False), nn.BatchNorm1d(9)
            self.vectors.eps = 1e-3
            self.head = nn.Linear(9, 3)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.first(x)), 3, 2, 1)
            x = F.avg_pool2d(self.norm(self.grouped(x)), 3, 2, 1)
            x = F.avg_pool2d(F.max_pool2d(x, (2, 1)), (1, 2), 1)
            x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
            return self.head(self.vectors(self.hidden(x)))

    if run == "mlp":
        return nn.Sequential(nn.Flatten(), *(layer for sizes in ((784, 32), (32, 32)) for layer in (
            nn.Linear(*sizes), nn.ReLU())), nn.Linear(32, 10))
    return {**torch_models.CLASSES, "residual": Residual, "pools": Pools}[run]()


def torch_state(run, arrays):
    import torch
    names = {"0": "1", "2": "3", "4": "5"} if run == "mlp" else {}  # nn.Flatten stands before them
    rename = lambda name: ".".join([names.get(name.split(".")[0], name.split(".")[0])] + name.split(".")[1:])
    return {rename(name): torch.from_numpy(array.copy()) for name, array in arrays.items()}


def predicted(run):
    """(COUNT,classes), in the order of the labels."""
    result = json.load(open(f"{run}.json"))
    assert result["samples"] == COUNT and result["bad"] == 0, result
    rows = []
    for i, row in enumerate(result["predictions"]):
        assert row["file"].endswith(f"/{i}.png"), row
        score = "score" if run == "pools" else "probability"
        rows.append({entry["class"]: entry[score] for entry in row["classes"]})
        values = [entry[score] for entry in row["classes"]]
        assert values == sorted(values, reverse=True), values
    return rows


def in_order(rows, labels):
    assert all(set(row) == set(labels) for row in rows), (rows[0], labels)
    return np.array([[row[label] for label in labels] for row in rows])


def agree(what, ours, theirs):
    off = np.abs(ours - theirs).max()
    print(f"{what}: largest difference {off:.2e}")
    assert ours.shape == theirs.shape and off < WITHIN, what


def check(run, name):
    import onnx
    import torch
    from onnx import numpy_helper
    from safetensors import load
    weights = load(next(pathlib.Path(f"runs/{run}/checkpoints").glob("step-*")) / "model.safetensors")
    weights = {n: a for n, a in weights.items() if not n.endswith("num_batches_tracked")}
    pixels, job = np.load(f"{name}.npy").astype(np.float32), []
    for form in FORMS:
        model = onnx.load(f"{run}{form}.onnx")
        onnx.checker.check_model(model, full_check=True)
        assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
        assert model.producer_name == "paceline"
        shape = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        assert shape == ["batch", *pixels.shape[1:]], shape
        about = {p.key: p.value for p in model.metadata_props}
        mean, deviation = (np.array(json.loads(about[key]), np.float32).reshape(1, -1, 1, 1)
                           for key in ("mean", "deviation"))
        held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        kinds = [node.op_type for node in model.graph.node]
        if form == "":
            assert set(held) == set(weights), set(held) ^ set(weights)
            assert all(np.array_equal(held[n], weights[n]) for n in held)
        if form == "-folded":
            assert "BatchNormalization" not in kinds, kinds
        assert "Dropout" not in kinds
        x = pixels if form == "-pixels" else (pixels / 255 - mean) / deviation
        x.astype("<f4").tofile(f"{run}{form}.in")
        job.append({"model": f"{run}{form}.onnx", "input": f"{run}{form}.in", "shape": list(x.shape),
                    "output": f"{run}{form}.out"})
    json.dump(job, open(f"{run}.job", "w"))
    module = torch_model(run).eval()
    missing, unexpected = module.load_state_dict(torch_state(run, weights), strict=False)
    assert not unexpected and all(n.endswith("num_batches_tracked") for n in missing), (missing, unexpected)
    with torch.no_grad():
        y = module(torch.from_numpy((pixels / 255 - mean) / deviation))
        theirs = (y if run == "pools" else y.softmax(1)).numpy()
    labels = json.loads(about["labels"])
    ours = in_order(predicted(run), labels)
    assert ours.std(0).max() > 0.02, f"the answers hardly depend on the image: {ours.std(0)}"
    agree(f"{run}: PyTorch", ours, theirs)
    json.dump(labels, open(f"{run}.labels", "w"))


def compare(run):
    ours = in_order(predicted(run), json.load(open(f"{run}.labels")))
    for form in FORMS:
        agree(f"{run}{form}: ONNX Runtime", ours, np.fromfile(f"{run}{form}.out", "<f4").reshape(ours.shape))


if __name__ == "__main__":
    {"images": images, "weights": weights, "check": check, "compare": lambda run, _: compare(run)}[sys.argv[1]](*sys.argv[2:])
