#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long workers of the ring wait, by schedule, against the formulas; and the ring against ddp.

    ring.py PATH-OF-PACELINE [--rounds N] [--steps N] [--batch N] [--microbatches M] [--only CASE] [--json FILE]
            [--table FILE]

Needs a machine with two cores that does nothing else, and root for three and four workers: these are on test
hosts (tools/cluster) with equal CPU quotas, two on a core, and have layers of twice the width, so that a part of a
micro-batch takes long beside the quota's period and beside its messages. Two workers are held to a core each. All stages take as long: the layers are
alike, and the first one, whose input needs no gradient, has half as many inputs more. Without replicas,
which the formulas do not know. Idle is what workers waited and communicated, of their time in a step: the mean of the
workers, and of that the median of the steps that are traced, since other processes disturb some of them.
The interleaved schedule of the formula is made by a list; the ready rule without split=on, which knows none, has
11.1 % on paper with two workers and eight micro-batches, and 23.8 % with three and four. With N workers, M micro-batches and V laps, where a
forward takes as long as each part of a backward and messages take no time:

    1F1B           split=off                       (N-1) / (M + N-1)
    interleaved    laps=2,split=off                (N-1) / (2M + N-1)
    ready          the ready rule, one lap         (N-1) / (3M + N-1)
    overlap        and no wait between batches     0

Case `ddp`: two workers on two cores as they are by default, samples a second of all steps from the events; the
ratio is the median of those of the rounds, in which sides take turns."""
import argparse
import contextlib
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

# name → options, what is in front of M in the formula; 0: no worker waits
SCHEDULES = {"1F1B": ("laps=1,split=off,overlap=off", 1), "interleaved": ("laps=2,place=ring,split=off,overlap=off", 2),
             "ready": ("laps=1,overlap=off", 3), "overlap": ("laps=1,overlap=on", 0)}
TRACED = range(4, 9)  # steps that all runs trace, but for the first ones, until workers are in step
QUOTAS = {"2": None, "3": "0.45", "4": "0.45"}  # workers → cores of each, of two that share one; None: of this machine
SIDES = {"ddp": "ddp", "ring": "ring", "ring, overlap=off": "ring:overlap=off",
         "ring, replicate=off": "ring:replicate=off"}


def train(place, workers, strategy, job):
    model, shape, batch, steps = job
    return place.together(workers, strategy, "--model", model, "--data",  # one epoch: workers meet at its end alone
                          f"synthetic:shape={shape},classes=10,train={batch * steps},test=10", "--batch", batch,
                          "--threads", 1, "--epochs", 1, "--no-test", "--lr", 0.001)


def events(place):
    """Of the newest run."""
    return map(json.loads, pathlib.Path(place.folder, str(place.count), "events.jsonl").read_text().splitlines())


def even(width, layers, batch, steps):
    return f"mlp:{width}x{layers}", f"1x{width // 32}x48", batch, steps


def idle(place, args, workers, options):
    strategy = f"ring:microbatches={args.microbatches},replicate=off,{options}"
    train(place, workers, strategy, even(1024 if QUOTAS[str(workers)] else 512, 24, 2 * args.batch, TRACED[-1] + 2))
    shares = {step: [] for step in TRACED}
    for entry in events(place):
        if entry["event"] == "trace" and entry["step"] in shares:
            shares[entry["step"]].append(entry["idle"])
    return statistics.median(map(statistics.mean, shares.values()))


def measure_idle(place, args, workers):
    sides = {name: lambda o=options: idle(place, args, workers, o) for name, (options, _) in SCHEDULES.items()}
    rows = results.take_turns(sides, args.rounds)
    for name, (_, times) in SCHEDULES.items():
        values = [r[name] for r in rows]
        formula = (workers - 1) / (times * args.microbatches + workers - 1) if times > 0 else 0
        yield {"workers": workers, "schedule": name, "idle": statistics.median(values), "rounds": values,
               "formula": formula}


def rate(place, strategy, job):
    train(place, 2, strategy, job)
    steps = [e for e in events(place) if e["event"] == "step"][2:]
    return sum(e["samples"] for e in steps) / sum(e["seconds"] for e in steps)


def measure_rates(place, args, job):
    rows = results.take_turns({n: lambda s=s: rate(place, s, job) for n, s in SIDES.items()}, args.rounds)
    for name in SIDES:
        ratios = [r[name] / r["ddp"] for r in rows]
        yield {"model": job[0], "side": name, "rate": statistics.median(r[name] for r in rows),
               "ratio": statistics.median(ratios), "ratios": ratios}


IDLE_HEAD = "| workers | schedule | idle % | formula % | difference |\n|---|---|---|---|---|"
RATE_HEAD = "| model | side | samples/s | of ddp |\n|---|---|---|---|"


def idle_row(r):
    return (f"| {r['workers']} | {r['schedule']} | {100 * r['idle']:.1f} | {100 * r['formula']:.1f} | "
            f"**{100 * (r['idle'] - r['formula']):+.1f}** |")


def rate_row(r):
    return f"| {r['model']} | {r['side']} | {r['rate']:.0f} | **{r['ratio']:.2f}** |"


def shown(row, entries):
    for entry in entries:
        print(row(entry), flush=True)
        yield entry


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--only", action="append", choices=[*QUOTAS, "ddp"])
    results.add_options(parser)
    args = parser.parse_args()
    idles, rates = [], []
    print(IDLE_HEAD, flush=True)
    for workers, quota in QUOTAS.items():
        with contextlib.ExitStack() as stack:
            if args.only and workers not in args.only:
                continue
            if quota:
                stack.enter_context(trainings.cluster(int(workers), "--loopback", "--cpu", quota, "--period", "10"))
            place = (trainings.PinnedHosts if quota else trainings.Pinned)(stack, args.program)
            idles += shown(idle_row, measure_idle(place, args, int(workers)))
    with contextlib.ExitStack() as stack:
        place = trainings.Here(stack, args.program)
        if not args.only or "ddp" in args.only:
            print(f"\n{RATE_HEAD}", flush=True)
            for job in (even(1024, 8, args.batch, args.steps), ("vgg11", "3x32x32", args.batch // 8, args.steps // 3)):
                rates += shown(rate_row, measure_rates(place, args, job))
    results.write(args, (IDLE_HEAD, idle_row, idles), (RATE_HEAD, rate_row, rates))


if __name__ == "__main__":
    main()
