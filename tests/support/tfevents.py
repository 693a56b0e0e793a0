#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Reads what `train --tensorboard` wrote, record by record, and holds it against events.jsonl.

    tfevents.py RUN-FOLDER [--layers LAYER…]

A reader of its own: lengths, both masked CRC32C of every record, and of the protocol buffers all fields that are there."""
import argparse
import json
import pathlib
import struct

TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    TABLE.append(value)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at:at + 8]), f"{path}: the length at {at}"
        body = data[at + 12:at + 12 + length]
        assert len(body) == length and struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc(body), f"{path}: record at {at}"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message: integers, doubles, floats, bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "a field goes beyond its message"
        else:
            form, size = {1: ("<d", 8), 5: ("<f", 4)}[key & 7]
            value, at = struct.unpack_from(form, data, at)[0], at + size
        yield key >> 3, value


def events(folder):
    """Of all files in the order of their names: (step, wall time, values by tag, restart); each file begins with its version."""
    for path in sorted(folder.glob("events.out.tfevents.*")):
        first = True
        for record in records(path):
            event = dict(fields(record))
            if first:
                assert event[3] == b"brain.Event:2", f"{path} begins with {event}"
                first = False
                continue
            values = {}
            for _, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                values[value[1].decode()] = value.get(2, value.get(5))
            yield event[2], event[1], values, dict(fields(event[7])).get(1) == 1 if 7 in event else False
        assert not first, f"{path} is empty"


def single(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def series(folder):
    """Steps and values of every tag as TensorBoard shows them: a restart voids what it repeats."""
    found, last = {}, 0
    for step, when, values, restarts in events(folder):
        assert when >= last, "times go back"
        last = when
        if restarts:
            found = {tag: {s: v for s, v in points.items() if s < step} for tag, points in found.items()}
        for tag, value in values.items():
            assert step not in found.setdefault(tag, {}), f"{tag} has step {step} twice"
            found[tag][step] = value
    return found


def histogram(value):
    h = dict(fields(value))
    return h, [x for (x,) in struct.iter_unpack("<d", h[6])], [x for (x,) in struct.iter_unpack("<d", h[7])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--layers", nargs="*", default=[])
    args = parser.parse_args()
    told = [json.loads(line) for line in open(args.run / "events.jsonl")]
    found = series(args.run / "tensorboard/scalars")
    steps = {e["step"]: e for e in told if e["event"] == "step"} # the newest of each
    assert found["loss/train"] == {s: single(e["loss"]) for s, e in steps.items()}, "losses"
    assert found["learning_rate"] == {s: single(e["lr"]) for s, e in steps.items()}, "learning rates"
    assert found["accuracy/train"] == {s: single(e["correct"] / e["samples"]) for s, e in steps.items()}, "accuracies"
    assert set(found["samples_per_second"]) == set(steps), "rates"
    epochs = {e["step"]: e for e in told if e["event"] == "epoch"}
    for tag, key in (("loss/validation", "validation_loss"), ("accuracy/validation", "validation_accuracy"), ("accuracy/test", "test_accuracy")):
        want = {s: e[key] for s, e in epochs.items() if e[key] is not None}
        assert set(found.get(tag, {})) == set(want), f"{tag}: {found.get(tag)} and {want}"
        assert all(abs(found[tag][s] - v) < 1e-5 for s, v in want.items()), tag
    if args.layers:
        drawn = series(args.run / "tensorboard/histograms")
        assert set(drawn) == {f"activations/{layer}" for layer in args.layers}, set(drawn)
    for e in told:
        if e["event"] == "activations":
            h, limits, buckets = histogram(drawn[f"activations/{e['layer']}"][e["step"]])
            assert buckets == e["histogram"] and sum(buckets) == h[3] and limits == sorted(limits), e
            assert abs(h[1] - e["low"]) < 1e-6 and abs(h[2] - e["high"]) < 1e-6 and limits[-1] == h[2], e
            assert abs(h[4] / h[3] - e["mean"]) < 1e-6, e
    print(sum(len(points) for points in found.values()))


if __name__ == "__main__":
    main()
