#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Answers against ONNX Runtime on the same CPU. Some ten minutes for all cases.

    inference.py PATH-OF-PACELINE [--rounds N] [--only MODEL:BATCH:THREADS] [--json FILE] [--table FILE]

Both sides have the same weights (PyTorch makes them and writes the ONNX file) and answer the same
batch; what they say of its last image must agree to 1e-4. They take turns. A turn is a burst of
answers: one that warms up, then as many as fit a third of a second, of which the median counts; a
side tells of them after the last, so that no reader takes a core from it meanwhile. A
ratio is taken in each round, and the median of the rounds is reported with its quartiles, so that
what disturbs the machine disturbs both. CPU is the processor time of a burst's answers, which other
programs disturb less: on a busy machine its ratio tells more. ONNX Runtime is npm's
onnxruntime-node, put beside the program that is measured."""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PACKAGE = "onnxruntime-node@1.30"
CASES = [(model, batch) for model in ("vgg11", "resnet18") for batch in (1, 8, 64)]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import results  # noqa: E402

MOST = 300  # answers of a burst
AGREE = 1e-4


class Side(results.Paced):
    COUNTS = True

    def burst(self):
        """Median seconds of an answer, and mean CPU seconds."""
        time.sleep(results.PAUSE)
        self.answers(1)
        before = self.cpu()
        median = statistics.median(self.seconds(self.count))
        return median, (self.cpu() - before) / self.count

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return max(int(fields[0]), sum(int(t.read_text().split()[0]) for t in tasks)) / 1e9


def install(program):
    """The folder with ONNX Runtime, installed there once."""
    folder = pathlib.Path(program).resolve().parent / "onnxruntime"
    if not (folder / "node_modules").is_dir():
        if shutil.which("npm") is None or subprocess.run(
                ["npm", "install", "--silent", "--ignore-scripts", "--prefix", folder, PACKAGE],
                capture_output=True).returncode != 0:
            print(f"skipped: npm cannot install {PACKAGE}")
            sys.exit(0)
    return folder


def measure(program, node, files, model, batch, threads, rounds):
    weights, onnx = files[model]
    ours = [program, "bench", "infer", model, "--batch", str(batch), "--threads", str(threads),
            "--weights", weights]
    about = json.loads(subprocess.run(ours + ["--steps", "20", "--json"], check=True,
                                      capture_output=True, text=True).stdout)
    sides = {"paceline": Side(ours + ["--paced"], MOST),
             "ort": Side(["node", str(HERE / "peers/ort_infer.js"), str(node), onnx, str(batch),
                          str(threads)], MOST)}
    off = max(abs(a - b) for a, b in zip(*(side.about["outputs"] for side in sides.values())))
    if off > AGREE:
        sys.exit(f"{model}: the answers differ by {off:.1e}")
    rows = results.race(sides, rounds)
    ratio = results.spread([row["ort"][0] / row["paceline"][0] for row in rows])
    cpu = results.spread([row["ort"][1] / row["paceline"][1] for row in rows])
    seconds = {name: statistics.median(row[name][0] for row in rows) for name in sides}
    work = {key: about[key] * about["seconds"]["median"]
            for key in ("nominal_flops", "executed_flops", "weight_bytes_per_second")}
    return {
        "model": model, "batch": batch, "threads": threads, "rounds": rounds,
        "ratio": ratio["median"], "quartiles": ratio["quartiles"], "cpu_ratio": cpu["median"],
        "images_per_second": batch / seconds["paceline"], "ort_images_per_second":
        batch / seconds["ort"], "seconds": seconds["paceline"], "ort_seconds": seconds["ort"],
        "differ": off, "peak_flops": about["peak_flops"], "kernels": about["kernels"],
        **{key: value / seconds["paceline"] for key, value in work.items()},
    }


HEAD = ("| model | batch | threads | ratio | quartiles | ratio of CPU time | images/s | "
        "ONNX Runtime | executed GF/s (of peak) | weights GB/s |\n"
        "|---|---|---|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['model']} | {r['batch']} | {r['threads']} | **{r['ratio']:.2f}x** | "
            f"{r['quartiles'][0]:.2f} – {r['quartiles'][1]:.2f} | {r['cpu_ratio']:.2f}x | "
            f"{r['images_per_second']:.0f} | {r['ort_images_per_second']:.0f} | "
            f"{r['executed_flops'] / 1e9:.0f} "
            f"({100 * r['executed_flops'] / r['peak_flops']:.0f} %) | "
            f"{r['weight_bytes_per_second'] / 1e9:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", action="append", help="MODEL:BATCH:THREADS")
    results.add_options(parser)
    args = parser.parse_args()
    results.need_torch()
    node = install(args.program)
    cases = results.chosen(args.only, [(m, b, t) for m, b in CASES for t in (1, 2)])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for model in {case[0] for case in cases}:
            files[model] = (f"{folder}/{model}.safetensors", f"{folder}/{model}.onnx")
            subprocess.run([results.PYTHON, str(HERE / "peers/torch_onnx.py"), model,
                            *files[model]], check=True)
        print(HEAD, flush=True)
        for model, batch, threads in cases:
            found.append(measure(args.program, node, files, model, batch, threads, args.rounds))
            print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
