# SPDX-License-Identifier: MIT
"""What the programs of bench/ share: how sides take turns, what is said of the rounds, where
results go."""
import json
import pathlib
import statistics
import subprocess
import sys
import time

PYTHON = "/usr/bin/python3"  # Debian's, which has PyTorch
PAUSE = 0.02  # seconds between turns, in which the other side's waiting threads go to sleep


def need_torch():
    """Ends the program where there is no PyTorch to compare with."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        print("skipped: no PyTorch (tools/deps test installs it)")
        sys.exit(0)


def take_turns(sides, rounds):
    """sides: name → function without arguments. What each of them gave, a dict a round; every
    round begins with another side."""
    names = list(sides)
    rows = []
    for number in range(rounds):
        first = number % len(names)
        rows.append({name: sides[name]() for name in names[first:] + names[:first]})
    return rows


class Paced:
    """A program that works once for each line it is sent, or as often as the line says, and answers
    with lines of JSON, which say by which clocks how long it took; a line about itself comes first.
    What it does after a pause takes longer, so that it is asked for bursts, of which the first answer
    does not count."""

    BURST = 0.3  # seconds
    COUNTS = False  # a line is a number, and the answers come after the last

    def __init__(self, command, most, clock="seconds"):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = json.loads(self.process.stdout.readline())
        self.most, self.clock, self.count = most, clock, 1
        self.last = None  # its latest answer

    def answers(self, count):
        """So many, without a pause between them."""
        self.process.stdin.write(f"{count}\n" if self.COUNTS else count * "\n")
        self.process.stdin.flush()
        answers = [json.loads(self.process.stdout.readline()) for _ in range(count)]
        self.last = answers[-1]
        return answers

    def seconds(self, count):
        return [answer[self.clock] for answer in self.answers(count)]

    def prepare(self):
        """First answers, for which things are set up, and how many make a burst."""
        self.count = max(1, min(self.most, round(self.BURST / min(self.seconds(3)))))

    def burst(self):
        """Median seconds of an answer."""
        time.sleep(PAUSE)
        return statistics.median(self.seconds(1 + self.count)[1:])

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def race(sides, rounds):
    """Bursts of programs (name → Paced) in turns, a dict a round; then the programs end."""
    for side in sides.values():
        side.prepare()
    rows = take_turns({name: side.burst for name, side in sides.items()}, rounds)
    for side in sides.values():
        side.close()
    return rows


def chosen(only, cases):
    """The cases of --only MODEL:NUMBER:NUMBER, or all."""
    return [(m, int(a), int(b)) for m, a, b in (text.split(":") for text in only)] if only else cases


def spread(values):
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else 3 * list(values)
    return {"median": statistics.median(values), "quartiles": [quartiles[0], quartiles[2]]}


def show(spread, unit="x", digits=2):
    low, high = spread["quartiles"]
    return f"**{spread['median']:.{digits}f}{unit}** ({low:.{digits}f} – {high:.{digits}f})"


def add_options(parser):
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)


def write(args, *tables):
    """A table is (head, row, results): its first lines, what makes a line of one result, these."""
    if args.json:
        found = [result for _, _, results in tables for result in results]
        args.json.write_text(json.dumps({"schema": 1, "results": found}, indent=1) + "\n")
    if args.table:
        texts = ["\n".join([head, *map(row, results)]) for head, row, results in tables]
        args.table.write_text("\n\n".join(texts) + "\n")
