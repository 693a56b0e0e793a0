#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All-reduce between workers of this machine, against gloo and Open MPI.

    collectives.py PATH-OF-PACELINE [--workers N] [--bytes B] [--rounds N] [--json FILE] [--table FILE]

The sides (paceline, gloo, Open MPI as it comes, Open MPI with a segmented ring of 1 MB) are started
once and then take turns: a burst of all-reduces of one size each, timed between barriers; who waits
sleeps. A ratio is taken in every round; the median of the rounds is reported with its quartiles. paceline
is measured twice: on gradients that live in its shared memory, and on private buffers like its peers'."""
import argparse
import json
import os
import pathlib
import select
import socket
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SIZES = [4, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20,
         36_900_000, 64 << 20, 256 << 20]
TUNED = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "5",
         "--mca", "coll_tuned_allreduce_algorithm_segmentsize", str(1 << 20)]
PATIENCE = 60  # seconds until a side that does not answer is given up


class Side:
    """Ranks of one library. Each connects to a socket of ours; rank 0 answers."""

    def __init__(self, folder, name, ranks, commands, environment=()):
        self.path = f"{folder}/{name}"
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.path)
        server.listen(ranks)
        server.settimeout(PATIENCE)
        env = dict(os.environ, OMP_NUM_THREADS="1", **dict(environment))
        self.processes = [subprocess.Popen(command + [self.path], env=env, stdin=subprocess.DEVNULL)
                          for command in commands]
        self.ranks = [server.accept()[0] for _ in range(ranks)]
        server.close()
        for rank in self.ranks:
            rank.settimeout(PATIENCE)

    def seconds(self, buffers, count, times):
        for rank in self.ranks:
            rank.sendall(f"{buffers} {count} {times}\n".encode())
        return float(self.answer())

    def answer(self):
        """The line of whichever rank is 0."""
        ready, _, _ = select.select(self.ranks, [], [], PATIENCE)
        line = b""
        while not line.endswith(b"\n"):
            part = ready[0].recv(100) if ready else b""
            if not part:
                raise RuntimeError(f"{self.path} does not answer")
            line += part
        return line

    def close(self):
        for rank in self.ranks:
            rank.close()
        for process in self.processes:
            process.wait(timeout=PATIENCE)


def start_sides(program, folder, workers):
    gloo = [["/usr/bin/python3", str(HERE / "peers/gloo.py"), str(r), str(workers), folder]
            for r in range(workers)]
    mpi = ["mpirun", "--oversubscribe", "-np", str(workers)]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    subprocess.run(["mpicc", "-O2", "-o", f"{folder}/mpi", str(HERE / "peers/mpi.c")], check=True)
    ours = [[program, "bench", "collectives", "--workers", str(workers), "--paced"]]
    return {
        "paceline": Side(folder, "paceline.socket", workers, ours),
        "gloo": Side(folder, "gloo.socket", workers, gloo, {"GLOO_SOCKET_IFNAME": "lo"}),
        "mpi": Side(folder, "mpi.socket", workers, [mpi + [f"{folder}/mpi"]], root),
        "mpi-tuned": Side(folder, "tuned.socket", workers, [mpi + TUNED + [f"{folder}/mpi"]], root),
    }


def measure(turns, workers, count, rounds, burst):
    """turns: name → function (bytes, times) → seconds of one operation."""
    times = {}
    for name, turn in turns.items():
        one = min(turn(count, 1) for _ in range(3))
        times[name] = max(1, min(5000, int(burst / one)))
    rows = []
    for number in range(rounds):
        names = list(turns)
        names = names[number % len(names):] + names[:number % len(names)]
        rows.append({name: turns[name](count, times[name]) for name in names})
    result = {"workers": workers, "bytes": count, "rounds": rounds, "seconds": {}, "ratios": {}}
    for name in turns:
        result["seconds"][name] = statistics.median(row[name] for row in rows)
    for own in ("paceline-shared", "paceline-private"):
        for peer in turns:
            if own in turns and not peer.startswith("paceline"):
                ratios = [row[peer] / row[own] for row in rows]
                quartiles = statistics.quantiles(ratios, n=4) if rounds > 1 else ratios * 3
                result["ratios"].setdefault(own, {})[peer] = {
                    "median": statistics.median(ratios), "quartiles": [quartiles[0], quartiles[2]]}
    return result


HEAD = ("| workers | bytes | shared µs | private µs | gloo: shared, private | Open MPI: shared, private "
        "| tuned: shared, private |\n|---|---|---|---|---|---|---|")


def row(r):
    cells = [str(r["workers"]), f"{r['bytes']:,}".replace(",", " ")]
    cells += [f"{1e6 * r['seconds'][own]:.1f}" for own in ("paceline-shared", "paceline-private")]
    for peer in ("gloo", "mpi", "mpi-tuned"):
        shared, private = (r["ratios"][own][peer] for own in ("paceline-shared", "paceline-private"))
        cells.append(f"**{shared['median']:.2f}x** ({shared['quartiles'][0]:.2f} – "
                     f"{shared['quartiles'][1]:.2f}), {private['median']:.2f}x")
    return "| " + " | ".join(cells) + " |"


def run(args, workers, folder):
    sides = start_sides(args.program, folder, workers)
    turns = {name: lambda count, times, side=side: side.seconds("private", count, times)
             for name, side in sides.items() if name != "paceline"}
    for buffers in ("shared", "private"):
        turns[f"paceline-{buffers}"] = (lambda count, times, buffers=buffers:
                                        sides["paceline"].seconds(buffers, count, times))
    results = []
    for count in args.bytes or SIZES:
        results.append(measure(turns, workers, count, args.rounds, args.burst))
        print(row(results[-1]), flush=True)
    for side in sides.values():
        side.close()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--workers", type=int, action="append", help="2 and 4 by default")
    parser.add_argument("--bytes", type=int, action="append", help="4 to 256 MB by default")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--burst", type=float, default=0.05, help="seconds of a turn, about")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    args = parser.parse_args()
    results = []
    print(HEAD, flush=True)
    for workers in args.workers or [2, 4]:
        with tempfile.TemporaryDirectory() as folder:
            results += run(args, workers, folder)
    if args.json:
        args.json.write_text(json.dumps({"schema": 1, "results": results}, indent=1) + "\n")
    if args.table:
        args.table.write_text("\n".join([HEAD] + [row(r) for r in results]) + "\n")


if __name__ == "__main__":
    main()
