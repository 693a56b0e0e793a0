#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests over HTTP, good ones and one of each kind that is refused, into the folder argv[1]."""
import os
import sys

HEAD = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
FORM = ('--q\r\nContent-Disposition: form-data; name="data"; filename="a.png"\r\n'
        "Content-Type: image/png\r\n\r\nbytes\r\n--q--\r\n")
REQUESTS = {
    "ping": f"GET /ping {HEAD}\r\n",
    "head": f"HEAD /ping {HEAD}\r\n",
    "predict": f"POST /predictions/vgg {HEAD}Content-Length: 5\r\n\r\nhello",
    "version": f"PUT /predictions/vgg/1.0?x=1 {HEAD}Content-Length: 0\r\n\r\n",
    "v1": f"POST /v1/vgg:predict {HEAD}Content-Length: 2\r\n\r\n[]",
    "chunked": f"POST /predictions/vgg {HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "expect": f"PUT /predictions/vgg {HEAD}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "form": f"POST /predictions/vgg {HEAD}Content-Type: multipart/form-data; boundary=q\r\n"
            f"Content-Length: {len(FORM)}\r\n\r\n{FORM}",
    "bad-form": f"POST /predictions/vgg {HEAD}Content-Type: multipart/form-data; boundary=q\r\nContent-Length: 1\r\n\r\nx",
    "two": "GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\nGET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "smuggle": f"POST /predictions/vgg {HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "lengths": f"POST /predictions/vgg {HEAD}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "encoding": f"POST /predictions/vgg {HEAD}Transfer-Encoding: gzip\r\n\r\n",
    "foreign": "GET /ping HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "origin": f"GET /ping {HEAD}Origin: http://evil.example\r\n\r\n",
    "same-origin": f"GET /ping {HEAD}Origin: http://localhost\r\n\r\n",
    "large": f"POST /predictions/vgg {HEAD}Content-Length: 2500\r\n\r\n" + "x" * 2500,
    "huge": f"POST /predictions/vgg {HEAD}Content-Length: 99999999999\r\n\r\n",
    "dots": f"GET /predictions/../ping {HEAD}\r\n",
    "unknown": f"GET /nothing {HEAD}\r\n",
    "method": f"DELETE /ping {HEAD}\r\n",
    "parameters": f"PUT /s/.0?1{'&' * 700}\x01\x7f%&= {HEAD}\r\n",  # more than libmicrohttpd takes: it refuses by itself
    "token": f"GET /ping {HEAD}Authorization: Bearer x\r\n\r\n",
    "cut": "GET /pi",
}
for name, text in REQUESTS.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(text.encode())
