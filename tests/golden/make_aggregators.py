#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/aggregators.txt: the rules of --aggregate that compare workers' updates, by
their definitions in double precision and on the updates themselves, where the program works on
distances alone.

    make_aggregators.py [FOLDER]      default: beside this script

Update r of n is 2u-1 of (seed, TEST, layer 5, sample r), the last f of them (a case's `bad`) plus 1.5;
it was computed from 50 + 10r samples and is r % 3 == 2 rounds late. The manager trusts update 1.
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
import philox  # noqa: E402

SEED, COUNT = 20190, 37
CASES = [  # text, updates, of which bad ones
    ("krum", 10, 3), ("krum:f=1", 10, 0), ("krum", 4, 0), ("multi-krum", 10, 3), ("multi-krum:f=2,keep=5", 11, 2),
    ("bulyan", 11, 2), ("bulyan:f=1", 12, 1), ("geometric-median", 10, 0), ("geometric-median", 9, 4),
    ("centered-clipping", 10, 0), ("centered-clipping", 9, 4), ("mixed", 10, 2), ("mixed:rule=median", 9, 3),
    ("mixed:rule=geometric-median,f=3", 10, 3), ("mixed:rule=krum,f=2", 10, 2), ("mixed:rule=multi-krum", 10, 3), ("mixed:rule=bulyan", 11, 2),
    ("mixed:rule=average", 6, 0), ("fltrust", 10, 3), ("fltrust", 4, 0),
]


def update(r, shift):
    u = philox.unit(SEED, philox.TEST, 5, 0, r, COUNT)
    return (np.float32(2) * u - np.float32(1) + np.float32(shift)).astype(np.float64)


def nearest(x, i):
    """Rows in the order of their distance from row i, itself first."""
    order = np.argsort(np.linalg.norm(x - x[i], axis=1), kind="stable")
    return np.array([i] + [j for j in order if j != i])


def krum_scores(x, f):
    wanted = max(1, len(x) - f - 2)
    return np.array([sum(np.linalg.norm(x[i] - x[j]) ** 2 for j in nearest(x, i)[1:wanted + 1])
                     for i in range(len(x))])


def krum_f(n, f, part=2):
    most = max(0, (n - 3) // part)
    return min(f, most) if f else most


def krum(x, a, f=0):
    return x[np.argmin(krum_scores(x, krum_f(len(x), f)))]


def multi_krum(x, a, f=0, keep=0):
    f = krum_f(len(x), f)
    chosen = np.argsort(krum_scores(x, f))[:min(keep or len(x), len(x) - f)]
    return np.average(x[chosen], axis=0, weights=a[chosen])


def bulyan(x, a, f=0):
    f = krum_f(len(x), f, 4)
    chosen = x[np.argsort(krum_scores(x, f))[:len(x) - 2 * f]]
    off = np.abs(chosen - np.median(chosen, axis=0))
    wanted = np.argsort(off, axis=0)[:len(chosen) - 2 * f]
    return np.take_along_axis(chosen, wanted, axis=0).mean(axis=0)


def geometric_median(x, a):
    """By so many steps of Weiszfeld from the mean that it stands still."""
    z = np.average(x, axis=0, weights=a)
    for _ in range(20000):
        z = np.average(x, axis=0, weights=a / np.maximum(np.linalg.norm(x - z, axis=1), 1e-12))
    return z


def centered_clipping(x, a):
    """From the mean of the half around the row in the midst, 20 times."""
    half = len(x) // 2
    midst = min(range(len(x)), key=lambda i: np.linalg.norm(x[i] - x[nearest(x, i)[half]]))
    first = nearest(x, midst)[:half + 1]
    v = np.average(x[first], axis=0, weights=a[first])
    for _ in range(20):
        off = np.linalg.norm(x - v, axis=1)
        radius = np.sort(off)[len(x) // 2]
        v = v + ((a / a.sum() * np.minimum(1, radius / off))[:, None] * (x - v)).sum(axis=0)
    return v


def fltrust(x, a):
    """By cosines with update 1, all with its length."""
    lengths = np.linalg.norm(x, axis=1)
    trust = np.maximum(x @ x[1] / lengths / lengths[1], 0)
    return (trust[:, None] * x / lengths[:, None]).sum(axis=0) * lengths[1] / trust.sum()


def trimmed_mean(x, a):
    cut = min(int(np.ceil(0.2 * len(x))), (len(x) - 1) // 2)
    return np.sort(x, axis=0)[cut:len(x) - cut].mean(axis=0)


RULES = {"fltrust": fltrust, "krum": krum, "multi-krum": multi_krum, "bulyan": bulyan, "geometric-median": geometric_median,
         "centered-clipping": centered_clipping, "median": lambda x, a: np.median(x, axis=0),
         "trimmed-mean": trimmed_mean, "average": lambda x, a: np.average(x, axis=0, weights=a)}
TOLERATES = {"krum": lambda n: krum_f(n, 0), "multi-krum": lambda n: krum_f(n, 0), "bulyan": lambda n: krum_f(n, 0, 4),
             "average": lambda n: 0,
             "trimmed-mean": lambda n: min(int(np.ceil(0.2 * n)), (n - 1) // 2)}


def mixed(x, a, rule="trimmed-mean", f=0):
    most = TOLERATES.get(rule, lambda n: (n - 1) // 2)(len(x))
    f = min(f, most) if f else most
    return RULES[rule](np.array([x[nearest(x, i)[:len(x) - f]].mean(axis=0) for i in range(len(x))]), a)


def golden(text, n, bad):
    name, _, given = text.partition(":")
    options = dict(o.split("=") for o in given.split(",") if o)
    options = {k: v if k == "rule" else int(v) for k, v in options.items()}
    x = np.array([update(r, 1.5 if r >= n - bad else 0) for r in range(n)])
    a = np.array([(50 + 10 * r) / (2 if r % 3 == 2 else 1) for r in range(n)])
    y = (mixed if name == "mixed" else RULES[name])(x, a, **options)
    return [f"case {text} {n} {bad}", " ".join(f"{v:.9g}" for v in y)]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    philox.check()
    lines = ["# What aggregators make of updates of 37 values, in double precision. Made by make_aggregators.py,",
             "# which says what the updates are; read by aggregators_test.c.", f"seed {SEED}"]
    for case in CASES:
        lines += golden(*case)
    (folder / "aggregators.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
