#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Watches a run of 64 workers that this script writes, as a person would: `paceline watch` and its page in a headless
Chromium at three widths, while steps come, a worker is lost and the run ends.

    watch.py PACELINE [--picture FILE.png]

Without chromedriver the page is left out; what the server answers is looked at in any case."""
import argparse
import fcntl
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import browser
from report import fits, need, number, shown

WORKERS, STEPS, PATIENCE = 64, 20000, 120


class Run:
    """A run's folder as a training leaves it. Its lock is held, which is what tells that it is under way."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True)
        self.save("running")
        self.lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.steps = 0
        self.append("cluster", *({"event": "join", "time": 0.01 * h, "host": h, "name": f"<node{h}>", "workers": 16} for h in range(4)),
                    {"event": "view", "time": 1, "view": 1, "members": list(range(1, WORKERS + 1))})
        self.beat(2)
        self.beat(3)
        (self.path / "log-1.txt").write_text("2026-01-01T00:00:00Z <b>first words</b>\n")

    def save(self, status, **more):
        run = {"schema": 1, "name": self.path.name, "status": status, "launch": {"workers": 16, "hosts": 4}, "epochs": [],
               "about": {"settings": {"model": "vgg11", "data": "cifar10", "epochs": 9, "steps": -1}}, **more}
        other = self.path / "run.json.new"
        other.write_text(json.dumps(run))
        other.rename(self.path / "run.json")

    def append(self, file, *events):
        with open(self.path / f"{file}.jsonl", "a") as to:
            to.write("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in events))

    def beat(self, at):
        self.append("cluster", *({"event": "heartbeat", "time": at, "id": 0, "host": h, "cpu": 0.5, "memory": 8e9, "load": 1.25} for h in range(4)),
                    *({"event": "heartbeat", "time": at, "id": w, "host": w % 4, "cpu": 0.875, "memory": 1e6 * (100 + w), "step": 10 * at,
                       "step_rate": 2.5} for w in range(1, WORKERS + 1)))

    def step(self, count):
        first, self.steps = self.steps + 1, self.steps + count
        self.append("events", *({"event": "step", "step": i, "epoch": 1, "loss": 2.5 / (1 + i / 5000), "correct": i % 64, "samples": 64,
                                 "lr": 0.01, "seconds": 0.125} for i in range(first, self.steps + 1)))


class Watched:
    def __init__(self, paceline, *arguments):
        pathlib.Path("ready.json").unlink(missing_ok=True)
        self.process = subprocess.Popen([paceline, "watch", *arguments, "--ready-file", "ready.json"], stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + PATIENCE
        while not pathlib.Path("ready.json").exists():
            need(self.process.poll() is None and time.monotonic() < until, "no page")
            time.sleep(0.02)
        self.address = json.loads(pathlib.Path("ready.json").read_text())["watch"]

    def ask(self, path, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address + path, headers=headers), timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.ask("/metrics")[1], re.M)
        return float(found[1]) if found else None

    def until(self, name, value):
        """Until a metric is so: the folder is looked at once a second."""
        end = time.monotonic() + PATIENCE
        while (seen := self.metric(name)) != value:
            need(time.monotonic() < end, f"{name} is {seen}, not {value}")
            time.sleep(0.05)

    def end(self, which):
        self.process.send_signal(which)
        _, said = self.process.communicate(timeout=PATIENCE)
        need(self.process.returncode == 128 + which, f"ended with {self.process.returncode}: {said}")
        return said


def cells(page, worker):
    return page.run("return [...document.querySelectorAll(`tr[data-worker='${arguments[0]}'] td`)].map(c => c.innerText)", worker)


def look(run, watched, picture):
    with browser.Browser() as page:
        page.open(watched.address)
        page.wait("document.body.dataset.events")
        need(number(shown(page, "steps")) == run.steps, f"steps are {shown(page, 'steps')}")
        need(shown(page, "train.loss") == f"{watched.metric('paceline_step_loss'):.4f}", "the loss")
        need(page.run("return document.querySelectorAll('tr[data-worker]').length") == WORKERS, "not all workers are shown")
        need(cells(page, 7) == ["7", "6", "3", "working", "30", "2.50", "88", "107", ""], f"worker 7: {cells(page, 7)}")
        need("<node2>" in page.run("return document.querySelector(`tr[data-host='2']`).innerText"), "host 2 has no name")
        need("<b>first words</b>" in page.run("return document.querySelector('.log').innerText"), "no log")
        for card in ("loss", "accuracy", "rate", "membership", "memory"):
            need(page.run(f"return document.querySelector(`[data-card={card}] svg path, [data-card={card}] svg rect`)"), f"no chart: {card}")
        fits(page, "the page")

        # What comes is shown without loading the page again.
        run.step(500)
        run.append("cluster", {"event": "lost", "time": 3.5, "id": 7, "host": 3, "view": 1, "reason": "<died>"})
        with open(run.path / "log-9.txt", "w") as log:
            log.write("2026-01-01T00:00:09Z last words\n")
        page.wait(f"document.querySelector(`[data-key=steps]`).innerText === '{run.steps:,}'")
        page.wait("document.querySelector('.log').innerText.startsWith('9: 2026-01-01T00:00:09Z last words')")
        need(cells(page, 7)[3] == "lost" and cells(page, 7)[8] == "<died>", f"worker 7: {cells(page, 7)}")
        need("worker 7 of host 3 was lost: <died>" in page.run("return document.querySelector('[data-part=notes]').innerText"), "no note")
        need(page.run("return document.getElementById('state').innerText") == "live", "the page is not live")
        if picture:
            page.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
                "width": 1200, "height": 1000, "deviceScaleFactor": 1, "mobile": False}})
            page.picture(picture)
        run.save("done", result={"steps": run.steps, "workers": WORKERS - 1, "test": {"accuracy": 0.625}})
        page.wait("document.getElementById('state').innerText === 'the run has ended'")
        need(shown(page, "test.accuracy") == "62.50 %", "no result")
        need(not (wrong := page.complaints()), f"the browser says {wrong}")
        watched.end(signal.SIGTERM)
        page.wait("document.getElementById('state').innerText === 'the run has ended, and so has its watcher'")


def ask(run, watched):
    """What needs no browser."""
    need(watched.metric("paceline_run_running") == 1 and watched.metric("paceline_step") == STEPS, "metrics of the run")
    need(watched.metric('paceline_workers{state="working"}') == WORKERS, "metrics of workers")
    need(watched.metric('paceline_worker_memory_bytes{worker="64",host="0"}') == 164e6, "metrics of a worker")
    need(watched.ask("/metrics", Host="evil.example")[0] == 403, "a page of elsewhere may ask")
    need(watched.ask("/other")[0] == 404, "a path that is not there")
    code, text = watched.ask("/report")
    need(code == 200 and "<script" not in text and f"{STEPS:,}" in text, "the report")
    code, text = watched.ask("/")
    need(code == 200 and run.path.name not in text, "the page itself has no data in it")
    with urllib.request.urlopen(watched.address + "/live", timeout=PATIENCE) as live:
        event = json.loads(live.readline().removeprefix(b"data: "))
        need(set(event["parts"]) == {"summary", "curves", "workers", "hosts", "notes", "monitor", "log"}, f"parts: {list(event['parts'])}")
        need(len(json.dumps(event)) < 400000, "a page is told too much")
    resident = int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{watched.process.pid}/status").read_text())[1])
    need(resident < 64000, f"{resident} kB of memory")


def guarded(paceline, run):
    """With a token."""
    pathlib.Path("token").write_text("0123456789abcdef\n")
    os.chmod("token", 0o600)
    watched = Watched(paceline, run.path.name, "--port", "0", "--token-file", "token", "--quiet")
    need(watched.ask("/")[0] == 200 and watched.ask("/live")[0] == 401 and watched.ask("/metrics")[0] == 401, "no token is asked for")
    need(watched.ask("/metrics", Authorization="Bearer 0123456789abcdef")[0] == 200, "the token is not taken")
    need(watched.end(signal.SIGINT) == "", "--quiet is not quiet")

    watched = Watched(paceline, run.path.name, "--port", "0", "--host", "0.0.0.0", "--token-file", "token")
    port = int(watched.address.rsplit(":", 1)[1])
    greedy = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(64)]
    other = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=("127.0.0.2", 0))
    other.request("GET", "/")
    need(other.getresponse().status == 200, "one client locks the others out")
    for connection in greedy:
        connection.close()
    watched.end(signal.SIGINT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paceline")
    parser.add_argument("--picture")
    args = parser.parse_args()
    run = Run("runs/many")
    run.step(STEPS)
    guarded(args.paceline, run)
    watched = Watched(args.paceline, "many", "--port", "0")
    ask(run, watched)
    if shutil.which("chromedriver"):
        look(run, watched, args.picture)
    else:
        run.save("done")
        watched.until("paceline_run_running", 0)
        need("run many has ended: done" in watched.end(signal.SIGTERM), "the end is not told")


if __name__ == "__main__":
    main()
