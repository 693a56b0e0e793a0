#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Shares by speed on hosts that differ: samples a second against what the hosts reach each by itself, together.

    shares.py PATH-OF-PACELINE [--batch N] [--steps N] [--model M] [--cpu C,C,…] [--json FILE] [--table FILE]

Needs root, and a machine with two cores that does nothing else. A worker on each of four test hosts (tools/cluster)
with CPU quotas of 0.6, 0.6, 0.4 and 0.2 core. First each trains by itself, all at the same time: the sum of their
speeds is the limit. Then they train together under ddp with --shares speed; in the middle the quotas of the first and
the last host are exchanged, so that the limit stays what it is. Rates are those of the ten steps that follow the first
ten, and of the ten that follow ten steps after the exchange. Then one worker makes the same steps, for the losses, and
the hosts, without quotas, make them again with the recorded shares, for the bits."""
import argparse
import contextlib
import hashlib
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

WAIT = 300  # seconds for anything that is waited for


class Place(trainings.Hosts):
    def command(self, options):
        self.count += 1
        return [self.program, "train", *map(str, options), "--runs-dir", self.folder, "--run", str(self.count),
                "--quiet", "--json"]

    def events(self, kind):
        path = pathlib.Path(self.folder, str(self.count), "events.jsonl")
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [e for e in (json.loads(line) for line in lines if line.endswith("\n")) if e["event"] == kind]

    def weights(self):
        """A checksum of the newest checkpoint's weights."""
        folders = pathlib.Path(self.folder, str(self.count), "checkpoints").glob("step-*")
        newest = max(folders, key=lambda folder: int(folder.name.split("-")[1]))
        return hashlib.sha256((newest / "model.safetensors").read_bytes()).hexdigest()


def rate(steps, first):
    """Samples a second of ten steps from the one after `first` + 10 on."""
    chosen = [e for e in steps if first + 10 < e["step"] <= first + 20]
    return sum(e["samples"] for e in chosen) / sum(e["seconds"] for e in chosen)


def limit(host, cpu):
    subprocess.run([trainings.CLUSTER, "limit", str(host), "--cpu", cpu], check=True)


def start(args, place, options):
    """The processes of a training of all hosts."""
    master = subprocess.run([trainings.CLUSTER, "address", "0"], check=True, text=True, capture_output=True).stdout.strip()
    command = place.command([*options, "--num-nodes", len(args.cpu), "--master-ip", master])
    return [subprocess.Popen(place.place(i, command + ["--rank", str(i)]), stdout=subprocess.DEVNULL)
            for i in range(len(args.cpu))]


def train_together(args, place, options):
    """Exchanges two quotas in the middle; returns the step at which that was done."""
    hosts = len(args.cpu)
    processes = start(args, place, [*options, "--strategy", "ddp", "--shares", "speed"])
    try:
        end = time.time() + WAIT
        while len(place.events("step")) < args.steps // 2:
            if time.time() > end or any(p.poll() is not None for p in processes):
                raise SystemExit("the training did not get to its middle")
            time.sleep(0.05)
        limit(0, args.cpu[-1])
        limit(hosts - 1, args.cpu[0])
        changed = len(place.events("step"))
        for process in processes:
            process.wait(timeout=WAIT)
    finally:
        for process in processes:
            process.kill()
    return changed


def measure(args, place):
    base = ["--model", args.model, "--data", args.data, "--threads", 1, "--no-test", "--eval-every", 0, "--lr", 0.01,
            "--log-every", 1]
    alone = place.apart(len(args.cpu), *base, "--batch", args.batch // 4, "--steps", max(4, args.steps // 4))
    summed = sum(r["samples_per_second"] for r in alone)
    options = base + ["--batch", args.batch, "--steps", args.steps]
    changed = train_together(args, place, options)
    steps, shares, run, bits = place.events("step"), place.events("shares"), place.count, place.weights()
    after = [e["step"] for e in shares if e["step"] > changed]
    here = Place(contextlib.ExitStack(), place.program)
    here.folder, here.count = place.folder, place.count
    here.finish([here.command([*options, "--strategy", "single"])])
    place.count = here.count
    gap = max(abs(a["loss"] - b["loss"]) for a, b in zip(steps, here.events("step")))
    for host in range(len(args.cpu)):
        limit(host, "none")
    for process in start(args, place, ["--like", run, "--shares", "recorded"]):
        if process.wait(timeout=WAIT) != 0:
            raise SystemExit("the training did not go again with its recorded shares")
    return {"summed": summed, "step_seconds": sum(e["seconds"] for e in steps) / len(steps),
            "first": rate(steps, 0) / summed, "after": rate(steps, changed) / summed,
            "even": len(args.cpu) * min(map(float, args.cpu)) / sum(map(float, args.cpu)),
            "first_change": shares[0]["step"] if shares else None, "changed": changed,
            "next_change": after[0] if after else None, "loss_gap": gap, "same_bits": place.weights() == bits}


HEAD = ("| seconds of a step | summed samples/s | with even shares | from step 11 on | ten steps after the exchange | "
        "exchange at step, new shares from | losses differ by | same bits again |\n|---|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['step_seconds']:.2f} | {r['summed']:.1f} | {r['even']:.2f} | **{r['first']:.2f}** | **{r['after']:.2f}** | "
            f"{r['changed']}, {r['next_change']} | {r['loss_gap']:.1g} | {'yes' if r['same_bits'] else 'no'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--model", default="mnist-cnn")
    parser.add_argument("--cpu", default="0.6,0.6,0.4,0.2", type=lambda text: text.split(","))
    parser.add_argument("--data", default="synthetic:shape=1x28x28,classes=10,train=60000,test=10")
    results.add_options(parser)
    args = parser.parse_args()
    print(HEAD, flush=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(trainings.cluster(len(args.cpu), "--loopback", "--cpu", ",".join(args.cpu)))
        found = [measure(args, Place(stack, args.program))]
    print(row(found[0]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
