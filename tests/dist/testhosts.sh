#!/usr/bin/env bash
# tools/cluster and tools/faultproxy do what later tests rely on: rates, limits that differ and change,
# cut links, each fault, latency, and nothing left behind.
source "$(dirname "$0")/../support/dist.bash"
needs_root

export CLUSTER=hosts$$
timeout 180 "$root/tools/cluster" run 3 --loopback --rate 200mbit --cpu 0.5,none,0.25 --period 20 --memory 200M -- \
    /usr/bin/python3 - "$root" <<'PY' || fail "see above"
import json, select, subprocess, sys, time

root = sys.argv[1]
tool, stream = root + "/tools/cluster", root + "/tests/support/stream.py"


def start(*command, **options):
    return subprocess.Popen([tool, *map(str, command)], stdout=subprocess.PIPE, text=True, **options)


def line(process, seconds):
    """The next line of its output, None: there was none in time."""
    if not select.select([process.stdout], [], [], seconds)[0]:
        return None
    text = process.stdout.readline()
    return json.loads(text) if text else {}


def serve(host):
    process = start("exec", host, stream, "receive", 29500)
    assert line(process, 10) == {"ready": True}


def sender(host, to, count, rounds):
    return start("exec", host, stream, "send", f"127.77.0.{to + 1}", 29500, count, "--rounds", rounds,
                 stderr=subprocess.DEVNULL)


def command(*words):
    subprocess.run([tool, *map(str, words)], check=True)


def moves(process):
    answer = line(process, 10)
    return answer is not None and answer.get("ok") is True


def until(process, seconds, wanted):
    """Whether an answer of this kind is among the next ones."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        answer = line(process, seconds)
        if wanted(answer):
            return True
        if not answer:
            return False
    return False


# The rate holds, for one flow and for two into one host.
serve(1)
flow = sender(0, 1, 5_000_000, 2)
one = [line(flow, 30)["seconds"] for _ in range(2)][1]
assert 0.19 < one < 2, f"5 MB at 200 Mbit/s took {one} s"
begin = time.monotonic()
flows = [sender(0, 1, 5_000_000, 1), sender(2, 1, 5_000_000, 1)]
assert all(moves(f) for f in flows)
both = time.monotonic() - begin
assert both > 0.36, f"two flows of 5 MB into one host at 200 Mbit/s took {both} s"

# A cut host hears nothing; a connection that was open goes on when it is mended.
flow = sender(0, 1, 500_000, 100000)
assert moves(flow)
command("cut", 1)
while line(flow, 0.5) is not None:
    pass
command("mend", 1)
assert moves(flow)
# Two hosts that do not hear each other; both hear the third.
serve(0)
command("cut", 0, 1)
while line(flow, 0.5) is not None:
    pass
assert moves(sender(2, 0, 1000, 1)) and moves(sender(2, 1, 1000, 1))
command("mend", 0, 1)
assert moves(flow)
flow.kill()

# Limits: memory ends a process that takes too much, half a core takes twice the time.
burn = """
import sys, time
while True:
    begin, goal = time.monotonic(), time.process_time() + float(sys.argv[1])
    while time.process_time() < goal:
        pass
    print(time.monotonic() - begin, flush=True)
"""


def python(host, *arguments):
    return start("exec", host, "/usr/bin/python3", "-c", *arguments)


assert python(0, "bytearray(300 << 20)").wait() in (-9, 137)
for host, least in (0, 0.6), (2, 1.2):
    burner = python(host, burn, 0.4)
    took = line(burner, 30)
    assert took > least, f"0.4 s of CPU took {took} s on host {host}"
    burner.kill()

# Limits that change while a program runs there, one on a host that had none.
for host in 0, 1:
    burner = python(host, burn, 0.1)
    line(burner, 30)
    command("limit", host, "--cpu", 0.1)
    assert until(burner, 30, lambda seconds: seconds > 0.7), "the program kept its CPU"
    command("limit", host, "--cpu", "none")
    assert until(burner, 30, lambda seconds: seconds < 0.7), "the program did not get its CPU back"
    burner.kill()
assert python(1, "bytearray(150 << 20)").wait() == 0
command("limit", 1, "--memory", "100M", "--rate", "20mbit")
assert python(1, "bytearray(150 << 20)").wait() in (-9, 137)
took = line(sender(0, 1, 1_000_000, 1), 30)["seconds"]
assert took > 0.25, f"1 MB at 20 Mbit/s took {took} s"
command("limit", 1, "--memory", "200M", "--rate", "200mbit")

# Every fault, when told, at a connection through the proxy.
proxy = start("proxy", "--pause", 0.7, stdin=subprocess.PIPE)
assert line(proxy, 10) == {"ready": True}


def fault(kind, process):
    assert moves(process)
    proxy.stdin.write(f"{kind} 29500\n")
    proxy.stdin.flush()
    happened = line(proxy, 10)
    assert happened["fault"] == kind and happened["to"] == "127.77.0.2:29500", happened


flow = sender(0, 1, 100_000, 1000000)
fault("delay", flow)
assert until(flow, 10, lambda a: a and a["seconds"] > 0.6), "no delay"
fault("flip", flow)  # of the message: a wrong sum; of the answer: the same; of a length: an end
assert until(flow, 5, lambda a: a is None or a == {} or not a["ok"]), "no flipped bit"
flow.kill()
for kind in "reset", "truncate":
    flow = sender(0, 1, 100_000, 1000000)
    fault(kind, flow)
    assert until(flow, 5, lambda a: a == {}), f"the connection outlived {kind}"
flow = sender(0, 1, 100_000, 1000000)
fault("stall", flow)
assert until(flow, 1, lambda a: a is None) and flow.poll() is None, "no stall"
flow.kill()
proxy.stdin.write("lose\n")
proxy.stdin.flush()
assert until(sender(0, 1, 100_000, 1000000), 10, lambda a: a == {}), "no lost connection"
assert moves(sender(0, 1, 100_000, 1))
proxy.terminate()
assert proxy.wait(10) == 0
# Latency: there and back again is twice that, and 20 MB are not eighty times that.
proxy = start("proxy", "--latency", 400, "--no-input")
assert line(proxy, 10) == {"ready": True}
for size in 1000, 20_000_000:
    answer = line(sender(0, 1, size, 1), 30)
    assert answer["ok"] and answer["seconds"] >= 0.8, answer
proxy.terminate()
assert proxy.wait(10) == 0
# With the proxy gone, there is no answer on the way.
assert line(sender(0, 1, 1000, 1), 15) == {}
PY

left=$(ls -d /run/netns/paceline-"$CLUSTER"-* /run/paceline-clusters/"$CLUSTER" \
    /sys/fs/cgroup/*/paceline-"$CLUSTER"-* 2>/dev/null)
[ -z "$left" ] || fail "left behind: $left"

# Bad arguments leave nothing behind either, and say what is wrong.
for bad in 'up' 'up 0' 'up 2 --rate fast' 'up 2 --memory lots' 'up 2 --cpu -1' 'up 2 --cpu 1,1,1' 'up 2 --cpu 1,' \
    'up 2 --cpu 1 --period 0' 'up 2 --period 10' 'up 2 --cpu 0.1 --period 5' 'up 2 --cpu' 'exec 0 true' 'cut 0' \
    'limit 0 --cpu 1' 'proxy'; do
    # shellcheck disable=SC2086
    expect 1 "$root/tools/cluster" $bad
    says 'tools/cluster'
    [ ! -e "/run/paceline-clusters/$CLUSTER" ] || fail "'$bad' left a cluster behind"
done
"$root/tools/cluster" up 1
for bad in 'limit' 'limit 0' 'limit 1 --cpu 1' 'limit 0 --cpu 1,2' 'limit 0 --rate fast' 'limit 0 --loopback'; do
    # shellcheck disable=SC2086
    expect 1 "$root/tools/cluster" $bad
    says 'tools/cluster'
done
"$root/tools/cluster" down
for bad in -1 61000 nan soon; do
    expect 2 "$root/tools/faultproxy" --listen 127.0.0.1:0 --to 127.0.0.1:1 --latency "$bad"
    says '--latency'
done
