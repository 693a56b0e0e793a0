#!/usr/bin/env bash
# The page at `GET /` in a headless Chromium: an image that is dropped gets the answer that curl gets.
source "$(dirname "$0")/../support/dist.bash"
command -v chromedriver >/dev/null || { echo "skipped: no chromedriver (tools/deps test installs it)" && exit 77; }

cat >use.py <<'PY'
import json, pathlib, subprocess, sys, urllib.request
root, program = sys.argv[1:]
sys.path.insert(0, root + "/tools")
import served

served.make_set("set")
for name, seed in (("one", 3), ("two", 4)):
    served.train(program, "runs", name, "--model", "mlp:8x1", "--data", "set", "--batch", 4, "--threads", 1,
                 "--epochs", 3, "--lr", 0.05, "--seed", seed)
pathlib.Path("bad.png").write_bytes(served.square(8, 20)[:50])
page = [root + "/tests/support/page.py"]
given = ["one", "two", "set/test/bee/1.png", "bad.png"]
with served.Served(program, ".", "--model", "one=runs/one", "--model", "two=runs/two") as server:
    for options in ([], ["--dark"]):
        subprocess.run([*page, server.inference, *given, *options], check=True, timeout=500)

    # Nothing of it comes from elsewhere, and pages of elsewhere cannot use it.
    status, text, headers = server.ask("GET", "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8", (status, headers)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy, policy
    links = [part for part in text.split('"') if part.startswith(("http:", "https:", "//"))]
    assert not links, links
    assert server.ask("GET", "/", headers={"Host": "evil.example"})[0] == 403
    assert server.ask("POST", "/")[0] == 405
    with urllib.request.urlopen(server.inference + "/live", timeout=60) as events:
        line = events.readline()
    models = json.loads(line.removeprefix(b"data: "))["models"]
    assert [m["name"] for m in models] == ["one", "two"], line
    assert models[0]["input"] == [1, 8, 8] and models[0]["outputs"] == 3 and models[0]["requests"] > 0, line

# With a token the page asks for it.
subprocess.run([program, "token", "token"], check=True, stdout=subprocess.DEVNULL)
token = pathlib.Path("token").read_text().strip()
with served.Served(program, ".", "--model", "one=runs/one", "--model", "two=runs/two", "--token-file", "token") as server:
    subprocess.run([*page, server.inference, *given, "--token", token], check=True, timeout=500)
    assert server.ask("GET", "/")[0] == 200
    assert server.ask("GET", "/live")[0] == 400
PY
timeout 550 /usr/bin/python3 use.py "$root" "$paceline" || fail "the page"

# Where others could reach the server, the page is not there. A namespace keeps the others away.
cat >elsewhere.py <<'PY'
import sys
sys.path.insert(0, sys.argv[1] + "/tools")
import served

with served.Served(sys.argv[2], ".", "--model", "one=runs/one", "--host", "0.0.0.0", "--token-file", "token",
                   "--management-token-file", "other.token") as server:
    token = {"Authorization": "Bearer " + open("token").read().strip()}
    for headers in ({}, token):
        status, text, _ = server.ask("GET", "/", headers=headers)
        assert status == 405 and "<html" not in str(text), (status, text)
    assert server.ask("GET", "/ping")[0] == 200
PY
expect 0 "$paceline" token other.token
if unshare -rn true 2>/dev/null; then
    timeout 120 unshare -rn bash -c 'ip link set lo up && exec "$@"' - /usr/bin/python3 elsewhere.py "$root" "$paceline" ||
        fail "the page beyond loopback"
fi
