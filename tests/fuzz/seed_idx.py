#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Valid idx files, plain and gzip, and a list of class names, into the folder argv[1]."""
import gzip
import os
import struct
import sys


def write(name, data):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(data)


images = struct.pack(">4I", 0x803, 3, 4, 5) + bytes(range(60))
labels = struct.pack(">2I", 0x801, 12) + bytes(i % 10 for i in range(12))
few = struct.pack(">2I", 0x801, 3) + bytes([1, 2, 3])
wrong = struct.pack(">2I", 0x801, 3) + bytes([1, 200, 3])
bomb = struct.pack(">4I", 0x803, 60000, 4096, 4096)
for name, data in (("images", images), ("labels", labels), ("few", few), ("wrong", wrong)):
    write(name, data)
    write(name + ".gz", gzip.compress(data, mtime=0))
write("longer.gz", gzip.compress(images + b"\0" * 500, mtime=0))
write("shorter.gz", gzip.compress(images[:-1], mtime=0))
write("bomb.gz", gzip.compress(bomb, mtime=0))
write("behind.gz", gzip.compress(few, mtime=0) + b"more")
write("classes", b"airplane\nbird  \r\ncat\n\n")
write("blank", b"airplane\n\ncat")
