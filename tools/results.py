# SPDX-License-Identifier: MIT
"""What the programs of bench/ share: how sides take turns, what is said of the rounds, where
results go."""
import json
import pathlib
import statistics
import subprocess
import sys

PYTHON = "/usr/bin/python3"  # Debian's, which has PyTorch


def need_torch():
    """Ends the program where there is no PyTorch to compare with."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        print("skipped: no PyTorch (tools/deps test installs it)")
        sys.exit(0)


def take_turns(sides, rounds):
    """sides: name → function without arguments. What each of them gave, a dict a round; every
    round begins with another side."""
    names = list(sides)
    rows = []
    for number in range(rounds):
        first = number % len(names)
        rows.append({name: sides[name]() for name in names[first:] + names[:first]})
    return rows


def spread(values):
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else 3 * list(values)
    return {"median": statistics.median(values), "quartiles": [quartiles[0], quartiles[2]]}


def show(spread, unit="x", digits=2):
    low, high = spread["quartiles"]
    return f"**{spread['median']:.{digits}f}{unit}** ({low:.{digits}f} – {high:.{digits}f})"


def add_options(parser):
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)


def write(args, *tables):
    """A table is (head, row, results): its first lines, what makes a line of one result, these."""
    if args.json:
        found = [result for _, _, results in tables for result in results]
        args.json.write_text(json.dumps({"schema": 1, "results": found}, indent=1) + "\n")
    if args.table:
        texts = ["\n".join([head, *map(row, results)]) for head, row, results in tables]
        args.table.write_text("\n\n".join(texts) + "\n")
