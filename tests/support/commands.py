#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whether the command lines in documents are ones that the program takes: the command, every option with or without
its value, and how many other words there may be, as the command's own --help says. Nothing is run but --help.

    commands.py PACELINE FILE…

Of a document the indented lines and fenced blocks (not of C) are read, of any other file all lines but comments; a command
line begins with `paceline` or a path to it, after a prompt or words such as `srun`, but not after another program of ours. `…`,
and what a pipe, a redirection or a comment begins, end it. `unknown` in the answer that follows marks a line that is wrong on
purpose."""
import functools
import pathlib
import re
import shlex
import subprocess
import sys

LINE = re.compile(r"(?:^|[\s(])(?:\S*/)?paceline\s+(?=[a-z-])(.*)")
END = re.compile(r"^(#.*|[|&;]+|\d?[<>].*|…|\.\.\.|\)|do|done)$")


@functools.cache
def known(program, command):
    """Names of the options, each with whether it takes a value."""
    said = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=False)
    if said.returncode:
        return None
    options = {"--help": False}
    for names, words in re.findall(r"^  (--[a-z][\w-]*)((?: \S+)?)", said.stdout, re.M):
        options[names] = bool(words)
    for line in said.stdout.splitlines():
        for alias in re.findall(r"\(also (--[\w-]+)\)", line):
            options[alias] = options[re.match(r"\s+(--[\w-]+)", line)[1]]
    return options


def words_of(text):
    """The words of a command line up to its end."""
    text = re.sub(r"\$\(\(?[^()]*\)?\)", "X", text)
    text = re.sub(r"\s#\s.*", "", text)
    text = re.sub(r"\s\[[^\]]*\]", "", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    for word in lexer:
        if END.match(word):
            break
        words.append(word.rstrip(",."))
    return words


def complaint(program, words):
    command, *rest = words
    if command in ("--version", "--help"):
        return None
    options = known(program, command)
    if options is None:
        return f"there is no command {command}"
    if command == "lab" and rest[:1] in (["sweep"], ["lr"]): # of trainings
        options = known(program, "train") | options
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            continue
        name, has, _ = word.replace("_", "-").partition("=")
        if name.startswith("--no-") and name not in options:
            name = "--" + name[5:]
            if not options.get(name, True):
                continue
        if name not in options:
            return f"{command} has no option {name}"
        if options[name] and not has:
            if not rest or rest[0].startswith("--"):
                return f"{command} {name} lacks its value"
            rest.pop(0)
        elif has and not options[name]:
            return f"{command} {name} takes no value"
    return None


def lines_of(path):
    """Command lines with their numbers; continued lines are one. Of a document, those of its examples."""
    fenced, number, text = "", 0, path.read_text().splitlines()
    while number < len(text):
        line, first = text[number], number + 1
        number += 1
        if line.lstrip().startswith("```"):
            fenced = "" if fenced else line.strip()
            continue
        if fenced.startswith("```c") or line.lstrip().startswith("#") or path.suffix == ".md" and not (fenced or line.startswith("    ")):
            continue
        while line.endswith("\\") and number < len(text):
            line, number = line[:-1] + " " + text[number].strip(), number + 1
        after = text[number] if number < len(text) else ""
        if re.search(r"\bunknown\b", after) or line.lstrip().startswith("paceline:"):
            continue
        yield first, line


def main():
    program, *files = sys.argv[1:]
    wrong, seen = [], 0
    for path in map(pathlib.Path, files):
        for number, line in lines_of(path):
            found = LINE.search(line)
            if not found or re.search(r"\.(py|sh)\b", line[:found.start(1)]):
                continue
            try:
                words = words_of(found[1])
            except ValueError as error:
                wrong.append(f"{path}:{number}: {error}: {line.strip()}")
                continue
            seen += bool(words)
            if words and (problem := complaint(program, words)):
                wrong.append(f"{path}:{number}: {problem}: {line.strip()}")
    print(f"{seen} command lines")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
