#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Rating models: loading, epochs of mf on threads and on workers, sweeps of bmf and ials.

    recsys.py PATH-OF-PACELINE [--users N] [--items N] [--ratings N] [--epochs N] [--rounds N]
              [--k N …] [--peer PATH] [--only WHAT …] [--json FILE] [--table FILE]

The set is made up. Updates are ratings of the training part a second. An update is counted as 6k
floating-point operations, 2k each for the product and for two rows. Bytes a rating are the peak
memory of the process for each rating of the set. N workers of one thread under strategy `rotate`
take turns with as many processes of one thread that have nothing to do with each other: the ratio
is that of the updates of all. `--peer` is LIBMF's mf-train, or a program with its options: its epoch
is the difference between a run of one epoch and of more. `--only`: load, epochs, sweeps, workers."""
import argparse
import contextlib
import csv
import functools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

THREADS, WORKERS = (1, 2), (1, 2, 3)
PARTS = ("load", "epochs", "sweeps", "workers")
SOLVERS = ("bmf:k=64,side=none,sweeps=5", "ials:k=64,sweeps=5", "ials:k=64,cg=0,sweeps=5")


def ask(*command):
    return json.loads(subprocess.run([*map(str, command), "--json"], check=True,
                                     capture_output=True).stdout)


def load(args, path):
    """Text to cache, and the cache."""
    first = ask(args.program, "bench", "ratings", path, "--model", "bias-stat")["load_seconds"]
    again = ask(args.program, "bench", "ratings", path, "--model", "bias-stat")["load_seconds"]
    return {"what": "load", "ratings": args.ratings, "text_bytes": path.stat().st_size,
            "seconds": first, "again_seconds": again}


def peer_epoch(args, path, k, threads):
    """Seconds of an epoch of the peer."""
    def run(epochs):
        began = time.monotonic()
        subprocess.run([args.peer, "-k", str(k), "-t", str(epochs), "-s", str(threads), str(path),
                        "/dev/null"], check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began
    few = run(1)
    return (run(1 + args.epochs) - few) / args.epochs


def epochs(args, path, plain, k, threads):
    sides = {"own": lambda: ask(args.program, "bench", "ratings", path, "--model",
                                f"mf:k={k},sweeps={args.epochs}", "--threads", threads)}
    if args.peer:
        sides["peer"] = lambda: peer_epoch(args, plain, k, threads)
    rounds = results.take_turns(sides, args.rounds)
    own = [r["own"] for r in rounds]
    rate = results.spread([r["updates_per_second"] for r in own])
    peak = statistics.median(r["peak_flops"] for r in own)
    return {"what": "epoch", "k": k, "threads": threads,
            "seconds": statistics.median(r["seconds"]["median"] for r in own), "rate": rate,
            "share_of_peak": 6 * k * rate["median"] / peak,
            "bytes_a_rating": own[0]["peak_memory_bytes"] / args.ratings,
            "rmse": own[0]["test"]["rmse"],
            "peer_ratio": results.spread([r["peer"] / r["own"]["seconds"]["median"]
                                          for r in rounds]) if args.peer else None}


def sweeps(args, path, model):
    """A sweep of a model that solves rows, on all threads, and its kernel on one."""
    found = [ask(args.program, "bench", "ratings", path, "--model", model, "--threads", THREADS[-1])
             for _ in range(args.rounds)]
    syrk = statistics.median(r["syrk_flops"] for r in found)
    peak = statistics.median(r["peak_flops"] for r in found) / THREADS[-1]
    return {"what": "sweep", "model": model, "threads": THREADS[-1],
            "seconds": statistics.median(r["seconds"]["median"] for r in found),
            "syrk_flops": syrk, "share_of_peak": syrk / peak,
            "bytes_a_rating": found[0]["peak_memory_bytes"] / args.ratings}


def divided(args, place, path, k, workers):
    options = ["--data", path, "--model", f"mf:k={k},sweeps={args.epochs}", "--threads", 1,
               "--eval-every", 0]
    rounds = results.take_turns(
        {"together": lambda: [place.together(workers, "rotate", *options)],
         "apart": lambda: place.finish([place.command([*options, "--strategy", "rows"])
                                        for _ in range(workers)])}, args.rounds)
    rates = [{name: sum(r["updates_per_second"] for r in found) for name, found in r.items()}
             for r in rounds]
    return {"what": "workers", "k": k, "workers": workers,
            "rate": results.spread([r["together"] for r in rates]),
            "ratio": results.spread([r["together"] / r["apart"] for r in rates]),
            "rmse": rounds[0]["together"][0]["test"]["rmse"],
            "one_rmse": rounds[0]["apart"][0]["test"]["rmse"]}


LOAD_HEAD = ("| ratings | text MB | text to cache s | M ratings/s | cache s |\n"
             "|---|---|---|---|---|")
EPOCH_HEAD = ("| k | threads | epoch s | M updates/s | of FMA peak % | bytes a rating | RMSE | "
              "times the peer |\n|---|---|---|---|---|---|---|---|")
SWEEP_HEAD = ("| model | threads | sweep s | syrk GF/s, 1 thread | of FMA peak % | bytes a rating |\n"
              "|---|---|---|---|---|---|")
WORKERS_HEAD = ("| k | workers | M updates/s | of processes apart | RMSE | RMSE of one |\n"
                "|---|---|---|---|---|---|")


def load_row(r):
    return (f"| {r['ratings']} | {r['text_bytes'] / 1e6:.0f} | {r['seconds']:.2f} | "
            f"{r['ratings'] / r['seconds'] / 1e6:.0f} | {r['again_seconds']:.3f} |")


def epoch_row(r):
    peer = results.show(r["peer_ratio"]) if r["peer_ratio"] else "-"
    return (f"| {r['k']} | {r['threads']} | {r['seconds']:.3f} | {r['rate']['median'] / 1e6:.1f} | "
            f"{100 * r['share_of_peak']:.0f} | {r['bytes_a_rating']:.1f} | {r['rmse']:.4f} | {peer} |")


def sweep_row(r):
    return (f"| {r['model']} | {r['threads']} | {r['seconds']:.3f} | {r['syrk_flops'] / 1e9:.1f} | "
            f"{100 * r['share_of_peak']:.0f} | {r['bytes_a_rating']:.1f} |")


def workers_row(r):
    return (f"| {r['k']} | {r['workers']} | {r['rate']['median'] / 1e6:.1f} | "
            f"{results.show(r['ratio'], '')} | {r['rmse']:.4f} | {r['one_rmse']:.4f} |")


def make(args, folder):
    """The set, and the same without commas and a head, for a peer."""
    path, plain = folder / "ratings.csv", folder / "ratings.txt"
    subprocess.run([args.program, "data", "make", "ratings", "--users", str(args.users), "--items",
                    str(args.items), "--ratings", str(args.ratings), "-o", str(path)], check=True,
                   stderr=subprocess.DEVNULL)
    if args.peer:
        with path.open() as text, plain.open("w") as out:
            for line in list(csv.reader(text))[1:]:
                print(*line[:3], file=out)
    return path, plain


def show(head, row, rows, sides):
    """A table: each side is measured, kept in rows, and printed."""
    print(head, flush=True)
    for side in sides:
        rows.append(side())
        print(row(rows[-1]), flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--users", type=int, default=100000)
    parser.add_argument("--items", type=int, default=17770)
    parser.add_argument("--ratings", type=int, default=10000000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--k", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--peer")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    results.add_options(parser)
    args = parser.parse_args()
    loads, found, solved, shared = [], [], [], []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recsys-")))
        place = trainings.Here(stack, args.program)
        path, plain = make(args, folder)
        if "load" in args.only:
            show(LOAD_HEAD, load_row, loads, [lambda: load(args, path)])
        if "epochs" in args.only:
            show(EPOCH_HEAD, epoch_row, found, [functools.partial(epochs, args, path, plain, k, threads)
                                                for k in args.k for threads in THREADS])
        if "sweeps" in args.only:
            show(SWEEP_HEAD, sweep_row, solved, [functools.partial(sweeps, args, path, model) for model in SOLVERS])
        if "workers" in args.only:
            show(WORKERS_HEAD, workers_row, shared, [functools.partial(divided, args, place, path, k, workers)
                                                     for k in args.k for workers in WORKERS])
    results.write(args, (LOAD_HEAD, load_row, loads), (EPOCH_HEAD, epoch_row, found),
                  (SWEEP_HEAD, sweep_row, solved), (WORKERS_HEAD, workers_row, shared))


if __name__ == "__main__":
    main()
