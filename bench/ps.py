#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What parameter servers gain where workers are not alike, and by pushes during backward: samples a second, against bsp.

    ps.py PATH-OF-PACELINE [--rounds N] [--steps N] [--batch N] [--model M] [--hosts N] [--rate R] [--only CASE]
          [--json FILE] [--table FILE]

Needs root, and a machine with two cores that does nothing else: a worker on each of four test hosts
(tools/cluster) with a CPU quota. Quotas act in bursts, so a step should take half a second at least;
--batch says how much it computes. Three cases:

    quotas  three hosts of 0.45 core and one of 0.15, even shares. bsp goes at the pace of the slowest:
            asp can be (3*0.45 + 0.15) / (4*0.15) = 2.5 times as fast, bsp without the slowest worker
            (backup=1) 3*0.45 / (4*0.15) = 2.25 times.
    stalls  four hosts of 0.4 core, each block is followed with probability 0.1 by a stall of two times
            a block. Of four workers one at least stalls in 0.34 of the steps of bsp: asp can be
            (1 + 2*0.34) / (1 + 2*0.1) = 1.41 times as fast.
    overlap no quotas, and links of --rate: bsp with overlap=on, against overlap=off. Backward can hide pushes.

Rates are of all steps, from the events; sides take turns, and the ratio is the median of those of the
rounds."""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

CASES = {
    "quotas": (("--cpu", "0.45,0.45,0.45,0.15"), {"asp": "ps:consistency=asp", "backup": "ps:backup=1"}),
    "stalls": (("--cpu", "0.4"), {"ssp": "ps:consistency=ssp,staleness=3", "asp": "ps:consistency=asp"}),
    "overlap": ((), {"on": "ps:overlap=on"}),
}
LIMITS = {("quotas", "asp"): 2.5, ("quotas", "backup"): 2.25, ("stalls", "asp"): 1.41, ("stalls", "ssp"): 1.41}


def rate(place, args, strategy):
    """Samples a second and seconds a step."""
    place.together(args.hosts, strategy, "--model", args.model, "--data", args.data, "--batch", args.batch,
                   "--threads", 1, "--steps", args.steps, "--no-test", "--eval-every", 0, "--lr", 0.001)
    events = pathlib.Path(place.folder, str(place.count), "events.jsonl").read_text().splitlines()
    steps = [e for e in map(json.loads, events) if e["event"] == "step"]
    seconds = sum(e["seconds"] for e in steps)
    return sum(e["samples"] for e in steps) / seconds, seconds / len(steps)


def measure(args, place, case):
    sides = {"bsp": "ps:overlap=off" if case == "overlap" else "ps", **CASES[case][1]}
    if case == "stalls":  # two times what a block takes
        os.environ["PACELINE_STALL"] = "0:0"
        block = rate(place, args, "ps")[1]
        os.environ["PACELINE_STALL"] = f"0.1:{2 * block}"
    rows = results.take_turns({name: lambda s=s: rate(place, args, s) for name, s in sides.items()}, args.rounds)
    os.environ.pop("PACELINE_STALL", None)
    for name in CASES[case][1]:
        ratios = [r[name][0] / r["bsp"][0] for r in rows]
        yield {"case": case, "side": name, "step_seconds": statistics.median(r["bsp"][1] for r in rows),
               "bsp": statistics.median(r["bsp"][0] for r in rows), "rate": statistics.median(r[name][0] for r in rows),
               "ratio": statistics.median(ratios), "ratios": ratios, "limit": LIMITS.get((case, name), "")}


HEAD = ("| case | side | seconds of a bsp step | bsp samples/s | samples/s | times bsp | limit |\n"
        "|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['case']} | {r['side']} | {r['step_seconds']:.2f} | {r['bsp']:.1f} | {r['rate']:.1f} | "
            f"**{r['ratio']:.2f}** | {r['limit']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--model", default="mnist-cnn")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="1gbit", help="of links, where they matter")
    parser.add_argument("--data", default="synthetic:shape=1x28x28,classes=10,train=60000,test=10")
    parser.add_argument("--only", action="append", choices=CASES)
    results.add_options(parser)
    args = parser.parse_args()
    found = []
    print(HEAD, flush=True)
    for case in args.only or CASES:
        with contextlib.ExitStack() as stack:
            limits = CASES[case][0] or ("--rate", args.rate)
            stack.enter_context(trainings.cluster(args.hosts, "--loopback", *limits))
            place = trainings.Hosts(stack, args.program)
            for entry in measure(args, place, case):
                found.append(entry)
                print(row(entry), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
