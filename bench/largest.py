#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The largest network that each strategy holds with so much memory a worker (S2).

    largest.py PATH-OF-PACELINE [--memory BYTES] [--workers N …] [--width N] [--json FILE] [--table FILE]

Needs root: a worker on each of N test hosts (tools/cluster), which share no memory. A dense network
grows in depth until `train --memory` refuses it, then in width. The largest one is trained for three
steps, and its peak memory stands beside the budget. `times one` is its number of weights over that of
the largest network of one worker."""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402

CLUSTER = str(pathlib.Path(__file__).resolve().parents[1] / "tools" / "cluster")
STRATEGIES = ["ddp", "ps", "zero:stage=3", "ring:replicate=off", "ring"]
PATIENCE = 600  # seconds of a training


def train(args, strategy, workers, width, depth):
    """The result of a short training, None where memory does not suffice."""
    command = [args.program, "train", "--model", f"mlp:{width}x{depth}", "--data",
               "synthetic:train=256,test=10", "--batch", "32", "--steps", "3", "--threads", "1",
               "--memory", args.memory, "--no-test", "--no-checkpoint", "--strategy", strategy,
               "--runs-dir", "/tmp/largest", "--quiet", "--json"]
    if workers > 1:
        command = [CLUSTER, "train", "--loopback", "--", *command, f"--workers={workers}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=PATIENCE)
    result = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    if result.get("error", {}).get("code") == "memory":
        return None
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return result


def most(fits, first):
    """The largest number that fits and what it gave, if all below do, too; None: `first` does not."""
    low, found = first, fits(first)
    if found is None:
        return None, None
    high = 2 * low
    while (larger := fits(high)) is not None:
        low, found, high = high, larger, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        larger = fits(middle)
        low, found, high = (middle, larger, high) if larger is not None else (low, found, middle)
    return low, found


def largest(args, strategy, workers):
    depth, found = most(lambda d: train(args, strategy, workers, args.width, d), 2 * workers)
    if found is None:
        return None
    width, wider = most(lambda w: train(args, strategy, workers, w, depth), args.width)
    found = wider or found
    return {"strategy": strategy, "workers": workers, "model": f"mlp:{width}x{depth}",
            "parameters": found["parameters"], "peak": max(r["peak_memory_bytes"] for r in found["ranks"]),
            "predicted": found["memory"]["resident_bytes"]}


HEAD = ("| strategy | workers | model | M weights | times one | peak MB of a worker | predicted MB |\n"
        "|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['strategy']} | {r['workers']} | {r['model']} | {r['parameters'] / 1e6:.1f} | "
            f"**{r['times_one']:.2f}** | {r['peak'] / 1e6:.0f} | {r['predicted'] / 1e6:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--memory", default="256M")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--width", type=int, default=512)
    results.add_options(parser)
    args = parser.parse_args()
    one = largest(args, "single", 1)
    found = [one | {"times_one": 1}]
    print(HEAD, row(found[0]), sep="\n", flush=True)
    for workers in args.workers:
        for strategy in STRATEGIES:
            held = largest(args, strategy, workers)
            if held is not None:
                found.append(held | {"times_one": held["parameters"] / one["parameters"]})
                print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
