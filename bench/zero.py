#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What zero saves: memory and bytes of a worker, against what the formulas say.

    zero.py PATH-OF-PACELINE [--workers N] [--steps N] [--only MODEL] [--json FILE] [--table FILE]

Needs root: a worker on each of N test hosts (tools/cluster), which share no memory. Memory is the
highest resident set of any worker. What allreduce needs besides weights (W), gradients (G) and
optimiser state (S), the program, data and activations, is taken to be what every stage needs besides
its own: `rest`. Then stage 1 should need W+G+S/N, stage 2 W+(G+S)/N and the largest group of layers,
stage 3 (W+G+S)/N and the two largest groups. The ratio is that of the measured peak and rest + formula;
beside it the same without rest. Bytes are those that a worker sends in a step, of the formulas' W(N-1)/N as a unit."""
import argparse
import contextlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

# model → its options, slots of the optimiser, floats of its largest group of layers (it has several)
CASES = {
    "vgg11": (["--data", "synthetic:shape=3x32x32,classes=10,train=256,test=10", "--batch", 32,
               "--optimiser", "adam"], 2, 512 * 512 * 9),
    "mlp:1024x30": (["--data", "synthetic:shape=1x28x28,classes=10,train=256,test=10", "--batch", 32,
                     "--optimiser", "adam"], 2, 1024 * 1024),
}
# strategy → parts of W, G and S (None: 1/N), groups of layers, sums and gatherings of a step
STRATEGIES = {"allreduce": (1, 1, 1, 0, 2), "zero:stage=1": (1, 1, None, 0, 3),
              "zero:stage=2": (1, None, None, 1, 2), "zero:stage=3": (None, None, None, 2, 3)}


def run(place, workers, strategy, options, steps):
    return place.together(workers, strategy, *options, "--threads", 1, "--steps", steps, "--no-test",
                          "--eval-every", 0)


def measure(args, place, model):
    options, slots, group = CASES[model]
    options = ["--model", model, *options]
    found = []
    for strategy, (weights, gradients, optimiser, groups, passes) in STRATEGIES.items():
        few, many = (run(place, args.workers, strategy, options, n) for n in (2, 2 + args.steps))
        whole = 4 * many["parameters"]
        share = 1 / args.workers
        state = whole * ((weights or share) + (gradients or share) + slots * (optimiser or share))
        peak = max(r["peak_memory_bytes"] for r in many["ranks"])
        sent = (trainings.bytes_sent(many) - trainings.bytes_sent(few)) / args.steps / args.workers
        found.append({"model": model, "workers": args.workers, "strategy": strategy, "peak": peak,
                      "formula": state + groups * 4 * group, "passes": passes,
                      "unit": sent / (whole * (1 - share)),
                      "step_seconds": many["step_seconds"]["median"]})
    rest = found[0]["peak"] - found[0]["formula"]
    for row in found:
        row["rest"] = rest
        row["ratio"] = row["peak"] / (rest + row["formula"])
        row["own_ratio"] = (row["peak"] - rest) / row["formula"]
    return found


HEAD = ("| model | strategy | peak MB | rest MB | formula MB | peak / (rest + formula) | without rest | "
        "bytes a step, of W(N-1)/N | as the formula says | step ms |\n|---|---|---|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['model']} | {r['strategy']} | {r['peak'] / 1e6:.0f} | {r['rest'] / 1e6:.0f} | "
            f"{r['formula'] / 1e6:.0f} | **{r['ratio']:.3f}** | {r['own_ratio']:.3f} | "
            f"{r['unit']:.3f} | {r['passes']} | {1e3 * r['step_seconds']:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--only", action="append", choices=CASES)
    results.add_options(parser)
    args = parser.parse_args()
    found = []
    print(HEAD, flush=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(trainings.cluster(args.workers, "--loopback"))
        place = trainings.Hosts(stack, args.program)
        for model in args.only or CASES:
            for entry in measure(args, place, model):
                found.append(entry)
                print(row(entry), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
