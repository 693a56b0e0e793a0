#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The largest network that each strategy holds with so much memory a worker (S2).

    largest.py PATH-OF-PACELINE [--memory BYTES] [--workers N …] [--width N] [--json FILE] [--table FILE]

Needs root: a worker on each of N test hosts (tools/cluster), which share no memory. A dense network grows in depth and
then in width until it no longer fits, by the word of `paceline plan --deepest`, which trains nothing. Trainings have
the last word: the network that was found is trained for three steps under `train --memory`, shrinks where that is
refused, and grows by a twentieth of its layers as long as that is not refused. Its peak memory and the time that its
workers wait stand beside the budget. `times one` is its number of weights over that of the largest network of one
worker."""
import argparse
import functools
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402

CLUSTER = str(pathlib.Path(__file__).resolve().parents[1] / "tools" / "cluster")
STRATEGIES = ["ddp", "ps", "zero:stage=3", "ring:replicate=off", "ring"]
PATIENCE = 600  # seconds of a training
GROWTH = 8  # neurons of a layer


def options(memory, width, depth):
    return ["--model", f"mlp:{width}x{depth}", "--data", "synthetic:train=256,test=10", "--batch", "32", "--threads", "1",
            "--memory", memory, "--no-test", "--no-checkpoint"]


def train(args, strategy, workers, width, depth):
    """The result of a short training, None where memory does not suffice."""
    command = [args.program, "train", *options(args.memory, width, depth), "--steps", "3", "--strategy", strategy,
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


@functools.cache
def foreseen(program, memory, workers, width):
    """The layers of that width that each strategy holds by the plan's word."""
    command = [program, "plan", *options(memory, width, 1), "--workers", str(workers), "--deepest", "--json"]
    if workers > 1:
        command += ["--link", "1G"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["strategies"]
    return {row["strategy"]: int(row["deepest"]["mlp"].split("x")[1]) for row in rows if "mlp" in row["deepest"]}


def largest(args, strategy, workers):
    def deepest(neurons):
        return foreseen(args.program, args.memory, workers, neurons).get(strategy, 0)

    width, depth = args.width, deepest(args.width)
    while depth > 0 and deepest(width + GROWTH) >= depth:
        width += GROWTH
    found = None
    while depth > 0 and (found := train(args, strategy, workers, width, depth)) is None:
        depth -= max(1, depth // 50)
    if found is None:
        return None
    while (larger := train(args, strategy, workers, width, depth + max(1, depth // 20))) is not None:
        depth, found = depth + max(1, depth // 20), larger
    return {"strategy": strategy, "workers": workers, "model": f"mlp:{width}x{depth}",
            "parameters": found["parameters"], "peak": max(r["peak_memory_bytes"] for r in found["ranks"]),
            "predicted": found["memory"]["resident_bytes"],
            "idle": sum(r["idle"] for r in found["ranks"]) / len(found["ranks"])}


HEAD = ("| strategy | workers | model | M weights | times one | peak MB of a worker | predicted MB | idle % |\n"
        "|---|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['strategy']} | {r['workers']} | {r['model']} | {r['parameters'] / 1e6:.1f} | "
            f"**{r['times_one']:.2f}** | {r['peak'] / 1e6:.0f} | {r['predicted'] / 1e6:.0f} | "
            f"{100 * r['idle']:.0f} |")


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
