# SPDX-License-Identifier: MIT
"""Writes valid safetensors files into the folder argv[1], and the shapes of the usual mistakes."""
import json
import os
import struct
import sys

SIZES = {"F32": 4, "I64": 8, "U32": 4, "U8": 1}


def tensors(*entries):
    """entries: (name, type, shape) -> header, bytes of data; contiguous, in order."""
    header, at = {}, 0
    for name, kind, shape in entries:
        size = SIZES.get(kind, 2)
        for n in shape:
            size *= n
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return header, at


def image(header, data, pad=8):
    text = header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))
    text += " " * (-(len(text) + 8) % pad)
    return struct.pack("<Q", len(text)) + text.encode() + bytes(i % 251 for i in range(data))


def place(offsets, shape, kind="U8"):
    return {"dtype": kind, "shape": shape, "data_offsets": offsets}


net = [("conv.weight", "F32", [2, 1, 3, 3]), ("conv.bias", "F32", [2]), ("bn.num_batches_tracked", "I64", []),
       ("position", "U32", [3]), ("mask", "U8", [5])]
header, size = tensors(*net)
shuffled = dict(sorted(header.items()))
seeds = {
    "empty": image({}, 0),
    "scalar": image(*tensors(("x", "F32", []))),
    "net": image(header, size, pad=64),
    "metadata": image({"__metadata__": {"format": "pt"}, **shuffled}, size, pad=64),
    "zero": image(*tensors(("a", "U8", [0, 3]), ("b", "U8", [1]), ("c", "I64", [0]))),
    "rank8": image(*tensors(("a", "U8", [1] * 8))),
    "many": image(*tensors(*((f"t{i}", "U8", [i % 3]) for i in range(40)))),
    # Not valid, but one change away from it.
    "bf16": image(*tensors(("a", "BF16", [2]))),
    "rank9": image(*tensors(("a", "U8", [1] * 9))),
    "overlap": image({"a": place([0, 2], [2]), "b": place([1, 3], [2])}, 3),
    "hole": image({"a": place([0, 1], [1]), "b": place([2, 3], [1])}, 3),
    "tail": image({"a": place([0, 1], [1])}, 2),
    "outside": image({"a": place([0, 3], [3])}, 2),
    "reversed": image({"a": place([2, 0], [2])}, 2),
    "mismatch": image({"a": place([0, 2], [1])}, 2),
    "overflow": image({"a": place([0, 0], [1 << 32, 1 << 32], "F32")}, 0),
    "negative": image({"a": place([0, 1], [-1])}, 1),
    "one-offset": image({"a": place([0], [0])}, 0),
    "number": image({"a": 1}, 0),
    "twice": image('{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{}}', 1),
    "list": image("[]", 0),
    "long": struct.pack("<Q", 1 << 40) + b"{}",
    "cut": struct.pack("<Q", 100) + b"{}",
    "tiny": b"\0\0\0",
}
for name, content in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(content)
