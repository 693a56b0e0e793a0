#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CIFAR-10 batches of one to three records into the folder argv[1]."""
import os
import sys

for count in (1, 2, 3):
    record = b"".join(bytes([label * 3]) + bytes([label]) * 3072 for label in range(count))
    for name, data in (("batch", record), ("short", record[:-1]), ("label", b"\x0b" + record[1:])):
        with open(os.path.join(sys.argv[1], "%s%d" % (name, count)), "wb") as f:
            f.write(data)
