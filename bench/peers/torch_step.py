#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""PyTorch's side of bench/engine.py: a training step for each line of standard input, answered by
a JSON line, as `paceline bench step --paced` does.

    torch_step.py MODEL BATCH THREADS nchw|channels_last
"""
import json
import pathlib
import resource
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from torch_models import CLASSES  # noqa: E402

model, batch, threads, layout = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(threads)
torch.manual_seed(1)
net = CLASSES[model](**({"dropout": 0.25} if model == "mnist-cnn" else {}))
x = torch.rand(batch, *((1, 28, 28) if model == "mnist-cnn" else (3, 32, 32))) * 2 - 1
y = torch.randint(0, 10, (batch,))
if layout == "channels_last":
    net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
loss_of = torch.nn.CrossEntropyLoss()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


print(json.dumps({"ready": True, "peak_memory_bytes": peak()}), flush=True)
for _ in sys.stdin:
    began = time.perf_counter()
    optimiser.zero_grad(set_to_none=True)
    loss = loss_of(net(x), y)
    loss.backward()
    optimiser.step()
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "loss": float(loss), "peak_memory_bytes": peak()}),
          flush=True)
