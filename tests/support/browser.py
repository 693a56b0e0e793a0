# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through chromedriver by the WebDriver protocol: what a test of a page
needs of it, with nothing but Python's library. Each one has a profile of its own, which is removed."""
import base64
import json
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars"]
PATIENCE = 120  # seconds: a watchdog, not a measure

# The file comes as it would from the desktop: an event with a DataTransfer that holds it.
DROP = """
const [selector, name, type, text] = arguments, bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
const data = new DataTransfer(), target = document.querySelector(selector);
data.items.add(new File([bytes], name, {type}));
for (const kind of ["dragenter", "dragover", "drop"])
  target.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
"""


class Browser:
    def __init__(self, *flags, javascript=True):
        self.profile = tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise SystemExit("chromedriver did not start")
        self.root = f"http://127.0.0.1:{found[1]}/session"
        options = {"args": [*FLAGS, *flags, f"--user-data-dir={self.profile.name}"]}
        if not javascript:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        self.session = None
        self.session = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.session:
            self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait(timeout=PATIENCE)
        self.profile.cleanup()

    def call(self, method, path, body=None):
        """One command of the protocol; its value."""
        address = self.root + (f"/{self.session}" if self.session else "") + path
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {json.load(error)['value']['message']}") from error

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, expression):
        """Until the expression is true in the page; its value."""
        until = time.monotonic() + PATIENCE
        while not (value := self.run(f"return {expression}")):
            if time.monotonic() > until:
                raise SystemExit(f"the page never came to: {expression}\n" + self.run("return document.body.innerText"))
            time.sleep(0.05)
        return value

    def drop(self, selector, path, kind="image/png"):
        path = pathlib.Path(path)
        self.run(DROP, selector, path.name, kind, base64.b64encode(path.read_bytes()).decode())

    def choose(self, selector, path):
        """A file, as through the dialog that an <input type=file> opens."""
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{next(iter(element.values()))}/value", {"text": str(pathlib.Path(path).resolve())})

    def resize(self, width, height):
        self.call("POST", "/window/rect", {"width": width, "height": height})

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self):
        """What the browser has logged since the last time: scripts that failed, what a policy forbade."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]
