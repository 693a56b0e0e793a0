# SPDX-License-Identifier: MIT
"""Writes valid manifests of checkpoints into the folder argv[1], with their digests as
src/store/manifest.c computes them, and a few that are nearly valid."""
import hashlib
import json
import os
import sys

FILE = {"bytes": 1234, "sha256": hashlib.sha256(b"").hexdigest()}


def text(fields):
    tail = '",' + json.dumps(fields, indent=1)[1:] + "\n"
    return '{"digest":"' + hashlib.sha256(tail.encode()).hexdigest() + tail


full = {
    "classes": 3,
    "data": {"digest": FILE["sha256"], "format": "idx", "name": "fashion-mnist"},
    "deviation": [0.3081],
    "files": {"model.safetensors": FILE, "state.safetensors": FILE},
    "input": [1, 28, 28],
    "kernels": "0=onednn",
    "labels": ["T-shirt", "caf\u00e9", "\u20ac \"quoted\" \\ \n"],
    "mean": [0.1307],
    "model": "conv 32 3x3 pad=1\nrelu\nmaxpool 2\nflatten\ndense 3\n",
    "settings": {"model": "mnist-cnn", "nested": [[], {}, None, True, -1e-300]},
    "schema": 1,
    "step": 938,
}
number = {"name": "age", "kind": "number", "fill": 30.5, "mean": 30.5, "deviation": 12.25}
colour = {"name": "colour", "kind": "category", "categories": ["", "blue", "red"]}
target = {"name": "kind", "kind": "category"}
table = {key: value for key, value in full.items() if key not in ("mean", "deviation")}
table["input"] = [4, 1, 1]
table["table"] = {"columns": [number, colour], "target": target}
table["data"] = {**full["data"], "test_share": 0.2, "test_seed": 1}
least = {"files": {}, "schema": 1, "step": 0}
seeds = {
    "full": text(full),
    "least": text(least),
    "plain": json.dumps(full),
    "colour": json.dumps({**full, "input": [3, 4, 5], "mean": [0, 0.5, 1], "deviation": [1, 2, 3]}),
    "crop": json.dumps({**full, "crop": "centre"}),
    "zero": json.dumps({**full, "deviation": [0]}),
    "infinite": json.dumps({**full, "mean": [1e39]}),
    "channels": json.dumps({**full, "mean": [0, 0]}),
    "sides": json.dumps({**full, "input": [1, 0, 28]}),
    "classes": json.dumps({**full, "classes": 0}),
    "names": json.dumps({**full, "labels": ["a", 1, "c"]}),
    "schema": text({**least, "schema": 2}),
    "negative": text({**least, "step": -1}),
    "path": text({**least, "files": {"../x": FILE}}),
    "self": text({**least, "files": {"manifest.json": FILE}}),
    "entry": text({**least, "files": {"x": 1}}),
    "digest": text({**least, "files": {"x": {"bytes": 1, "sha256": "00"}}}),
    "list": "[]",
    "table": json.dumps(table),
    "regression": json.dumps({**table, "classes": 1, "labels": ["price"],
                              "table": {"columns": [colour, number], "target": {**number, "name": "price"}}}),
    "twice": json.dumps({**table, "table": {"columns": [colour, colour], "target": target}}),
    "features": json.dumps({**table, "input": [3, 1, 1]}),
    "kind": json.dumps({**table, "table": {"columns": [target], "target": number}}),
    "scale": json.dumps({**table, "table": {"columns": [{**number, "deviation": 0}], "target": target}}),
    "odd": json.dumps({**table, "table": {"columns": [{**number, "kind": "odd"}], "target": target}}),
    "category": json.dumps({**table, "table": {"columns": [{**colour, "categories": [1]}], "target": target}}),
    "none": json.dumps({**table, "table": {"columns": [], "target": target}}),
    "share": json.dumps({**table, "data": {**table["data"], "test_share": 2}}),
    "wrong": text(least).replace("0", "1", 1),
}
for name, content in seeds.items():
    with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as file:
        file.write(content)
