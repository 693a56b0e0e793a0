# SPDX-License-Identifier: MIT
"""Writes saved rating models of every kind into the folder argv[1]: manifest, ids, rated items."""
import json
import os
import struct
import sys

SIZES = {"F32": ("f", 4), "I64": ("q", 8), "U32": ("I", 4), "U8": ("B", 1)}


def tensors(**entries):
    header, data = {}, b""
    for name, (kind, values) in entries.items():
        code, size = SIZES[kind]
        begin = len(data)
        data += struct.pack(f"<{len(values)}{code}", *values)
        header[name] = {"dtype": kind, "shape": [len(values)], "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":"))
    text += " " * (-(len(text) + 8) % 8)
    return struct.pack("<Q", len(text)) + text.encode() + data


def texts(words):
    data = b"".join(w.encode() + b"\0" for w in words)
    starts = [0]
    for w in words:
        starts.append(starts[-1] + len(w.encode()) + 1)
    return starts, list(data)


def manifest(model, facts, levels=(1, 2, 3, 4, 5), **more):
    ratings = {"model": model, "users": 2, "items": 3, "ratings": 4, "sweeps": 5, "mean": 3.5,
               "scale": {"lowest": 1, "highest": 5, "step": 1, "levels": list(levels)}, "facts": facts, "seed": 1}
    ratings.update(more)
    return json.dumps({"task": "ratings", "data": {"name": "r.csv", "path": "/r.csv"}, "ratings": ratings}).encode()


numbers = tensors(user=("U32", [1, 7]), item=("U32", [2, 3, 9]))
us, ut = texts(["anna", "béla"])
ts, tt = texts(["a", "b", "c"])
words = tensors(user_start=("I64", us), user_text=("U8", ut), item_start=("I64", ts), item_text=("U8", tt))
codes = tensors(start=("I64", [0, 2, 4]), item=("U32", [0, 1, 1, 2]), code=("U8", [0, 4, 2, 3]))
values = tensors(start=("I64", [0, 2, 4]), item=("U32", [0, 1, 1, 2]), value=("F32", [1.5, 2.25, 3, 4]))
seeds = {
    "bias-stat": (manifest("bias-stat", []), numbers, codes),
    "bias-als": (manifest("bias-als:user-damping=3", []), words, codes),
    "bias-gd": (manifest("bias-gd:sweeps=5", []), numbers, codes),
    "mf": (manifest("mf:k=8", [1.0, 0.1, 0.02]), words, codes),
    "ials": (manifest("ials:k=8", [], levels=()), numbers, values),
    "bmf": (manifest("bmf", [32, 4, 0, 0]), numbers, codes),
    "ordinal": (manifest("bmf:k=8,likelihood=ordinal", [8, 2, 0, 0]), numbers, codes),
    "time": (manifest("bmf:k=8,time=30", [8, 2, 14000, 12]), words, codes),
    "no-facts": (manifest("mf", []), numbers, codes),
    "falling": (manifest("bias-stat", [], levels=(2, 1)), numbers, codes),
    "few": (manifest("bias-stat", [], users=1), numbers, codes),
    "far": (manifest("bias-stat", []), numbers, tensors(start=("I64", [0, 2, 4]), item=("U32", [0, 1, 1, 3]),
                                                        code=("U8", [0, 4, 2, 3]))),
    "wild": (manifest("bias-stat", []), numbers, tensors(start=("I64", [0, 9, 4]), item=("U32", [0, 1, 1, 2]),
                                                         code=("U8", [0, 4, 2, 3]))),
    "endless": (manifest("bias-stat", []), tensors(user=("U32", [7, 1]), item=("U32", [2, 3, 9])), codes),
}
for name, parts in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        for part in parts:
            f.write(struct.pack("<I", len(part)) + part)
