# SPDX-License-Identifier: MIT
"""Writes streams of data frames into the folder argv[1], each after the five bytes that
fuzz_frame.c reads first: number of messages less one, their lengths in units of 37, the cut."""
import os
import struct
import sys

DATA, PART, UNIT = 5, 4, 37
TABLE = []
for i in range(256):
    crc = i
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    TABLE.append(crc)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def frame(payload, kind=DATA, channel=0, view=1, tag=7, magic=b"PLF1", count=None):
    head = magic + struct.pack("<HHIIQI", kind, channel, view, tag,
                               len(payload) if count is None else count, crc32c(payload))
    return head + struct.pack("<I", crc32c(head)) + payload


def text(units):
    return bytes(range(UNIT)) * units


def stream(lengths, data, cut=255):
    return bytes([len(lengths) - 1] + (lengths + [0, 0, 0])[:3] + [cut]) + data


split = frame(text(1), PART) + frame(text(2), PART) + frame(text(1))
seeds = {
    "empty": stream([0], frame(b"")),
    "one": stream([1], frame(text(1))),
    "large": stream([250], frame(text(250)), 100),
    "three": stream([1, 0, 2], frame(text(1)) + frame(b"") + frame(text(2))),
    "split": stream([4], split),
    "halves": stream([4, 4, 4], 3 * split, 128),
    "more": stream([1], frame(text(1)) + b"rest"),
    "short": stream([2], frame(text(2))[:-5], 90),
    "header": stream([2], frame(text(2))[:20]),
    "none": stream([1], b""),
    "tag": stream([1], frame(text(1), tag=8)),
    "view": stream([1], frame(text(1), view=2)),
    "channel": stream([1], frame(text(1), channel=1)),
    "nochannel": stream([1], frame(text(1), channel=9)),
    "type": stream([1], frame(text(1), 3)),
    "notype": stream([1], frame(text(1), 9)),
    "magic": stream([1], frame(text(1), magic=b"PLF2")),
    "huge": stream([1], frame(text(1), count=1 << 40)),
    "long": stream([1], frame(text(2))),
    "part": stream([1], frame(text(1), PART)),
    "nothing": stream([1], frame(b"", PART)),
}
for name, content in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(content)
