#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A model of the zoo with weights that PyTorch starts and running statistics that are not those of
a start, as a safetensors file and as an ONNX file that gives probabilities.

    torch_onnx.py MODEL WEIGHTS.safetensors MODEL.onnx
"""
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import safetensors  # noqa: E402
from torch_models import CLASSES  # noqa: E402

name, weights, onnx = sys.argv[1:]
torch.manual_seed(1)
net = CLASSES[name]().eval()
for module in net.modules():
    if isinstance(module, torch.nn.BatchNorm2d):
        module.running_mean.uniform_(-0.2, 0.2)
        module.running_var.uniform_(0.5, 1.5)
safetensors.save(weights, {key: value.numpy() for key, value in net.state_dict().items()})
torch.onnx.export(torch.nn.Sequential(net, torch.nn.Softmax(1)), torch.zeros(1, 3, 32, 32), onnx,
                  opset_version=14, input_names=["x"], output_names=["y"],
                  dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
