#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forms as curl, browsers and Python's requests send them, into the folder argv[1]."""
import os
import sys


def write(name, kind, body):
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(kind.encode() + b"\n" + body)


def part(boundary, head, data):
    return b"--" + boundary + b"\r\n" + head + b"\r\n\r\n" + data + b"\r\n"


IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(40))
CURL = b"------------------------d74496d66958873e"
FILE = b'Content-Disposition: form-data; name="data"; filename="image.png"\r\nContent-Type: image/png'
NOTE = b'Content-Disposition: form-data; name="note"'
write("curl", "multipart/form-data; boundary=" + CURL.decode(),
      part(CURL, FILE, IMAGE) + b"--" + CURL + b"--\r\n")
write("two", "multipart/form-data; boundary=XyZ",
      part(b"XyZ", NOTE, b"hello") + part(b"XyZ", FILE, IMAGE) + b"--XyZ--\r\n")
write("quoted", 'Multipart/Form-Data; charset=utf-8; boundary="a b"; x=y',
      b"preamble\r\n" + part(b"a b", b"Content-Disposition: form-data; name=data; x=y", b"[1,2]") + b"--a b--")
write("bare", "multipart/form-data; boundary=q", b"--q\r\n\r\nbytes\r\n--q--")
write("empty", "multipart/form-data; boundary=q", b"--q--\r\n")
write("glued", "multipart/form-data; boundary=q", b"--qx\r\n\r\nbytes\r\n--q--")
write("cut", "multipart/form-data; boundary=q", b"--q\r\nContent-Type: image/png\r\n")
write("none", "multipart/form-data", b"")
write("long", "multipart/form-data; boundary=" + "b" * 80, b"")
