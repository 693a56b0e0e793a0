#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Texts of ratings into the folder argv[1]; the first byte of each chooses the options of the target."""
import os
import sys

rows = [(u * 37 % 11 + 1, i * 53 % 97, (u + i) % 9 / 2 + 0.5, 964982703 + u * 1000 + i)
        for u in range(5) for i in range(6)]
names = "userId,movieId,rating,timestamp\n"


def lines(separator, form="%d{0}%d{0}%.1f{0}%d\n"):
    return "".join(form.format(separator) % row for row in rows)


netflix = "7:\n12,3,2005-09-06\n3,5,2005-09-07\n9:\n3,1,2000-01-01\n12,2,2001-02-28\n"
texts = {
    "csv": (0, names + lines(",")),
    "strict": (32, names + lines(",")),
    "crlf": (0, (names + lines(",")).replace("\n", "\r\n")),
    "semicolons": (0, '\ufeff"User-ID";"ISBN";"Book-Rating"\n"276725";"034545104X";"0"\n"9";"a b";"10"\n'),
    "dat": (0, lines("::")),
    "dat3": (0, "1::2::3\n2::1::4\n"),
    "tab": (0, lines("\t", "%d{0}%d{0}%d{0}%d\n")),
    "netflix": (0, netflix),
    "headings": (0, "1:\nx:\n5,4,2005-01-01\n2:\n5,4,2005-01-01\n2:\n5,4,2005-01-01\n6,1,2005-13-01\n"),
    "texts": (0, "user,item,rating\nann,x,1\nbob,é,2\nann,007,3\n12345678901,x,4\n"),
    "floats": (0, "user,item,score\n" + "".join("%d,%d,%.3f\n" % (i % 7, i, i / 7 - 9) for i in range(300))),
    "again": (0, names + lines(",") + lines(",") + "1,1,nan,1\n1,2\n,1,2,3\n\"1,1,1,1\n1,1,1,never\n"),
    "dates": (0, "user,item,rating,date\n1,1,5,2005-09-06 12:30:01\n1,2,5,2005-09-06T12:30Z\n2,1,4,964982703000\n"),
    "columns": (2, lines("|")),
    "titled": (2, "who,what,how,when\n" + lines(",")),
    "pairs": (3, "7 ann\n8   bob\n"),
    "mixed": (4, "x,ann,7,100,4\ny,bob,8,101,1e1\n"),
    "twice": (5, "1,2,3\n"),
    "unnamed": (6, "1\n"),
    "arrows": (2 | 8, lines("=>")),
    "blanks": (7 | 16, "1 2 3\n 4  5\t6 \n"),
    "none": (7 | 24, "1,2,3\n"),
    "large": (0, names + "".join("%d,%d,%d,%d\n" % (i % 3, i * 7919 % 20011, i % 5, i) for i in range(300))),
    "wide": (0, "user,item,rating," + "x," * 80 + "\n1,2,3\n"),
    "few": (0, "user,item,rating\n1,2,x\n1,3\n1,4,5\n"),
    "empty": (0, names),
    "table": (0, "a,b,c\n1,2,3\n"),
    "blocks": (64, names + lines(",")),
    "blocks of texts": (64, "user,item,rating\nann,x,1\nbob,é,2\nann,007,3\n"),
    "blocks of headings": (64, "7,1,2000-01-01\n" + netflix + "x:\n5,4,2005-01-01\n2:\n5,4,2005-01-01\n"),
    "blocks of columns": (64 | 2, lines("|")),
    "added": (128, names + lines(",") + "\x1e" + "9::9::3::964982703\n8::8::2::964982704\n"),
    "added without times": (128, names + lines(",") + "\x1e" + "9::9::3\n"),
    "added nothing": (128, names + lines(",")),
    "added pairs": (128 | 3, "7 ann\n8 bob\n\x1e9 eve\n"),
    "folder of csv": (192, names + lines(",")),
    "folder of dat": (193, lines("::")),
    "folder of tab": (194, lines("\t", "%d{0}%d{0}%d{0}%d\n")),
    "folder of combined": (195, netflix),
    "folder of movies": (196, netflix),
    "folder in it": (197, netflix),
    "folder of csv in it": (198 | 32, names + lines(",")),
    "folder of notes": (199, names + lines(",")),
}
for name, (option, text) in texts.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(bytes([option]) + text.encode())
with open(os.path.join(sys.argv[1], "latin"), "wb") as f:
    f.write(b"\0user,item,rating\n1,caf\xe9,3\n1,\0,4\n1,2,5\n2,2,5\n3,2,1\n")
