#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets of requests that the server answers, and one of each kind that it refuses."""
import os
import sys

TARGETS = [
    "/", "/ping", "/predictions/vgg", "/predictions/vgg/1.0", "/invocations?model_name=vgg",
    "/models?limit=10&next_page_token=10", "/models/vgg/all", "/models/vgg/2.0/set-default",
    "/models?url=vgg&model_name=my%20model&batch_size=8&max_batch_delay=50&initial_workers=1&synchronous=true",
    "/v1/models/vgg:predict", "/v2/models/vgg/versions/1.0/infer", "/metrics?name[]=CPUUtilization&x",
    "/a%2Fb/c+d?e+f=g%26h", "/a/../b", "/%2e%2e/x", "/%zz", "/a%00b", "http://host/x", "/?a=%0a",
    "/" + "a/" * 20, "/?" + "a=1&" * 40, "/./x", "//x//",
]
for i, target in enumerate(TARGETS):
    with open(os.path.join(sys.argv[1], f"target-{i}"), "w", encoding="ascii") as f:
        f.write(target)
