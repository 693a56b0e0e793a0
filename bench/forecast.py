#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `paceline plan` foresees, against trainings.

    forecast.py PATH-OF-PACELINE [--rounds N] [--only MODEL] [--workers N] [--json FILE] [--table FILE]

Everything is on this host. A round is a plan and then a short training of each strategy; plans and trainings take turns, so that a
machine which has other work disturbs both. Memory: the highest resident set of any worker over the plan's `resident_bytes`. Time: the median
step of the training over the plan's `step_seconds`. Both are medians over the rounds, with the lowest and highest. At the end: in how
many cases the plan's choice was the fastest of the trained strategies with the losses of one worker, or within 5 % of it."""
import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

# model → its data and batch; steps of a training
CASES = {
    "mlp:1024x4": (["--data", "synthetic:shape=1x28x28,classes=10,train=4096,test=10", "--batch", 128], 30),
    "mnist-cnn": (["--data", "synthetic:shape=1x28x28,classes=10,train=4096,test=10", "--batch", 64], 40),
    "vgg11": (["--data", "synthetic:shape=3x32x32,classes=10,train=512,test=10", "--batch", 16], 10),
}


def plan(program, model, options, workers):
    command = [program, "plan", "--model", model, *map(str, options), "--no-test", "--workers", str(workers), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def measure(place, args, model, workers):
    options, steps = CASES[model]
    rows, chosen = {}, []
    for _ in range(args.rounds):
        foreseen = plan(args.program, model, options, workers)
        found = {}
        for row in foreseen["strategies"]:
            result = place.together(workers, row["strategy"], "--model", model, *options, "--steps", steps, "--no-test")
            seconds = result["step_seconds"]["median"]
            peak = max(rank["peak_memory_bytes"] for rank in result["ranks"])
            rows.setdefault(row["strategy"], []).append(
                (peak / row["memory"]["resident_bytes"], seconds / row["step_seconds"], seconds))
            if row["exact"]:
                found[row["strategy"]] = seconds
        chosen.append(found[foreseen["choice"]["strategy"]] <= 1.05 * min(found.values()))
    return rows, chosen


HEAD = ("| model | workers | strategy | memory: measured / foreseen | time: measured / foreseen | ms |\n"
        "|---|---|---|---|---|---|")


def ratio(values):
    return f"**{statistics.median(values):.2f}** ({min(values):.2f} … {max(values):.2f})"


def row(r):
    return (f"| {r['model']} | {r['workers']} | {r['strategy']} | {ratio(r['memory'])} | {ratio(r['time'])} | "
            f"{1e3 * statistics.median(r['seconds']):.2f} |")


def within(found, key, bound):
    return sum(abs(statistics.median(r[key]) - 1) <= bound for r in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--workers", type=int, action="append")
    results.add_options(parser)
    args = parser.parse_args()
    found, choices = [], []
    print(HEAD, flush=True)
    with contextlib.ExitStack() as stack:
        place = trainings.Here(stack, args.program)
        for model in args.only or CASES:
            for workers in args.workers or (1, 2):
                rows, chosen = measure(place, args, model, workers)
                choices += chosen
                for strategy, values in rows.items():
                    memory, times, seconds = zip(*values)
                    found.append({"model": model, "workers": workers, "strategy": strategy, "memory": memory,
                                  "time": times, "seconds": seconds})
                    print(row(found[-1]), flush=True)
    print(f"memory within 10 %: {within(found, 'memory', 0.10)} of {len(found)}; time within 15 %: "
          f"{within(found, 'time', 0.15)} of {len(found)}; the choice is the fastest or within 5 % of it: "
          f"{sum(choices)} of {len(choices)}")
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
