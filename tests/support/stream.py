#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One plain TCP stream between two hosts.

    stream.py receive PORT             says {"ready":true}, then serves every connection
    stream.py send ADDRESS PORT BYTES [--rounds N | --paced] [--warm BYTES]

The receiver answers every message (8 bytes of length, then so many) with the CRC32 of what came.
The sender prints for each round {"bytes","seconds","ok"}: from the first byte until the answer.
--paced: a round for each line of standard input. --warm: before it so many bytes that are not timed:
after a rest a connection begins slowly.
Congestion control is cubic, as paceline's own: BBR, a default of some systems, is slower here."""
import argparse
import json
import socket
import struct
import sys
import threading
import time
import zlib

TCP_CONGESTION = 13


def parts(sock, count):
    while count > 0:
        data = sock.recv(min(count, 1 << 18))
        if not data:
            raise ConnectionError("the other side closed the connection")
        count -= len(data)
        yield data


def exactly(sock, count):
    return b"".join(parts(sock, count))


def tune(sock):
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def answer(sock):
    tune(sock)
    try:
        while True:
            crc = 0
            for data in parts(sock, struct.unpack("<Q", exactly(sock, 8))[0]):
                crc = zlib.crc32(data, crc)
            sock.sendall(struct.pack("<I", crc))
    except OSError:
        sock.close()


def receive(port):
    server = socket.create_server(("0.0.0.0", port))
    print(json.dumps({"ready": True}), flush=True)
    while True:
        threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()


def deliver(sock, data):
    """Seconds until the answer, and whether it is right."""
    crc = zlib.crc32(data)
    start = time.monotonic()
    sock.sendall(struct.pack("<Q", len(data)))
    sock.sendall(data)
    told = struct.unpack("<I", exactly(sock, 4))[0]
    return time.monotonic() - start, told == crc


def send(address, port, count, turns, warm):
    sock = socket.create_connection((address, port), timeout=10)
    tune(sock)
    data = b"paceline" * (count // 8)
    for _ in turns:
        if warm > 0:
            deliver(sock, b"paceline" * (warm // 8))
        seconds, ok = deliver(sock, data)
        print(json.dumps({"bytes": len(data), "seconds": seconds, "ok": ok}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["receive", "send"])
    parser.add_argument("place", nargs="+")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--warm", type=int, default=0)
    args = parser.parse_args()
    if args.what == "receive":
        receive(int(args.place[0]))
    send(args.place[0], int(args.place[1]), int(args.place[2]),
         sys.stdin if args.paced else range(args.rounds), args.warm)


if __name__ == "__main__":
    main()
