#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions to a rating model: lists, pairs, new users, several at once, and some that are wrong."""
import json
import os
import sys

RATINGS = [{"item": 318, "rating": 5}, {"item": "1", "rating": 2.5}, {"item": "nix", "rating": 1}]
for name, value in {
        "list": {"user": 1, "n": 3, "least": 0}, "usual": {"user": "40"}, "pair": {"user": "2", "item": 318},
        "strangers": {"user": "nix", "item": "nix"}, "new": {"ratings": RATINGS, "n": 10},
        "again": {"ratings": RATINGS + RATINGS, "item": 2},
        "more": {"user": 1, "ratings": RATINGS, "explain": True, "exclude": [1, "500", "nix"]},
        "several": [{"user": 1}, {"user": 2, "item": 3, "explain": True}],
        "instances": {"instances": [{"user": 1, "n": 1}]}, "no-user": {}, "bad-n": {"user": 1, "n": 0},
        "bad-id": {"user": []}, "no-question": [1], "bad-ratings": {"ratings": 7},
        "bad-rating": {"ratings": [{"item": 1}]}, "high": {"ratings": [{"item": 1, "rating": 9}]},
        "bad-exclude": {"user": 1, "exclude": 7}, "many": [{"user": 1, "n": 1}] * 65,
        "explained": {"user": 1, "n": 21, "explain": True}}.items():
    with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as f:
        json.dump(value, f)
