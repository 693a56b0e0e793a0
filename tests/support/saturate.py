#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A server that gets more requests than it can answer, for a while: every request has an answer,
200 or 503, and the server does not grow.

    saturate.py PATH-OF-PACELINE [--seconds S]

Load comes from wrk, in four parts; the server's memory after each of the last three must be that of
the first, but for a few megabytes. Images of several sizes, and some that are none, take turns, and so
do batches of all sizes."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
import served  # noqa: E402

CLIENTS, QUEUE = 200, 50
GROWTH = 8 << 20  # bytes; malloc's arenas may settle late

SCRIPT = """
local bodies, at, kinds = {}, 0, {}
for name in io.lines("bodies.txt") do table.insert(bodies, io.open(name, "rb"):read("*a")) end
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() right, bad, refused, wrong = 0, 0, 0, 0 end
function request() at = at % #bodies + 1; return wrk.format("POST", nil, nil, bodies[at]) end
function response(status)
  if status == 200 then right = right + 1 elseif status == 400 then bad = bad + 1
  elseif status == 503 then refused = refused + 1 else wrong = wrong + 1 end
end
function done(summary)
  local sums, e = {right = 0, bad = 0, refused = 0, wrong = 0}, summary.errors
  for _, t in ipairs(threads) do for k, v in pairs(sums) do sums[k] = v + t:get(k) end end
  io.stderr:write(string.format('{"right": %d, "bad": %d, "refused": %d, "wrong": %d, "broken": %d}',
    sums.right, sums.bad, sums.refused, sums.wrong, e.connect + e.read + e.write + e.timeout))
end
"""


def load(server, seconds):
    out = subprocess.run(["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds}s", "--timeout", "60s", "-s", "load.lua",
                          server.inference + "/predictions/own"], check=True, capture_output=True, text=True)
    return json.loads(out.stderr)


def answers_again(server, body):
    """What wrk has left in the queue is worked off, then there is room again."""
    until = time.monotonic() + served.PATIENCE
    while (status := server.ask("POST", "/predictions/own", body)[0]) != 200:
        if status != 503 or time.monotonic() > until:
            raise SystemExit(f"FAILED: after the load the server answers with {status}: {server.said()}")
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=12)
    args = parser.parse_args()
    program = args.program.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        served.make_set("set", side=28)
        served.train(program, "runs", "own", "--model", "mnist-cnn", "--data", "set", "--batch", 4, "--epochs", 1)
        bodies = {f"{side}.png": served.square(side, side % 256) for side in (28, 1, 64, 28, 300)}
        bodies["bad.png"] = bodies["64.png"][:60]
        for name, body in bodies.items():
            pathlib.Path(name).write_bytes(body)
        pathlib.Path("bodies.txt").write_text("\n".join(bodies) + "\n")
        pathlib.Path("load.lua").write_text(SCRIPT)
        with served.Served(program, ".", "--model", "own=runs/own", "--batch-size", 8, "--max-batch-delay", 2,
                           "--queue", QUEUE, "--workers", 2) as server:
            seen, memory = [], []
            for _ in range(4):
                seen.append(load(server, max(1, args.seconds // 4)))
                memory.append(server.memory())
            sums = {key: sum(s[key] for s in seen) for key in seen[0]}
            told = f"{sums}; resident MB: {[m >> 20 for m in memory]}, at most {server.peak() >> 20}"
            if sums["wrong"] or sums["broken"] or not (sums["right"] and sums["bad"] and sums["refused"]):
                raise SystemExit(f"FAILED: only 200, 400 and 503 are right, and each of them must come: {told}")
            if max(memory[1:]) > memory[0] + GROWTH:
                raise SystemExit(f"FAILED: the server grows: {told}")
            answers_again(server, bodies["28.png"])
        print(told)


if __name__ == "__main__":
    main()
