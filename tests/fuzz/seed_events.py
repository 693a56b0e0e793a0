#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines of events.jsonl and cluster.jsonl, and one of each kind that the reader refuses."""
import os
import sys

LINES = [
    '{"event":"step","step":1,"epoch":1,"loss":1.79,"correct":5,"samples":32,"lr":1e-2,"seconds":0.015}',
    '{"event":"epoch","epoch":4,"step":136,"loss":null,"test_accuracy":0.943333333}',
    '{"event":"view","view":1,"members":[1,2],"roles":[["worker"],["worker"]],"step":0,"seconds":0.19}',
    '{"event":"trace","step":1,"at":1220.7,"spans":[["compute",0.0,7861.4],["wait",1,2,3]]}',
    '{"event":"lost","id":2,"host":0,"reason":"a \\"quoted\\" reason","time":0.6}',
    ' { "event" : "set" , "settings" : {"k":[1,{"]":"}"}]} , "on" : true }\r',
    '{"event":"step","step":', '{"event":7}', '{}', '{"event":"a","b":[}', '{"event":"a"}}', '{"event":"a","b":1e999}',
]
for i, line in enumerate(LINES):
    with open(os.path.join(sys.argv[1], f"line-{i}"), "w", encoding="ascii") as f:
        f.write(line)
