# SPDX-License-Identifier: MIT
"""Writes beginnings of connections into the folder argv[1], each after the byte that fuzz_hello.c
reads first: where they arrive in two parts. Checksums are not compared there."""
import json
import os
import struct
import sys

HELLO, WELCOME, CONTROL = 1, 2, 3
GOOD = {"protocol": 1, "job": "8f2e-Job", "role": "data", "from": 7, "to": 1, "view": 3, "channel": 2}


def frame(payload, kind=HELLO, count=None, magic=b"PLF1"):
    return magic + struct.pack("<HHIIQII", kind, 0, 0, 0,
                               len(payload) if count is None else count, 0, 0) + payload


def hello(**changes):
    fields = {k: v for k, v in {**GOOD, **changes}.items() if v is not ...}
    return frame(json.dumps(fields, separators=(",", ":")).encode())


seeds = {
    "good": hello(),
    "agent": hello(role="agent", job="", view=0, channel=0),
    "most": hello(**{"from": 2**32 - 1, "to": 2**32 - 1, "view": 2**32 - 1, "channel": 3}),
    "protocol": hello(protocol=2),
    "role": hello(role="root"),
    "job": hello(job="a/b"),
    "longjob": hello(job="x" * 40),
    "negative": hello(view=-1),
    "toolarge": hello(to=2**32),
    "channel": hello(channel=4),
    "type": hello(**{"from": "7"}),
    "missing": hello(to=...),
    "more": hello(more=1),
    "rest": hello() + b"rest",
    "welcome": frame(b"", WELCOME),
    "control": frame(b"{}", CONTROL),
    "list": frame(b"[]"),
    "json": frame(b"{"),
    "huge": frame(b"{}", count=1025),
    "magic": frame(b"{}", magic=b"GET "),
    "short": hello()[:40],
    "header": hello()[:9],
    "tls": bytes.fromhex("160301010c010001080303") + bytes(64),
}
for name, content in seeds.items():
    for cut in 255, 60:
        with open(os.path.join(sys.argv[1], f"{name}-{cut}"), "wb") as file:
            file.write(bytes([cut]) + content)
