#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Data-parallel training of vgg11 on this machine, against PyTorch's DDP and against trainings that
have nothing to do with each other.

    ddp.py PATH-OF-PACELINE [--rounds N] [--only WORKERS:BATCH] [--json FILE] [--table FILE]

All sides have one thread a worker and take turns: paceline's ddp and allreduce, as many trainings
of one worker each (apart), PyTorch's DDP over gloo in NCHW and in channels_last. A turn is a burst
of steps, as many as fit two seconds, three at least; the first is left out and the median counts.
PyTorch is started once and sleeps between its turns; paceline's turns are whole trainings, and its
steps contain the wait for their data. Ratios are taken in every round: the faster layout of
PyTorch over ddp, and samples a second together over those apart."""
import argparse
import contextlib
import functools
import os
import pathlib
import statistics
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import drill  # noqa: E402
import results  # noqa: E402
import trainings  # noqa: E402

CASES = [(2, 64), (2, 32), (4, 16)]  # workers, batch of each
STRATEGIES = ("ddp", "allreduce")
LAYOUTS = ("nchw", "channels_last")
MODEL = "vgg11"
BURST = 2  # seconds
LEAST = 3  # steps of a burst
PATIENCE = 600  # seconds


class Torch:
    """PyTorch's ranks, each with its own connection, so that none spins for orders."""

    def __init__(self, stack, workers, batch, layout):
        self.group = stack.enter_context(drill.Group())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for rank in range(workers):
            self.group.start([results.PYTHON, str(HERE / "peers/torch_ddp.py"), str(rank),
                              str(workers), folder, MODEL, str(batch), layout, self.group.path],
                             env=dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo"))
        self.group.accept(workers, PATIENCE)

    def seconds(self, steps):
        self.group.order(f"steps {steps}")
        return statistics.median(
            drill.first(self.group.ranks, "seconds", PATIENCE)["seconds"][1:])


class Paceline:
    """Trainings of so many workers, one thread and `batch` samples each."""

    def __init__(self, stack, program, workers, batch):
        self.place = trainings.Here(stack, program)
        self.workers, self.batch = workers, batch

    def options(self, batch, steps):
        return ["--model", MODEL, "--data", "synthetic:shape=3x32x32,classes=10", "--batch", batch,
                "--steps", steps, "--threads", 1, "--no-test"]

    def together(self, strategy, steps):
        options = self.options(self.workers * self.batch, steps)
        return self.place.together(self.workers, strategy, *options)["step_seconds"]["median"]

    def apart(self, steps):
        """Seconds in which all of them together have done a step each."""
        runs = self.place.apart(self.workers, *self.options(self.batch, steps))
        return statistics.harmonic_mean([r["step_seconds"]["median"] for r in runs])


def burst(turn):
    """The turn with as many steps as fit it."""
    return functools.partial(turn, 1 + max(LEAST, round(BURST / turn(LEAST))))


def measure(program, workers, batch, rounds):
    with contextlib.ExitStack() as stack:
        ours = Paceline(stack, program, workers, batch)
        turns = {s: functools.partial(ours.together, s) for s in STRATEGIES}
        turns["apart"] = ours.apart
        turns |= {layout: Torch(stack, workers, batch, layout).seconds for layout in LAYOUTS}
        rows = results.take_turns({name: burst(turn) for name, turn in turns.items()}, rounds)
    for r in rows:
        r["torch"] = min(r[layout] for layout in LAYOUTS)
    return {"workers": workers, "batch_per_worker": batch, "rounds": rounds,
            "seconds": {name: statistics.median(r[name] for r in rows) for name in rows[0]},
            "ratio": results.spread([r["torch"] / r["ddp"] for r in rows]),
            "efficiency": {s: results.spread([r["apart"] / r[s] for r in rows])
                           for s in STRATEGIES}}


HEAD = ("| workers | batch of each | ddp ms | allreduce ms | apart ms | PyTorch DDP ms | "
        "against PyTorch | ddp: share of apart | allreduce: share of apart |\n"
        "|---|---|---|---|---|---|---|---|---|")


def row(r):
    times = " | ".join(f"{1e3 * r['seconds'][name]:.1f}"
                       for name in (*STRATEGIES, "apart", "torch"))
    shares = " | ".join(results.show(r["efficiency"][s], unit="") for s in STRATEGIES)
    return (f"| {r['workers']} | {r['batch_per_worker']} | {times} | {results.show(r['ratio'])} | "
            f"{shares} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", action="append", help="WORKERS:BATCH")
    results.add_options(parser)
    args = parser.parse_args()
    results.need_torch()
    cases = CASES
    if args.only:
        cases = [tuple(map(int, only.split(":"))) for only in args.only]
    found = []
    print(HEAD, flush=True)
    for workers, batch in cases:
        found.append(measure(args.program, workers, batch, args.rounds))
        print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
