#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One rank of gloo (torch.distributed), driven by bench/collectives.py.

    gloo.py RANK SIZE FOLDER SOCKET

Ranks meet through a file in FOLDER. Each connects to the Unix socket and gets lines `time private
BYTES COUNT`: after one all-reduce to warm up, COUNT of them are timed between barriers; rank 0
answers {"seconds"} of one. The end of the socket is the end of the program."""
import json
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

MOST = 256 << 20


def main():
    rank, size, folder, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank, world_size=size)
    buffer = torch.zeros(MOST // 4)
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(path)
    orders = driver.makefile("rw")
    for line in orders:
        _, _, count, times = line.split()
        x = buffer[:int(count) // 4]
        dist.all_reduce(x)
        dist.barrier()
        start = time.monotonic()
        for _ in range(int(times)):
            dist.all_reduce(x)
        dist.barrier()
        if rank == 0:
            seconds = (time.monotonic() - start) / int(times)
            orders.write(json.dumps({"seconds": seconds}) + "\n")
            orders.flush()
    os._exit(0)  # its destructor waits for ranks that are gone


main()
