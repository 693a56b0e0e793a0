#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Slowdowns that are injected into real trainings, and how soon and with which cause they are found.

    slowdowns.py PATH-OF-PACELINE [--rounds N] [--batch N] [--model M] [--json FILE] [--table FILE]

Needs root, and a machine with two cores that does nothing else: two test hosts (tools/cluster) with a worker each, a
core for each. A round is a training in which one after another befalls a worker, and ends again:

    cpu-quota   its host gets half a core
    slow-link   its host's link gets a rate that a step's bytes need as long for as its computing
    stalls      it is stopped for as long as a step takes (SIGSTOP), every two steps
    stolen-cpu  a process that computes runs on its core

A step should take half a second at least. Each must be found within ten steps (two observations more are made, to see
what comes late). Of two workers both share the link, and either may be named. Memory pressure is not among them:
without swap the kernel has nothing to take from a training but its life. tests/sim/slowdowns has it."""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import results  # noqa: E402
import trainings  # noqa: E402

KINDS = ("cpu-quota", "slow-link", "stalls", "stolen-cpu")
WARM, LIMIT, MORE, REST = 40, 10, 2, 25  # steps
WAIT = 300  # seconds for anything that is waited for


class Training:
    def __init__(self, args, folder):
        self.folder, self.args = folder, args
        master = subprocess.run([trainings.CLUSTER, "address", "0"], check=True, text=True, capture_output=True).stdout.strip()
        command = [args.program, "train", "--model", args.model, "--data", args.data, "--batch", str(args.batch),
                   "--threads", "1", "--no-test", "--eval-every", "0", "--lr", "0.001", "--epochs", "100000", "--shares", "even",
                   "--strategy", "allreduce", "--log-every", "1", "--no-checkpoint", "--quiet", "--runs-dir", folder,
                   "--run", "slow", "--num-nodes", "2", "--master-ip", master]
        self.processes = [subprocess.Popen([trainings.CLUSTER, "exec", str(i), "taskset", "-c", str(i), *command,
                                            "--rank", str(i)], stdout=subprocess.DEVNULL) for i in range(2)]

    def events(self, kind):
        path = pathlib.Path(self.folder, "slow", "events.jsonl")
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [e for e in (json.loads(line) for line in lines if line.endswith("\n")) if e["event"] == kind]

    def step(self):
        steps = self.events("step")
        return steps[-1]["step"] if steps else 0

    def seconds(self):
        """Of a usual step: the median of the newest ten."""
        return sorted(e["seconds"] for e in self.events("step")[-10:])[5]

    def until(self, step, done=lambda: False):
        end = time.time() + WAIT
        while self.step() < step and not done():
            if time.time() > end or any(p.poll() is not None for p in self.processes):
                raise SystemExit("the training stands still or has ended")
            time.sleep(0.05)

    def worker(self, host):
        status = subprocess.run([self.args.program, "status", "slow", "--runs-dir", self.folder, "--json"], check=True,
                                capture_output=True).stdout
        return next(w["pid"] for w in json.loads(status)["workers"] if w["host"] == host)

    def end(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(timeout=60)


@contextlib.contextmanager
def stalls(pid, seconds):
    ended = threading.Event()

    def stop_and_go():
        while not ended.wait(2 * seconds):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)
    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def limited(host, option, value):
    subprocess.run([trainings.CLUSTER, "limit", str(host), option, value], check=True)
    try:
        yield
    finally:
        subprocess.run([trainings.CLUSTER, "limit", str(host), option, "none"], check=True)


@contextlib.contextmanager
def neighbour(core):
    process = subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def injection(training, kind, host):
    seconds = training.seconds()
    if kind == "cpu-quota":
        return limited(host, "--cpu", "0.5")
    if kind == "slow-link":
        bits = 8 * training.args.bytes / seconds
        return limited(host, "--rate", f"{max(1, round(bits / 1000))}kbit")
    if kind == "stalls":
        return stalls(training.worker(host), seconds)
    return neighbour(host)


def inject(training, kind, host):
    begun, known, usual = training.step(), len(training.events("anomaly")), training.seconds()

    def news():
        return [e for e in training.events("anomaly")[known:] if e["slow"]]
    with injection(training, kind, host):
        training.until(begun + LIMIT + MORE, news)
    found = next(iter(news()), None)
    training.until(training.step() + REST)
    where = found and (found["host"] == host or kind == "slow-link")
    return {"kind": kind, "host": host, "step_seconds": usual, "steps": found["step"] - begun if found else None,
            "in_time": bool(where and found["step"] - begun <= LIMIT), "cause": found["cause"] if found else None,
            "right": bool(where and found["cause"] == kind), "past": found["past"] if found else None}


HEAD = "| injected | host | seconds of a step | found after steps | cause | times its past |\n|---|---|---|---|---|---|"


def row(r):
    return (f"| {r['kind']} | {r['host']} | {r['step_seconds']:.2f} | {r['steps'] if r['steps'] else 'not found'}"
            f"{'' if r['in_time'] else ' (late or another)'} | {r['cause']} | {r['past'] or '–'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--model", default="mnist-cnn")
    parser.add_argument("--bytes", type=float, default=2e6, help="that a host sends in a step, about")
    parser.add_argument("--data", default="synthetic:shape=1x28x28,classes=10,train=60000,test=10")
    results.add_options(parser)
    args = parser.parse_args()
    found = []
    print(HEAD, flush=True)
    for number in range(args.rounds):
        with contextlib.ExitStack() as stack:
            stack.enter_context(trainings.cluster(2, "--loopback", "--rate", "1gbit"))
            training = Training(args, trainings.Here(stack, args.program).folder)
            stack.callback(training.end)
            training.until(WARM)
            for i, kind in enumerate(KINDS):
                found.append(inject(training, kind, (number + i) % 2))
                print(row(found[-1]), flush=True)
    in_time, right = (sum(f[key] for f in found) for key in ("in_time", "right"))
    print(f"\n{len(found)} injected, {in_time} found within {LIMIT} steps, {right} with the right cause")
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
