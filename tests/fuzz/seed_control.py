# SPDX-License-Identifier: MIT
"""Writes control frames into the folder argv[1], every type of docs/protocol.md and wrong ones, each
after the byte that fuzz_control.c reads first: where they arrive in two parts. Checksums are not
compared there."""
import json
import os
import struct
import sys

CONTROL = 3


def frame(payload, kind=CONTROL, tag=0, count=None, magic=b"PLF1"):
    return magic + struct.pack("<HHIIQII", kind, 0, 0, tag,
                               len(payload) if count is None else count, 0, 0) + payload


def control(**fields):
    return frame(json.dumps(fields, separators=(",", ":")).encode())


LOAD = {"cpu": 0.97, "memory": 1e9, "load": 2.5, "step_rate": 3.1, "step": -1}
MEMBERS = [{"id": i + 1, "host": i // 2, "slot": i % 2, "address": "10.0.0.2", "port": 4711 + i}
           for i in range(3)]
VIEW = {"number": 2, "members": MEMBERS}
HOSTS = [{"here": i > 0, "port": 4000 + i, "workers": 1, "name": f"h{i}", "address": f"10.0.0.{i + 1}"} for i in range(3)]
STATE = {"term": 1, "serial": 7, "name": "8f2e", "program": "ping", "transport": "", "job": {}, "first_hosts": 3,
         "of_each": 1, "asked": 0, "least": 1, "min_workers": 1, "joins": True, "restarts": False, "folder": False,
         "silence": 10.0, "gather": 120.0, "going_on": True, "stopping": False, "last_id": 9, "leader": 1, "finished": 0,
         "done": [], "done_view": 0, "result_id": 0, "result": None,
         "settings_number": 1, "settings": {"k": "4"}, "view": VIEW, "quorum": [0, 1, 2], "hosts": HOSTS}
REPORT = {"result_id": 0, "result": None,
          "workers": [{"id": 3, "view": 2, "pid": 77, "slot": 1, "port": 4711, "live": True, "ready": True, "done": False,
                       "lost": False}]}
good = {
    "join": dict(host=65535, workers=2, version=1, address="10.0.0.2", port=4711, pid=4711, text="host",
                 body={"program": "ping", "job": {}}),
    "job": dict(id=3, host=1, slot=0, workers=2, body={"name": "8f2e", "transport": None}),
    "ready": dict(id=3, port=4711, slot=1, pid=77),
    "view": dict(members=VIEW),
    "heartbeat": dict(id=3, view=2, roles=3, load=LOAD),
    "suspect": dict(id=3, peer=4, view=2),
    "lost": dict(peer=4, view=2, text="died"),
    "kill": dict(id=4, text="silent"),
    "exited": dict(id=4, pid=78, code=0, signal=9, text="last words"),
    "result": dict(id=3, view=2, body=None),
    "state": dict(body=STATE),
    "report": dict(host=1, term=1, body=REPORT),
    "lead": dict(host=1, term=1),
    "ask": dict(host=1, term=1, state_term=0, serial=7),
    "vote": dict(host=2, term=1, code=0, body=STATE),
    "settings": dict(serial=1, body={"k": "4", "consistency": "asp"}),
    "applied": dict(id=3, serial=1, step=12),
    "figures": dict(id=3, body={"staleness": [4, 2], "reissued": 1}),
    "folder": dict(id=1, text="runs/mine"),
    "region": dict(key="view/2/mail", bytes=4096, code=0, text=""),
    "stop": dict(code=0, text="Ctrl-C"),
    "end": dict(id=0, code=1, text="over"),
}
seeds = {name: control(type=name, **fields) for name, fields in good.items()}
seeds["all"] = b"".join(seeds.values())
wrong = {
    "noview": dict(type="view", members={"number": 0, "members": MEMBERS}),
    "twice": dict(type="view", members={"number": 2, "members": 2 * MEMBERS}),
    "nobody": dict(type="view", members={"number": 2, "members": []}),
    "strings": dict(type="view", members={"number": "2", "members": [1, "x", None]}),
    "host": dict(type="view", members={"number": 2, "members": [{**MEMBERS[0], "host": 70000}]}),
    "address": dict(type="view", members={"number": 2, "members": [{**MEMBERS[0], "address": "x" * 99}]}),
    "load": dict(type="heartbeat", id=3, view=2, roles=1, load={**LOAD, "cpu": -1}),
    "more": dict(type="heartbeat", id=3, view=2, roles=1, load={**LOAD, "more": 1}),
    "unknown": dict(type="reboot", id=1),
    "fewer": dict(type="suspect", id=3),
    "range": dict(type="suspect", id=3, peer=0, view=2),
    "long": dict(type="region", key="k" * 99, bytes=1, code=0, text=""),
    "body": dict(type="result", id=3, body=[]),
    "typeless": dict(id=3),
    "term": dict(type="lead", host=1, term=4001),
    "quorum": dict(type="state", body={**STATE, "quorum": [7]}),
    "reported": dict(type="report", host=1, term=1, body={**REPORT, "workers": 2 * REPORT["workers"]}),
}
seeds.update({f"wrong-{name}": control(**fields) for name, fields in wrong.items()})
seeds.update({
    "list": frame(b"[]"),
    "json": frame(b"{"),
    "data": frame(b"{}", 5),
    "descriptor": frame(b"{}", tag=1),
    "tag": frame(b"{}", tag=2),
    "huge": frame(b"{}", count=(1 << 20) + 1),
    "short": seeds["join"][:50],
    "magic": frame(b"{}", magic=b"GET "),
})
for name, content in seeds.items():
    for cut in 255, 100:
        with open(os.path.join(sys.argv[1], f"{name}-{cut}"), "wb") as file:
            file.write(bytes([cut]) + content)
