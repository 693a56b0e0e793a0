# SPDX-License-Identifier: MIT
"""Writes messages of every wire format into the folder argv[1], each after the two bytes that
fuzz_wire.c reads first: the format, and the number of values in units of 5."""
import os
import struct
import sys

UNIT = 5
FP32, BF16, INT8, INT4, TOPK, TOPK_ALL, TOPK_2, SPARSE = range(8)


def bf16(value):
    return struct.pack("<f", value)[2:]


def message(wire, count, data):
    assert count % UNIT == 0
    return bytes([wire, count // UNIT]) + data


def blocks(count, size, pack):
    data = b""
    while count > 0:
        values = min(size, count)
        data += bf16(0.25) + pack(values)
        count -= values
    return data


def topk(levels, distances, rice, level_bits):
    """The values are +level 0, -level 1, +level 2 …"""
    bits = []
    for i, distance in enumerate(distances):
        bits += [0] * (distance >> rice) + [1] + [distance >> j & 1 for j in range(rice)]
        bits += [i % len(levels) >> j & 1 for j in range(level_bits)] + [i & 1]
    bits += [0] * (-len(bits) % 8)
    packed = bytes(sum(bit << j for j, bit in enumerate(bits[i:i + 8]))
                   for i in range(0, len(bits), 8))
    return (struct.pack("<IB", len(distances), rice) + b"".join(map(bf16, levels)) + packed)


def sparse(*runs):
    """Of each run the zeros, and the values that follow."""
    return b"".join(struct.pack(f"<II{len(values)}f", zeros, len(values), *values) for zeros, values in runs)


def eighths(count):
    return [2.0 ** (i / 8) for i in range(count)]


seeds = {
    "fp32": message(FP32, 10, struct.pack("<10f", *range(10))),
    "fp32-nan": message(FP32, 5, struct.pack("<5f", 1, 2, float("nan"), 4, 5)),
    "bf16": message(BF16, 300, b"".join(bf16(i) for i in range(300))),
    "bf16-inf": message(BF16, 5, b"".join(bf16(i) for i in (1, 2, float("inf"), 4, 5))),
    "int8": message(INT8, 600, blocks(600, 256, lambda n: bytes((i % 255 + 129) % 256 for i in range(n)))),
    "int8-least": message(INT8, 5, bf16(1) + b"\x80\0\0\0\0"),
    "int8-scale": message(INT8, 5, bf16(-1) + b"\1\2\3\4\5"),
    "int4": message(INT4, 135, blocks(135, 64, lambda n: bytes([0x1f]) * ((n + 1) // 2))),
    "int4-long": message(INT4, 5, bf16(1) + b"\1\2\3\4"),
    "topk": message(TOPK, 100, topk(eighths(8), [3, 0, 60, 1, 20], 4, 3)),
    "topk-far": message(TOPK, 100, topk(eighths(8), [3, 90, 60], 3, 3)),
    "topk-many": message(TOPK, 20, topk(eighths(8), [1, 1, 1, 1], 1, 3)),
    "topk-all": message(TOPK_ALL, 10, topk(eighths(128), [0] * 10, 0, 7)),
    "topk-two": message(TOPK_2, 1000, topk(eighths(2), [100] * 9, 6, 1)),
    "topk-none": message(TOPK_2, 50, topk([0, 0], [], 0, 1)),
    "topk-level": message(TOPK_2, 100, topk([1, float("inf")], [1], 0, 1)),
    "topk-rice": message(TOPK_2, 100, topk([1, 2], [1], 32, 1)),
    "topk-more": message(TOPK_2, 100, topk([1, 2], [1], 5, 1) + b"\0"),
    "sparse": message(SPARSE, 20, sparse((3, [1, 2]), (5, [-0.0, 0, 3]), (7, []))),
    "sparse-zeros": message(SPARSE, 250, sparse((250, []))),
    "sparse-dense": message(SPARSE, 5, sparse((0, [1, 2, 3, 4, 5]))),
    "sparse-far": message(SPARSE, 10, sparse((3, [1, 2]), (6, []))),
    "sparse-short": message(SPARSE, 10, sparse((3, [1, 2]), (4, []))),
    "sparse-empty": message(SPARSE, 10, sparse((0, []), (10, []))),
    "sparse-huge": message(SPARSE, 10, struct.pack("<II", 2**32 - 1, 2**32 - 1)),
    "sparse-nan": message(SPARSE, 5, sparse((4, [float("nan")]))),
    "nothing": message(INT8, 0, b""),
}
for name, content in seeds.items():
    with open(os.path.join(sys.argv[1], name), "wb") as file:
        file.write(content)
