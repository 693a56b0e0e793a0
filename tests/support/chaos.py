#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Small trainings that are killed, stopped, interrupted, joined and left, or whose disk is full, at
random moments; after every ending the promises of docs/files.md, protocol.md and json.md are checked.

    chaos.py PATH-OF-PACELINE [--endings N] [--seed S] [--only I] [--jobs J] [--keep FOLDER]

An ending is one training of a random strategy in one process, in workers over shared memory or tcp,
on two agents of this host, or under mpirun, with up to three disturbances. When it has ended:
no process of it runs, no temporary file, socket or shared memory is left, the status of the run agrees
with the exit code and is never "running", the newest checkpoint verifies and is the one that the run
tells of, and `--resume` comes to the exact number of steps, with every sample once in every epoch.
Ending I of seed S makes the same choices again by itself: --seed S --only I. Moments are times, so a
race may need several tries. As root every ending has a /dev/shm of its own and may fill a disk."""
import argparse
import collections
import ctypes
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 90  # seconds until a training that does not end counts as hanging
SAMPLES, BATCH = 250, 24
EPOCH_STEPS = -(-SAMPLES // BATCH)
CLONE_NEWNS = 0x20000
LIBC = ctypes.CDLL(None, use_errno=True)
DISTURBANCES = {"kill worker": 6, "stop worker": 2, "freeze worker": 2, "signal agent": 4, "signal group": 1,
                "signal worker": 1, "kill agent": 2, "freeze agent": 1, "guest": 2, "guest leaves": 2,
                "guest dies": 2}


class Finding(Exception):
    """A promise that was not kept."""


def expect(holds, promise):
    if not holds:
        raise Finding(promise)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def own_mounts():
    """A /dev/shm of this process and its children alone, so that whatever is left there is theirs."""
    if os.geteuid() != 0 or LIBC.unshare(CLONE_NEWNS) != 0:
        return False
    return all(subprocess.run(["mount", *words], stderr=subprocess.DEVNULL).returncode == 0
               for words in (["--make-rprivate", "/"], ["-t", "tmpfs", "tmpfs", "/dev/shm"]))


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def words_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


class Ending:
    """One training, what is done to it, and what must be true of it afterwards."""

    def __init__(self, program, strategies, seed, index, folder):
        self.program, self.folder = program, folder
        self.rng = random.Random(f"{seed}/{index}")
        self.mark = f"{os.getpid()}-{seed}-{index}"
        self.private = own_mounts()
        self.story = []  # what was chosen and done, for the reader of a finding
        self.agents, self.guests, self.sessions = [], [], set()
        self.violent = False  # a process was ended that could not tidy up
        self.signalled = False
        self.limit = None  # bytes of a file
        self.full = False  # the folder is a small file system
        self.choose(strategies)

    # -- what is run ---------------------------------------------------------------------------

    def choose(self, strategies):
        rng = self.rng
        places = ["process", "shm", "shm", "tcp", "hosts", "hosts"] + ["mpi"] * (shutil.which("mpirun") is not None)
        self.place = rng.choice(places)
        alone = self.place == "process"
        strategy = rng.choice([s for s in strategies if s["alone"] == alone and "network" in s["tasks"]])
        self.strategy = strategy["name"]
        self.rounds = strategy["commit_unit"] == "round"
        spelt = self.strategy + rng.choice({"ddp": ["", ":overlap=on,bucket=4K,first=2K"],
                                            "local-sgd": [":k=3", ":k=4,slots"]}.get(self.strategy, [""]))
        self.epochs = rng.choice([8, 30, 60, 100])
        self.total = self.epochs * EPOCH_STEPS
        self.port = free_port()
        self.options = ["--model", "mlp:32x1", "--data", f"synthetic:classes=4,shape=1x8x8,train={SAMPLES},test=40",
                        "--batch", str(BATCH), "--epochs", str(self.epochs), "--threads", "1", "--run", "r",
                        "--strategy", spelt, "--checkpoint-every", str(rng.choice([3, 7, 11, 40])), "--json"]
        if rng.random() < 0.5:
            self.options += ["--no-test"]
        if not alone and self.place != "mpi":
            self.options += ["--silence", "2", "--gather", "15"]
            if rng.random() < 0.4:
                self.options += ["--restart-workers"]
        disk = rng.random()
        if disk < 0.06 and self.place != "mpi":  # whose mpirun does not bear it
            self.limit = rng.randint(2, 60) * 1024
        elif disk < 0.12 and self.private:
            self.full = True
            size = rng.randint(10, 60) * 4096
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.folder], check=True)
            self.tell(f"a disk of {size} bytes")
        self.tell(self.place, spelt, f"{self.epochs} epochs", f"limit {self.limit}")

    def tell(self, *what):
        self.story.append(" ".join(str(w) for w in what))

    def start(self, *command, limit=None):
        def prepare():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        process = subprocess.Popen(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=dict(os.environ, PACELINE_CHAOS=self.mark, TMPDIR="/tmp", OMP_WAIT_POLICY="passive"))
        self.sessions.add(process.pid)
        return process

    def begin(self):
        train = [self.program, "train", *self.options]
        if self.place == "process":
            commands = [train]
        elif self.place == "mpi":
            commands = [["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1",
                         "-n", "2", *train, "--transport", "mpi"]]
        elif self.place == "hosts":
            hosts = ["--num-nodes", "2", "--master-ip", "127.0.0.1", "--port", str(self.port)]
            commands = [train + hosts + ["--rank", str(r), "--workers", str(self.rng.randint(1, 2))] for r in (0, 1)]
        else:
            commands = [train + ["--transport", self.place, "--workers", str(self.rng.randint(2, 3)),
                                 "--port", str(self.port)]]
        self.agents = [self.start(*command, limit=self.limit) for command in commands]

    # -- what is done to it --------------------------------------------------------------------

    def workers(self):
        parents = [p.pid for p in self.agents + self.guests if p.poll() is None]
        if self.place == "process":
            return parents
        wanted = "train" if self.place == "mpi" else "worker"
        pids = [pid for parent in parents for pid in children(parent)]
        return [pid for pid in pids if wanted in words_of(pid)[1:2]]

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        self.tell(f"  {time.monotonic() - self.began:.3f} s: {signal.Signals(number).name} to {pid}",
                  " ".join(words_of(pid)[1:3]) or "(ended)")

    def freeze(self, pid, seconds):
        self.send(pid, signal.SIGSTOP)
        time.sleep(seconds)
        self.send(pid, signal.SIGCONT)

    def ask_to_stop(self):
        """A second signal ends a process at once; mpirun kills the ranks that need more than a second."""
        self.violent |= self.signalled or self.place == "mpi"
        self.signalled = True

    def invite(self):
        if self.place in ("shm", "tcp", "hosts"):
            self.tell(" a guest comes")
            self.guests.append(self.start(self.program, "join", f"127.0.0.1:{self.port}", "--workers", "1"))

    def disturb(self):
        kind = self.rng.choices(list(DISTURBANCES), DISTURBANCES.values())[0]
        agent, lot = self.rng.choice(self.agents), self.rng.random()
        polite = self.rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
        if self.place == "mpi" and polite == signal.SIGHUP:
            polite = signal.SIGTERM  # mpirun dies of it
        pause = self.rng.uniform(0.01, 1)
        self.tell(f" {kind}")
        if kind.endswith("worker"):
            workers = self.workers()
            if not workers:
                return
            victim = workers[int(lot * len(workers))]
            if kind == "freeze worker":
                self.violent = True  # a machine that is this busy may make it silent for too long
                self.freeze(victim, pause)
            elif kind == "signal worker":
                self.ask_to_stop()
                self.send(victim, polite)
            else:
                self.violent = True
                stays = kind == "stop worker" and self.place in ("shm", "tcp", "hosts")
                self.send(victim, signal.SIGSTOP if stays else signal.SIGKILL)
        elif kind.endswith("agent") and agent.poll() is None:
            if kind == "freeze agent":
                self.freeze(agent.pid, pause)
            elif kind == "signal agent":
                self.ask_to_stop()
                self.send(agent.pid, polite)
                if lot < 0.2:
                    self.ask_to_stop()
                    time.sleep(pause / 10)
                    self.send(agent.pid, polite)
            else:
                self.violent = True
                self.send(agent.pid, signal.SIGKILL)
        elif kind == "signal group" and agent.poll() is None:
            self.ask_to_stop()
            self.tell(f"  {polite.name} to the group of {agent.pid}")
            os.killpg(agent.pid, polite)
        elif kind == "guest":
            self.invite()
        elif kind.startswith("guest ") and self.guests and self.guests[-1].poll() is None:
            self.violent = self.violent or kind == "guest dies"
            self.send(self.guests[-1].pid, signal.SIGKILL if kind == "guest dies" else polite)

    def run(self):
        self.began = time.monotonic()
        self.begin()
        events = self.folder / "runs/r/events.jsonl"
        if self.rng.random() < 0.8:  # else anywhere, the start included
            while not events.exists() and self.agents[0].poll() is None and time.monotonic() < self.began + 20:
                time.sleep(0.005)
        if self.rng.random() < 0.25:
            self.invite()
        for _ in range(self.rng.randint(0 if self.limit or self.full else 1, 3)):
            time.sleep(self.rng.uniform(0, 0.6))
            self.disturb()
        self.codes = [self.finish(p) for p in self.agents]
        for guest in self.guests:
            self.finish(guest)
        self.tell(f"ended with {self.codes} after {time.monotonic() - self.began:.1f} s")

    def finish(self, process):
        try:
            text = process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            raise Finding(f"process {process.pid} has not ended within {PATIENCE} s") from None
        self.tell(f"--- {process.pid} said, and ended with {process.returncode}:\n"
                  + "\n".join(l for l in text.splitlines()[-25:]) + "\n---")
        return process.returncode

    # -- what must be true ---------------------------------------------------------------------

    def mine(self):
        """Processes of this ending that run: by their session, or by their environment."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                ours = int(session) in self.sessions
                ours = ours or f"PACELINE_CHAOS={self.mark}".encode() in (entry / "environ").read_bytes()
            except OSError:
                continue
            if ours and state != "Z":
                found.append(int(entry.name))
        return found

    def check_processes(self):
        deadline = time.monotonic() + 5
        while (left := self.mine()) and time.monotonic() < deadline:
            time.sleep(0.05)
        expect(not left, f"processes {[(p, words_of(p)[:3]) for p in left]} run after the end")

    def check_leftovers(self, strict):
        paths = [p for p in self.folder.rglob("*") if ".tmp-" in p.name or p.is_socket() or p.name.endswith(".old")]
        expect(not strict or not paths, f"left: {[str(p.relative_to(self.folder)) for p in paths]}")
        shared = [p.name for p in pathlib.Path("/dev/shm").iterdir() if self.private or "paceline" in p.name]
        if self.place != "mpi":  # what a killed rank leaves there is the library's
            expect(not shared, f"shared memory is left: {shared}")

    def ask(self, *words):
        """A command that must end well; its object."""
        process = self.start(self.program, *words, "--json")
        try:
            text = process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            raise Finding(f"{words} has not ended within {PATIENCE} s") from None
        expect(process.returncode == 0, f"{' '.join(words)} ended with {process.returncode}: {text[-1500:]}")
        lines = [line for line in text.splitlines() if line.startswith('{"schema"')]
        expect(len(lines) == 1, f"{' '.join(words)} printed no object: {text[-500:]}")
        return json.loads(lines[0]), text

    def read_run(self):
        try:
            return json.loads((self.folder / "runs/r/run.json").read_text())
        except FileNotFoundError:
            return None

    def newest(self):
        steps = [int(m[1]) for p in (self.folder / "runs/r/checkpoints").glob("step-*")
                 if (m := re.fullmatch(r"step-(\d+)", p.name))]
        return max(steps, default=None)

    def check_status(self):
        """run.json against the exit code of host 0, which is the job's."""
        code, run = self.codes[0], self.read_run()
        if run is None:
            expect(code != 0, "a training that ended with 0 has no run.json")
            return None
        listed = self.ask("runs")[0]["runs"]
        expect(len(listed) == 1 and listed[0]["name"] == "r", f"runs lists {listed}")
        status = listed[0]["status"]
        self.tell(f"status {run['status']}, told as {status}; newest checkpoint {self.newest()}")
        told = {0: {"done"}, 1: {"failed"}, 130: {"interrupted"}, 143: {"interrupted"}, 129: {"interrupted"}}
        fit = set(told.get(code, {"done", "interrupted", "failed", "lost"} if code < 0 or self.place == "mpi" else ()))
        if code != 0 and (self.violent or self.full):
            fit.add("lost")  # the last one who could write it was killed, or could not write
        if self.place == "mpi":
            fit |= {"interrupted", "lost", "done"} if self.signalled else set()  # mpirun's code tells of the signal
        if code == 1 and self.signalled and self.violent:
            fit.add("interrupted")
        if code > 128 and (self.full or self.limit):
            fit.add("failed")  # asked to stop, it could not save
        expect(status in fit, f"the exit code is {code} and the run is {status}, not one of {sorted(fit)}")
        expect(status not in ("done", "interrupted", "failed") or "pid" not in run, "an ended run has a pid")
        if status in ("done", "interrupted"):
            expect(run["result"]["interrupted"] == (status == "interrupted"), f"result.interrupted of a {status} run")
            expect(run["result"]["steps"] == self.newest(),
                   f"run.json tells of {run['result']['steps']} steps, the newest checkpoint is {self.newest()}")
        if status == "done":
            expect(run["result"]["steps"] == self.total, f"{run['result']['steps']} steps instead of {self.total}")
        if status == "failed":
            expect(run.get("error", {}).get("message"), "a failed run has no error")
        return status

    def check_positions(self):
        for path in (self.folder / "runs/r/checkpoints").glob("step-*/manifest.json"):
            position = json.loads(path.read_text())["position"]
            epoch, rest = divmod(position["step"], EPOCH_STEPS)
            where = (epoch, rest * BATCH, rest * BATCH)
            got = (position["epoch"], position["cursor"], position["seen"])
            expect(got == where, f"{path.parent.name}: epoch, cursor, seen are {got}, not {where}")

    def check_events(self):
        events = []
        lines = (self.folder / "runs/r/events.jsonl").read_text().splitlines()
        for i, line in enumerate(lines):
            try:
                events.append(json.loads(line))
            except ValueError:
                expect(self.violent or self.full or self.limit, f"events.jsonl, line {i + 1}: {line!r}")
        steps = {e["step"]: e for e in events if e.get("event") == "step"}
        missing = [s for s in range(1, self.total + 1) if s not in steps]
        if any(e.get("event") == "dropped" for e in events) or self.full or self.limit:
            return
        survived = self.codes[0] in (0, 129, 130, 143)  # else the events of the last moment may be lost
        expect(not survived or not missing, f"events.jsonl lacks the steps {missing[:20]}")
        seen = collections.Counter()
        for step in steps.values():
            seen[step["epoch"]] += step["samples"]
            expect(step["epoch"] == (step["step"] - 1) // EPOCH_STEPS + 1, f"epoch of {step}")
        short = {(s - 1) // EPOCH_STEPS + 1 for s in missing}
        if not self.rounds:  # whose steps tell of rank 0's share
            wrong = {e: n for e, n in seen.items() if n != SAMPLES and e not in short}
            expect(not wrong, f"epochs of other than {SAMPLES} samples: {wrong}")

    def resume(self, status):
        words = ["train", "--resume", "r"]
        if status == "done":
            self.epochs += 1
            self.total += EPOCH_STEPS
            words += ["--epochs", str(self.epochs)]
        if self.place == "process" or self.rng.random() < 0.5:
            words += ["--workers", "1", "--strategy", "single"] if self.rng.random() < 0.5 else \
                     ["--workers", "2", "--strategy", "allreduce"]
        elif self.place == "mpi":
            words += ["--workers", "2"]
        result, text = self.ask(*words)
        expect(result["steps"] == self.total, f"resumed to {result['steps']} steps instead of {self.total}")
        expect(result["epochs"] == self.epochs, f"resumed to {result['epochs']} epochs instead of {self.epochs}")
        expect("does not verify" not in text, f"resume left a checkpoint out: {text[-800:]}")
        run = self.read_run()
        expect(run["status"] == "done" and "pid" not in run, f"a resumed run is {run['status']}")
        told = [(e["epoch"], e["step"]) for e in run["epochs"]]
        expect(told == [(e, e * EPOCH_STEPS) for e in range(1, self.epochs + 1)], f"epochs of run.json: {told}")

    def check(self):
        self.check_processes()
        self.check_leftovers(not self.violent)
        status = self.check_status()
        if self.full:
            subprocess.run(["mount", "-o", "remount,size=64M", self.folder], check=True)
        if status is None or self.newest() is None:
            self.tell("there is no checkpoint to go on from")
            return
        self.check_positions()
        result, text = self.ask("eval", "r")
        expect(result["steps"] == self.newest(), f"eval took step {result['steps']}, not {self.newest()}: {text[-800:]}")
        self.resume(status)
        self.check_processes()
        self.check_leftovers(True)
        self.check_positions()
        self.check_events()

    def close(self):
        for pid in self.mine():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def one(arguments, strategies, index, folder):
    """In a process of its own: exit code 0, or 1 and the story in FOLDER/finding."""
    ending, finding = None, None
    folder.mkdir(parents=True)
    try:
        ending = Ending(arguments.program, strategies, arguments.seed, index, folder)
        ending.run()
        ending.check()
    except Finding as e:
        finding = str(e)
    finally:
        story = "\n".join(ending.story) if ending else ""
        if ending:
            ending.close()
        if finding:
            folder.with_suffix(".finding").write_text(f"{finding}\n{story}\n")
        if ending and ending.full:
            saved = folder.with_suffix(".saved")
            if finding:
                shutil.copytree(folder / "runs", saved, ignore=lambda d, names: [
                    n for n in names if not os.path.isdir(f"{d}/{n}") and not os.path.isfile(f"{d}/{n}")])
            subprocess.run(["umount", "-l", folder])
    folder.with_suffix(".story").write_text(story)
    return 1 if finding else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--endings", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.program = os.path.realpath(arguments.program)
    listed = subprocess.run([arguments.program, "strategies", "--json"], check=True, stdout=subprocess.PIPE).stdout
    strategies = json.loads(listed)["strategies"]
    root = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
    todo = [arguments.only] if arguments.only is not None else list(range(arguments.endings))
    running, failed, ended = {}, [], 0
    while todo or running:
        while todo and len(running) < arguments.jobs:
            index = todo.pop(0)
            if (pid := os.fork()) == 0:
                code = 2
                try:
                    code = one(arguments, strategies, index, root / str(index))
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            running[pid] = index
        pid, status = os.wait()
        index = running.pop(pid)
        ended += 1
        if status != 0:
            failed.append(index)
            path = root / f"{index}.finding"
            print(f"chaos: ending {index} of seed {arguments.seed}: "
                  f"{path.read_text() if path.exists() else 'the script itself has failed'}\n"
                  f"chaos: again: {sys.argv[0]} {sys.argv[1]} --seed {arguments.seed} --only {index}", flush=True)
        elif not arguments.keep:
            shutil.rmtree(root / str(index), ignore_errors=True)
            (root / f"{index}.story").unlink(missing_ok=True)
    print(f"chaos: {ended} endings of seed {arguments.seed}, findings: {failed or 'none'}"
          + (f"; see {root}" if failed else ""))
    if not failed and not arguments.keep:
        shutil.rmtree(root)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
