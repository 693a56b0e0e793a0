#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small PNG and JPEG files of every kind that the decoder knows, into the folder argv[1]."""
import os
import struct
import sys
import zlib


def write(name, data):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(data)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, kind, extra=b"", interlaced=0):
    """Rows of a simple pattern; an interlaced image is one of 1x1, which has a single pass."""
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    row = (width * samples * depth + 7) // 8
    data = b"".join(bytes([y % 5]) + bytes((x * 9 + y) % 256 for x in range(row))
                    for y in range(height))
    header = struct.pack(">2I5B", width, height, depth, kind, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra +
            chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def segment(marker, data):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(samples, size, progressive=False, adobe=None, restart=0, scans=1):
    """One Huffman table for everything, with the codes 0 (value 0) and 10 (value 2)."""
    out = b"\xff\xd8"
    if adobe is not None:
        out += segment(0xee, b"Adobe" + struct.pack(">3HB", 100, 0, 0, adobe))
    out += segment(0xdb, b"\0" + bytes([1] * 64))
    parts = b"".join(bytes([i + 1, 0x11, 0]) for i in range(samples))
    out += segment(0xc2 if progressive else 0xc0,
                   struct.pack(">B2HB", 8, size, size, samples) + parts)
    table = bytes([1, 1] + [0] * 14) + bytes([0, 2])
    out += segment(0xc4, b"\x00" + table + b"\x10" + table)
    if restart:
        out += segment(0xdd, struct.pack(">H", restart))
    blocks = samples * ((size + 7) // 8) ** 2
    ids = b"".join(bytes([i + 1, 0]) for i in range(samples))
    end = bytes([0, 0 if progressive else 63, 0])
    for _ in range(scans):
        out += segment(0xda, bytes([samples]) + ids + end) + b"\x12" * (blocks // 2 + 1)
    return out + b"\xff\xd9"


palette = chunk(b"PLTE", bytes(range(48))) + chunk(b"tRNS", b"\x00\x80")
for colour, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (4, (8, 16)), (6, (8, 16))):
    for bits in depths:
        write("png-%d-%d" % (colour, bits), png(6, 4, bits, colour))
for bits in (1, 2, 4):
    write("png-palette-%d" % bits, png(6, 4, bits, 3, chunk(b"PLTE", bytes(range(6))) if bits == 1
                                       else palette))
write("png-interlaced", png(1, 1, 8, 2, interlaced=1))
write("png-short", png(6, 4, 8, 2)[:-20])
write("png-wide", png(5000, 1, 1, 0))
for n, mark in ((1, None), (3, None), (3, 1), (4, None), (4, 0), (4, 2)):
    write("jpeg-%d-%s" % (n, mark), jpeg(n, 8, adobe=mark))
    write("jpeg-large-%d-%s" % (n, mark), jpeg(n, 24, adobe=mark))
write("jpeg-progressive", jpeg(1, 16, progressive=True))
write("jpeg-scans", jpeg(1, 8, progressive=True, scans=12))
write("jpeg-restart", jpeg(1, 8, restart=2))
write("jpeg-wide", jpeg(1, 5000)[:400])
write("text", b"neither of them")
