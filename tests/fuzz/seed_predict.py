#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bodies of predictions for a model of 1x2x2 values, each after a byte that chooses its kind."""
import json
import os
import struct
import sys
import zlib


def write(name, kind, body):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(bytes([kind]) + body)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 2, 2, 8, 0, 0, 0, 0)) +
       chunk(b"IDAT", zlib.compress(b"\0\1\2\0\3\4")) + chunk(b"IEND", b""))
ONE = [1, 2.5, -3e2, 0]
write("png", 0, PNG)
write("png-named", 9, PNG)
write("jpeg-head", 0, b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0")
write("raw", 2, struct.pack("<4f", *ONE))
write("raw-two", 2, struct.pack("<8f", *ONE, *ONE))
write("raw-odd", 2, b"123")
write("raw-nan", 2, struct.pack("<4f", 1, 2, 3, float("nan")))
write("none", 0, b"hello")
write("json-named", 9, b"[1,2,3,4]")
for name, value in {
        "flat": ONE, "nested": [[[1, 2], [3, 4]]], "two": [ONE, ONE], "instances": {"instances": [ONE]},
        "inputs": {"inputs": ONE}, "data": {"data": ONE}, "words": ["a"], "huge": [1e300, 0, 0, 0],
        "few": [1], "deep": [[[[[[[[[1]]]]]]]]]}.items():
    write("json-" + name, 1, json.dumps(value).encode())

