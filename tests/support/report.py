#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Opens pages of `paceline report` in a headless Chromium and holds what they show against run.json.

    report.py PAGE=RUN.JSON …                one page a run; PAGE alone: only that it fits and logs nothing
    report.py PAGE… --pictures FOLDER        also keeps pictures of it, light and dark

At 400, 800 and 1600 pixels nothing may be wider than the window, and nothing of a picture outside of it."""
import argparse
import json
import pathlib

import browser

WIDTHS = (400, 800, 1600)
# Text of a picture that leaves it, by more than a letter's edge.
OUTSIDE = """
return [...document.querySelectorAll("svg text")].filter(text => {
  const own = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
  return own.width && (own.left < all.left - 2 || own.right > all.right + 2 || own.top < all.top - 2 || own.bottom > all.bottom + 2);
}).map(text => text.textContent)
"""


def need(right, what):
    if not right:
        raise SystemExit(f"FAILED: {what}")


def shown(page, key):
    return page.run("const e = document.querySelector(`[data-key='${arguments[0]}']`); return e && e.innerText", key)


def number(text):
    return float(text.replace(",", "").split()[0])


def resize(page, width, height):
    """Like a telephone's, a window may be narrower than a desktop allows."""
    page.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}})


def fits(page, path):
    page.run("for (const d of document.querySelectorAll('details')) d.open = true")
    for width in WIDTHS:
        resize(page, width, 900)
        wide = page.run("return document.documentElement.scrollWidth")
        need(wide <= width, f"{path} is {wide} pixels wide in a window of {width}")
        need(not (out := page.run(OUTSIDE)), f"{path}: outside of their pictures at {width}: {out}")


def judge(page, path, run):
    result = run["result"]
    for part, key in (("test", "rmse"), ("test", "mae"), ("test", "r2"), ("test", "loss"), ("train", "loss")):
        value, text = (result[part] or {}).get(key), shown(page, f"{part}.{key}")
        need(value is None or number(text) == round(value, 4), f"{path}: {part}.{key} is {text}, not {value}")
    accuracy = (result["test"] or {}).get("accuracy")
    if accuracy is not None:
        need(shown(page, "test.accuracy") == f"{100 * accuracy:.2f} %", f"{path}: accuracy {shown(page, 'test.accuracy')}")
    for key in ("steps", "workers"):
        need(number(shown(page, key)) == result[key], f"{path}: {key} is {shown(page, key)}")
    need(number(shown(page, "samples_per_second")) == round(result["samples_per_second"]), f"{path}: samples a second")
    need(page.run("return document.querySelector('h1').innerText") == run["name"], f"{path}: the name")
    bars = page.run("return [...document.querySelectorAll(`[data-card=time] rect title`)].map(t => t.textContent)")
    told = {tuple(bar.rsplit(" ", 1)) for bar in bars}
    for rank in result["ranks"]:
        for category in ("compute", "communicate", "data", "wait", "stolen"):
            if rank[category] > 0:
                need((f"rank {rank['rank']}: {category}", f"{rank[category]:.4g}") in told, f"{path}: {category} in {told}")
    confusion = (result["test"] or {}).get("confusion")
    if confusion:
        cells = page.run("return [...document.querySelectorAll(`[data-card=confusion] rect title`)].map(t => t.textContent)")
        seen = [int(cell.rsplit(" ", 1)[1]) for cell in cells]
        need(seen == [count for row in confusion for count in row], f"{path}: confusion {seen}")
    need(page.run("return document.querySelectorAll('[data-card=epochs] tbody tr').length") == len(run["epochs"]),
         f"{path}: the table of epochs")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--pictures")
    args = parser.parse_args()
    for dark in (False, True):
        with browser.Browser(*(["--blink-settings=preferredColorScheme=0"] if dark else [])) as page:
            for given in args.pages:
                path, _, run = given.partition("=")
                page.open(pathlib.Path(path).resolve().as_uri())
                if args.pictures:
                    for width in WIDTHS:
                        resize(page, width, 300)
                        resize(page, width, page.run("return document.documentElement.scrollHeight"))
                        page.picture(f"{args.pictures}/{pathlib.Path(path).stem}-{width}{'-dark' if dark else ''}.png")
                fits(page, path)
                if run:
                    judge(page, path, json.loads(pathlib.Path(run).read_text()))
                need(not (complaints := page.complaints()), f"{path}: the browser says {complaints}")
                wanted = "rgb(17, 20, 24)" if dark else "rgb(246, 247, 249)"
                need(page.run("return getComputedStyle(document.body).backgroundColor") == wanted, f"{path}: colours")


if __name__ == "__main__":
    main()
