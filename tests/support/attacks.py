#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Attacks on a server, all from this host: what clients should not send (hostile.py), clients that
are slow, too many or gone, wrong tokens, and the known attacks on TorchServe.

    attacks.py PATH-OF-PACELINE [--slow N]      slow clients; 60, or 500 for `make soak`

Every attack has the statuses that are right for it. A well-behaved client asks all the time and must
get its answer each time; the server must not grow."""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
import hostile  # noqa: E402
import served  # noqa: E402

WATCHDOG = 60  # seconds for anything that must end
GROWTH = 64 << 20  # bytes that a server may have more after everything
PEAK = 512 << 20  # bytes that it may ever need: 256 MB of bodies, and images being decoded


def need(right, what):
    if not right:
        raise SystemExit(f"FAILED: {what}")


def dial(server, which="inference", source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", server.port(which)), WATCHDOG, (source, 0))


def read_all(connection):
    """Until the server closes; what came."""
    text = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            text += piece
    return text


def all_at_once(function, items):
    """Calls it for each of them; what the server waits for, it waits for at the same time."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        return list(pool.map(lambda item: (item, function(item)), items))


def statuses(text):
    return [int(s) for s in re.findall(rb"(?:^|\n|\}|>)HTTP/1\.[01] (\d{3}) ", text)]


def send(server, data, which="inference", half_close=False):
    """The bytes as they are; statuses and text of all answers until the server closes."""
    with dial(server, which) as connection:
        with contextlib.suppress(OSError):  # it may be refused before it was all sent
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
        text = read_all(connection)
    return statuses(text), text


class Good(threading.Thread):
    """A client that asks for what it may have, all the time, from an address of its own."""

    def __init__(self, server, body, path="/predictions/own", headers=None):
        super().__init__(daemon=True)
        self.server, self.body, self.path, self.headers = server, body, path, headers or {}
        self.answers, self.slowest, self.fault, self.ends = 0, 0.0, None, False
        self.right = server.ask("POST", path, body, self.headers)[:2]
        need(self.right[0] == 200, f"a good request gets {self.right}")

    def run(self):
        head = "".join(f"{k}: {v}\r\n" for k, v in self.headers.items())
        request = (f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{head}"
                   f"Content-Length: {len(self.body)}\r\n\r\n").encode() + self.body
        while not self.ends and not self.fault:
            began = time.monotonic()
            try:
                with dial(self.server, source="127.0.0.2") as connection:
                    connection.sendall(request)
                    text = read_all(connection)
                answer = json.loads(text.partition(b"\r\n\r\n")[2])
                if (statuses(text)[0], answer) != self.right:
                    self.fault = f"got {text[:500]}"
            except (OSError, ValueError, IndexError) as error:
                self.fault = f"got {error!r}"
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers += 1
            time.sleep(0.02)

    def check(self, during):
        before = self.answers
        until = time.monotonic() + WATCHDOG
        while self.answers < before + 2 and not self.fault and time.monotonic() < until:
            time.sleep(0.01)
        need(self.fault is None, f"during {during} a good request {self.fault}")
        need(self.answers >= before + 2, f"during {during} good requests wait for {WATCHDOG} s")


# ---- what is sent ----

def attack_framing(server, image):
    # libmicrohttpd 0.9.75 sends the head of its own refusals twice.
    for (name, _), (got, text) in all_at_once(lambda item: send(server, item[1]), hostile.framing(image)):
        need(set(got) <= {400, 413}, f"{name}: {got} {text[:300]}")
        need(b"Healthy" not in text, f"{name}: a smuggled request is answered")


def attack_not_http(server, _):
    for (name, _), (got, text) in all_at_once(lambda item: send(server, item[1]), hostile.not_http()):
        need(all(400 <= s < 600 and s != 500 for s in got), f"{name}: {got} {text[:300]}")


def attack_paths(server, image):
    for path in hostile.PATHS:
        for which, prefix in (("inference", "/predictions/"), ("inference", "/v2/models/"), ("inference", "/"),
                              ("management", "/models/"), ("metrics", "/")):
            data = (f"POST {prefix}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(image)}\r\n"
                    "\r\n").encode() + image
            got, text = send(server, data, which)
            need(len(got) == 1 and got[0] in (400, 404, 405, 414), f"{prefix}{path} on {which}: {got} {text[:300]}")
            need(b"root:" not in text and b"Set-Cookie" not in text.partition(b"\r\n\r\n")[0], f"{path}: {text[:300]}")


def attack_images(server, _):
    for name, data in hostile.images():
        status, answer, _ = server.ask("POST", "/predictions/own", data)
        need(status == 400 and answer["code"] == 400 and answer["message"], f"{name}: {status} {answer}")


def attack_documents(server, _):
    for name, kind, data in hostile.documents():
        status, answer, _ = server.ask("POST", "/predictions/own", data, {"Content-Type": kind})
        need(status == 400 and answer["message"], f"{name}: {status} {answer}")
        status, answer, _ = server.ask("POST", "/v2/models/own/infer", data, {"Content-Type": kind})
        need(status == 400 and answer["error"], f"{name} to v2: {status} {answer}")


def attack_oversize(server, _):
    limit = 6553500
    for name, head, body in (
            ("a byte too many", b"Content-Length: %d\r\n" % (limit + 1), bytes(limit + 1)),
            ("a terabyte promised", b"Content-Length: %d\r\n" % (1 << 40), bytes(1 << 16)),
            ("too much after a question", b"Content-Length: %d\r\nExpect: 100-continue\r\n" % (limit + 1), b""),
            ("chunks without an end", b"Transfer-Encoding: chunked\r\n",
             400 * (b"10000\r\n" + bytes(65536) + b"\r\n"))):
        got, text = send(server, hostile.HEAD + head + b"\r\n" + body)
        need(got in ([413], []), f"{name}: {got} {text[:300]}")
        need(got == [413] or "chunks" in name, f"{name}: no answer")
    status, _, _ = server.ask("POST", "/predictions/own", bytes(limit))
    need(status == 400, f"the longest body that is allowed is no image: {status}")


def attack_large_images(server, _):
    """Sound images of the largest size: small files, 48 MB each once decoded, a dozen at a time."""
    large = served.png(4096, 4096, bytes(3 * 4096 * 4096), 2)
    for _, (status, answer, _) in all_at_once(lambda _: server.ask("POST", "/predictions/own", large), range(12)):
        need(status == 200, f"an image of 4096x4096: {status} {answer}")


# ---- how it is sent ----

def attack_pipelining(server, image):
    good = hostile.HEAD + b"Content-Length: %d\r\n\r\n" % len(image) + image
    bad = hostile.HEAD + b"Content-Length: 3\r\n\r\nabc"
    got, text = send(server, 20 * (hostile.PING + good) + bad + hostile.PING)
    need(got == 40 * [200] + [400], f"40 requests in a row, a bad one, and one that is not read: {got}")
    need(text.count(b"Healthy") == 20, "the answers of pipelined requests are mixed up")


def attack_half_closed(server, image):
    """Clients that say no more, or that are gone."""
    whole = hostile.HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(image) + image
    got, _ = send(server, whole, half_close=True)
    need(got == [200], f"a client that has said everything gets its answer: {got}")
    parts = [0, 20, len(hostile.HEAD), len(whole) - 1]
    for part, (got, text) in all_at_once(lambda part: send(server, whole[:part], half_close=True), parts):
        need(set(got) <= {400, 408}, f"{part} bytes of a request: {got} {text[:300]}")
    for _ in range(200):
        with dial(server) as connection:
            connection.sendall(whole)


class Slow:
    """Connections that send a byte now and then, or nothing, or never read; all at once. The server
    must end every one by itself."""

    def __init__(self, server, count):
        head = hostile.HEAD + b"X: " + 1000 * b"y"
        body = hostile.HEAD + b"Content-Length: 5000\r\n\r\n"
        # A request that is answered with much, many times, and no answer is read.
        greedy = 300 * b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        kinds = [("a silent one", b"", b""), ("a slow head", b"", head), ("a slow body", body, bytes(5000)),
                 ("one that does not read", greedy, b"")]
        self.all = []
        for i in range(count):
            name, first, rest = kinds[i % len(kinds)]
            connection = dial(server)
            connection.sendall(first[:100000])
            self.all.append([name, connection, rest])

    def go_on(self):
        """One more byte of each that is slow."""
        for item in self.all:
            with contextlib.suppress(OSError):
                if item[2]:
                    item[1].send(item[2][:1])
                    item[2] = item[2][1:]

    def close(self):
        for _, connection, _ in self.all:
            connection.close()


def attack_slowness(server, good, count):
    """All are ended: 10 s for a head, 10 s and a least rate for a body, 30 s and a least rate for
    answers. A client that does not read cannot see that it was ended, so the server's sockets are
    counted; the good client has one of them now and then."""
    before = server.sockets()
    slow = Slow(server, count)
    until = time.monotonic() + 3 * WATCHDOG
    while (left := server.sockets() - before) > 1:
        good.check(f"{left} slow clients")
        need(time.monotonic() < until, f"{left} of {count} slow clients still have their connections")
        slow.go_on()
        time.sleep(0.5)
    slow.close()


def attack_numbers(server, good):
    """More connections than an address may have: those too many are closed, others are served."""
    crowd = []
    refused = 0
    for _ in range(700):
        try:
            crowd.append(dial(server))
        except OSError:
            refused += 1
    good.check("700 connections of another address")
    for connection in crowd:
        connection.setblocking(False)
    time.sleep(0.2)
    for connection in crowd:
        try:
            refused += connection.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            refused += 1
    need(150 <= refused <= 250, f"of 700 connections of one address {refused} are refused, 188 are right")
    for connection in crowd:
        connection.close()


# ---- tokens ----

def attack_tokens(program, place, image):
    for name in ("inference", "management"):
        subprocess.run([program, "token", place / name], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    tokens = {name: (place / name).read_text().strip() for name in ("inference", "management")}
    with served.Served(program, place, "--model", "own=runs/own", "--token-file", place / "inference",
                       "--management-token-file", place / "management") as server:
        right = {"Authorization": "Bearer " + tokens["inference"]}
        good = Good(server, image, headers=right)
        good.start()
        wrong = ["", "Bearer", "Bearer ", "Bearer x", "Basic " + tokens["inference"], tokens["inference"],
                 "Bearer " + tokens["management"], "Bearer " + tokens["inference"][:-1],
                 "Bearer " + tokens["inference"] + "x", "Bearer " + tokens["inference"].upper() + "!",
                 "Bearer " + 20000 * "x", "Bearer token", "Bearer /token"]
        for text in wrong:
            for path in ("/predictions/own", "/predictions/own?token=" + tokens["inference"],
                         "/predictions/own?type=/token", "/predictions/own/1.0?x=/token&type=inference"):
                status, answer, _ = server.ask("POST", path, image, {"Authorization": text})
                need(status in (400, 431) and "0." not in str(answer), f"token {text[:60]!r}, {path}: {status} {answer}")
        for path in ("/models", "/models/own", "/models?x=/token", "/token", "/token?type=management",
                     "/models/token", "/models/own/token"):
            for header in ({}, right):
                status, answer, _ = server.ask("GET", path, headers=header, which="management")
                need(status in (400, 404, 405) and "modelUrl" not in str(answer), f"{path}: {status} {answer}")
        need(server.ask("GET", "/metrics", which="metrics")[0] == 400, "metrics without a token")
        need(server.ask("GET", "/ping")[0] == 200, "/ping wants a token")
        need(server.ask("GET", "/live")[0] == 400, "/live without a token")
        status, answer, _ = server.ask("GET", "/models", None, {"Authorization": "Bearer " + tokens["management"]},
                                       "management")
        need(status == 200 and answer["models"][0]["modelName"] == "own", f"the right token: {status} {answer}")
        good.check("wrong tokens")
        for token in tokens.values():
            need(token not in server.said(), "a token stands in the log")


# ---- the attacks that TorchServe fell for ----

def listening_addresses(pid):
    """The local addresses of the sockets on which the process listens, in hexadecimal."""
    sockets = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(fd))
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1].split(":")[0])
    return found


def attack_binding(program, place, server):
    """Reachable from everywhere by default (ShellTorch)."""
    found = listening_addresses(server.pid)
    need(found == 3 * ["0100007F"], f"it listens on {found}, 127.0.0.1 is right")
    for host in ("0.0.0.0", "::"):
        ended = subprocess.run([program, "serve", "--model", "own=runs/own", "--host", host, "--port", "0",
                                "--management-port", "0", "--metrics-port", "0"], cwd=place, timeout=WATCHDOG,
                               capture_output=True, text=True)
        need(ended.returncode == 2 and "token" in ended.stderr, f"--host {host} without tokens: {ended}")


def register(server, **parameters):
    status, answer, _ = server.ask("POST", "/models?" + urllib.parse.urlencode(parameters), which="management")
    return status, answer


def attack_registration(server, trap):
    """Models from any URL (CVE-2023-43654), `..` in what is allowed (CVE-2024-35198)."""
    port = trap.getsockname()[1]
    urls = [f"http://127.0.0.1:{port}/own.mar", f"https://127.0.0.1:{port}/own.mar", f"HTTP://127.0.0.1:{port}/x",
            f"ftp://127.0.0.1:{port}/x", f" http://127.0.0.1:{port}/x", f"http://127.0.0.1:{port}/../own",
            "file:///etc/passwd", "file://own", "FILE:///etc/passwd", "s3://bucket/own.mar", "gopher://x", "jar:file:///x!/y",
            "//127.0.0.1/share", "/etc", "/etc/passwd", "/proc/self/cwd", "/proc/self/root", "..", "../outside",
            "own/../../outside", "./../outside", "own/../../../etc", "%2e%2e/outside", "..\\outside", "link",
            "link/own", "holds-link", "pickle.pt", "pickle.mar", "pickled", "", ".", "x\0y", 5000 * "a"]
    for url in urls:
        status, answer = register(server, url=url, model_name="stolen", initial_workers=1, synchronous="true")
        need(status in (400, 403, 404, 414), f"url={url[:60]}: {status} {answer}")
        need("root:" not in str(answer), f"url={url}: {answer}")
    for name in ("../x", "..", "/etc/x", "a/b", "a\\b", "x\ny", ".hidden", 500 * "a", "<script>"):
        for parameter in ("model_name", "model_version"):
            status, answer = register(server, url="own", initial_workers=1, **{"model_name": "fine", parameter: name})
            need(status == 400, f"{parameter}={name[:30]!r}: {status} {answer}")
    for handler in ("os:system", "../../x.py", "/tmp/x.py:handle", "image;touch handled", "image\n"):
        status, answer = register(server, url="own", model_name="handled", handler=handler, initial_workers=1)
        need(status in (400, 404), f"handler={handler!r}: {status} {answer}")
    for path in (f"/workflows?url=http://127.0.0.1:{port}/x.war", "/workflows"):
        need(server.ask("POST", path, which="management")[0] == 404, path)
    for path in ("/models?url=own", "/models/own", "/metrics"):
        need(server.ask("POST", path)[0] in (404, 405), f"{path} is there on the inference port")
    for method, path in (("DELETE", "/models/own"), ("PUT", "/models/own?min_worker=0"), ("GET", "/models")):
        need(server.ask(method, path)[0] in (404, 405), f"{method} {path} is there on the inference port")
    need(not select.select([trap], [], [], 0)[0], "the server has connected to an address from a request")
    models = [m["modelName"] for m in server.ask("GET", "/models", which="management")[1]["models"]]
    need(models == ["own"], f"after the attacks these models are served: {models}")
    status, answer = register(server, url="own", model_name="again", initial_workers=1, synchronous="true")
    need(status == 200, f"a model of the store: {status} {answer}")
    need(server.ask("DELETE", "/models/again", which="management")[0] == 200, "unregistering")


def attack_browser(server, image):
    """A page that a person visits sends requests to localhost, or has its name point there."""
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"},
                    {"Host": "evil.example", "Origin": "http://evil.example"}, {"Host": "127.0.0.1.evil.example"},
                    {"Host": "localhost.evil.example:8080"}, {"Origin": "http://localhost.evil.example"}):
        for which, path in (("inference", "/predictions/own"), ("management", "/models?url=own&model_name=csrf")):
            status, answer, _ = server.ask("POST", path, image, headers, which)
            need(status == 403, f"{headers} {path}: {status} {answer}")
    for host in ("localhost", "127.0.0.1", f"localhost:{server.port()}"):
        status, _, _ = server.ask("POST", "/predictions/own", image, {"Host": host, "Origin": "http://" + host})
        need(status == 200, f"Host {host}: {status}")


def make_store(place):
    """A store with a sound model, ways out of it, and pickles that would leave a trace if loaded."""
    store = place / "store"
    store.mkdir()
    subprocess.run(["cp", "-r", place / "runs/own", store / "own"], check=True)
    subprocess.run(["cp", "-r", place / "runs/own", place / "outside"], check=True)
    (store / "link").symlink_to("../outside")
    subprocess.run(["cp", "-r", place / "runs/own", store / "holds-link"], check=True)
    step = next((store / "holds-link/checkpoints").glob("step-*"))
    (step / "model.safetensors").unlink()
    (step / "model.safetensors").symlink_to(next((place / "outside/checkpoints").glob("step-*")) / "model.safetensors")
    pickle = f"cos\nsystem\n(S'touch {place}/pickled'\ntR.".encode()
    for name in ("pickle.pt", "pickle.mar"):
        (store / name).write_bytes(pickle)
    (store / "pickled").mkdir()
    for name in ("model.pt", "model.safetensors", "manifest.json", "handler.py"):
        (store / "pickled" / name).write_bytes(pickle)
    return store


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--slow", type=int, default=60)
    args = parser.parse_args()
    program = args.program.resolve()
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as trap:
        place = pathlib.Path(folder)
        os.chdir(place)
        served.make_set("set")
        served.train(program, "runs", "own", "--model", "mlp:8x1", "--data", "set", "--batch", 4, "--threads", 1,
                     "--epochs", 2, "--lr", 0.05, "--seed", 3)
        image = pathlib.Path("set/test/bee/1.png").read_bytes()
        store = make_store(place)
        with served.Served(program, place, "--model", "own=runs/own", "--store", store, "--threads", 1) as server:
            good = Good(server, image)
            good.start()
            good.check("peace")
            before = server.memory()
            for attack in (attack_framing, attack_not_http, attack_paths, attack_images, attack_large_images,
                           attack_documents, attack_oversize, attack_pipelining, attack_half_closed, attack_browser):
                began = time.monotonic()
                attack(server, image)
                good.check(attack.__name__)
                print(f"{attack.__name__[7:]}: withstood, {time.monotonic() - began:.1f} s", flush=True)
            attack_registration(server, trap)
            attack_binding(program, place, server)
            print("registration, binding: withstood", flush=True)
            attack_numbers(server, good)
            attack_slowness(server, good, args.slow)
            good.ends = True
            good.join()
            need(not (place / "pickled").exists() and not (place / "handled").exists(), "a request ran a program")
            after, peak = server.memory(), server.peak()
            need(after < before + GROWTH, f"the server grew from {before >> 20} to {after >> 20} MB")
            need(peak < PEAK, f"the server needed {peak >> 20} MB at a time")
            need(server.lives(), f"the server is gone: {server.said()}")
            print(f"{good.answers} good requests, the slowest {1e3 * good.slowest:.0f} ms; {args.slow} slow clients; "
                  f"memory {before >> 20} MB before, {after >> 20} after, {peak >> 20} at most", flush=True)
        attack_tokens(program, place, image)
        print("tokens: withstood", flush=True)


if __name__ == "__main__":
    main()
