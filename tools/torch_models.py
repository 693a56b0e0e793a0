# SPDX-License-Identifier: MIT
"""The zoo's networks in PyTorch, with the names of our tensors: what golden tests and benchmarks
compare with. ReLU works in place, as a careful PyTorch user would have it."""
import torch
from torch import nn
from torch.nn import functional as F


def relu(x):
    return F.relu(x, inplace=True)


class MnistCnn(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(relu(self.conv2(relu(self.conv1(x)))), 2)
        x = F.dropout(x, self.dropout, self.training)
        return self.fc2(relu(self.fc1(torch.flatten(x, 1))))


class Vgg11(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for width in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(True)]
            channels = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(512, 10)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False),
                                          nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(y + self.shortcut(x))


class Resnet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for number, width in enumerate((64, 128, 256, 512), 1):
            stage = nn.Sequential(Block(channels, width, 1 if number == 1 else 2),
                                  Block(width, width, 1))
            setattr(self, f"layer{number}", stage)
            channels = width
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        x = relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.linear(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


CLASSES = {"mnist-cnn": MnistCnn, "vgg11": Vgg11, "resnet18": Resnet18}
