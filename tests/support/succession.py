#!/usr/bin/env python3
"""Trainings on test hosts that lose host 0, which coordinates: run by `tools/cluster run N -- …`.

Each case stops worker 1, on host 0, at a phase of a step (PACELINE_FAULT), and then kills host 0's agent, which
takes the worker along: so host 0 is lost in just that phase. The others must go on, end well, and have the losses
of an undisturbed training. The pause is what passes between the kill and the next step.

  succession.py PACELINE HOSTS CASE…       the cases, each once
  succession.py PACELINE HOSTS --times N   host 0 killed N times: p50 and p90 of the pause
  succession.py PACELINE HOSTS --random N  host 0 killed N times, at any moment from the start of the job to its end
"""
import json, os, pathlib, random, re, shutil, signal, statistics, subprocess, sys, time

tool = pathlib.Path(__file__).resolve().parents[2] / "tools/cluster"
paceline, hosts = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2])
PATIENCE = 120  # a watchdog, no measurement
STEPS = 12
job = ["--model", "mlp:16x1", "--data", "synthetic:train=96,test=24", "--batch", "24", "--validation", "0.25",
       "--epochs", "4", "--lr", "0.02", "--kernels", "onednn", "--threads", "1", "--strategy", "ddp"]
port = 29500


def fail(text):
    for log in sorted(pathlib.Path().glob("*/err")):
        print(f"--- {log}", log.read_text()[-3000:], sep="\n", file=sys.stderr)
    sys.exit(f"FAILED: {text}")


def eventually(what, condition, process=None):
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        if time.monotonic() > end:
            fail(f"never: {what}")
        if process is not None and process.poll() is not None and not condition():
            fail(f"it ended with {process.returncode} before: {what}")
        time.sleep(0.002)
    return result


def text(path):
    return path.read_text() if path.exists() else ""


def events(folder, kind):
    lines = text(folder / "events.jsonl").splitlines(keepends=True)
    return [e for e in map(json.loads, (l for l in lines if l.endswith("\n"))) if e["event"] == kind]


class Host:
    def __init__(self, case, index, *options, fault=None, command="train", silence=10, of=hosts):
        self.index, self.folder = index, pathlib.Path(f"{case}-{index}")
        self.folder.mkdir()
        self.run = self.folder / "runs/x"
        environment = dict(os.environ, PACELINE_TOKEN=token)
        if fault is not None:
            environment["PACELINE_FAULT"] = fault
        words = [paceline, command]
        if command == "train":
            words += [*job, "--run", "x", "--json", "--silence", str(silence), "--num-nodes", str(of), "--rank",
                      str(index), "--master-ip", address(0), "--port", str(port)]
        words += options
        self.process = subprocess.Popen([tool, "exec", str(index), *words], cwd=self.folder, env=environment,
                                        stdout=(self.folder / "out").open("w"), stderr=(self.folder / "err").open("w"))

    def says(self):
        return text(self.folder / "err")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ends(self, code):
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            fail(f"host {self.index} does not end")
        if self.process.returncode != code:
            fail(f"host {self.index} ended with {self.process.returncode} instead of {code}")


def address(host):
    return subprocess.run([tool, "address", str(host)], check=True, capture_output=True, text=True).stdout.strip()


def undisturbed():
    subprocess.run([tool, "exec", "0", paceline, "train", *job, "--workers", str(hosts), "--run", "whole", "--quiet"],
                   check=True)
    return pathlib.Path("runs/whole")


def same(whole, leader, workers):
    """Every step that the leader's host tells of has the undisturbed loss, and the result is the same."""
    steps, seen = events(whole, "step"), events(leader.run, "step")
    assert len(steps) == STEPS and seen, (len(steps), seen)
    assert [e["step"] for e in seen] == list(range(seen[0]["step"], STEPS + 1)), [e["step"] for e in seen]
    for e in seen:
        a = steps[e["step"] - 1]
        assert abs(a["loss"] - e["loss"]) <= 1e-4 * abs(a["loss"]) and a["samples"] == e["samples"], (a, e)
    a, b = json.loads((whole / "run.json").read_text()), json.loads((leader.run / "run.json").read_text())
    a, b = a["result"], b["result"]
    assert abs(a["test"]["loss"] - b["test"]["loss"]) <= 1e-4 * a["test"]["loss"], (a["test"], b["test"])
    assert b["workers"] == workers and b["steps"] == STEPS, b
    printed = [json.loads(line) for line in text(leader.folder / "out").splitlines()]
    assert len(printed) == 1 and printed[0]["steps"] == STEPS, printed


def lose(whole, case, fault, also=(), leader=1):
    """Host 0 is lost at `fault` (PHASE:STEP), just after the hosts `also`; `leader` goes on. Returns the pause."""
    all_hosts = [Host(case, i, fault=f"1:{fault}:STOP") for i in range(hosts)]
    first = all_hosts[0]
    eventually(f"host 0 comes to {fault}", lambda: "was stopped" in first.says(), first.process)
    begin = time.monotonic()
    for i in also:
        all_hosts[i].kill()
    first.kill()
    left = [h for h in all_hosts[1:] if h.index not in also]
    to = all_hosts[leader]
    eventually("a step without host 0", lambda: events(to.run, "view") and events(to.run, "step"), to.process)
    pause = time.monotonic() - begin
    for h in left:
        h.ends(0)
    if f"host {leader} at {address(leader)}:" not in to.says() or "coordinates now" not in to.says():
        fail(f"host {leader} does not say that it coordinates")
    for h in left:
        if h is not to and text(h.folder / "out") != "":
            fail(f"host {h.index} prints a result, too")
    same(whole, to, len(left))
    cluster = text(to.run / "cluster.jsonl")
    assert '"event":"succession"' in cluster and '"event":"view"' in cluster, cluster
    print(f"{hosts} hosts, host 0 lost at {case}: goes on after {1e3 * pause:.0f} ms")
    return pause


def lose_anywhere(whole, case, seconds):
    """Host 0 is killed so long after it listens: the others end well, or, before the first view, say why not."""
    all_hosts = [Host(case, i, "--gather", "10") for i in range(hosts)]
    eventually("host 0 listens", lambda: "listens on" in all_hosts[0].says(), all_hosts[0].process)
    time.sleep(seconds)  # the moment is the test's input, nothing is waited for
    all_hosts[0].kill()
    for h in all_hosts[1:]:
        try:
            h.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            fail(f"host {h.index} does not end when host 0 is killed after {seconds:.3f} s")
    codes = {h.process.returncode for h in all_hosts[1:]}
    led = [h for h in all_hosts[1:] if "coordinates now" in h.says() and f"host {h.index} at" in h.says()]
    if codes == {0} and led:
        printed = [h for h in all_hosts[1:] if text(h.folder / "out")]
        assert len(led) == 1 and printed in (led, []), (led, printed)
        for h in printed:
            result = json.loads(text(h.folder / "out"))
            assert result["steps"] == STEPS, result
            whole_loss = json.loads((whole / "run.json").read_text())["result"]["test"]["loss"]
            assert abs(result["test"]["loss"] - whole_loss) <= 1e-4 * whole_loss, (result["test"], whole_loss)
        how = "goes on"
    elif codes == {0}:
        how = "had ended"
    elif codes == {1} and not led:
        how = "had not begun"
    else:
        fail(f"host 0 killed after {seconds:.3f} s: codes {codes}, led by {[h.index for h in led]}")
    print(f"{hosts} hosts, host 0 killed after {seconds:.3f} s: {how}", flush=True)
    for h in all_hosts:
        shutil.rmtree(h.folder)


def cut(whole, case, victim, leader):
    """`victim` hears no other host any more: it saves and stops, the others go on."""
    slow = [Host(case, i, fault=f"{victim + 1}:data:5:STOP", silence=2) for i in range(hosts)]
    stopped = eventually("its worker stops", lambda: re.search(r"worker \d+ \(pid (\d+)\) was stopped", slow[victim].says()),
                         slow[victim].process)
    subprocess.run([tool, "cut", str(victim)], check=True)
    os.kill(int(stopped[1]), signal.SIGCONT)
    slow[victim].ends(1)
    subprocess.run([tool, "mend", str(victim)], check=True)
    said = slow[victim].says()
    if not re.search(r"saved after step \d+; go on with: paceline train --resume x", said):
        fail(f"host {victim} does not say how to go on")
    for h in slow:
        if h.index != victim:
            h.ends(0)
    same(whole, slow[leader], hosts - 1)
    print(f"{hosts} hosts, host {victim} cut off: it has saved, host {leader} went on")


def sleeps(whole, case):
    """Host 0's agent and worker stand still, the others go on; when it awakes it is no coordinator any more."""
    all_hosts = [Host(case, i, fault="1:data:5:STOP", silence=2) for i in range(hosts)]
    stopped = eventually("its worker stops", lambda: re.search(r"worker 1 \(pid (\d+)\) was stopped", all_hosts[0].says()),
                         all_hosts[0].process)
    all_hosts[0].process.send_signal(signal.SIGSTOP)
    for h in all_hosts[1:]:
        h.ends(0)
    same(whole, all_hosts[1], hosts - 1)
    all_hosts[0].process.send_signal(signal.SIGCONT)
    os.kill(int(stopped[1]), signal.SIGCONT)
    all_hosts[0].ends(1)
    if "host 1 coordinates" not in all_hosts[0].says():
        fail("host 0 does not know why it has to end")
    print(f"{hosts} hosts, host 0 asleep: host 1 went on, host 0 ended when it awoke")


def dozes(whole, case):
    """The last host stands still: when it awakes, the others have gone on, and are done."""
    all_hosts = [Host(case, i, fault=f"{hosts}:data:5:STOP", silence=2) for i in range(hosts)]
    last = all_hosts[-1]
    stopped = eventually("its worker stops", lambda: re.search(r"worker \d+ \(pid (\d+)\) was stopped", last.says()),
                         last.process)
    last.process.send_signal(signal.SIGSTOP)
    for h in all_hosts[:-1]:
        h.ends(0)
    same(whole, all_hosts[0], hosts - 1)
    last.process.send_signal(signal.SIGCONT)
    os.kill(int(stopped[1]), signal.SIGCONT)
    last.ends(1)
    if "go on without it" not in last.says() or "coordinates now" in last.says():
        fail(f"host {hosts - 1} does not know that it was lost")
    print(f"{hosts} hosts, host {hosts - 1} asleep: the others went on, it ended when it awoke")


def joins(whole, case):
    """A host that joins at the new address."""
    long = ["--epochs", "100000", "--no-test", "--no-checkpoint", "--log-every", "0"]
    all_hosts = [Host(case, i, *long, of=hosts - 1) for i in range(hosts - 1)]
    eventually("steps", lambda: events(all_hosts[0].run, "step"), all_hosts[0].process)
    all_hosts[0].kill()
    found = eventually("a new coordinator", lambda: re.search(r"host 1 at (\S+) coordinates now", all_hosts[1].says()),
                       all_hosts[1].process)
    guest = Host(case, hosts - 1, found[1], command="join")
    log = all_hosts[1].run / "cluster.jsonl"
    new = hosts  # the guest's worker has the next id
    eventually("a view with the guest", lambda: re.search(rf'"event":"view".*,{new}\]', text(log)), guest.process)
    status = subprocess.run([paceline, "status", "x", "--json"], cwd=all_hosts[1].folder, capture_output=True, text=True)
    assert json.loads(status.stdout)["view"] > 1000000, status
    all_hosts[1].process.send_signal(signal.SIGINT)
    all_hosts[1].ends(130)
    guest.ends(0)
    print(f"{hosts - 1} hosts, host 0 lost: another one joined at {found[1]}")


def stops(whole, case):
    """Ctrl-C at a host while host 0's agent hangs, which is then killed: the wish outlives it."""
    long = ["--epochs", "100000", "--no-test", "--log-every", "0"]
    all_hosts = [Host(case, i, *long) for i in range(hosts)]
    eventually("steps", lambda: events(all_hosts[0].run, "step"), all_hosts[0].process)
    all_hosts[0].process.send_signal(signal.SIGSTOP)
    all_hosts[1].process.send_signal(signal.SIGINT)
    eventually("host 1 hears the signal", lambda: "finishing the step" in all_hosts[1].says(), all_hosts[1].process)
    all_hosts[0].kill()
    all_hosts[1].ends(130)
    for h in all_hosts[2:]:
        h.ends(0)
    if "go on with: paceline train --resume x" not in all_hosts[1].says():
        fail("host 1 does not say how to go on")
    print(f"{hosts} hosts, host 0 lost with a person's wish to stop: the others have stopped")


cases = {
    "start": lambda whole: lose(whole, "start", "data:1"),
    "forward": lambda whole: lose(whole, "forward", "forward:5"),
    "combine": lambda whole: lose(whole, "combine", "combine:5"),
    "validation": lambda whole: lose(whole, "validation", "evaluation:6"),
    "checkpoint": lambda whole: lose(whole, "checkpoint", "checkpoint:6"),
    "another": lambda whole: lose(whole, "another", "forward:5", also=(1,), leader=2),
    "cut-first": lambda whole: cut(whole, "cut-first", 0, 1),
    "cut-last": lambda whole: cut(whole, "cut-last", hosts - 1, 0),
    "sleeps": lambda whole: sleeps(whole, "sleeps"),
    "dozes": lambda whole: dozes(whole, "dozes"),
    "stop": lambda whole: stops(whole, "stop"),
    "join": lambda whole: joins(whole, "join"),
}

token = subprocess.run([paceline, "token"], check=True, capture_output=True, text=True).stdout.strip()
reference = undisturbed()
if sys.argv[3] == "--times":
    pauses = sorted(lose(reference, f"kill{i}", "forward:5") for i in range(int(sys.argv[4])))
    print(f"pause of {len(pauses)} successions on {hosts} hosts: p50 {1e3 * statistics.median(pauses):.0f} ms, "
          f"p90 {1e3 * pauses[int(0.9 * (len(pauses) - 1))]:.0f} ms, most {1e3 * pauses[-1]:.0f} ms")
elif sys.argv[3] == "--random":
    for i in range(int(sys.argv[4])):
        lose_anywhere(reference, f"random{i}", random.uniform(0, 1.5))
else:
    pauses = [p for p in (cases[name](reference) for name in sys.argv[3:]) if p is not None]
    if pauses:
        print(f"pause on {hosts} hosts: p50 {1e3 * statistics.median(pauses):.0f} ms")
