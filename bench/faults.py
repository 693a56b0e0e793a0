#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How long it takes until all survivors have left a collective operation that a lost worker is in, and until
a training goes on.

    faults.py PATH-OF-PACELINE [--kills N] [--held N] [--cuts N] [--pauses N] [--workers W]
              [--json FILE] [--table FILE]

kill: kill -9 of a random worker of one host while all of them do all-reduces of 4 KB, N times; from
just before the kill until the last survivor's call has returned. held: the same with a victim that
holds 1 GB. cut: the link of one of three hosts (tools/cluster, needs root) is cut; the survivors are on
the other two. pause: kill -9 of a random worker of a training on one host; from just before the kill until
the survivors have made a step, which is part of it. Percentiles over all trials."""
import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import drill  # noqa: E402
import results  # noqa: E402
import watched  # noqa: E402

PATIENCE = 60
GIGABYTE = 1 << 30


def until_out(survivors, begin, lost):
    """Seconds from `begin` until the last of them was out; each names the one that was lost."""
    last = 0
    for rank in survivors:
        answer = rank.next(PATIENCE)
        assert answer and answer.get("failed") == "peer-lost" and answer["lost"] in lost, answer
        last = max(last, answer["at"] - begin)
    return last


def busy(job, rng):
    """All workers are in all-reduces."""
    job.order("check all-reduce 4096 0")
    time.sleep(rng.uniform(0.01, 0.05))  # the moment of the fault is random


def kills(args, rng, count, held):
    times = []
    while len(times) < count:
        with drill.Job(args.program, args.workers).launch() as job:
            job.gather(PATIENCE)
            while len(job.ranks) > 1 and len(times) < count:
                victim = job.ranks.pop(rng.randrange(len(job.ranks)))
                if held:
                    victim.order(f"hold {GIGABYTE}")
                    assert victim.next(PATIENCE) == {"held": GIGABYTE}
                victim.order("check all-reduce 4096 0")
                busy(job, rng)
                begin = time.monotonic()
                victim.kill()
                times.append(until_out(job.ranks, begin, [victim.id]))
                job.view(job.ranks, PATIENCE)
            job.end(PATIENCE)
    return times


def cuts(args, rng, count):
    token = subprocess.run([args.program, "token"], check=True, text=True,
                           capture_output=True).stdout.strip()
    times = []
    while len(times) < count:
        with drill.Job(args.program, 1, [0, 1, 2], env={"PACELINE_TOKEN": token}).launch() as job:
            job.gather(PATIENCE)
            victim = job.ranks[2]
            busy(job, rng)
            begin = time.monotonic()
            subprocess.run([drill.CLUSTER, "cut", "2"], check=True)
            times.append(until_out(job.ranks[:2], begin, [victim.id]))
            subprocess.run([drill.CLUSTER, "mend", "2"], check=True)
            job.end(PATIENCE)
    return times


def pauses(args, rng, count, model, shape, strategy="ddp"):
    options = ["--model", model, "--data", f"synthetic:classes=10,shape={shape},train=4096,test=16", "--batch", "64",
               "--epochs", "1000000", "--no-test", "--lr", "0.001", "--workers", str(args.workers),
               "--strategy", strategy, "--run", "pauses"]
    times = []
    while len(times) < count:
        with tempfile.TemporaryDirectory(prefix="pauses-") as folder, \
                watched.Training(args.program, folder, options) as job:
            job.goes_on(0, PATIENCE)
            while len(job.members) > 1 and len(times) < count:
                view, step, victims = job.view, job.step, job.workers()
                job.until(lambda: job.step >= step + 3, "no steps", PATIENCE)
                time.sleep(rng.uniform(0, 0.05))  # the moment of the kill is random
                victim = victims[rng.choice(job.members)]
                begin = time.monotonic()
                os.kill(victim, signal.SIGKILL)
                times.append(job.goes_on(view, PATIENCE) - begin)
            job.stop(PATIENCE)
    return times


def summary(name, workers, times):
    times = sorted(times)

    def percentile(share):
        return times[min(len(times) - 1, int(share * len(times)))]

    return {"fault": name, "workers": workers, "trials": len(times), "p50": percentile(0.5),
            "p90": percentile(0.9), "p99": percentile(0.99), "max": times[-1]}


HEAD = ("| fault | workers | trials | p50 ms | p90 ms | p99 ms | longest ms |\n"
        "|---|---|---|---|---|---|---|")


def row(r):
    return (f"| {r['fault']} | {r['workers']} | {r['trials']} | "
            + " | ".join(f"{1e3 * r[key]:.2f}" for key in ("p50", "p90", "p99", "max")) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.realpath)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--held", type=int, default=20)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--pauses", type=int, default=60, help="for each of two models and strategies")
    parser.add_argument("--workers", type=int, default=4, help="of the host, before the first kill")
    parser.add_argument("--seed", type=int, default=1)
    results.add_options(parser)
    args = parser.parse_args()
    if args.cuts > 0 and "CLUSTER" not in os.environ:
        os.execv(drill.CLUSTER, [drill.CLUSTER, "run", "3", "--", sys.executable, *sys.argv])
    rng = random.Random(args.seed)
    found = []
    print(HEAD, flush=True)
    for name, workers, count, run in (
            ("kill -9", args.workers, args.kills, lambda n: kills(args, rng, n, False)),
            ("kill -9, victim holds 1 GB", args.workers, args.held, lambda n: kills(args, rng, n, True)),
            ("link cut", 3, args.cuts, lambda n: cuts(args, rng, n)),
            ("pause, mnist-cnn", args.workers, args.pauses, lambda n: pauses(args, rng, n, "mnist-cnn", "1x28x28")),
            ("pause, vgg11", args.workers, args.pauses, lambda n: pauses(args, rng, n, "vgg11", "3x32x32")),
            ("pause, mlp:1024x8, ring", args.workers, args.pauses,
             lambda n: pauses(args, rng, n, "mlp:1024x8", "1x32x32", "ring")),
            ("pause, vgg11, ring", args.workers, args.pauses,
             lambda n: pauses(args, rng, n, "vgg11", "3x32x32", "ring"))):
        if count > 0:
            found.append(summary(name, workers, run(count)))
            print(row(found[-1]), flush=True)
    results.write(args, (HEAD, row, found))


if __name__ == "__main__":
    main()
