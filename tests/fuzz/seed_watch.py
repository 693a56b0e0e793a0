#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders of runs: events, the cluster's events and a log, with a byte 0x1e between them."""
import json
import os
import sys

STEP = {"event": "step", "epoch": 1, "loss": 1.5, "correct": 3, "samples": 8, "lr": 0.1, "seconds": 0.25}
EVENTS = [
    {"event": "start", "step": 0, "threads": 1, "kernels": "conv1=direct"}, {"event": "view", "view": 1, "members": [1, 2], "step": 0},
    *({**STEP, "step": i} for i in range(1, 5)), {"event": "epoch", "epoch": 1, "step": 4, "loss": 1.25, "test_accuracy": 0.5},
    {"event": "checkpoint", "step": 4, "seconds": 0.1}, {"event": "view", "view": 2, "members": [1, 3], "step": 3},
    {**STEP, "step": 4, "samples": 0}, {"event": "back", "from": 4, "step": 2}, {"event": "dropped", "count": 2},
    {"event": "resume", "step": 2, "kernels": "x"}, {**STEP, "step": 3},
]
BEAT = {"event": "heartbeat", "host": 0, "cpu": 0.5, "memory": 1e6}
CLUSTER = [
    {"event": "join", "time": 0, "host": 0, "name": "<a>", "workers": 2}, {"event": "view", "time": 1, "view": 1, "members": [2, 1]},
    {**BEAT, "time": 2, "id": 0, "load": 1}, {**BEAT, "time": 2, "id": 1, "step": 7, "step_rate": 2.5}, {**BEAT, "time": 9, "id": 2, "step": 8},
    {"event": "lost", "time": 9, "id": 1, "host": 0, "reason": "died"}, {"event": "exit", "time": 9, "id": 1, "host": 0},
    {"event": "succession", "time": 0.5, "host": 1, "lost_host": 0}, {"event": "stop", "time": 3, "failed": True, "reason": "asked"},
    {"event": "join", "time": 0, "host": 0, "name": "b", "workers": 1}, {"event": "view", "time": 1, "view": 1, "members": [1]},
]
LOG = "2026-01-01T00:00:00Z <b>words</b>\n\nhalf a line"


def text(events):
    return "".join(json.dumps(e, separators=(",", ":")) + "\n" for e in events)


INPUTS = [
    "", "\x1e\x1e", text(EVENTS) + "\x1e" + text(CLUSTER) + "\x1e" + LOG, text(EVENTS[:6]) + "\x1e\x1e" + LOG,
    "\x1e" + text(CLUSTER[:6]) + "\x1e\x1b[2J\n", text(EVENTS)[:-9] + "\x1e" + text(CLUSTER)[:-9] + "\x1e",
    text({**STEP, f"field{i}": i, "step": 1} for i in range(70)) + "\x1erubbish\n\x1e",
    text({"event": "back", "step": i} for i in range(30)) + "\x1e" + text({**BEAT, "id": i, "time": 1} for i in range(280)),
]
for i, given in enumerate(INPUTS):
    with open(os.path.join(sys.argv[1], f"run-{i}"), "w", encoding="ascii") as f:
        f.write(given)
