#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One training that loses and gets workers at random, again and again.

    churn.py PATH-OF-PACELINE [--changes N] [--seed S] [--keep FOLDER] [OPTION-OF-TRAIN…]

Kills (-9) workers and the agents of hosts that had joined, stops workers for good and for a moment,
kills on top of a change that is under way, lets hosts join and leave; lost workers are started anew.
Only the last of those who have the training's state is spared. After every change steps go on in a view
of the living within PATIENCE. In the end every step was made once, or every round where these are
what is committed, every sample counts once an epoch and the loss has fallen. The seed gives the same
choices again. Other options are the training's. A strategy that divides the state may lose a part of
it; then it goes back to a checkpoint and says so, and from there on all of this holds."""
import argparse
import collections
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from watched import Silence, Training, children, worker_id  # noqa: E402

PATIENCE = 60
SAMPLES, BATCH, SAVES = 450, 24, 10
TRAINED = SAMPLES - SAMPLES // 10  # the others validate
WORKERS, MOST = 3, 6
INFANTS = 3  # a job gives up on workers of which too many in a row never come to work
MODEL = """conv 8 3x3 pad=1
bn
relu
maxpool 2x2
conv 16 3x3 pad=1
relu
flatten
dense 64
relu
dense classes
softmax
"""
OPTIONS = ["--model", "net.model", "--data", f"synthetic:classes=10,shape=1x28x28,train={SAMPLES},test=100",
           "--batch", str(BATCH), "--lr", "0.005", "--kernels", "onednn", "--threads", "1", "--validation",
           "0.1", "--checkpoint-every", str(SAVES), "--epochs", "1000000", "--workers", str(WORKERS), "--port", "0",
           "--restart-workers", "--silence", "3", "--run", "churn"]


class Churn:
    def __init__(self, training, rng):
        self.training, self.rng = training, rng
        self.tally = collections.Counter()
        self.doomed = set()  # worker ids that were killed or stopped for good
        self.infants = 0  # lost before they had worked, since all were there

    def victims(self):
        """Worker id → pid of those that may be lost: one that has the state must be left."""
        workers = {i: pid for i, pid in self.training.workers().items() if i not in self.doomed}
        holders = [i for i in self.training.members if i in workers]
        if len(holders) < 2:
            for i in holders:
                del workers[i]
        if self.infants == INFANTS:
            workers = {i: pid for i, pid in workers.items() if i in holders}
        return workers

    def victim(self):
        """The id and the pid of one of them, or None."""
        victims = self.victims()
        return self.rng.choice(sorted(victims.items())) if victims else None

    def strike(self, number):
        """Sends a signal that is the end of a worker; True: there was one."""
        if (victim := self.victim()) is None:
            return False
        os.kill(victim[1], number)
        self.doomed.add(victim[0])
        self.infants += victim[0] not in self.training.members
        return True

    def kill(self):
        return self.strike(signal.SIGKILL)

    def kill_two(self):
        return self.strike(signal.SIGKILL) and self.strike(signal.SIGKILL)

    def stop(self):
        return self.strike(signal.SIGSTOP)

    def pause(self):
        """A moment's stop costs no worker."""
        if (victim := self.victim()) is None:
            return False
        os.kill(victim[1], signal.SIGSTOP)
        time.sleep(self.rng.uniform(0, 0.3))
        os.kill(victim[1], signal.SIGCONT)
        return True

    def join(self):
        if len(self.training.workers()) >= MOST:
            return False
        self.training.join(self.rng.choice([1, 1, 2]))
        return True

    def strike_host(self, number):
        """A host that has joined, and its workers."""
        guests = [a for a in self.training.agents[1:] if a.poll() is None]
        if not guests:
            return False
        guest = self.rng.choice(guests)
        doomed = {i for pid in children(guest.pid) if (i := worker_id(pid)) is not None}
        if not any(i in self.victims() for i in self.training.members if i not in doomed):
            return False
        guest.send_signal(number)
        self.doomed |= doomed
        return True

    def kill_host(self):
        return self.strike_host(signal.SIGKILL)

    def leave(self):
        """As a person at that host asks for."""
        return self.strike_host(signal.SIGINT)

    def goes_on(self):
        """Steps are made again, by living workers."""
        moment = time.monotonic()
        t = self.training
        t.until(lambda: t.stepped > moment and not self.doomed & set(t.members), "no step", PATIENCE)

    def full(self):
        """All are there: the workers of host 0, and those that have joined."""
        living = {i for i in self.training.workers() if i not in self.doomed}
        return set(self.training.members) == living and len(children(self.training.agent.pid)) == WORKERS

    def count(self):
        """Of the changes that were more than a pause."""
        return sum(self.tally.values()) - self.tally["pause"]

    def change(self):
        kinds = [(10, "kill", self.kill), (3, "two kills", self.kill_two), (1, "stop", self.stop),
                 (1, "pause", self.pause), (3, "join", self.join), (2, "host killed", self.kill_host),
                 (2, "leave", self.leave)]
        _, name, act = self.rng.choices(kinds, [k[0] for k in kinds])[0]
        if not act():
            return
        self.tally[name] += 1
        self.training.note(f"{name} in view {self.training.view}, lost so far: {sorted(self.doomed)[-6:]}")
        if self.rng.random() < 0.3:
            return  # the next one comes on top of it
        self.goes_on()
        if self.rng.random() < 0.2:
            self.training.until(self.full, "not at full strength", PATIENCE)
            self.infants = 0
        self.linger()

    def linger(self):
        """The next comes after some steps, at a random moment of one."""
        step = self.training.step + self.rng.randrange(20)
        self.training.until(lambda: self.training.step >= step, "no step", PATIENCE)
        time.sleep(self.rng.uniform(0, 0.03))


def rounds_of(events):
    """By their last step. A round that was committed on no worker that is left is made again; one that was
    committed has no event where its manager was lost in that moment. Rounds end with a checkpoint or an
    epoch."""
    rounds, before, last = {}, 0, 0  # the ends of the last two rounds that were told of
    for e in events:
        if e["event"] == "view":
            assert e["step"] % SAVES == 0 or e["step"] % -(-TRAINED // BATCH) == 0, f"in the middle of a round: {e}"
            assert e["step"] >= before, f"from step {last} back beyond {before}: {e}"
            before, last = min(before, e["step"]), e["step"]
        elif e["event"] == "round":
            assert e["step"] > last, f"a round after step {last}: {e}"
            before, last, rounds[e["step"]] = last, e["step"], e
    return rounds


def steps_of(events):
    """By number. A view goes on where its members are; of a step all of whose makers are lost nothing is
    left but rank 0's word, and it is made again."""
    steps, last, back = {}, 0, False
    for e in events:
        if e["event"] == "back":
            back = True
        elif e["event"] == "view":
            assert back or e["step"] >= last - 1, f"from step {last} back: {e}"
            last, back = e["step"], False
        elif e["event"] == "step":
            assert e["step"] == last + 1, f"a step after {last}: {e}"
            steps[e["step"]], last = e, e["step"]
    return steps


def check_backs(events):
    """Of up to two parameter servers each has the whole state: all go back only if none of them is left. A
    view that came between and was told of nowhere had others."""
    former, back = None, False
    for e in events:
        if e["event"] == "back":
            back = True
        elif e["event"] == "view":
            if back and former is not None and e["view"] == former["view"] + 1:
                servers = {m for m, roles in zip(former["members"], former["roles"]) if "server" in roles}
                assert len(servers) > 2 or not servers & set(e["members"]), f"back with a server left: {former}, {e}"
            former, back = e, False


def check(events):
    check_backs(events)
    rounds = any(e["event"] == "round" for e in events)
    steps = rounds_of(events) if rounds else steps_of(events)
    epochs = collections.Counter()
    for e in steps.values():
        epochs[e["epoch"]] += e["samples"]
    # A rank 0 that is lost takes its last lines with it: an epoch may lack some, none may have more.
    assert max(epochs.values()) <= TRAINED, "a sample counts twice"
    assert TRAINED in epochs.values(), "no epoch is complete"
    losses = [e["loss"] for e in (events if rounds else steps.values()) if e["event"] == ("epoch" if rounds else "step")]
    some = min(50, len(losses) // 4 or 1)
    first, last = sum(losses[:some]) / some, sum(losses[-some:]) / some
    assert last < 0.9 * first, f"the loss does not fall: {first} … {last}"
    views, back = (sum(e["event"] == kind for e in events) for kind in ("view", "back"))
    return f"{max(steps)} steps in {views} views, {back} times back, loss {first:.3f} … {last:.3f}"


def run(args, folder):
    rng = random.Random(args.seed)
    (pathlib.Path(folder) / "net.model").write_text(MODEL)
    with Training(args.program, folder, OPTIONS + args.options) as training:
        churn = Churn(training, rng)
        training.goes_on(0, PATIENCE)
        while churn.count() < args.changes:
            churn.change()
        training.until(churn.full, "not at full strength in the end", PATIENCE)
        churn.goes_on()
        code = training.stop(PATIENCE)
        assert code == 130, f"it ended with {code}"
        words = check(training.events("churn"))
    kinds = ", ".join(f"{n} {what}" for what, n in sorted(churn.tally.items()))
    return f"{churn.count()} changes ({kinds}): {words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.realpath)
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="an empty folder that gets the run and the log")
    args, args.options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="churn-") as temporary:
        folder = args.keep or temporary
        try:
            print(run(args, folder))
        except (Silence, AssertionError) as finding:
            traceback.print_exc()
            log = (pathlib.Path(folder) / "log").read_text().splitlines()
            print("what the training said last:", *log[-30:], sep="\n  ", file=sys.stderr)
            sys.exit(f"seed {args.seed}: {finding}")


if __name__ == "__main__":
    main()
