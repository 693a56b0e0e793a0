#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of labs, those of labs/ and others, some of them wrong, into the folder argv[1]."""
import json
import os
import pathlib
import sys


def write(name, body):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(body if isinstance(body, bytes) else json.dumps(body).encode())


def lab(cases, **others):
    return {"schema": 1, "about": "x", "cases": cases, **others}


for path in pathlib.Path(__file__).resolve().parents[2].glob("labs/*.json"):
    write(path.name, path.read_bytes())
ONE = [{"name": "a", "train": {"model": "m"}}]
write("grid", lab([{"train": {"strategy": ["ddp", "single"], "workers": [1, 2], "flip": [True, False], "lr": 0.1}}],
                  train={"model": "m", "seedless": [1, 2]}))
write("across", lab([{"train": {"strategy": ["ddp", "single"], "workers": [1, 2]}}, {"train": {"lr": 1}}], across="strategy"))
write("empty-name", lab([{"train": {"model": ["", "x"]}}]))
write("twice", lab([{"train": {"lr": [1, 1]}}]))
write("many", lab([{"train": {c: list(range(9)) for c in "abcdefgh"}}]))
write("seeds", lab(ONE, seeds=[1, 2, 3], columns=["speedup", "accuracy@2", "time.wait"], baseline="a", parallel=True))
write("seeds-wrong", lab(ONE, seeds=[1, 1]))
write("seeds-none", lab(ONE, seeds=0))
write("columns-wrong", lab(ONE, columns=["acuracy"]))
write("column-number", lab(ONE, columns=[1]))
write("baseline-wrong", lab(ONE, baseline="b", columns=["speedup"]))
write("no-baseline", lab(ONE, columns=["speedup"]))
write("theirs", lab([{**ONE[0], "theirs": {"accuracy": 1, "loss": 2.5}}]))
write("theirs-wrong", lab([{**ONE[0], "theirs": {"accuracy": "1"}}]))
write("theirs-of-many", lab([{"train": {"lr": [1, 2]}, "theirs": {}}]))
write("quick", lab(ONE, quick={"train": {"lr": 1}, "seeds": [5]}))
write("quick-wrong", lab(ONE, quick={"epochs": 1}))
LINES = {"name": "p", "kind": "lines", "x": "epoch", "y": "accuracy", "title": "t", "log_y": True}
write("plots", lab(ONE, plots=[LINES, {"name": "q", "kind": "bars", "y": "seconds"}]))
write("plot-name", lab(ONE, plots=[{**LINES, "name": "../p"}]))
write("plot-twice", lab(ONE, plots=[LINES, LINES]))
write("plot-kind", lab(ONE, plots=[{**LINES, "kind": "pie"}]))
write("plot-bars", lab(ONE, plots=[{**LINES, "kind": "bars"}]))
write("plot-epoch", lab(ONE, plots=[{**LINES, "y": "idle"}]))
write("option-null", lab([{"train": {"lr": None}}]))
write("option-list", lab([{"train": {"lr": [[1]]}}]))
write("option-own", lab([{"train": {"seed": 1}}]))
write("case", lab([3]))
write("no-cases", lab([]))
write("list", b"[]")
