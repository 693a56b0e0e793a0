# SPDX-License-Identifier: MIT
"""Trainings that bench/ compares: the same job on nodes that train together, or each for itself.
A node is a worker of this machine, or a host of tools/cluster with one worker."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

CLUSTER = str(pathlib.Path(__file__).resolve().parent / "cluster")
PATIENCE = 3600  # seconds until a training that has not ended is given up


def images(program):
    """CIFAR-10, or where it is not there images of its shape that are made up."""
    listed = subprocess.run([program, "data", "list", "--json"], check=True, capture_output=True)
    present = [s["name"] for s in json.loads(listed.stdout)["sets"] if s["present"]]
    return "cifar10" if "cifar10" in present else "synthetic:shape=3x32x32,classes=10"


def bytes_sent(result):
    return sum(rank["bytes_sent"] for rank in result["ranks"])


class Here:
    """Workers of this machine, which share its cores."""

    def __init__(self, stack, program):
        """`stack` keeps the runs."""
        self.program = str(program)
        self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="trainings-"))
        self.count = 0

    def command(self, options):
        self.count += 1
        return [self.program, "train", *map(str, options), "--runs-dir", self.folder,
                "--run", str(self.count), "--no-checkpoint", "--quiet", "--json"]

    def place(self, node, command):
        """The command, on this node."""
        return command

    def together(self, nodes, strategy, *options):
        """The result of one training of all nodes."""
        command = self.command([*options, "--strategy", strategy, "--workers", nodes])
        return self.finish([command])[0]

    def apart(self, nodes, *options):
        """The results of so many trainings of one worker each, started at the same time."""
        return self.finish([self.place(node, self.command([*options, "--strategy", "single"]))
                            for node in range(nodes)])

    def finish(self, commands, started=lambda process: None):
        processes = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
        try:
            for process in processes:
                started(process)
            outputs = [p.communicate(timeout=PATIENCE)[0] for p in processes]
        finally:
            for process in processes:
                process.kill()
        if any(p.returncode != 0 for p in processes):
            raise SystemExit(f"a training failed: {' '.join(commands[0])}")
        return [json.loads(output) for output in outputs if output]  # of a job's hosts one speaks


class Pinned(Here):
    """The same, each worker with all of its threads held to a core of its own, so that no worker waits
    for a core which the kernel has given to another one."""

    def finish(self, commands):
        """Of one training."""
        return super().finish(commands, started=self.pin)

    def pin(self, process):
        wanted = int(process.args[process.args.index("--workers") + 1])
        while len(workers := children(process.pid)) < wanted and process.poll() is None:
            time.sleep(0.002)
        for worker, core in zip(workers, sorted(os.sched_getaffinity(0))):
            for thread in os.listdir(f"/proc/{worker}/task"):  # those that come later inherit it
                os.sched_setaffinity(int(thread), {core})


def children(pid):
    """Processes that this one has started, the oldest first."""
    found = []
    with contextlib.suppress(FileNotFoundError):  # it has ended
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return sorted(found)


class Hosts(Here):
    """A worker on each host of a cluster that is there."""

    def place(self, node, command):
        return [CLUSTER, "exec", str(node), *command]

    def together(self, nodes, strategy, *options):
        master = subprocess.run([CLUSTER, "address", "0"], check=True, text=True,
                                capture_output=True).stdout.strip()
        command = self.command([*options, "--strategy", strategy, "--num-nodes", nodes,
                                "--master-ip", master])
        return self.finish([self.place(node, command + ["--rank", str(node)])
                            for node in range(nodes)])[0]


class PinnedHosts(Hosts):
    """The same, each worker held to one of the cores, in turns."""

    def place(self, node, command):
        cores = sorted(os.sched_getaffinity(0))
        return super().place(node, ["taskset", "-c", str(cores[node % len(cores)]), *command])


@contextlib.contextmanager
def cluster(hosts, *options):
    """Hosts of tools/cluster as long as the context lives; a SIGTERM ends it, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.environ["CLUSTER"] = f"t{os.getpid()}"
    subprocess.run([CLUSTER, "up", str(hosts), *map(str, options)], check=True)
    try:
        yield
    finally:
        subprocess.run([CLUSTER, "down"], check=True)
        del os.environ["CLUSTER"]
