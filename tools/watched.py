# SPDX-License-Identifier: MIT
"""A training of several workers, watched from outside, for bench/ and tests/dist: what it says of steps
and views with the moment it said so, and the process ids of its workers. Nothing here waits longer
than it was told to."""
import json
import pathlib
import re
import signal
import subprocess
import threading
import time

from drill import Silence

STEP = re.compile(r"(?:worker \d+: )?step +(\d+) ")
VIEW = re.compile(r"(?:worker \d+: )?view (\d+): workers ([\d,]+) go on after step \d+")


def children(pid):
    try:
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []


def worker_id(pid):
    """Of a process `paceline worker ID`; None: it is gone, or not one yet."""
    try:
        words = open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        return None
    return int(words[2]) if len(words) > 2 and words[1] == "worker" else None


class Training:
    """`paceline train` with these options, --log-every 1 among them; `folder` gets its runs and log."""

    def __init__(self, program, folder, options):
        self.program, self.folder = str(program), pathlib.Path(folder)
        self.changed = threading.Condition()
        self.step = 0  # the newest one told of, and …
        self.stepped = 0.0  # … when; 0: none in this view
        self.view, self.members = 0, []
        self.port = None
        self.log = open(self.folder / "log", "w", buffering=1)
        self.agents, self.readers = [], []
        self.agent = self.start("train", "--log-every", "1", *options)

    def start(self, *arguments):
        """An agent of the training; whichever has rank 0 tells of steps and views."""
        agent = subprocess.Popen([self.program, *arguments], text=True, cwd=self.folder,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 start_new_session=True)  # or the end of our shell continues who is stopped
        self.agents.append(agent)
        self.readers.append(threading.Thread(target=self.listen, args=(agent.stderr,), daemon=True))
        self.readers[-1].start()
        return agent

    def listen(self, lines):
        for line in lines:
            now = time.monotonic()
            self.log.write(line)
            with self.changed:
                if match := STEP.match(line):
                    self.step, self.stepped = int(match[1]), now
                elif match := VIEW.match(line):
                    self.view, self.members = int(match[1]), [int(i) for i in match[2].split(",")]
                    self.stepped = 0.0
                elif match := re.match(r"host 0 listens on [\d.]+:(\d+)", line):
                    self.port = int(match[1])
                self.changed.notify_all()

    def note(self, text):
        """Into the log, beside what the training says."""
        self.log.write(f"-- {text}\n")

    def until(self, done, what, seconds):
        """Waits until done() holds."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not done():
                if self.agent.poll() is not None:
                    raise Silence(f"the training has ended ({self.agent.returncode}): {what}")
                if time.monotonic() > deadline:
                    raise Silence(f"{what}: not within {seconds} s")
                self.changed.wait(0.1)

    def goes_on(self, view, seconds):
        """Until a step was made in a view newer than this one; when that was."""
        self.until(lambda: self.view > view and self.stepped > 0, f"no step after view {view}", seconds)
        return self.stepped

    def join(self, workers):
        self.start("join", f"127.0.0.1:{self.port}", "--workers", str(workers))

    def workers(self):
        """Process ids by worker id, of those that run."""
        pids = [pid for agent in self.agents if agent.poll() is None for pid in children(agent.pid)]
        return {i: pid for pid in pids if (i := worker_id(pid)) is not None}

    def stop(self, seconds):
        """As a person does; its exit code."""
        self.agent.send_signal(signal.SIGINT)
        try:
            for agent in self.agents:
                agent.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Silence(f"not stopped within {seconds} s") from None
        self.close()
        return self.agent.returncode

    def events(self, run):
        lines = (self.folder / "runs" / run / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        self.close()
        self.log.close()

    def close(self):
        for reader in self.readers:
            reader.join(5)
