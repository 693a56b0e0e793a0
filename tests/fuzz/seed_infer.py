#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests of the Open Inference Protocol for a model of 1x2x2 values, into the folder argv[1]."""
import json
import os
import sys


def write(name, body):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(body)


ONE = [1, 2.5, -3e2, 0]

def infer(shape, datatype, data):
    return json.dumps({"id": "7", "inputs": [{"name": "input", "shape": shape, "datatype": datatype, "data": data}],
                       "outputs": [{"name": "output"}]}).encode()


write("plain", infer([1, 1, 2, 2], "FP32", ONE))
write("flat", infer([2, 4], "FP64", [ONE, ONE]))
write("pixels", infer([1, 4], "UINT8", [0, 1, 254, 255]))
write("no-pixels", infer([1, 4], "UINT8", [0, 1, 254, 256]))
write("type", infer([1, 4], "BYTES", ONE))
write("shape", infer([4, 1], "FP32", ONE))
write("rank", infer([1, 1, 2, 2, 1, 1], "FP32", ONE))
write("none", b'{"inputs":[]}')
