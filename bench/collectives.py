#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All-reduce between workers of this machine, against gloo and Open MPI.

    collectives.py PATH-OF-PACELINE [--workers N] [--bytes B] [--rounds N] [--json FILE] [--table FILE]

The sides (paceline, gloo, Open MPI as it comes, Open MPI with a segmented ring of 1 MB) are started
once and then take turns: a burst of all-reduces of one size each, timed between barriers; who waits
sleeps. A ratio is taken in every round; the median of the rounds is reported with its quartiles. paceline
is measured twice: on gradients that live in its shared memory, and on private buffers like its peers'."""
import argparse
import contextlib
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import drill  # noqa: E402
import results  # noqa: E402

SIZES = [4, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20,
         36_900_000, 64 << 20, 256 << 20]
TUNED = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "5",
         "--mca", "coll_tuned_allreduce_algorithm_segmentsize", str(1 << 20)]
PATIENCE = 60  # seconds until a side that does not answer is given up


class Side:
    """Ranks of one library, each with its own connection, so that none spins for orders."""

    def __init__(self, group, ranks):
        self.group = group
        group.accept(ranks, PATIENCE)

    def seconds(self, buffers, count, times):
        self.group.order(f"time {buffers} {count} {times}")
        return drill.first(self.group.ranks, "seconds", PATIENCE)["seconds"]


def start_sides(stack, program, folder, workers):
    """name → Side; all of them end with the stack."""
    def peer(commands, **environment):
        group = stack.enter_context(drill.Group())
        for command in commands:
            group.start(command + [group.path], env=dict(os.environ, OMP_NUM_THREADS="1",
                                                         **environment))
        return Side(group, workers)

    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mpi = ["mpirun", "--oversubscribe", "-np", str(workers)]
    gloo = [results.PYTHON, str(HERE / "peers/gloo.py")]
    subprocess.run(["mpicc", "-O2", "-o", f"{folder}/mpi", str(HERE / "peers/mpi.c")], check=True)
    ours = stack.enter_context(drill.Job(program, workers)).launch()
    return {
        "paceline": Side(ours, workers),
        "gloo": peer([gloo + [str(r), str(workers), folder] for r in range(workers)],
                     GLOO_SOCKET_IFNAME="lo"),
        "mpi": peer([mpi + [f"{folder}/mpi"]], **root),
        "mpi-tuned": peer([mpi + TUNED + [f"{folder}/mpi"]], **root),
    }


def measure(turns, workers, count, rounds, burst):
    """turns: name → function (bytes, times) → seconds of one operation."""
    times = {}
    for name, turn in turns.items():
        one = min(turn(count, 1) for _ in range(3))
        times[name] = max(1, min(5000, int(burst / one)))
    rows = results.take_turns({name: functools.partial(turn, count, times[name])
                               for name, turn in turns.items()}, rounds)
    result = {"workers": workers, "bytes": count, "rounds": rounds, "seconds": {}, "ratios": {}}
    for name in turns:
        result["seconds"][name] = statistics.median(row[name] for row in rows)
    for own in ("paceline-shared", "paceline-private"):
        for peer in turns:
            if own in turns and not peer.startswith("paceline"):
                result["ratios"].setdefault(own, {})[peer] = results.spread(
                    [row[peer] / row[own] for row in rows])
    return result


HEAD = ("| workers | bytes | shared µs | private µs | gloo: shared, private | Open MPI: shared, private "
        "| tuned: shared, private |\n|---|---|---|---|---|---|---|")


def row(r):
    cells = [str(r["workers"]), f"{r['bytes']:,}".replace(",", " ")]
    cells += [f"{1e6 * r['seconds'][own]:.1f}" for own in ("paceline-shared", "paceline-private")]
    for peer in ("gloo", "mpi", "mpi-tuned"):
        shared, private = (r["ratios"][own][peer] for own in ("paceline-shared", "paceline-private"))
        cells.append(f"{results.show(shared)}, {private['median']:.2f}x")
    return "| " + " | ".join(cells) + " |"


def run(args, workers):
    found = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sides = start_sides(stack, args.program, folder, workers)
        ours = sides.pop("paceline")
        turns = {name: functools.partial(side.seconds, "private") for name, side in sides.items()}
        for buffers in ("shared", "private"):
            turns[f"paceline-{buffers}"] = functools.partial(ours.seconds, buffers)
        for count in args.bytes or SIZES:
            found.append(measure(turns, workers, count, args.rounds, args.burst))
            print(row(found[-1]), flush=True)
        for side in [ours, *sides.values()]:
            side.group.end(PATIENCE)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--workers", type=int, action="append", help="2 and 4 by default")
    parser.add_argument("--bytes", type=int, action="append", help="4 to 256 MB by default")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--burst", type=float, default=0.05, help="seconds of a turn, about")
    results.add_options(parser)
    args = parser.parse_args()
    found = []
    print(HEAD, flush=True)
    for workers in args.workers or [2, 4]:
        found += run(args, workers)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
