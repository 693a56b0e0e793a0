#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables into the folder argv[1]; the first byte of each chooses the options of the target."""
import os
import sys

head = "a,b,c,d\n"
rows = "".join("%d,%s,%g,%d\n" % (i, ("red", "blue", "NA")[i % 3], i / 7, i % 2) for i in range(24))
tables = {
    "plain": head + rows,
    "headless": rows,
    "crlf": (head + rows).replace("\n", "\r\n"),
    "semicolons": (head + rows).replace(",", ";"),
    "tabs": (head + rows).replace(",", "\t"),
    "mark": "\ufeff" + head + rows,
    "quotes": head + '"1","x ""y""\nz",2,"0"\n"2",",",3,1\n' * 6,
    "missing": head + ",,,1\nNA,?,null,0\n1,x,nan,1\n" * 4,
    "bad": head + '1,2\n"open,2\n"a"b,c\n1,2,3,4,5\n' + rows,
    "names": head + "".join("person %d,%d,,%d\n" % (i, i, i * i) for i in range(40)),
    "many": "a,b\n" + "".join("x%d,%d\n" % (i, i) for i in range(1100)),
    "classes": "b,a\n" + "".join("%d,x%d\n" % (i, i) for i in range(1100)),
    "wide": ",".join("c%d" % i for i in range(300)) + "\n" + ",".join("1" * 300) + "\n",
    "one": "a,d\n1,x\n2,x\n",
    "empty": head,
}
for name, text in tables.items():
    for option in (0, 3, 7):
        with open(os.path.join(sys.argv[1], "%s%d" % (name, option)), "wb") as f:
            f.write(bytes([option]) + text.encode())
with open(os.path.join(sys.argv[1], "latin"), "wb") as f:
    f.write(b"\0" + head.encode() + "1,caf\xe9,2,0\n".encode("latin1") + b"1,\0,2,1\n" + rows.encode())
