#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The random numbers of src/base/rng.h in numpy: Philox4x32-10 (Salmon et al., SC'11).

Element i of (seed, stream, layer, epoch, sample) is word i % 4 of the block whose counter is
(i / 4, sample, epoch, stream << 24 | layer) and whose key is the seed, low word first.
Run as a program it checks the known answers of Random123 and prints the words asked for:

    philox.py SEED STREAM LAYER EPOCH SAMPLE COUNT
"""
import sys

import numpy as np

INIT, SHUFFLE, DROPOUT, AUGMENT, SYNTH, SPLIT, TEST, SAMPLE = range(1, 9)

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def blocks(counter, key):
    """Ten rounds over counters (…, 4), with one key of two words: uint32 (…, 4)."""
    c0, c1, c2, c3 = (np.asarray(counter)[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = (int(word) for word in key)
    for _ in range(10):
        a = np.uint64(0xD2511F53) * c0
        b = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((b >> HALF) ^ c1 ^ np.uint64(k0), b & LOW,
                          (a >> HALF) ^ c3 ^ np.uint64(k1), a & LOW)
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def words(seed, stream, layer, epoch, sample, count):
    """Elements 0 … count-1, uint32 (count); for an array of samples (samples, count)."""
    sample = np.asarray(sample, dtype=np.uint64)
    per_sample = (count + 3) // 4
    counter = np.empty(sample.shape + (per_sample, 4), dtype=np.uint64)
    counter[..., 0] = np.arange(per_sample, dtype=np.uint64)
    counter[..., 1] = sample[..., None]
    counter[..., 2] = epoch
    counter[..., 3] = stream << 24 | (layer & 0xFFFFFF)
    key = (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)
    return blocks(counter, key).reshape(sample.shape + (per_sample * 4,))[..., :count]


def unit(seed, stream, layer, epoch, sample, count):
    """The same as base_rng_unit of each word: float32 in [0, 1) with 24 bits."""
    drawn = words(seed, stream, layer, epoch, sample, count)
    return (drawn >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def check():
    """The known answers of philox4x32-10 in Random123's kat_vectors."""
    ones = 0xFFFFFFFF
    known = (
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones, ones, ones, ones), (ones, ones), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
         (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    )
    for counter, key, answer in known:
        got = tuple(int(word) for word in blocks(np.array(counter, dtype=np.uint64), key))
        if got != answer:
            raise SystemExit(f"philox.py: counter {counter} key {key} gives {got}, not {answer}")


if __name__ == "__main__":
    check()
    if len(sys.argv) not in (1, 7):
        raise SystemExit("usage: philox.py SEED STREAM LAYER EPOCH SAMPLE COUNT")
    if len(sys.argv) == 7:
        for word in words(*(int(text, 0) for text in sys.argv[1:])):
            print(f"{word:08x}")
