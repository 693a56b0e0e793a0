# SPDX-License-Identifier: MIT
"""Writes bodies, outlines, entries and notes of `ps` into the folder argv[1]."""
import os
import struct
import sys


def body(rank=1, flags=2, refusal=0, counts=(3, 24, 8, 24, 24, 1, 5, 8), number=7, loss=3.0):
    return struct.pack("<3I8qQd", rank, flags, refusal, *counts, number, loss)


def outline(rank=1, flags=1, counts=(3, 24, 8, 5, 8), read=6, loss=3.0):
    return struct.pack("<2I5qQd", rank, flags, *counts, read, loss)


def entry(outlines, count=None, readers=5):
    head = struct.pack("<QdQQI", 7, 0.05, 7, readers, len(outlines) if count is None else count)
    return head + b"".join(outlines)


seeds = {
    "body": body(),
    "over": body(flags=63),
    "flags": body(flags=1 << 9),
    "rank": body(rank=64),
    "got": body(refusal=1),
    "refusal": body(refusal=4),
    "negative": body(counts=(3, -24, 8, 24, 24, 1, 5, 8)),
    "short": body()[:80],
    "long": body() + b"x",
    "outline": outline(),
    "outline-nan": outline(loss=float("nan")),
    "outline-rank": outline(rank=1 << 31),
    "outline-long": outline() + b"x",
    "entry": entry([outline(), outline(rank=2)]),
    "entry-none": entry([]),
    "entry-full": entry([outline(rank=i) for i in range(64)]),
    "entry-many": entry([outline()], 65),
    "entry-short": entry([outline()], 2),
    "note": struct.pack("<2I2Q", 2, 3, 7, 100),
    "note-flags": struct.pack("<2I2Q", 2, 4, 7, 100),
    "empty": b"",
}
for name, content in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(content)
