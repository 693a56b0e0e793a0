#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Random faults in jobs whose workers check every result.

    faults.py PATH-OF-PACELINE local|hosts|proxy --faults N [--seed S] [--seconds T] [--silence S]

local: jobs on this machine; kill -9 of a worker at its start, inside a random collective and at the
end, and SIGSTOP. hosts (root): jobs on three hosts of tools/cluster, plain or under TLS; lost workers
and agents, cut and frozen hosts. proxy (root): the same hosts with tools/faultproxy between them,
which disturbs their connections.

After every fault the survivors must get out of what they do, name a worker that was lost, agree on
the next view, which has them and no others, and compute right sums in it. Nothing may take longer
than PATIENCE, no result may be wrong, no process may be left over. The seed gives the same choices
again. --seconds ends it earlier. A machine that stalls for --silence seconds loses workers by itself."""
import argparse
import collections
import faulthandler
import json
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import drill  # noqa: E402

PATIENCE = 30
KINDS = ["broadcast", "gather", "scatter", "reduce-scatter", "all-gather", "all-reduce", "barrier",
         "space", "async"]
SIZES = [4, 4096, 65536, 1 << 20]


def options_of(args):
    return ["--silence", str(args.silence)]


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Trial:
    """A job, and what its workers have said."""

    def __init__(self, rng, job):
        self.rng, self.job = rng, job
        self.views = {}  # rank → its newest view (number, members), None: between views
        self.told = {}  # rank → ids that its failures named, since the last fault
        self.idle = set()  # ranks that had the next view before they had begun, since the last fault
        self.answers = {}  # rank → its last answer to an order
        self.latent = 0  # faults of connections since the last loss

    def living(self, gone=()):
        return [r for r in self.job.ranks if not r.ended and r not in gone]

    def hear(self, rank):
        while (said := rank.take()) is not None:
            assert "wrong" not in said, f"worker {rank.id}: {said['wrong']}"
            if "pid" in said:
                rank.id, rank.pid = said["id"], said["pid"]
            elif "members" in said:
                self.views[rank] = (said["view"], said["members"])
            else:
                self.answers[rank] = said
                if "skipped" in said:
                    self.idle.add(rank)
                if "failed" in said:
                    self.views[rank] = None
                    self.told.setdefault(rank, set()).add(said["lost"])

    def until(self, done, what):
        """Listens until done() holds."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            socks = {r.sock: r for r in self.living()}
            left = max(0, deadline - time.monotonic())
            ready = select.select([self.job.server, *socks], [], [], left)[0]
            if not ready:
                raise drill.Silence(f"{what}: {self}")
            for sock in ready:
                if sock is self.job.server:
                    self.job.accept(1, 0)
                else:
                    socks[sock].read()
                    self.hear(socks[sock])

    def __str__(self):
        return "; ".join(f"worker {r.id}: ended {r.ended}, view {self.views.get(r)}, said "
                         f"{self.answers.get(r)}" for r in self.job.ranks)

    def agreed(self, gone=()):
        """All that live, but for `gone`, are in one view of exactly them."""
        ranks = self.living(gone)
        views = [self.views.get(r) for r in ranks]
        return not ranks or (views[0] is not None and all(v == views[0] for v in views)
                             and views[0][1] == sorted(r.id for r in ranks))

    def order(self, line, gone=()):
        """To all that live, in the view that they agree on."""
        self.answers.clear()
        for rank in self.living(gone):
            rank.order(f"@{self.views[rank][0]} {line}")

    def busy(self, endless=True):
        """All workers are in a random collective; the moment that follows is random, too."""
        self.told.clear()
        self.idle.clear()
        kind, size = self.rng.choice(KINDS), self.rng.choice(SIZES)
        self.order(f"check {kind} {size} {0 if endless else 2 if size > 65536 else 50}")
        time.sleep(self.rng.uniform(0, 0.03))

    def recover(self, gone=()):
        """The survivors agree on a view and compute right results in it."""
        for _ in range(5):
            self.until(lambda: self.agreed(gone), "no common view")
            ranks = self.living(gone)
            self.order("check all-reduce 4096 3", gone)
            self.until(lambda: all(r.ended or r in self.answers for r in ranks), "no proof")
            if all("checked" in self.answers.get(r, {}) for r in ranks):
                return
        raise drill.Silence(f"the survivors do not get to work: {self}")

    def survive(self, gone):
        """`gone` were lost by our doing: all others get to know it and go on."""
        survivors = self.living(gone)
        self.recover(gone)
        assert self.living(gone) == survivors, f"more were lost than {ids(gone)}: {self}"
        for rank in survivors:
            told = self.told.get(rank, set())
            assert told <= ids(gone) and (told or rank in self.idle), \
                f"worker {rank.id} names {told}, not {ids(gone)}: {self}"

    def ended(self, gone):
        self.until(lambda: all(r.ended for r in gone), f"{ids(gone)} did not end")

    def finish(self):
        codes = self.job.end(PATIENCE)
        deadline = time.monotonic() + PATIENCE  # one whose agent was killed ends by itself, in its own time
        for rank in self.job.ranks:
            while rank.pid and alive(rank.pid):
                assert time.monotonic() < deadline, f"worker {rank.id} outlives its job"
                time.sleep(0.01)
        return codes


def ids(ranks):
    return {r.id for r in ranks}


def workers_there(trial, count):
    return (len(trial.living()) == count and all(r.id for r in trial.living()) and trial.agreed())


# ---- on this machine

def killed(trial):
    victim = trial.rng.choice(trial.living())
    trial.busy()
    victim.kill()
    trial.survive([victim])


def stopped(trial):
    victim = trial.rng.choice(trial.living())
    trial.busy()
    victim.kill(signal.SIGSTOP)
    # Its memory is shared: it must be gone before a worker works in the next view.
    trial.until(lambda: any(v and victim.id not in v[1] for v in trial.views.values()), "no view")
    assert not alive(victim.pid), f"the next view came before the stopped worker {victim.id} was killed"
    trial.survive([victim])


def killed_at_start(trial, workers):
    agent = trial.job.processes[0].pid
    children = []
    deadline = time.monotonic() + PATIENCE
    while len(children) < workers and time.monotonic() < deadline:
        children = open(f"/proc/{agent}/task/{agent}/children").read().split()
    assert len(children) == workers, "the workers were not started"
    time.sleep(trial.rng.uniform(0, 0.05))
    os.kill(int(trial.rng.choice(children)), signal.SIGKILL)
    trial.until(lambda: workers_there(trial, workers - 1), "no view of the others")
    trial.recover()


def killed_at_end(trial):
    victim = trial.rng.choice(trial.living())
    for rank in trial.living():
        rank.close()
    time.sleep(trial.rng.uniform(0, 0.01))
    if alive(victim.pid):
        victim.kill()


def local(args, rng, tally):
    workers = rng.choice([2, 3, 4])
    options = options_of(args) + (["--transport", "tcp"] if rng.random() < 0.3 else [])
    with drill.Job(args.program, workers, options=options).launch() as job:
        trial = Trial(rng, job)
        if rng.random() < 0.2:
            killed_at_start(trial, workers)
            tally["killed at its start"] += 1
        else:
            trial.until(lambda: workers_there(trial, workers), "no first view")
        while len(trial.living()) > 1:
            if rng.random() < 0.85:
                killed(trial)
                tally["killed inside a collective"] += 1
            else:
                stopped(trial)
                tally["stopped"] += 1
            if rng.random() < 0.2 and len(trial.living()) > 1:
                killed_at_end(trial)
                tally["killed at the end"] += 1
                break
        trial.finish()


# ---- on hosts

def of_host(trial, host):
    return [r for r in trial.living() if (r.id - 1) // trial.job.workers == host]


def agent_killed(trial, host):
    gone = of_host(trial, host)
    trial.busy()
    trial.job.processes[host].kill()
    trial.survive(gone)
    trial.ended(gone)


def host_cut(trial, host):
    gone = of_host(trial, host)
    trial.busy()
    subprocess.run([drill.CLUSTER, "cut", str(host)], check=True)
    trial.survive(gone)
    trial.ended(gone)
    subprocess.run([drill.CLUSTER, "mend", str(host)], check=True)


def host_frozen(trial, host):
    """It comes back to itself when the others have gone on: nothing of it may reach them."""
    gone = of_host(trial, host)
    frozen = [trial.job.processes[host].pid] + [r.pid for r in gone]
    trial.busy()
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    trial.survive(gone)
    trial.order("check all-reduce 65536 200", gone)
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    survivors = trial.living(gone)
    trial.until(lambda: all(r in trial.answers for r in survivors), "no answer")
    assert all("checked" in trial.answers[r] for r in survivors), str(trial)
    trial.ended(gone)


def pair_cut(trial, host):
    """Two hosts do not hear each other, host 0 hears both: some of one of them leave."""
    pair = [str(host), str(3 - host)]
    before, first = trial.living(), of_host(trial, 0)
    trial.busy()
    subprocess.run([drill.CLUSTER, "cut", *pair], check=True)
    trial.until(lambda: len(trial.living()) < len(before), "no worker left")
    trial.recover()
    subprocess.run([drill.CLUSTER, "mend", *pair], check=True)
    assert of_host(trial, 0) == first, f"host 0 had no part in it: {trial}"


def disturbed(trial, proxy, tally):
    """A fault of a connection: nothing, or the loss of one of its ends, a worker or a host. What hit a
    connection that was not used shows later."""
    kind = trial.rng.choice(["reset", "truncate", "flip", "delay", "lose"])
    before = set(trial.living())
    by_host = [set(of_host(trial, h)) for h in range(3)]
    trial.busy(endless=False)
    print(kind, file=proxy.stdin, flush=True)
    ranks = trial.living()
    trial.until(lambda: all(r.ended or r in trial.answers for r in ranks), f"no answer after {kind}")
    trial.recover()
    lost = before - set(trial.living())
    trial.latent += 1
    assert len(lost) <= trial.latent or lost in by_host, f"a {kind} cost workers {ids(lost)}: {trial}"
    if lost:
        trial.latent = 0
    print("calm", file=proxy.stdin, flush=True)
    tally[kind] += 1


def host_faults(trial, others, tally):
    """Packets vanish, or a host does."""
    host = trial.rng.choice(sorted(others))
    faults = [(5, "killed inside a collective", lambda: killed(trial)),
              (2, "agent killed", lambda: agent_killed(trial, host)),
              (2, "host cut", lambda: host_cut(trial, host)),
              (2, "host frozen", lambda: host_frozen(trial, host)),
              (2 if len(others) == 2 else 0, "pair of hosts cut", lambda: pair_cut(trial, host))]
    _, name, run = trial.rng.choices(faults, [f[0] for f in faults])[0]
    run()
    tally[name] += 1


def on_hosts(args, rng, tally, token, proxy):
    env = {"PACELINE_TOKEN": token} if rng.random() < 0.5 else {}
    workers = rng.choice([1, 2])
    with drill.Job(args.program, workers, [0, 1, 2], options_of(args), env).launch() as job:
        trial = Trial(rng, job)
        trial.until(lambda: workers_there(trial, 3 * workers), "no first view")
        for rank in trial.living():
            rank.order(f"patience {args.silence + 5:g}")
        while len(trial.living()) > 1:
            others = {(r.id - 1) // workers for r in trial.living()} - {0}
            if not others:
                break
            if proxy is not None:
                disturbed(trial, proxy, tally)
            else:
                host_faults(trial, others, tally)
        trial.finish()


def start_proxy(args):
    proxy = subprocess.Popen([drill.CLUSTER, "proxy", "--seed", str(args.seed), "--pause", "0.3"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert json.loads(proxy.stdout.readline())["ready"]
    threading.Thread(target=proxy.stdout.read, daemon=True).start()  # or it would stand still
    return proxy


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("where", choices=["local", "hosts", "proxy"])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--silence", type=float, default=1.5)
    args = parser.parse_args()
    if args.where != "local" and "CLUSTER" not in os.environ:
        os.execv(drill.CLUSTER, [drill.CLUSTER, "run", "3", "--loopback", "--", sys.executable,
                                 *sys.argv])
    rng = random.Random(args.seed)
    tally = collections.Counter()
    token = subprocess.run([args.program, "token"], check=True, text=True,
                           capture_output=True).stdout.strip()
    proxy = start_proxy(args) if args.where == "proxy" else None
    end = time.monotonic() + args.seconds
    try:
        while sum(tally.values()) < args.faults and time.monotonic() < end:
            faulthandler.dump_traceback_later(20 * PATIENCE, exit=True)  # should we hang ourselves
            if args.where == "local":
                local(args, rng, tally)
            else:
                on_hosts(args, rng, tally, token, proxy)
    except (drill.Silence, AssertionError) as finding:
        traceback.print_exc()
        sys.exit(f"seed {args.seed}, after {sum(tally.values())} faults: {finding}")
    if proxy is not None:
        proxy.terminate()
    print(f"{args.where}: {sum(tally.values())} faults: "
          + ", ".join(f"{n} {what}" for what, n in sorted(tally.items())))


if __name__ == "__main__":
    main()
