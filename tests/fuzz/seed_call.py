# SPDX-License-Identifier: MIT
"""Writes calls and answers of downpour's workers and manager into the folder argv[1]."""
import os
import struct
import sys


def call(kind=2, block=1, blocks=3, checksum=7, numbers=(4, 2, 0, 20, 30, 2, 10), loss=3.0):
    return struct.pack("<4I7qd", kind, block, blocks, checksum, *numbers, loss)


seeds = {
    "result": call(),
    "ask": call(0),
    "bye": call(5),
    "kind": call(6),
    "negative": call(numbers=(4, -2, 0, 20, 30, 2, 10)),
    "nan": call(loss=float("nan")),
    "short": call()[:79],
    "long": call() + b"x",
    "block": struct.pack("<4I", 0, 2, 0, 0),
    "close": struct.pack("<4I", 3, 0, 2, 1),
    "wrong": struct.pack("<4I", 4, 0, 0, 0),
    "ending": struct.pack("<4I", 3, 0, 3, 0),
    "empty": b"",
}
for name, content in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(content)
