# SPDX-License-Identifier: MIT
"""A `paceline serve` seen from outside, for tests and benchmarks: its addresses, its memory and
CPU seconds, requests to it. And small images and models to serve."""
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
import urllib.parse
import zlib

PATIENCE = 120  # seconds until a watchdog says that it hangs


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, rows, colour=0):
    """A PNG file of 8-bit samples; rows: bytes of all lines. colour: 0 grey, 2 RGB."""
    step = len(rows) // height
    lines = b"".join(b"\0" + rows[y * step:(y + 1) * step] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, colour, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def square(side, level):
    return png(side, side, bytes([level]) * side * side)


def make_set(folder, side=8, each=8):
    """A folder of grey squares that a small network tells apart: three classes, two parts."""
    for part in ("train", "test"):
        for name, level in (("ant", 20), ("bee", 120), ("cat", 230)):
            place = pathlib.Path(folder, part, name)
            place.mkdir(parents=True, exist_ok=True)
            for i in range(each):
                (place / f"{i}.png").write_bytes(square(side, level + i))


def train(program, place, run, *options):
    command = [program, "train", "--quiet", "--runs-dir", str(place), "--run", run, *map(str, options)]
    subprocess.run(command, check=True, timeout=10 * PATIENCE, stdout=subprocess.DEVNULL)
    return pathlib.Path(place, run)


class Served:
    """For `with`: starts the program and waits until it answers."""

    def __init__(self, program, place, *options, ports=True):
        self.place = pathlib.Path(place)
        ready = self.place / f"ready-{time.monotonic_ns()}"
        free = ["--port", "0", "--management-port", "0", "--metrics-port", "0"] if ports else []
        self.log = open(self.place / "serve.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "serve", *free, "--ready-file", ready, *map(str, options)],
                                        stderr=self.log, stdout=self.log, stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        until = time.monotonic() + PATIENCE
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the server did not start: {self.said()}")
            time.sleep(0.01)
        addresses = json.loads(ready.read_text())
        self.inference, self.management, self.metrics = (
            addresses[name] for name in ("inference", "management", "metrics"))

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        """SIGTERM, which must be how it ends: 128 + 15, once everything is answered."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE)
        self.log.close()
        if fault is None and code != 143:
            raise SystemExit(f"the server ended with {code}: {self.said()}")

    def said(self):
        return (self.place / "serve.log").read_text(encoding="utf-8", errors="replace")

    def lives(self):
        return self.process.poll() is None

    def port(self, which="inference"):
        return urllib.parse.urlsplit(getattr(self, which)).port

    def memory(self):
        """Resident bytes."""
        pages = pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def peak(self):
        """The most resident bytes so far."""
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{self.pid}/status").read_text())[1])

    def sockets(self):
        """How many it has open, listening ones included."""
        found = 0
        for fd in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                found += os.readlink(fd).startswith("socket:")
            except OSError:  # closed meanwhile
                pass
        return found

    def cpu(self):
        """Seconds of all its threads so far, in nanoseconds' resolution."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:  # a thread that has just ended
                pass
        return total / 1e9

    def ask(self, method, path, body=None, headers=None, which="inference"):
        """(status, what the body says: JSON where it is, else text, headers)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port(which), timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text), answer.headers
        except ValueError:
            return answer.status, text.decode(errors="replace"), answer.headers
