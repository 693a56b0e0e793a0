#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Do two builds of paceline compute the same? For a rebuild that must not change what training does.

    same_bits.py OLD NEW [--quick] [--only REGEX] [--list] [--new-options "OPTION…"]

Every case is trained by both programs, one after the other, with forced kernels and one thread: the
zoo's mnist-cnn (dropout) and vgg11 (--sync-bn) under every strategy, on 1 to 4 workers of one host
and 2 to 4 of two, and some jobs with other options. A case is the same if the newest checkpoint's
model.safetensors and state.safetensors have the same bytes, and the number of that checkpoint, the
best checkpoint, the loss of every step and the test's metrics are equal.

Between hosts the order of a sum depends on which collective was measured to be faster
(src/coll/cost.c), so a program may give one of several results. Where that can be, a case that
differs is trained again by both, three times at most; it is the same as soon as both programs have
given one result in common.

--quick takes some two minutes, everything some ten. --new-options are given to NEW alone: with
"--seed 2" every case must differ. The exit code is 1 if any case does."""
import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from safetensors import load  # noqa: E402

PATIENCE = 300  # seconds until a training that has not ended is given up
TRIES = 4  # trainings by each program, where a measurement decides the order of sums
FILES = ("model.safetensors", "state.safetensors")
FORMS = ["ddp:overlap=on,bucket=64K,first=4K", "ddp:overlap=on,wire=bf16", "allreduce:wire=bf16",
         "local-sgd:k=4", "local-sgd:k=4,warmup=2,slots", "local-sgd:k=4,outer-lr=0.7"]
# Batches that no number of workers divides, and an epoch that ends with a short one.
MODELS = {
    "mnist-cnn": "--model mnist-cnn --data synthetic:classes=10,shape=1x28x28,train=60,test=21 "
                 "--batch 13 --steps 9 --lr 0.02",
    "vgg11": "--model vgg11 --data synthetic:classes=10,shape=3x32x32,train=20,test=7 "
             "--batch 7 --steps 4 --lr 0.01 --sync-bn",
}
# name: (workers, strategies, options)
JOBS = {
    "accumulate": ((1, 3), ("ddp", "local-sgd:k=4"), "--accumulate 2"),
    "clip": ((1, 2), ("ddp", "allreduce", "ddp:overlap=on"), "--clip 1"),
    "adamw": ((1, 3), ("ddp", "gather-scatter", "local-sgd:k=4,slots"), "--optimiser adamw --lr 0.001"),
    "validation": ((1, 3), ("ddp", "local-sgd:k=4"), "--validation 0.2 --eval-every 2 --patience 1"),
    "batch-2": ((4,), ("ddp", "gather-scatter", "local-sgd:k=4"), "--batch 2"),
    "per-worker": ((3,), ("allreduce",), "--batch-per-worker 5"),
    "augmented": ((2,), ("ddp",), "--pad 2 --flip --balanced --schedule one-cycle --warmup 1 --nesterov "
                                  "--weight-decay 0.001"),
    "tcp": ((3,), ("ddp", "ddp:overlap=on", "local-sgd:k=4"), "--transport tcp"),
    "winograd4": ((1, 2), ("ddp",), "--kernels winograd4"),
}


@dataclasses.dataclass
class Case:
    name: str
    hosts: list  # workers of each
    options: list
    middle: int = 0  # a step to stop and resume at; 0: none
    old_first: bool = False  # both resume what OLD has saved

    def measured(self):
        """Ranks that do not all share memory."""
        return len(self.hosts) > 1 or "tcp" in self.options


def strategies(program):
    listed = subprocess.run([program, "strategies", "--json"], check=True, capture_output=True)
    return [s["name"] for s in json.loads(listed.stdout)["strategies"] if not s["alone"] and "network" in s["tasks"]]


def placements():
    """Workers of each host: one host, and two where the first has what cannot be divided."""
    return [[n] for n in range(1, 5)] + [[(n + 1) // 2, n // 2] for n in range(2, 5)]


def case(model, strategy, hosts, job="", options="", **more):
    name = f"{model} {strategy} {'+'.join(map(str, hosts))}" + (f" {job}" if job else "")
    return Case(name, hosts, shlex.split(MODELS[model]) + ["--kernels", "onednn"] +
                ["--strategy", strategy] + shlex.split(options), **more)


def all_cases(names):
    cases = [case(model, "single", [1]) for model in MODELS]
    cases += [case("mnist-cnn", s, hosts) for s in names + FORMS for hosts in placements()]
    for name, (counts, kinds, options) in JOBS.items():
        cases += [case("mnist-cnn", "single" if n == 1 else s, [n], name, options)
                  for n in counts for s in (kinds[:1] if n == 1 else kinds)]
    for hosts in ([1], [3], [1, 1]):
        for s in ("ddp", "local-sgd:k=4"):
            strategy = "single" if hosts == [1] else s
            cases += [case("mnist-cnn", strategy, hosts, "resumed", "--checkpoint-every 2", middle=5),
                      case("mnist-cnn", strategy, hosts, "resumed-old", "--checkpoint-every 2", middle=5,
                           old_first=True)]
    cases += [case("vgg11", s, hosts) for s in names for hosts in placements()]
    cases += [case("vgg11", "ddp:overlap=on,bucket=64K,first=4K", hosts) for hosts in ([2], [1, 1])]
    return list({c.name: c for c in cases}.values())


def is_quick(c):
    """Two and three workers on one host, all forms; some of everything else."""
    if c.name.startswith("vgg11"):
        return c.name in ("vgg11 single 1", "vgg11 ddp 2")
    kind = c.name.split()
    return len(kind) > 3 or c.hosts in ([2], [3]) or (":" not in kind[1] and c.hosts == [2, 1])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Failed(Exception):
    pass


def finish(agents):
    """Waits for all agents of a job and returns the output of the one that has any."""
    deadline = time.monotonic() + PATIENCE
    try:
        outputs = [a.communicate(timeout=max(1, deadline - time.monotonic())) for a in agents]
    except subprocess.TimeoutExpired:
        raise Failed(f"has not ended after {PATIENCE} s") from None
    finally:
        for agent in agents:
            if agent.poll() is None:
                os.killpg(agent.pid, signal.SIGKILL)
                agent.wait()
    for agent, (_, errors) in zip(agents, outputs):
        if agent.returncode != 0:
            raise Failed(f"ended with {agent.returncode}: {' '.join(errors.split())[-300:]}")
    return next(output for output, _ in outputs if output)


def train(program, hosts, folder, options):
    """One training in folder/0, the folder of host 0; folder/1 is that of host 1."""
    port, agents = free_port(), []
    for host, workers in enumerate(hosts):
        (folder / str(host)).mkdir(exist_ok=True)
        command = [program, "train", *options, "--workers", str(workers), "--threads", "1", "--quiet", "--json"]
        if len(hosts) > 1:
            command += ["--num-nodes", str(len(hosts)), "--rank", str(host), "--master-ip", "127.0.0.1",
                        "--port", str(port), "--gather", "30"]
        agents.append(subprocess.Popen(
            command, cwd=folder / str(host), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            env=dict(os.environ, OMP_WAIT_POLICY="passive", XDG_CACHE_HOME=str(folder / "cache"))))
    return json.loads(finish(agents))


def result_of(folder, answer):
    """What a training came to: comparable values by name. Tensors are there by their digests."""
    run = folder / "0" / "runs" / "r"
    checkpoints = run / "checkpoints"
    newest = max(checkpoints.glob("step-*"), key=lambda path: int(path.name.split("-")[1]))
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    values = {f"loss of step {e['step']}": e["loss"] for e in events if e["event"] == "step"}
    for one in (answer["test"] or {}).get("per_class", []):
        one.pop("name", None)  # told since some version
    values["test"] = json.dumps(answer["test"], sort_keys=True)
    values["newest checkpoint"] = newest.name
    if (checkpoints / "best").exists():
        values["best checkpoint"] = (checkpoints / "best").read_text()
    for file in FILES:
        tensors = load(newest / file)
        assert tensors
        values |= {f"{file}: {name}": hashlib.sha256(t.tobytes()).hexdigest() for name, t in tensors.items()}
        values[f"bytes of {file}"] = hashlib.sha256((newest / file).read_bytes()).hexdigest()
    return values


def compute(c, program, first, more):
    """The case computed by `program`, its steps before c.middle by `first`."""
    with tempfile.TemporaryDirectory(prefix="same-bits-") as name:
        folder = pathlib.Path(name)
        if c.middle:
            train(first, c.hosts, folder, c.options + ["--steps", str(c.middle), "--run", "r"])
            at = c.options.index("--steps")
            answer = train(program, c.hosts, folder, ["--resume", "r", *c.options[at:at + 2], *more])
        else:
            answer = train(program, c.hosts, folder, c.options + ["--run", "r", *more])
        return result_of(folder, answer)


def difference(a, b):
    """The name of the first value that differs, in the order of result_of."""
    return next((name for name in {**a, **b} if a.get(name) != b.get(name)), None)


def compare(c, old, new, more):
    """None, or what differs."""
    seen = {old: [], new: []}
    for attempt in range(TRIES if c.measured() else 1):
        for program in (old, new) if attempt % 2 == 0 else (new, old):
            options = more if program == new else []
            try:
                seen[program].append(compute(c, program, old if c.old_first else program, options))
            except Failed as failure:
                return f"{'NEW' if program == new else 'OLD'} {failure}"
        if any(a == b for a in seen[old] for b in seen[new]):
            return None
    return difference(seen[old][0], seen[new][0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="a regular expression of the cases' names")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--new-options", default="", help="given to NEW alone")
    args = parser.parse_args()
    old, new = (str(pathlib.Path(p).resolve()) for p in (args.old, args.new))
    with contextlib.ExitStack() as stack:
        if old == new:  # a second path, so that the two are told apart
            new = stack.enter_context(tempfile.TemporaryDirectory()) + "/paceline"
            os.symlink(old, new)
        known = set(strategies(old))
        cases = [c for c in all_cases([s for s in strategies(new) if s in known])
                 if (is_quick(c) or not args.quick) and re.search(args.only, c.name)]
        if args.list:
            print(*(c.name for c in cases), sep="\n")
            return 0
        different = 0
        for number, c in enumerate(cases, 1):
            began = time.monotonic()
            what = compare(c, old, new, shlex.split(args.new_options))
            different += what is not None
            print(f"[{number}/{len(cases)}] {c.name}: {'same' if what is None else 'DIFFERENT: ' + what}"
                  f" ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{len(cases) - different} the same, {different} different")
    return 1 if different or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
