#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes valid model texts into the folder given."""
import pathlib
import sys

MODELS = {
    "linear": "input 1x28x28\nclasses 10\ndense classes\n",
    "cnn": "input 1x28x28\nclasses 10\nconv 32 3x3 name=conv1\nrelu\nconv 64 3x3\nrelu\n"
           "maxpool 2\ndropout 0.25\ndense 128 name=fc1\nrelu\ndropout .5\ndense classes\nsoftmax\n",
    "bn": "# a comment\ninput 3x32x32\nconv 8 3x3 pad=1 bias=off\nbn eps=1e-3 momentum=.2\nrelu\n"
          "avgpool 3x3 stride=2 pad=1\ngavgpool\nflatten\ndense 4 bias=off\nmse\n",
    "residual": "input 8x8x8\nsave a\nconv 8 3x3 pad=1\nbn\nrelu\nadd a\nsave b\n"
                "conv 16 3x3 stride=2 pad=1x1\nsave c\nload b\nconv 16 1x1 stride=2x2 groups=4\n"
                "add c\nrelu\nflatten\ndense 3\n",
    "vector": "input 12\nclasses 3\nflatten\ndense 9\nbn\nrelu\ndropout 0\ndense 3\n",
    "many": "input 4x1x1\n" + "relu\n" * 40 + "\r\n\t# end\ndense 2\n",
    "wrong-shape": "input 3x8x8\nsave a\nmaxpool 2\nadd a\ndense 2\n",
    "wrong-load": "input 3x8x8\nsave a\nrelu\nload a\ndense 2\n",
    "wrong-name": "input 3x8x8\ndense 3 name=a\ndense 3 name=a\n",
    "wrong-word": "input 3x8x8\nconv 8 3x3 pda=1\n",
    "unused": "input 3x8x8\nsave a\ndense 3\n",
    "large": "input 3x1024x1024\nconv 1048576 1x1\ngavgpool\ndense 2\n",
    "weights": "input 3x8x8\nconv 1048576 1x1\nconv 1048576 1x1\ngavgpool\ndense 2\n",
}

folder = pathlib.Path(sys.argv[1])
for name, text in MODELS.items():
    (folder / name).write_text(text)
