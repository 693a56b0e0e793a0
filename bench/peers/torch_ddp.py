#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One rank of PyTorch's DistributedDataParallel over gloo, driven by bench/ddp.py.

    torch_ddp.py RANK SIZE FOLDER MODEL BATCH nchw|channels_last SOCKET

Ranks meet through a file in FOLDER. Each connects to the Unix socket and gets lines `steps COUNT`:
training steps on one random batch, one thread; rank 0 answers {"seconds": [of each]}. The end of
the socket is the end of the program. Gradients are views of the buckets and batch-norm statistics
stay apart, as paceline has it: both save PyTorch time."""
import json
import os
import pathlib
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from torch_models import CLASSES  # noqa: E402


class Trainer:
    def __init__(self, model, batch, layout):
        form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
        self.x = (torch.rand(batch, 3, 32, 32) * 2 - 1).to(memory_format=form)
        self.y = torch.randint(0, 10, (batch,))
        self.net = DistributedDataParallel(CLASSES[model]().to(memory_format=form),
                                           broadcast_buffers=False, gradient_as_bucket_view=True)
        self.optimiser = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9,
                                         weight_decay=1e-4)

    def step(self):
        began = time.perf_counter()
        self.optimiser.zero_grad()
        torch.nn.functional.cross_entropy(self.net(self.x), self.y).backward()
        self.optimiser.step()
        return time.perf_counter() - began


def main():
    rank, size, folder, model, batch, layout, path = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{layout}", rank=int(rank),
                            world_size=int(size))
    trainer = Trainer(model, int(batch), layout)
    driver = socket.socket(socket.AF_UNIX)
    driver.connect(path)
    orders = driver.makefile("rw")
    for line in orders:
        seconds = [trainer.step() for _ in range(int(line.split()[1]))]
        if rank == "0":
            orders.write(json.dumps({"seconds": seconds}) + "\n")
            orders.flush()
    os._exit(0)  # gloo's destructor waits for ranks that are gone


main()
