#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""All-reduce between hosts on slow links, against what the links allow.

    links.py PATH-OF-PACELINE [--hosts N] [--rate R] [--bytes B] [--rounds N] [--collective C]
             [--json FILE] [--table FILE]

Needs root: the hosts are those of tools/cluster, a worker on each. In every round one plain TCP
stream carries the same bytes from host 0 to host 1, which gives B; then comes an all-reduce without
encryption, then one under TLS, each after something that warms it up. The bound of a ring is 2 (N-1)/N bytes/B: what one link must carry at
the rate that one stream gets, packets' headers included. A ratio is taken in every round; the
medians are reported with their quartiles."""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import drill  # noqa: E402
import results  # noqa: E402

STREAM = str(HERE.parent / "tests/support/stream.py")
PATIENCE = 120


class Stream:
    """One TCP connection from host 0 to host 1."""

    def __init__(self, stack, count):
        self.processes = [self.start(stack, 1, "receive", drill.PORT + 50)]
        assert json.loads(self.processes[0].stdout.readline())["ready"]
        to = subprocess.run([drill.CLUSTER, "address", "1"], check=True, text=True,
                            capture_output=True).stdout.strip()
        self.processes.append(self.start(stack, 0, "send", to, drill.PORT + 50, count, "--paced",
                                         "--warm", 8_000_000))

    @staticmethod
    def start(stack, host, *arguments):
        process = subprocess.Popen([drill.CLUSTER, "exec", str(host), STREAM, *map(str, arguments)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(process.kill)
        return process

    def seconds(self):
        sender = self.processes[1]
        sender.stdin.write("\n")
        sender.stdin.flush()
        return json.loads(sender.stdout.readline())["seconds"]


def start_job(stack, args, port, token):
    options = ["--collective", args.collective] if args.collective else []
    env = {"PACELINE_TOKEN": token} if token else {}
    job = drill.Job(args.program, 1, list(range(args.hosts)), options, env, port)
    return stack.enter_context(job).launch().gather(PATIENCE)


def seconds_of(job, count):
    job.order(f"time private {count} 1")
    return drill.first(job.ranks, "seconds", PATIENCE)["seconds"]


def inside(args):
    """In a cluster that is there."""
    token = subprocess.run([args.program, "token"], check=True, text=True,
                           capture_output=True).stdout.strip()
    with contextlib.ExitStack() as stack:
        stream = Stream(stack, args.bytes)
        plain = start_job(stack, args, drill.PORT, None)
        tls = start_job(stack, args, drill.PORT + 1, token)
        rows = []
        for number in range(args.rounds + 1):  # the first warms up
            one = {"stream": stream.seconds(), "plain": seconds_of(plain, args.bytes),
                   "tls": seconds_of(tls, args.bytes)}
            rows += [one] if number > 0 else []
        plain.end(PATIENCE)
        tls.end(PATIENCE)
    share = 2 * (args.hosts - 1) / args.hosts
    result = {"hosts": args.hosts, "rate": args.rate, "bytes": args.bytes, "rounds": args.rounds,
              "collective": args.collective or "auto", "seconds": {}, "ratios": {},
              "stream_bytes_per_second": args.bytes / statistics.median(r["stream"] for r in rows)}
    for name in ("plain", "tls"):
        result["seconds"][name] = statistics.median(r[name] for r in rows)
        result["ratios"][name] = results.spread([r[name] / (share * r["stream"]) for r in rows])
    return result


HEAD = ("| hosts | link | bytes | one stream MB/s | all-reduce s | of the bound | under TLS s | of the bound |\n"
        "|---|---|---|---|---|---|---|---|")


def row(r):
    cells = [str(r["hosts"]), r["rate"], f"{r['bytes']:,}".replace(",", " "),
             f"{r['stream_bytes_per_second'] / 1e6:.1f}"]
    for name in ("plain", "tls"):
        cells += [f"{r['seconds'][name]:.4f}", results.show(r["ratios"][name], digits=3)]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rate", default="1gbit", help="of every link, as tc writes it")
    parser.add_argument("--bytes", type=int, default=36_900_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--collective", help="forces an algorithm, e.g. ring")
    results.add_options(parser)
    args = parser.parse_args()
    if "CLUSTER" not in os.environ:
        os.execv(drill.CLUSTER, [drill.CLUSTER, "run", str(args.hosts), "--rate", args.rate,
                                 "--loopback", "--", sys.executable, *sys.argv])
    result = inside(args)
    print(HEAD, row(result), sep="\n", flush=True)
    results.write(args, (HEAD, row, [result]))


if __name__ == "__main__":
    main()
