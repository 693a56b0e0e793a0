#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Uses the page of a running server as a person would, in a headless Chromium.

    page.py ADDRESS MODEL OTHER IMAGE BAD     drop, choose, change the model, drop what is no image
    page.py ADDRESS MODEL OTHER IMAGE BAD --token TOKEN
    page.py ADDRESS MODEL OTHER IMAGE BAD --picture FILE [--dark]     also keeps a picture

Answers in the page must be those of a request without it, digit for digit."""
import argparse
import json
import urllib.error
import urllib.request

import browser


def ask(args, model):
    """What the server says without the page: (label, probability) from the best on."""
    headers = {"Authorization": f"Bearer {args.token}"} if args.token else {}
    with open(args.image, "rb") as file:
        request = urllib.request.Request(f"{args.address}/predictions/{model}", file.read(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return list(json.load(answer).items())


def need(right, what):
    if not right:
        raise SystemExit(f"FAILED: {what}")


def answered(page, number):
    """Waits for the answer to the page's question of that number and reads it from its lines."""
    page.wait(f"document.getElementById('result').dataset.answers === '{number}'")
    return [(line["label"], float(line["value"])) for line in page.run(
        "return [...document.querySelectorAll('#answer li')].map(li => ({...li.dataset}))")]


def text(page, selector):
    return page.run("return document.querySelector(arguments[0]).innerText", selector)


def use(page, args):
    page.open(args.address + "/")
    if args.token:
        page.wait("!document.getElementById('token-form').hidden")
        need("token" in text(page, "#state"), "the page does not ask for the token")
        page.run("document.getElementById('token').value = arguments[0]; "
                 "document.getElementById('token-form').requestSubmit()", args.token)
    page.wait("document.getElementById('model').options.length === 2")
    page.run("const m = document.getElementById('model'); m.value = arguments[0]; "
             "m.dispatchEvent(new Event('change'))", args.model)
    need(f"/predictions/{args.model} -T" in text(page, "#curl"), "the page tells no curl line of the model")

    page.drop("#drop", args.image)
    seen, told = answered(page, 1), ask(args, args.model)
    need(seen == told, f"dropped: the page shows {seen}, the server says {told}")
    need(len(seen) == min(5, len(told)) and seen[0][0] in text(page, "#answer"), "the best class is not shown")
    page.choose("#file", args.image)
    need(answered(page, 2) == told, "a chosen file has another answer than a dropped one")
    page.run("const m = document.getElementById('model'); m.value = arguments[0]; "
             "m.dispatchEvent(new Event('change'))", args.other)
    seen, other = answered(page, 3), ask(args, args.other)
    need(seen == other and seen != told, f"the other model: the page shows {seen}, the server says {other}")

    page.drop("#drop", args.bad)
    need(answered(page, 4) == [], "what is no image has classes")
    need(len(text(page, "#note")) > 10, "the page does not say what is wrong with a file")
    page.drop("#drop", args.image)
    need(answered(page, 5) == other, "the page does not recover from a bad file")
    page.wait("Number(document.getElementById('rate').innerText) > 0")
    page.wait("parseFloat(document.getElementById('p50').innerText) > 0")
    page.wait("parseFloat(document.getElementById('p99').innerText) > 0")

    # The refusals of the bad file and of a missing token are the only things that a browser logs.
    wrong = [c for c in page.complaints() if "status of 400" not in c]
    need(not wrong, f"the browser complains: {wrong}")
    # A script that a label brought in would run nothing: the policy forbids it.
    page.run("const s = document.createElement('script'); s.textContent = 'document.title = \"stolen\"'; "
             "document.body.append(s)")
    need(page.run("return document.title") == "paceline serve", "the page runs foreign scripts")
    need(any("Content Security Policy" in c for c in page.complaints()), "no policy forbids foreign scripts")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("address", "model", "other", "image", "bad"):
        parser.add_argument(name)
    parser.add_argument("--token")
    parser.add_argument("--picture")
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    with browser.Browser(*(["--blink-settings=preferredColorScheme=0"] if args.dark else [])) as page:
        page.resize(1000, 860)
        use(page, args)
        if args.picture:
            page.picture(args.picture)
    with browser.Browser(javascript=False) as page:
        page.open(args.address + "/")
        seen = page.call("POST", "/element", {"using": "css selector", "value": "body"})
        words = page.call("GET", f"/element/{next(iter(seen.values()))}/text")
        need("curl http" in words and "/predictions/" in words, f"without JavaScript the page says: {words}")
        need("Drop an image" not in words, "without JavaScript the page promises what it cannot do")


if __name__ == "__main__":
    main()
