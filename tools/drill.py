# SPDX-License-Identifier: MIT
"""Jobs whose workers do what they are told: the other end of `paceline drill`
(src/cli/programs/drill.c), for bench/ and tests/dist. A worker is a connection that takes lines and
gives JSON objects; nothing here waits longer than it was told to."""
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = str(ROOT / "tools/cluster")
PORT = 29500  # within what tools/cluster proxy listens on


class Silence(Exception):
    """Something did not come in time: a hang, in the words of the tests."""


class Rank:
    """One process at the other end of a Unix socket."""

    def __init__(self, sock):
        self.sock = sock
        self.bytes = b""
        self.id = self.pid = None
        self.ended = False

    def order(self, line):
        try:
            self.sock.sendall(line.encode() + b"\n")
        except OSError:
            self.ended = True

    def take(self):
        """A complete object that has come, else None."""
        line, mark, rest = self.bytes.partition(b"\n")
        if not mark:
            return None
        self.bytes = rest
        return json.loads(line)

    def read(self):
        try:
            data = self.sock.recv(1 << 16)
        except OSError:
            data = b""
        self.ended |= not data
        self.bytes += data

    def next(self, seconds):
        """Its next object; None: it has ended."""
        deadline = time.monotonic() + seconds
        while (answer := self.take()) is None and not self.ended:
            if not select.select([self.sock], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Silence(f"worker {self.id} says nothing for {seconds} s")
            self.read()
        return answer

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def close(self):
        self.sock.close()


def first(ranks, key, seconds):
    """The first object with this key that any of them gives."""
    deadline = time.monotonic() + seconds
    while True:
        for rank in ranks:
            while (answer := rank.take()) is not None:
                if key in answer:
                    return answer
        ready = select.select([r.sock for r in ranks if not r.ended], [], [],
                              max(0, deadline - time.monotonic()))[0]
        if not ready:
            raise Silence(f"no worker says '{key}' within {seconds} s")
        for rank in ranks:
            if rank.sock in ready:
                rank.read()


class Group:
    """Processes of which each makes a connection to us."""

    def __init__(self, name="driver"):
        self.folder = tempfile.TemporaryDirectory(prefix="drill-")
        self.path = f"{self.folder.name}/{name}"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(64)
        self.processes = []
        self.ranks = []

    def start(self, command, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        self.processes.append(subprocess.Popen(command, **options))
        return self.processes[-1]

    def accept(self, count, seconds):
        """So many more ranks."""
        deadline = time.monotonic() + seconds
        for _ in range(count):
            if not select.select([self.server], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Silence(f"{len(self.ranks)} ranks are there after {seconds} s, not {count}")
            self.ranks.append(Rank(self.server.accept()[0]))

    def order(self, line):
        for rank in self.ranks:
            rank.order(line)

    def end(self, seconds):
        """Closes all connections; the processes' exit codes."""
        for rank in self.ranks:
            rank.close()
        deadline = time.monotonic() + seconds
        try:
            return [p.wait(max(0.01, deadline - time.monotonic())) for p in self.processes]
        except subprocess.TimeoutExpired:
            raise Silence(f"a process has not ended {seconds} s after it was told to") from None

    def __enter__(self):
        return self

    def quit(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.server.close()

    def __exit__(self, *_):
        self.quit()
        self.folder.cleanup()


class Job(Group):
    """Workers of paceline, `workers` on each of the hosts; hosts: None, or numbers of hosts of the
    current cluster of tools/cluster, of which the first is host 0."""

    def __init__(self, program, workers, hosts=None, options=(), env=None, port=PORT):
        super().__init__()
        self.program, self.workers, self.hosts = str(program), workers, hosts
        self.options, self.env, self.port = list(options), env, port
        self.log = open(f"{self.folder.name}/log", "w")
        self.events = f"{self.folder.name}/events"

    def __exit__(self, kind, *rest):
        if kind is not None:
            time.sleep(1)  # its last words may be under way
        self.quit()
        if kind is not None:
            lines = pathlib.Path(self.log.name).read_text().splitlines()[-20:]
            events = pathlib.Path(self.events)
            lines += [e for e in events.read_text().splitlines() if '"heartbeat"' not in e][-30:] \
                if events.exists() else []
            print("what the job said last:", *lines, sep="\n  ", file=sys.stderr)
        self.log.close()
        self.folder.cleanup()

    def start(self, command, **options):
        return super().start(command, stderr=self.log, **options)

    def launch(self):
        own = [self.program, "drill", self.path, "--workers", str(self.workers), "--events", self.events,
               *self.options]
        env = dict(os.environ, OMP_NUM_THREADS="1", **(self.env or {}))
        if self.hosts is None:
            self.start(own, env=env)
            return self
        master = subprocess.run([CLUSTER, "address", str(self.hosts[0])], check=True, text=True,
                                capture_output=True).stdout.strip()
        for rank, host in enumerate(self.hosts):
            self.start([CLUSTER, "exec", str(host), *own, "--num-nodes", str(len(self.hosts)),
                        "--rank", str(rank), "--master-ip", master, "--port", str(self.port)], env=env)
            if rank == 0:
                self.says("listens on", 30)  # a proxy would accept, and close: no reason to try again
        return self

    def says(self, words, seconds):
        """Waits until the log has these words."""
        deadline = time.monotonic() + seconds
        while words not in pathlib.Path(self.log.name).read_text():
            if time.monotonic() > deadline:
                raise Silence(f"the job does not say '{words}' within {seconds} s")
            time.sleep(0.005)

    def gather(self, seconds=30):
        """All workers, sorted by id, in their first view."""
        self.accept(self.workers * len(self.hosts or [0]), seconds)
        for rank in self.ranks:
            self.hello(rank, seconds)
        self.ranks.sort(key=lambda r: r.id)
        self.view(self.ranks, seconds)
        return self

    def hello(self, rank, seconds):
        answer = rank.next(seconds)
        if answer is None:
            raise Silence("a worker connected and ended")
        rank.id, rank.pid = answer["id"], answer["pid"]

    @staticmethod
    def view(ranks, seconds):
        """The next view of each of them; its members."""
        views = [rank.next(seconds) for rank in ranks]
        assert all(v is not None and v.get("view") == views[0]["view"] for v in views), views
        return views[0]["members"]
