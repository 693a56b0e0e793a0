#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cache files of ratings (struct recsys_header of src/recsys/recsys_private.h) into the folder argv[1],
their sections one after the other, and texts after a zero byte."""
import os
import struct
import sys

SECTIONS = 9


def ids(texts):
    """The two sections of ids: numbers, or where texts start and the texts."""
    if all(isinstance(t, int) for t in texts):
        return [struct.pack("<%dI" % len(texts), *texts), b""]
    ends = [0]
    for t in texts:
        ends.append(ends[-1] + len(t.encode()) + 1)
    return [struct.pack("<%dQ" % len(ends), *ends), b"".join(t.encode() + b"\0" for t in texts)]


def cache(users, items, rows, levels, timed=True, examples=b""):
    """rows: of each user, a list of (item, code or value, time)."""
    flat = [r for row in rows for r in row]
    starts = [sum(len(r) for r in rows[:i]) for i in range(len(rows) + 1)]
    sections = [struct.pack("<%dQ" % len(starts), *starts),
                struct.pack("<%dI" % len(flat), *[r[0] for r in flat]),
                bytes(r[1] for r in flat) if levels else struct.pack("<%df" % len(flat), *[r[1] for r in flat]),
                struct.pack("<%dI" % len(flat), *[r[2] for r in flat]) if timed else b""]
    sections += ids(users) + ids(items) + [examples]
    at, places = 4096, []
    for s in sections:
        places.append(at)
        at += (len(s) + 63) // 64 * 64
    values = levels or [r[1] for r in flat]
    head = struct.pack("<8s8I", b"PLrating", 0x01020304, len(users), len(items), 1, 9,
                       isinstance(users[0], str), isinstance(items[0], str), timed)
    head += struct.pack("<3Q", len(flat), 0, 0) + struct.pack("<9Q", *places)
    head += struct.pack("<9Q", *[len(s) for s in sections]) + struct.pack("<Q", at)
    head += struct.pack("<3fI", min(values), max(values), 0.5, len(levels))
    head += struct.pack("<256f", *(levels + [0.0] * (256 - len(levels))))
    head += struct.pack("<65s65s16s2xII", b"0" * 64, b"1" * 64, b"csv", 0, 0)
    return head + b"\0" * (-len(head) % 8) + b"".join(sections)


rows = [[(0, 0, 5), (2, 1, 6)], [], [(1, 1, 7), (2, 0, 8)]]
reals = [[(0, 0.25, 5)], [(0, -1.5, 6), (1, 7.0, 7)]]
seeds = {
    "numbers": cache([1, 5, 9], [2, 3, 4], rows, [0.5, 1.0]),
    "texts": cache(["ann", "bob", "eve"], ["x", "y", "z"], rows, [1.0, 5.0], False, b"line 3: bad\n\0"),
    "floats": cache([1, 2], ["a", "b"], reals, []),
    "csv": b"\0user,item,rating,time\n1,1,5,10\n1,2,4,11\n2,1,3,12\nbad\n1,1,4,13\n",
    "dat": b"\0ann::1::5\nbob::2::4.5\n",
    "text floats": b"\0user,item,rating\n" + b"".join(b"%d,%d,%d.25\n" % (i % 3, i, i) for i in range(300)),
}
for name, data in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(data)
