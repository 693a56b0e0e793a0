# SPDX-License-Identifier: MIT
"""Reads and writes safetensors files with numpy alone (Debian's python3-numpy).

    load(path) -> {name: array}      refuses what src/store/safetensors.c refuses
    save(path, {name: array})        tensors in the order of the dict, data at a multiple of 64

Run as a program it lists a file: /usr/bin/python3 tools/safetensors.py FILE
"""
import json
import os
import struct
import sys

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "U32": "<u4", "U8": "u1"}
METADATA = "__metadata__"
MAX_HEADER = 64 << 20


def _unique(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name occurs twice in the header")
    return result


def load(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack_from("<Q", raw) if len(raw) >= 8 else (MAX_HEADER + 1,)
    if length > min(MAX_HEADER, len(raw) - 8):
        raise ValueError(f"{path} is not a safetensors file, or is cut off")
    header = json.loads(raw[8 : 8 + length].decode("utf-8"), object_pairs_hook=_unique)
    header.pop(METADATA, None)
    data = memoryview(raw)[8 + length :]
    tensors, at = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in TYPES:
            raise ValueError(f"{path}: tensor '{name}': type {entry['dtype']} is not supported")
        dtype = np.dtype(TYPES[entry["dtype"]])
        count = 1
        for size in entry["shape"]:
            count *= size
        if begin != at or end > len(data) or end - begin != count * dtype.itemsize:
            raise ValueError(f"{path}: tensor '{name}': its place does not fit its shape and the others")
        tensors[name] = np.frombuffer(data, dtype, count, begin).reshape(entry["shape"]).copy()
        at = end
    if at != len(data):
        raise ValueError(f"{path}: {len(data) - at} bytes belong to no tensor")
    return tensors


def save(path, tensors):
    names = {np.dtype(text): name for name, text in TYPES.items()}
    header, arrays, at = {METADATA: {"format": "pt"}}, [], 0
    for name, array in tensors.items():
        array = np.asarray(array)
        if array.dtype not in names:
            raise ValueError(f"tensor '{name}': type {array.dtype} is not supported; known: {', '.join(TYPES)}")
        if name in header:
            raise ValueError(f"'{name}' is not a name for a tensor")
        header[name] = {
            "dtype": names[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        arrays.append(array)
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-(len(text) + 8) % 64)
    temporary = f"{path}.tmp-{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in arrays:
                file.write(array.tobytes())  # row-major, whatever the array's strides
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


if __name__ == "__main__":
    for key, value in load(sys.argv[1]).items():
        print(f"{key}\t{value.dtype}\t{'x'.join(map(str, value.shape)) or 'scalar'}")
