#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables of scikit-learn's own sets, and scikit-learn's models of them to compare with.

    tables.py write NAME FOLDER           FOLDER/train.csv and test.csv (a quarter of the rows)
    tables.py lda FOLDER CHECKPOINT [S]   the checkpoint is LinearDiscriminantAnalysis of shrinkage S
    tables.py score FOLDER                prints what scikit-learn scores on test.csv: the accuracy of
                                          logistic regression, or R2 of least squares
    tables.py images FOLDER               digits as images in idx files; prints the accuracy of
                                          LinearDiscriminantAnalysis
"""
import csv
import json
import os
import struct
import sys
import warnings

import numpy as np
from sklearn import datasets, discriminant_analysis, linear_model, model_selection, preprocessing

warnings.filterwarnings("ignore")


def write(name, folder):
    data = getattr(datasets, "load_" + name)()
    names = [str(n) for n in getattr(data, "feature_names", [])]
    classes = getattr(data, "target_names", None)
    kinds = [str(classes[t]) for t in data.target] if name != "diabetes" else [repr(t) for t in data.target]
    rows = [[repr(float(v)) for v in x] + [k] for x, k in zip(data.data, kinds)]
    stratify = kinds if name != "diabetes" else None
    parts = model_selection.train_test_split(rows, test_size=0.25, random_state=3, stratify=stratify)
    os.makedirs(folder, exist_ok=True)
    for part, content in zip(("train", "test"), parts):
        with open(os.path.join(folder, part + ".csv"), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names + ["kind"])
            writer.writerows(content)


def read(folder, part):
    with open(os.path.join(folder, part + ".csv"), newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(v) for v in r[:-1]] for r in rows]), np.array([r[-1] for r in rows])


def tensors(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        body = file.read()
    return {name: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def lda(folder, checkpoint, shrinkage=0.001):
    """Predictions and probabilities, of the checkpoint as its own manifest says to read rows."""
    with open(os.path.join(checkpoint, "manifest.json")) as file:
        manifest = json.load(file)
    columns = manifest["table"]["columns"]
    weights = tensors(os.path.join(checkpoint, "model.safetensors"))
    (w,) = [t for n, t in weights.items() if n.endswith("weight")]
    (b,) = [t for n, t in weights.items() if n.endswith("bias")]
    (x, y), (x_test, y_test) = read(folder, "train"), read(folder, "test")
    scaler = preprocessing.StandardScaler().fit(x)
    assert np.allclose(scaler.mean_, [c["mean"] for c in columns], rtol=1e-12, atol=1e-12)
    assert np.allclose(scaler.scale_, [c["deviation"] for c in columns], rtol=1e-9)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=float(shrinkage))
    theirs.fit(scaler.transform(x), y)
    order = [list(theirs.classes_).index(label) for label in manifest["labels"]]
    p = theirs.predict_proba(scaler.transform(x_test))[:, order]
    inputs = (x_test - [c["mean"] for c in columns]) / [c["deviation"] for c in columns]
    q = softmax(inputs.astype(np.float32) @ w.T + b)
    print("%s: probabilities differ by %.2g at most" % (folder, abs(p - q).max()))
    assert (p.argmax(axis=1) == q.argmax(axis=1)).all(), "predictions differ"
    assert abs(p - q).max() < 1e-3


def score(folder):
    (x, y), (x_test, y_test) = read(folder, "train"), read(folder, "test")
    scaler = preprocessing.StandardScaler().fit(x)
    try:
        y, y_test = y.astype(float), y_test.astype(float)
        model = linear_model.LinearRegression()
    except ValueError:
        model = linear_model.LogisticRegression(max_iter=1000)
    print(model.fit(scaler.transform(x), y).score(scaler.transform(x_test), y_test))


def images(folder):
    data = datasets.load_digits()
    x, x_test, y, y_test = model_selection.train_test_split(
        data.images.astype(np.uint8) * 15, data.target, test_size=0.25, random_state=3)
    os.makedirs(folder)
    for part, pixels, labels in (("train", x, y), ("t10k", x_test, y_test)):
        with open(os.path.join(folder, part + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">4I", 0x803, *pixels.shape) + pixels.tobytes())
        with open(os.path.join(folder, part + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">2I", 0x801, len(labels)) + labels.astype(np.uint8).tobytes())
    model = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.001)
    flat = lambda a: a.reshape(len(a), -1).astype(float)
    print(model.fit(flat(x), y).score(flat(x_test), y_test))


{"write": write, "lda": lda, "score": score, "images": images}[sys.argv[1]](*sys.argv[2:])
