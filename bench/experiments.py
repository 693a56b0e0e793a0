#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Reports' experiments with vgg11 on CIFAR-10, beside what their authors measured.

    experiments.py PATH-OF-PACELINE [s3] [s1] [hosts] [--iterations N] [--limited] [--rounds N]
                   [--rate R] [--tls] [--json FILE] [--table FILE]

s3: four ways of synchronising, 1 node x 256 and 4 nodes x 64 samples, 40 iterations of which the
first is left out. s1: 1 node and 3 nodes x 64 samples; each of three does a third of the
iterations. Their nodes were machines; here they are workers that share this machine's cores, or
with --limited (root) hosts of tools/cluster with an equal part of the cores each and links between
them.

hosts (root): gather-scatter, allreduce and ddp in turns on 2 and 4 hosts that share the cores, a
worker of one thread on each, 256 samples in all. T0 is a step without communication: as many
trainings that have nothing to do with each other, started together, each with one host's share;
the mean of their medians. `hidden` is 1 - (ddp - T0) / (allreduce - T0), taken in every round.
Without arguments all three; where CIFAR-10 is not there, on made-up images of its shape."""
import argparse
import collections
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

Case = collections.namedtuple("Case", "strategy nodes batch part seconds")

# `batch`: of a node. `part`: of the iterations of one node that each of them does, 1/part.
# `seconds`: of an iteration, as the report has them.
REPORTS = {
    "s3": [Case("single", 1, 256, 1, 1.477), Case("gather-scatter", 4, 64, 1, 1.155),
           Case("allreduce", 4, 64, 1, 0.967), Case("ddp", 4, 64, 1, 0.943)],
    "s1": [Case("single", 1, 64, 1, 1.903), Case("ddp", 3, 64, 3, 1.976)],
}
CORES = os.cpu_count()
TRAIN = ["--model", "vgg11", "--lr", "0.01", "--seed", "1", "--no-test"]


# ---- s3, s1 ----

def run_case(args, name, place, share, case):
    """share: cores of a node; None: all nodes share them."""
    timed = (args.iterations - 1) // case.part
    options = [*TRAIN, "--data", args.data, "--batch", case.nodes * case.batch,
               "--steps", 1 + timed, "--threads", max(1, round(share or CORES / case.nodes))]
    result = place.apart(1, *options)[0] if case.nodes == 1 else \
        place.together(case.nodes, case.strategy, *options)
    seconds = result["step_seconds"]["mean"]
    return {"experiment": name, "strategy": case.strategy, "nodes": case.nodes,
            "batch_per_node": case.batch, "threads": result["threads"], "cores_per_node": share,
            "data": args.data, "iterations": timed, "seconds": seconds,
            "total_seconds": timed * seconds, "losses": trainings.losses(result),
            "report_seconds": case.seconds, "report_total_seconds": timed * case.seconds}


def report(name, args):
    most = max(case.nodes for case in REPORTS[name])
    with contextlib.ExitStack() as stack:
        if args.limited:
            share = CORES / most
            stack.enter_context(trainings.cluster(most, "--cpu", f"{share:.3f}",
                                                  "--rate", args.rate, "--loopback"))
            place = trainings.Hosts(stack, args.program)
            print(f"{name}: {args.data}; nodes of {share:.2f} cores, {args.rate} between them")
        else:
            share, place = None, trainings.Here(stack, args.program)
            print(f"{name}: {args.data}; nodes share {CORES} cores")
        print(REPORT_HEAD, flush=True)
        for case in REPORTS[name]:
            yield run_case(args, name, place, share, case)


REPORT_HEAD = ("| report | strategy | nodes | batch of each | s an iteration | s in all | "
               "theirs: an iteration | in all | faster by | loss |\n"
               "|---|---|---|---|---|---|---|---|---|---|")


def report_row(r):
    return (f"| {r['experiment'].upper()} | {r['strategy']} | {r['nodes']} | "
            f"{r['batch_per_node']} | {r['seconds']:.3f} | "
            f"{r['total_seconds']:.1f} ({r['iterations']} iterations) | "
            f"{r['report_seconds']:.3f} | {r['report_total_seconds']:.1f} | "
            f"{r['report_seconds'] / r['seconds']:.2f}x | {r['losses'][-1]:.4f} |")


# ---- hosts ----

STRATEGIES = ("gather-scatter", "allreduce", "ddp")


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


HOSTS_HEAD = ("| hosts | batch of each | link | gather-scatter s | allreduce s | ddp s | T0 s | "
              "hidden |\n|---|---|---|---|---|---|---|---|")


def hosts_row(r):
    seconds = " | ".join(f"{r['seconds'][name]:.3f}" for name in (*STRATEGIES, "T0"))
    return (f"| {r['hosts']} | {r['batch_per_host']} | {r['rate']}{', TLS' if r['tls'] else ''} | "
            f"{seconds} | {results.show(r['hidden'], unit='')} |")


def hosts(args):
    print(f"hosts: {args.data}; a worker of one thread on each, {CORES} cores for all", flush=True)
    print(HOSTS_HEAD, flush=True)
    if args.tls:
        token = subprocess.run([args.program, "token"], check=True, text=True, capture_output=True)
        os.environ["PACELINE_TOKEN"] = token.stdout.strip()
    for count in (2, 4):
        yield on_hosts(args, count)


EXPERIMENTS = {
    "s3": (REPORT_HEAD, report_row, functools.partial(report, "s3")),
    "s1": (REPORT_HEAD, report_row, functools.partial(report, "s1")),
    "hosts": (HOSTS_HEAD, hosts_row, hosts),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("experiments", nargs="*", metavar="s3|s1|hosts")
    parser.add_argument("--iterations", type=int, default=40, help="s3, s1: of one node")
    parser.add_argument("--limited", action="store_true",
                        help="s3, s1: every node has the same part of the cores")
    parser.add_argument("--turn", type=int, default=12, help="hosts: iterations timed in a turn")
    parser.add_argument("--rounds", type=int, default=5, help="hosts: of turns")
    parser.add_argument("--rate", default="1gbit", help="of every link, as tc writes it")
    parser.add_argument("--tls", action="store_true", help="hosts: connections are encrypted")
    results.add_options(parser)
    args = parser.parse_args()
    args.data = trainings.images(args.program)
    for name in args.experiments:
        if name not in EXPERIMENTS:
            parser.error(f"no experiment is called {name}; there are {', '.join(EXPERIMENTS)}")
    tables = []
    for name in args.experiments or EXPERIMENTS:
        head, row, experiment = EXPERIMENTS[name]
        tables.append((head, row, []))
        for result in experiment(args):
            tables[-1][2].append(result)
            print(row(result), flush=True)
    results.write(args, *tables)


if __name__ == "__main__":
    main()
