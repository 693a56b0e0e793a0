#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The server under load, against the bare forward of the same model. Some six minutes.

    serving.py PATH-OF-PACELINE [--rounds N] [--seconds S] [--only cost|saturation|half] [--json FILE] [--table FILE]

Load comes from Debian's wrk on the same host. Three tables:

- What serving costs: one client, one compute thread, a PNG image of the model's size. In every round
  the server and the bare forward (`paceline bench infer --paced`) take turns.
  Overhead is wrk's median minus the forward's; CPU is what all threads of the server used for each
  request, over what the forward used for each sample at the same batch. With batches, as many
  clients as two batches have.
- Saturation: throughput and latencies with batching off and on, as many compute threads as cores.
  The last row has more clients than the queue has places. 503 is right there; anything else is not.
- Half of saturation: requests for vgg11 at fixed moments, half as many a second as the server can
  answer, alone and while 500 slow clients send a byte a second each. A latency begins at the moment
  at which the request was due. This client is in Python and can ask a few hundred times a second."""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import results  # noqa: E402
import served  # noqa: E402

DATA = {"mnist-cnn": "synthetic", "vgg11": "synthetic:shape=3x32x32,classes=10"}
SIDES = {"mnist-cnn": (28, 28, 0), "vgg11": (32, 32, 2)}
DELAY = 5  # milliseconds that a batch may wait for its last request
SLOW = 500

# Counts statuses, which wrk does not tell apart by itself.
SCRIPT = """
wrk.method = "POST"
wrk.body = io.open("%s", "rb"):read("*a")
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() refused, wrong = 0, 0 end
function response(status) if status == 503 then refused = refused + 1 elseif status ~= 200 then wrong = wrong + 1 end end
function done(summary, latency)
  local refused, wrong, e = 0, 0, summary.errors
  for _, thread in ipairs(threads) do refused = refused + thread:get("refused"); wrong = wrong + thread:get("wrong") end
  io.stderr:write(string.format('{"requests": %%d, "seconds": %%f, "p50": %%f, "p99": %%f, "refused": %%d, "wrong": %%d, "broken": %%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6, refused, wrong,
    e.connect + e.read + e.write + e.timeout))
end
"""


class Place:
    """A folder with trained models, images, and scripts for wrk."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def model(self, name):
        if not (self.folder / name).exists():
            served.train(self.program, self.folder, name, "--model", name, "--data", DATA[name], "--batch", 8,
                         "--steps", 2, "--epochs", 1, "--no-test")
            width, height, colour = SIDES[name]
            rows = os.urandom(width * height * (3 if colour else 1))
            (self.folder / f"{name}.png").write_bytes(served.png(width, height, rows, colour))
            (self.folder / f"{name}.lua").write_text(SCRIPT % (self.folder / f"{name}.png"))
        return self.folder / name

    def serve(self, name, threads, batch, *options):
        return served.Served(self.program, self.folder, "--model", f"m={self.model(name)}", "--threads", threads,
                             "--batch-size", batch, "--max-batch-delay", DELAY, *options)

    def load(self, server, name, clients, seconds):
        """A burst of wrk; what it saw, and the server's CPU seconds for each answer."""
        cpu = server.cpu()
        out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "60s", "-s",
                              str(self.folder / f"{name}.lua"), server.inference + "/predictions/m"],
                             check=True, capture_output=True, text=True)
        seen = json.loads(out.stderr)
        seen["answers"] = seen["requests"] - seen["refused"] - seen["wrong"]
        seen["cpu"] = (server.cpu() - cpu) / max(1, seen["answers"])
        return seen


class Forward(results.Paced):
    """Bursts of the bare forward."""

    BURST = 1
    COUNTS = True

    def __init__(self, place, name, batch, threads):
        width, height, colour = SIDES[name]
        super().__init__([place.program, "bench", "infer", name, "--paced", "--batch", str(batch),
                          "--threads", str(threads), "--input", f"{3 if colour else 1}x{height}x{width}"], 5000)
        self.prepare()

    def burst(self):
        """The median of the seconds, the mean of the CPU seconds."""
        answers = self.answers(self.count)
        return {"seconds": statistics.median(a["seconds"] for a in answers),
                "cpu": statistics.mean(a["cpu_seconds"] for a in answers)}


def cost(place, name, batch, rounds, seconds):
    """What serving costs beside the forward."""
    clients = 1 if batch == 1 else 2 * batch
    forward = Forward(place, name, batch, 1)
    with place.serve(name, 1, batch) as server:
        place.load(server, name, clients, 1)
        rows = results.take_turns({"server": lambda: place.load(server, name, clients, seconds),
                                   "forward": forward.burst}, rounds)
    forward.close()
    return {"model": name, "batch": batch, "clients": clients, "rounds": rounds,
            "forward_ms": statistics.median(1e3 * r["forward"]["seconds"] for r in rows),
            "p50_ms": statistics.median(1e3 * r["server"]["p50"] for r in rows),
            "overhead_ms": results.spread([1e3 * (r["server"]["p50"] - r["forward"]["seconds"]) for r in rows]),
            "cpu": results.spread([r["server"]["cpu"] / (r["forward"]["cpu"] / batch) for r in rows])}


COST = ("| model | batch | clients | forward ms | request p50 ms | overhead at p50, ms | CPU of a request over the "
        "forward's |\n|---|---|---|---|---|---|---|")


def cost_row(r):
    overhead = results.show(r["overhead_ms"], "", 3) if r["batch"] == 1 else "–"
    return (f"| {r['model']} | {r['batch']} | {r['clients']} | {r['forward_ms']:.3f} | {r['p50_ms']:.3f} | "
            f"{overhead} | {results.show(r['cpu'])} |")


def saturation(place, name, batch, clients, rounds, seconds):
    threads = os.cpu_count()
    with place.serve(name, threads, batch) as server:
        place.load(server, name, clients, 1)
        rows = [place.load(server, name, clients, seconds) for _ in range(rounds)]
    return {"model": name, "batch": batch, "clients": clients, "threads": threads, "rounds": rounds,
            "per_second": results.spread([r["answers"] / r["seconds"] for r in rows]),
            "p50_ms": statistics.median(1e3 * r["p50"] for r in rows),
            "p99_ms": statistics.median(1e3 * r["p99"] for r in rows),
            "refused": sum(r["refused"] for r in rows), "wrong": sum(r["wrong"] for r in rows),
            "broken": sum(r["broken"] for r in rows)}


SATURATION = ("| model | batch | clients | answers/s | p50 ms | p99 ms | 503 | other errors |\n"
              "|---|---|---|---|---|---|---|---|")


def saturation_row(r):
    return (f"| {r['model']} | {r['batch']} | {r['clients']} | {results.show(r['per_second'], '', 0)} | "
            f"{r['p50_ms']:.1f} | {r['p99_ms']:.1f} | {r['refused']} | {r['wrong'] + r['broken']} |")


def paced(server, body, rate, seconds):
    """Sorted latencies of requests at fixed moments, from a few connections that take turns."""
    request = (b"POST /predictions/m HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
    latencies, failed, count, lock = [], [], iter(range(int(rate * seconds))), threading.Lock()
    began = time.monotonic() + 0.1

    def client():
        with socket.create_connection(("127.0.0.1", server.port()), 60, ("127.0.0.2", 0)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                with lock:
                    number = next(count, None)
                if number is None:
                    return
                due = began + number / rate
                time.sleep(max(0, due - time.monotonic()))
                connection.sendall(request)
                text = connection.recv(65536)
                while b"\r\n\r\n" not in text or not text.rstrip().endswith(b"}"):
                    text += connection.recv(65536)
                latencies.append(time.monotonic() - due)
                if not text.startswith(b"HTTP/1.1 200"):
                    failed.append(text[:12])

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(latencies), failed


@contextlib.contextmanager
def slow_clients(server, count):
    """Connections that send a byte a second of a request's head, again and again from its start when
    the server has ended them."""
    ends = threading.Event()
    head = b"POST /predictions/m HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + 100 * b"y"

    def dial():
        return [socket.create_connection(("127.0.0.1", server.port()), 60), 0]

    def drip():
        while not ends.wait(1):
            for i, (connection, at) in enumerate(crowd):
                try:
                    connection.send(head[at:at + 1])
                    crowd[i][1] += 1
                except OSError:
                    connection.close()
                    crowd[i] = dial()

    crowd = [dial() for _ in range(count)]
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
        for connection, _ in crowd:
            connection.close()


def half(place, name, rounds, seconds):
    body_file = place.model(name).with_name(f"{name}.png")
    with place.serve(name, os.cpu_count(), 8) as server:
        full = statistics.median(r["answers"] / r["seconds"]
                                 for r in [place.load(server, name, 32, seconds) for _ in range(3)])

        def burst(slow):
            with slow_clients(server, slow) if slow else contextlib.nullcontext():
                latencies, failed = paced(server, body_file.read_bytes(), full / 2, seconds)
            return {"p50": statistics.median(latencies), "p99": latencies[int(0.99 * len(latencies))],
                    "failed": len(failed)}

        rows = results.take_turns({"alone": lambda: burst(0), "slow": lambda: burst(SLOW)}, rounds)
    return [{"model": name, "rate": full / 2, "slow": slow, "rounds": rounds,
             "p50_ms": statistics.median(1e3 * r[side]["p50"] for r in rows),
             "p99_ms": results.spread([1e3 * r[side]["p99"] for r in rows]),
             "failed": sum(r[side]["failed"] for r in rows)} for side, slow in (("alone", 0), ("slow", SLOW))]


HALF = "| model | requests/s | slow clients | p50 ms | p99 ms | errors |\n|---|---|---|---|---|---|"


def half_row(r):
    return (f"| {r['model']} | {r['rate']:.0f} | {r['slow']} | {r['p50_ms']:.1f} | "
            f"{results.show(r['p99_ms'], '', 1)} | {r['failed']} |")


def run(head, row, makers):
    found = []
    print(head, flush=True)
    for make in makers:
        made = make()
        for result in made if isinstance(made, list) else [made]:
            found.append(result)
            print(row(result), flush=True)
    print(flush=True)
    return head, row, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", choices=("cost", "saturation", "half"))
    results.add_options(parser)
    args = parser.parse_args()
    times = args.rounds, args.seconds
    with tempfile.TemporaryDirectory() as folder:
        place = Place(args.program, folder)
        costs = [lambda m=m, b=b: cost(place, m, b, *times) for m in DATA for b in (1, 8)]
        loads = [lambda m=m, b=b, c=c: saturation(place, m, b, c, *times)
                 for m in DATA for b, c in ((1, 32), (8, 32), (8, 400))]
        halves = [lambda: half(place, "vgg11", *times)]
        parts = {"cost": (COST, cost_row, costs), "saturation": (SATURATION, saturation_row, loads),
                 "half": (HALF, half_row, halves)}
        print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
        tables = [run(*part) for name, part in parts.items() if args.only in (None, name)]
    results.write(args, *tables)
    if any(r.get("wrong", 0) + r.get("broken", 0) + r.get("failed", 0) for _, _, found in tables for r in found):
        raise SystemExit("errors other than 503")


if __name__ == "__main__":
    main()
