#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Training steps against PyTorch on the same CPU. Some twenty minutes for all models.

    engine.py PATH-OF-PACELINE [--rounds N] [--only MODEL:BATCH:THREADS] [--json FILE] [--table FILE]

The sides take turns: paceline, PyTorch in NCHW, PyTorch in channels_last. A turn is a burst of
steps: one that warms up, then as many as fit a third of a second, of which the median counts; a
step after a pause can take twice as long, and training does not pause. The faster of the two
layouts counts in every round. A ratio is taken in each round, and the median of the rounds is
reported with its quartiles, so that what disturbs the machine disturbs both. Memory is what a step
needs beside the program: peak after the rounds minus peak before the first step (before the model
is made, for paceline, so its weights count too)."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

CASES = [("vgg11", 16), ("vgg11", 64), ("vgg11", 256), ("mnist-cnn", 64), ("resnet18", 64)]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import results  # noqa: E402

MOST = 40  # steps of a burst


def memory(side):
    return side.last["peak_memory_bytes"] - side.about["peak_memory_bytes"]


def measure(program, model, batch, threads, rounds):
    # Chooses the kernels, too: what the choice costs is not part of a step's memory.
    about = json.loads(subprocess.run(
        [program, "bench", "step", model, "--batch", str(batch), "--threads", str(threads),
         "--steps", "5", "--json"], check=True, capture_output=True, text=True).stdout)
    torch = [results.PYTHON, str(HERE / "peers/torch_step.py"), model, str(batch), str(threads)]
    ours = results.Paced([program, "bench", "step", model, "--batch", str(batch), "--threads", str(threads),
                          "--paced"], MOST)
    peers = {layout: results.Paced(torch + [layout], MOST) for layout in ("nchw", "channels_last")}
    rows = results.race({"paceline": ours, **peers}, rounds)
    best = [min(row[layout] for layout in peers) for row in rows]
    ratio = results.spread([peer / row["paceline"] for peer, row in zip(best, rows)])
    median = statistics.median(row["paceline"] for row in rows)
    flops = about["nominal_flops"] * about["seconds"]["median"]
    executed = about["executed_flops"] * about["seconds"]["median"]
    return {
        "model": model, "batch": batch, "threads": threads, "rounds": rounds,
        "steps_per_round": ours.count,
        "ratio": ratio["median"], "quartiles": ratio["quartiles"],
        "seconds": median, "torch_seconds": statistics.median(best),
        "nominal_flops": flops / median, "executed_flops": executed / median,
        "peak_flops": about["peak_flops"], "kernels": about["kernels"],
        "memory_bytes": memory(ours), "torch_memory_bytes": min(map(memory, peers.values())),
    }


HEAD = ("| model | batch | threads | ratio | quartiles | ms | PyTorch ms | nominal GF/s | "
        "executed GF/s (of peak) | MB | PyTorch MB |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['model']} | {r['batch']} | {r['threads']} | **{r['ratio']:.2f}x** | "
            f"{r['quartiles'][0]:.2f} – {r['quartiles'][1]:.2f} | {1e3 * r['seconds']:.1f} | "
            f"{1e3 * r['torch_seconds']:.1f} | {r['nominal_flops'] / 1e9:.0f} | "
            f"{r['executed_flops'] / 1e9:.0f} ({100 * r['executed_flops'] / r['peak_flops']:.0f} %)"
            f" | {r['memory_bytes'] / 1e6:.0f} | {r['torch_memory_bytes'] / 1e6:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", action="append", help="MODEL:BATCH:THREADS")
    results.add_options(parser)
    args = parser.parse_args()
    results.need_torch()
    found = []
    print(HEAD, flush=True)
    for case in results.chosen(args.only, [(m, b, t) for m, b in CASES for t in (1, 2)]):
        found.append(measure(args.program, *case, args.rounds))
        print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
