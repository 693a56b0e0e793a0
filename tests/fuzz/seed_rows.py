#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rows of a table with the columns size, data and colour, as JSON."""
import json
import os
import struct
import sys
import zlib


def write(name, body):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(body)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


ROW, OBJECT = [3, 1.5, "red"], {"size": 3, "data": "1e3", "colour": "blue", "price": 7}
for name, value in {
        "row": ROW, "object": OBJECT, "rows": [ROW, ROW], "objects": [OBJECT, OBJECT], "mixed": [ROW, OBJECT],
        "instances": {"instances": [ROW]}, "inputs": {"inputs": OBJECT}, "data": {"data": [ROW, ROW]},
        "missing": [None, "NA", None], "unknown": [1, 2, "mauve"], "boolean": [1, True, False], "few": [1],
        "twice": {"size": 1, "siz": 2}, "list": [[1], 2, "red"], "words": ["large", 1, "red"],
        "huge": [1e300, 0, ""]}.items():
    write("json-" + name, json.dumps(value).encode())
write("png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 2, 2, 8, 0, 0, 0, 0)) +
      chunk(b"IDAT", zlib.compress(b"\0\1\2\0\3\4")) + chunk(b"IEND", b""))
