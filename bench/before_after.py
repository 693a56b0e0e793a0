#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Training steps of two builds of paceline, before and after a change. Some five minutes.

    before_after.py OLD NEW [--rounds N] [--only MODEL:WORKERS:THREADS] [--json FILE] [--table FILE]

The programs take turns, old new new old …; a turn is a whole training of as many steps as fit a
second, six at least, of which the median counts. The ratio of speeds is taken in every round, and
the median of the rounds is reported with its quartiles, so that what disturbs the machine disturbs
both. One worker trains by itself, several with ddp. Both programs share the memory of kernel
timings, so they compute with the same kernels; the program ends where they do not."""
import argparse
import contextlib
import functools
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

CASES = [(model, workers, threads) for model in ("vgg11", "mnist-cnn")
         for workers, threads in ((1, 2), (1, 1), (2, 1))]
DATA = {"vgg11": "synthetic:shape=3x32x32,classes=10", "mnist-cnn": "synthetic"}
BATCH = 64
BURST = 1  # seconds
LEAST = 6  # steps of a burst
PAUSE = 0.02  # seconds, in which the threads of the turn before go to sleep


def train(place, model, workers, threads, steps):
    time.sleep(PAUSE)
    return place.together(workers, "ddp" if workers > 1 else "single", "--model", model, "--data", DATA[model],
                          "--batch", BATCH, "--threads", threads, "--steps", steps, "--epochs", steps, "--no-test")


def kernels(result):
    return json.loads(pathlib.Path(result["run"], "run.json").read_text())["about"]["kernels"]


def measure(programs, model, workers, threads, rounds):
    with contextlib.ExitStack() as stack:
        places = {name: trainings.Here(stack, program) for name, program in programs.items()}
        first = {name: train(place, model, workers, threads, LEAST) for name, place in places.items()}
        if len({kernels(result) for result in first.values()}) > 1:
            raise SystemExit(f"{model}: the programs do not compute with the same kernels")
        steps = 1 + max(LEAST, round(BURST / first["old"]["step_seconds"]["median"]))

        def turn(place):
            return train(place, model, workers, threads, steps)["step_seconds"]["median"]

        rows = results.take_turns({name: functools.partial(turn, place) for name, place in places.items()}, rounds)
    return {"model": model, "workers": workers, "threads": threads, "batch": BATCH, "rounds": rounds, "steps": steps,
            "seconds": {name: statistics.median(r[name] for r in rows) for name in programs},
            "ratio": results.spread([r["old"] / r["new"] for r in rows])}


HEAD = ("| model | workers | threads of each | old ms | new ms | speed, new over old |\n"
        "|---|---|---|---|---|---|")


def row(r):
    times = " | ".join(f"{1e3 * r['seconds'][name]:.2f}" for name in ("old", "new"))
    return f"| {r['model']} | {r['workers']} | {r['threads']} | {times} | {results.show(r['ratio'], digits=3)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", action="append", help="MODEL:WORKERS:THREADS")
    results.add_options(parser)
    args = parser.parse_args()
    if args.new is None:  # tools/bench knows one program
        print("skipped: a second program is needed: bench/before_after.py OLD NEW")
        return
    cases = CASES
    if args.only:
        cases = [(m, int(w), int(t)) for m, w, t in (only.split(":") for only in args.only)]
    found = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        print(HEAD, flush=True)
        for case in cases:
            found.append(measure({"old": args.old, "new": args.new}, *case, args.rounds))
            print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
