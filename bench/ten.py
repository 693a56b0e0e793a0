#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ten workers against one, each limited to a part of a core: time.

    ten.py PATH-OF-PACELINE [--cpu X] [--epochs N] [--rounds N] [--faults] [--json FILE] [--table FILE]

The small CNN on MNIST. Every worker is a host of tools/cluster (root) with 0.18 of a core, and they
talk plain tcp. One worker and ten train by turns, each with the settings of `paceline lab ten`;
medians count. One worker trains one epoch alone, which is taken times their number. The ratio is at
best a tenth. With --faults ten take a third turn, in which one of them has a third of the others'
CPU and another one is killed in the middle; shares of a batch go by speed then. Accuracy and bytes
do not depend on the time: `paceline lab ten` measures them; of ten disturbed workers the accuracy
is in the table (with --epochs 5)."""
import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

WORKERS, SAMPLES = 10, 60000
COMMON = ["--model", "mnist-cnn", "--data", "mnist", "--threads", 1, "--momentum", 0.9,
          "--schedule", "one-cycle", "--eval-every", 0]
ONE = ["--batch", 64, "--lr", 0.05]
BATCH = 480
TEN = ["--batch", BATCH, "--lr", 0.05]
STRATEGY = "local-sgd:k=63,wire=int4,outer-lr=1,outer-momentum=0.7"


def train(args, cpus, run):
    """What `run` gives of the place, on hosts with so much CPU each."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            trainings.cluster(len(cpus), "--cpu", ",".join(map(str, cpus)), "--loopback"))
        result = run(trainings.Hosts(stack, args.program))
        return {"seconds": result["time"]["total"], "accuracy": result["test"]["accuracy"]}


def one(args):
    found = train(args, [args.cpu], lambda place: place.apart(
        1, *COMMON, *ONE, "--epochs", 1)[0])
    return found | {"seconds": args.epochs * found["seconds"]}


def ten(args, cpus=None, *options):
    return train(args, cpus or WORKERS * [args.cpu], lambda place: place.together(
        WORKERS, STRATEGY, *COMMON, *TEN, "--epochs", args.epochs, *options))


def disturbed(args):
    """Worker 4 is slow, and worker 7 kills itself."""
    cpus = [args.cpu / 3 if host == 3 else args.cpu for host in range(WORKERS)]
    os.environ["PACELINE_FAULT"] = f"7:update:{args.epochs * SAMPLES // BATCH // 2}"
    try:
        return ten(args, cpus, "--shares", "speed")
    finally:
        del os.environ["PACELINE_FAULT"]


HEAD = ("| workers | cores each | epochs | seconds | of one worker's | accuracy % |\n"
        "|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['name']} | {r['cpu']} | {r['epochs']} | {r['seconds']:.1f} | **{r['ratio']:.3f}** | "
            f"{100 * r['accuracy']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--cpu", type=float, default=0.18)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--faults", action="store_true")
    results.add_options(parser)
    args = parser.parse_args()
    subprocess.run([args.program, "data", "get", "mnist"], check=True, stdout=subprocess.DEVNULL)
    sides = {"one": lambda: one(args), "ten": lambda: ten(args)}
    if args.faults:
        sides["ten, one slow, one killed"] = lambda: disturbed(args)
    rounds = results.take_turns(sides, args.rounds)
    medians = {name: statistics.median(r[name]["seconds"] for r in rounds) for name in sides}
    found = [{"name": name, "cpu": args.cpu, "epochs": args.epochs, "seconds": medians[name],
              "ratio": medians[name] / medians["one"], "rounds": [r[name] for r in rounds],
              "accuracy": statistics.mean(r[name]["accuracy"] for r in rounds)} for name in sides]
    print(HEAD, *map(row, found), sep="\n", flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
