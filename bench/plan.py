#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Training steps with the kernels that are chosen by shape against those that are timed (--tune).

    plan.py PATH-OF-PACELINE [--rounds N] [--only MODEL:BATCH:THREADS] [--cpu] [--json FILE] [--table FILE]

Where both plans name the same kernels there is nothing to measure, and the ratio is 1. Elsewhere
the two take turns, a burst of steps each, of which the median counts (tools/results.py); the ratio
is taken in every round, and the median of the rounds is reported with its quartiles. Each case is
timed anew, with an empty memory of timings: what --tune finds on a busy machine may be slower than
the rule. --cpu compares CPU time instead of time, which says more where other programs run; waiting
threads spin for some of it. With PACELINE_CPU=portable the kernels of that level are compared. Some half an hour."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import results  # noqa: E402

MODELS = ("mnist-cnn", "vgg11", "vgg16", "resnet18")
CASES = [(model, batch, threads) for model in MODELS for batch in (1, 4, 8, 16, 32, 64, 128, 256)
         for threads in (1, 2)]
MOST = 40  # steps of a burst
SIDES = {"rule": [], "tune": ["--tune"]}


def command(program, model, batch, threads, side):
    return [program, "bench", "step", model, "--batch", str(batch), "--threads", str(threads), *SIDES[side]]


def plan_of(program, model, batch, threads, side):
    out = subprocess.run([*command(program, model, batch, threads, side), "--steps", "1", "--json"],
                         check=True, capture_output=True, text=True).stdout
    return dict(word.split("=") for word in json.loads(out)["kernels"].split())


def measure(program, model, batch, threads, rounds, clock):
    plans = {side: plan_of(program, model, batch, threads, side) for side in SIDES}
    different = [f"{layer} {plans['rule'][layer]}, timed {kernel}"
                 for layer, kernel in plans["tune"].items() if plans["rule"][layer] != kernel]
    found = {"model": model, "batch": batch, "threads": threads, "different": different,
             "layers": len(plans["rule"]), "seconds": None, "ratio": results.spread([1.0])}
    if not different:
        return found
    sides = {side: results.Paced([*command(program, model, batch, threads, side), "--paced"], MOST, clock)
             for side in SIDES}
    rows = results.race(sides, rounds)
    found["seconds"] = {name: statistics.median(r[name] for r in rows) for name in sides}
    found["ratio"] = results.spread([r["tune"] / r["rule"] for r in rows])
    return found


HEAD = ("| model | batch | threads | rule ms | timed ms | speed, rule over timed | layers that differ |\n"
        "|---|---|---|---|---|---|---|")


def row(r):
    times = " | ".join(f"{1e3 * r['seconds'][name]:.2f}" if r["seconds"] else "" for name in SIDES)
    ratio = results.show(r["ratio"], digits=3) if r["seconds"] else "1, the same plan"
    return (f"| {r['model']} | {r['batch']} | {r['threads']} | {times} | {ratio} | "
            f"{len(r['different'])} of {r['layers']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu", action="store_const", const="cpu_seconds", default="seconds")
    parser.add_argument("--only", action="append", help="MODEL:BATCH:THREADS")
    results.add_options(parser)
    args = parser.parse_args()
    found = []
    print(HEAD, flush=True)
    for case in results.chosen(args.only, CASES):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            found.append(measure(args.program, *case, args.rounds, args.cpu))
        print(row(found[-1]), *(f"    {line}" for line in found[-1]["different"]), sep="\n", flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
