#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Local SGD against ddp: what it saves in bytes, what it costs in accuracy.

    local_sgd.py PATH-OF-PACELINE [--epochs N] [--seeds N] [--k N] [--only DATA] [--json FILE]
                 [--table FILE]

mnist-cnn on MNIST and Fashion-MNIST, 4 workers with 25 samples of a step each: 600 steps an epoch,
so that with k = 8 rounds end where epochs do. Workers talk tcp, also on one machine: what passes
through shared memory is not counted. Bytes are those of all workers. What they are sent before the
first step is the same for both; a training of no steps measures it, and the ratio is told without
it and with it. Accuracy is the mean over the seeds of the test after the last epoch."""
import argparse
import contextlib
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

WORKERS, BATCH = 4, 100
SETS = ("mnist", "fashion-mnist")


def measure(args, place, data):
    options = ["--model", "mnist-cnn", "--data", data, "--batch", BATCH, "--lr", 0.01,
               "--threads", 1, "--eval-every", 0, "--transport", "tcp"]
    strategies = {"ddp": "ddp", "local-sgd": f"local-sgd:k={args.k}"}
    begin = trainings.bytes_sent(
        place.together(WORKERS, "ddp", *options, "--steps", 0, "--no-test"))
    options += ["--epochs", args.epochs]
    runs = {name: [place.together(WORKERS, strategy, *options, "--seed", seed)
                   for seed in range(1, args.seeds + 1)] for name, strategy in strategies.items()}
    sent = {name: statistics.mean(map(trainings.bytes_sent, found)) for name, found in runs.items()}
    accuracies = {name: [r["test"]["accuracy"] for r in found] for name, found in runs.items()}
    means = {name: statistics.mean(found) for name, found in accuracies.items()}
    return {"data": data, "workers": WORKERS, "batch": BATCH, "k": args.k, "epochs": args.epochs,
            "begin_bytes": begin, "bytes": sent,
            "steps_ratio": (sent["local-sgd"] - begin) / (sent["ddp"] - begin),
            "bytes_ratio": sent["local-sgd"] / sent["ddp"],
            "accuracies": accuracies, "accuracy": means,
            "difference": means["local-sgd"] - means["ddp"],
            "seconds": {name: statistics.mean(r["step_seconds"]["mean"] for r in found)
                        for name, found in runs.items()}}


HEAD = ("| data | epochs | seeds | ddp GB | local-sgd GB | bytes of steps | all bytes | ddp % | "
        "local-sgd % | points | ddp ms a step | local-sgd ms a step |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|")


def row(r):
    both = ("ddp", "local-sgd")
    sent = " | ".join(f"{r['bytes'][name] / 1e9:.3f}" for name in both)
    accuracy = " | ".join(f"{100 * r['accuracy'][name]:.2f}" for name in both)
    seconds = " | ".join(f"{1e3 * r['seconds'][name]:.1f}" for name in both)
    return (f"| {r['data']} | {r['epochs']} | {len(r['accuracies']['ddp'])} | {sent} | "
            f"**{r['steps_ratio']:.4f}** | {r['bytes_ratio']:.4f} | {accuracy} | "
            f"**{100 * r['difference']:+.2f}** | {seconds} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--only", action="append", choices=SETS)
    results.add_options(parser)
    args = parser.parse_args()
    sets = args.only or SETS
    subprocess.run([args.program, "data", "get", *sets], check=True, stdout=subprocess.DEVNULL)
    found = []
    print(HEAD, flush=True)
    with contextlib.ExitStack() as stack:
        place = trainings.Here(stack, args.program)
        for data in sets:
            found.append(measure(args, place, data))
            print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
