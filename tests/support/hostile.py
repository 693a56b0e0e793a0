# SPDX-License-Identifier: MIT
"""What clients should not send: requests that are not HTTP or tell their length twice, paths that
lead elsewhere, files that are no images or claim to be enormous. Each list holds (name, what)."""
import random
import struct
import zlib

import served

HEAD = b"POST /predictions/own HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PING = b"GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def framing(body):
    """Requests whose end two readers could see at different places; and lengths that are none."""
    two = b"Content-Length: %d\r\n" % len(body)
    chunked = b"Transfer-Encoding: chunked\r\n"
    smuggled = b"0\r\n\r\n" + PING
    return [
        ("two lengths", HEAD + two + b"Content-Length: 4\r\n\r\n" + body),
        ("the same length twice", HEAD + two + two + b"\r\n" + body),
        ("a list of lengths", HEAD + b"Content-Length: 5, 5\r\n\r\n" + body),
        ("length and chunked", HEAD + b"Content-Length: %d\r\n" % len(smuggled) + chunked + b"\r\n" + smuggled),
        ("chunked and length", HEAD + chunked + b"Content-Length: 4\r\n\r\n" + smuggled),
        ("two encodings", HEAD + chunked + b"Transfer-Encoding: identity\r\n\r\n" + smuggled),
        ("chunked, gzip", HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n" + smuggled),
        ("gzip", HEAD + b"Transfer-Encoding: gzip\r\n\r\n" + smuggled),
        ("xchunked", HEAD + b"Transfer-Encoding: xchunked\r\n\r\n" + smuggled),
        ("length -1", HEAD + b"Content-Length: -1\r\n\r\n" + body),
        ("length +5", HEAD + b"Content-Length: +5\r\n\r\n" + body),
        ("length 0x10", HEAD + b"Content-Length: 0x10\r\n\r\n" + body),
        ("length five", HEAD + b"Content-Length: five\r\n\r\n" + body),
        ("length of 30 digits", HEAD + b"Content-Length: " + 30 * b"9" + b"\r\n\r\n" + body),
        ("chunk of -1", HEAD + chunked + b"\r\n-1\r\nabc\r\n0\r\n\r\n"),
        ("chunk of 2^64", HEAD + chunked + b"\r\n10000000000000000\r\nabc\r\n0\r\n\r\n"),
        ("chunk without a number", HEAD + chunked + b"\r\n\r\nabc\r\n0\r\n\r\n"),
        ("chunk that goes on", HEAD + chunked + b"\r\n3\r\nabcdef\r\n0\r\n\r\n"),
    ]


def not_http():
    noise = random.Random(5)
    return [
        ("nothing", b""),
        ("empty lines", 2000 * b"\r\n"),
        ("zeros", 4096 * b"\0"),
        ("noise", noise.randbytes(65536)),
        ("a TLS greeting", bytes.fromhex("16030100c8010000c40303") + noise.randbytes(193)),
        ("an SSH greeting", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
        ("a Redis command", b"*1\r\n$8\r\nFLUSHALL\r\n"),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("HTTP/9.9", b"GET /ping HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n"),
        ("a version that is none", b"GET /ping HTTP/x\r\nHost: 127.0.0.1\r\n\r\n"),
        ("no path", b"GET  HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        ("a line alone", 30000 * b"A"),
        ("no host", b"POST /predictions/own HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]"),
        ("a header without a colon", b"POST /predictions/own HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n"),
        ("space in a header's name", HEAD + b"Content-Length : 2\r\n\r\n[]"),
        ("a zero in a header", HEAD + b"X: a\0b\r\nContent-Length: 2\r\n\r\n[]"),
        ("a folded header", HEAD + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n[]"),
        ("10,000 headers", HEAD + b"".join(b"X-%d: y\r\n" % i for i in range(10000)) + b"\r\n"),
        ("a header of a megabyte", HEAD + b"X: " + (1 << 20) * b"y" + b"\r\n\r\n"),
        ("an address of a megabyte", b"GET /" + (1 << 20) * b"a" + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        ("1000 parameters", b"GET /ping?" + b"&".join(b"a%d=1" % i for i in range(1000)) +
         b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        ("CONNECT", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        ("TRACE", b"TRACE /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        ("a proxy's request", b"GET http://127.0.0.1:22/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    ]


# Below /predictions/ and as they are.
PATHS = ["..", "../models", "../../etc/passwd", "%2e%2e", "%2e%2e/models", ".%2e/.%2e/etc/passwd",
         "..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c..%5cetc%5cpasswd", "%252e%252e%252fetc",
         "%c0%ae%c0%ae/etc/passwd", "own%2f..%2fown", "own/..", "own/../own", "own%00.png", "%00", "own%0d%0aSet-Cookie:x",
         "own/%2e%2e/%2e%2e/ping", "%", "%zz", "own%", "/etc/passwd", "own;/../x", "~root", "own/1.0/../1.0", "." * 500,
         "a/" * 200, "%2e/own", "./own", "own//1.0"]


def ihdr(width, height, depth=8, colour=2):
    return served.chunk(b"IHDR", struct.pack(">2I5B", width, height, depth, colour, 0, 0, 0))


def jpeg(width, height, scans=0):
    """A JPEG's header and nothing after it, or as many empty progressive scans."""
    table = bytes(64 * [1])
    text = b"\xff\xd8\xff\xdb\0\x43\0" + table
    text += b"\xff" + (b"\xc2" if scans else b"\xc0") + b"\0\x0b\x08" + struct.pack(">2H", height, width) + b"\1\1\x11\0"
    text += b"\xff\xc4\0\x14\0" + bytes([1] + 15 * [0] + [0])
    for _ in range(scans):
        text += b"\xff\xda\0\x08\1\1\0\0\0\0" + b"\0"
    return text + b"\xff\xd9"


def images():
    """All must be refused. A bomb is small and would be large."""
    sign, end = b"\x89PNG\r\n\x1a\n", served.chunk(b"IEND", b"")
    data = served.chunk(b"IDAT", zlib.compress(bytes(1000)))
    sound = served.square(64, 99)
    bomb = zlib.compress(bytes(200 << 20), 9)
    found = [(f"a PNG cut at {len(sound) * i // 16}", sound[:len(sound) * i // 16]) for i in range(1, 16)]
    found += [
        ("PNG of 2^31-1 a side", sign + ihdr(2**31 - 1, 2**31 - 1) + data + end),
        ("PNG of 2^32-1 a side", sign + ihdr(2**32 - 1, 2**32 - 1) + data + end),
        ("PNG of 65535 a side, 16 bits", sign + ihdr(65535, 65535, 16, 6) + data + end),
        ("PNG of no size", sign + ihdr(0, 0) + data + end),
        ("PNG 1 x 2^31-1", sign + ihdr(1, 2**31 - 1) + data + end),
        ("PNG of 4096 a side without its data", sign + ihdr(4096, 4096, 16, 6) + data + end),
        ("PNG with 200 MB of zeros as text", sign + ihdr(8, 8, 8, 0) + served.chunk(b"zTXt", b"a\0\0" + bomb) + end),
        ("PNG with 200 MB of zeros as profile", sign + ihdr(8, 8, 8, 0) + served.chunk(b"iCCP", b"a\0\0" + bomb) + end),
        ("PNG whose chunk is 2 GB long", sign + ihdr(8, 8) + b"\x7f\xff\xff\xffIDAT" + data),
        ("PNG with a wrong checksum", sound[:-5] + b"\0" + sound[-4:]),
        ("PNG of 100,000 chunks", sign + ihdr(8, 8) + 100000 * served.chunk(b"tEXt", b"a\0b") + end),
        ("JPEG of 65535 a side", jpeg(65535, 65535)),
        ("JPEG of 4096 a side without its data", jpeg(4096, 4096)),
        ("JPEG of no size", jpeg(0, 0)),
        ("JPEG of 20,000 scans", jpeg(4000, 4000, 20000)),
        ("a JPEG's first bytes", b"\xff\xd8\xff"),
        ("a GIF", b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"),
        ("an SVG", b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>"),
        ("a program", b"\x7fELF" + bytes(100)),
        ("text", b"hello"),
        ("a pickle", b"cos\nsystem\n(S'touch pickled'\ntR."),
    ]
    return found


def documents():
    """(name, Content-Type, body): inputs that are no images and wrong; all must be refused."""
    mark = "multipart/form-data; boundary=b"
    return [
        ("nothing", "image/png", b""),
        ("nothing as JSON", "application/json", b""),
        ("JSON that breaks off", "application/json", b"[1, 2"),
        ("JSON of 100,000 brackets", "application/json", 100000 * b"["),
        ("JSON of 100,000 nested arrays", "application/json", 100000 * b"[" + 100000 * b"]"),
        ("JSON of three million values", "application/json", b"[" + 3000000 * b"0," + b"0]"),
        ("JSON of two million arrays", "application/json", b"[" + 2000000 * b"[]," + b"0]"),
        ("JSON with too few values", "application/json", b"[1, 2, 3]"),
        ("JSON with a huge number", "application/json", b"[" + b"1e999," * 63 + b"1]"),
        ("JSON with a number for a double alone", "application/json", b"[" + b"1e300," * 63 + b"1]"),
        ("JSON with NaN", "application/json", b"[" + b"NaN," * 63 + b"1]"),
        ("JSON with texts", "application/json", b"[" + b'"1",' * 63 + b"1]"),
        ("JSON that is not UTF-8", "application/json", b'{"data": "\xff\xfe"}'),
        ("JSON null", "application/json", b"null"),
        ("JSON true", "application/json", b'{"instances": true}'),
        ("three bytes of floats", "application/octet-stream", b"abc"),
        ("floats of another count", "application/octet-stream", bytes(4 * 63)),
        ("floats that are NaN", "application/octet-stream", 64 * struct.pack("<f", float("nan"))),
        ("a form without a boundary", "multipart/form-data", b"--b\r\n\r\nx\r\n--b--"),
        ("a form with a boundary of 1000", "multipart/form-data; boundary=" + 1000 * "b", b"x"),
        ("a form without an end", mark, b'--b\r\nContent-Disposition: form-data; name="data"\r\n\r\nxx'),
        ("a form without parts", mark, b"--b--\r\n"),
        ("a form of 100,000 parts", mark, 100000 * b"--b\r\n\r\n\r\n" + b"--b--"),
        ("a form without the field", mark,
         b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nxx\r\n--b--\r\n'),
        ("another type", "text/html", b"<p>"),
        ("a type of 4 KB", 4096 * "x", b"<p>"),
    ]
