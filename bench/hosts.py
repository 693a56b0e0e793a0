#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What each way of synchronising costs between hosts (root): vgg11 on CIFAR-10.

    hosts.py PATH-OF-PACELINE [--turn N] [--rounds N] [--rate R] [--tls] [--json FILE] [--table FILE]

gather-scatter, allreduce and ddp in turns on 2 and 4 hosts of tools/cluster that share the cores, a
worker of one thread on each, 256 samples in all. T0 is a step without communication: as many
trainings that have nothing to do with each other, started together, each with one host's share;
the mean of their medians. `hidden` is 1 - (ddp - T0) / (allreduce - T0), taken in every round.
Where CIFAR-10 is not there, on made-up images of its shape."""
import argparse
import contextlib
import functools
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

STRATEGIES = ("gather-scatter", "allreduce", "ddp")
TRAIN = ["--model", "vgg11", "--lr", "0.01", "--seed", "1", "--no-test"]


def median_step(place, hosts, strategy, options):
    return place.together(hosts, strategy, *options)["step_seconds"]["median"]


def alone_step(place, hosts, options):
    return statistics.mean(r["step_seconds"]["median"] for r in place.apart(hosts, *options))


def on_hosts(args, hosts):
    job = [*TRAIN, "--data", args.data, "--threads", 1, "--steps", 1 + args.turn, "--batch"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(trainings.cluster(hosts, "--rate", args.rate, "--loopback"))
        place = trainings.Hosts(stack, args.program)
        sides = {s: functools.partial(median_step, place, hosts, s, [*job, 256])
                 for s in STRATEGIES}
        sides["T0"] = functools.partial(alone_step, place, hosts, [*job, 256 // hosts])
        rows = results.take_turns(sides, args.rounds)
    return {"experiment": "hosts", "hosts": hosts, "batch_per_host": 256 // hosts,
            "rate": args.rate, "tls": args.tls, "data": args.data, "rounds": args.rounds,
            "iterations": args.turn,
            "seconds": {name: statistics.median(row[name] for row in rows) for name in sides},
            "hidden": results.spread([1 - (row["ddp"] - row["T0"]) / (row["allreduce"] - row["T0"])
                                      for row in rows])}


HEAD = ("| hosts | batch of each | link | gather-scatter s | allreduce s | ddp s | T0 s | "
        "hidden |\n|---|---|---|---|---|---|---|---|")


def row(r):
    seconds = " | ".join(f"{r['seconds'][name]:.3f}" for name in (*STRATEGIES, "T0"))
    return (f"| {r['hosts']} | {r['batch_per_host']} | {r['rate']}{', TLS' if r['tls'] else ''} | "
            f"{seconds} | {results.show(r['hidden'], unit='')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--turn", type=int, default=12, help="iterations timed in a turn")
    parser.add_argument("--rounds", type=int, default=5, help="of turns")
    parser.add_argument("--rate", default="1gbit", help="of every link, as tc writes it")
    parser.add_argument("--tls", action="store_true", help="connections are encrypted")
    results.add_options(parser)
    args = parser.parse_args()
    args.data = trainings.images(args.program)
    print(f"{args.data}; a worker of one thread on each host, {os.cpu_count()} cores for all")
    print(HEAD, flush=True)
    if args.tls:
        token = subprocess.run([args.program, "token"], check=True, text=True, capture_output=True)
        os.environ["PACELINE_TOKEN"] = token.stdout.strip()
    found = []
    for count in (2, 4):
        found.append(on_hosts(args, count))
        print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
