"""What the tests of the node agent share: pods in a few words, waiting with the real kubectl, and a runner.

    @check
    def a_pod_runs(c):
        c.create(pod("hello", "echo hello"))
        c.phase("hello", "Succeeded")

    run(lambda: Muster(nodes=3))
"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from checks import Checks

checks = []


def check(function):
    checks.append(function)
    return function


def pod(name, script=None, **spec):
    container = {"name": "main", "image": "busybox:1.36"}
    if script is not None:
        container["command"] = ["sh", "-c", script]
    container.update(spec.pop("container", {}))
    body = {"restartPolicy": "Never", "containers": [container]}
    metadata = {"name": name, **spec.pop("metadata", {})}
    body.update(spec)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


class Cluster:
    def __init__(self, muster):
        self.muster = muster

    def create(self, *objects):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.muster.kubectl("create", "-f", "-", input=text)

    def get(self, kind, name):
        return json.loads(self.muster.kubectl("get", kind, name, "-o", "json").stdout)

    def wait(self, name, condition, timeout=40, what=""):
        deadline = time.monotonic() + timeout
        while True:
            done = self.muster.kubectl("get", "pod", name, "-o", "json", check=False)
            now = json.loads(done.stdout) if done.returncode == 0 else None
            if condition(now):
                return now
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"pod {name}: {what or 'condition'} not met in {timeout} s; last seen: "
                    + json.dumps((now or {}).get("status"), indent=1)
                )
            time.sleep(0.05)

    def phase(self, name, *phases, timeout=40):
        return self.wait(name, lambda p: p and p["status"].get("phase") in phases, timeout, f"phase {phases}")

    def running(self, name, timeout=40):
        return self.wait(
            name,
            lambda p: p
            and p["status"].get("containerStatuses")
            and all("running" in c["state"] for c in p["status"]["containerStatuses"]),
            timeout,
            "running",
        )

    def ready(self, name, timeout=40):
        return self.wait(
            name,
            lambda p: p
            and any(c["type"] == "Ready" and c["status"] == "True" for c in p["status"].get("conditions", [])),
            timeout,
            "ready",
        )

    def gone(self, name, timeout=40):
        return self.wait(name, lambda p: p is None, timeout, "gone")

    def logs(self, *args):
        return self.muster.kubectl("logs", *args).stdout

    def events(self, name):
        items = json.loads(
            self.muster.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json").stdout
        )["items"]
        return [(e["type"], e["reason"], e["message"]) for e in items]

    def wait_event(self, name, reason, timeout=15):
        deadline = time.monotonic() + timeout
        while True:
            found = [e for e in self.events(name) if e[1] == reason]
            if found:
                return found[0]
            assert time.monotonic() < deadline, f"no event {reason} for {name}: {self.events(name)}"
            time.sleep(0.1)


def host_folder(prefix, place="/var/tmp"):
    """A folder of the machine for a hostPath, gone with this test. Not in the data folder, which no pod sees."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=place)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def terminated(p, index=0):
    return p["status"]["containerStatuses"][index]["state"]["terminated"]


def equal(got, wanted):
    assert got == wanted, f"wanted {wanted!r}, got {got!r}"


def until(what, condition, timeout=30):
    """What `condition` gives once that is true."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def output(c, name, script, **spec):
    """The log of a pod that runs `script` to its end."""
    c.create(pod(name, script, **spec))
    p = c.phase(name, "Succeeded", "Failed")
    equal((c.logs(name), terminated(p)["exitCode"])[1], 0)
    return c.logs(name)


def tally(cases, counted=None):
    """Runs functions (or (function, argument) pairs) one after the other; the exit status."""
    counted = counted or Checks()
    for case in cases:
        function, *arguments = case if isinstance(case, tuple) else (case,)
        counted.case(function, *arguments)
    return counted.close()


def traces(muster, network):
    """What this agent could leave behind on the machine."""
    found = [
        p
        for p in subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout.splitlines()
        if str(muster.data) in p and "ps -eo" not in p
    ]
    links = os.listdir("/sys/class/net")
    name = network["bridge"][len("mstr") :]
    groups = subprocess.run(
        f"find /sys/fs/cgroup -maxdepth 4 -name muster-{name}", shell=True, capture_output=True, text=True
    ).stdout.split()
    mounts = [line.split()[1] for line in open("/proc/self/mounts") if f"{muster.data}/" in line]
    rules = (
        subprocess.run(["iptables-save"], capture_output=True, text=True).stdout
        if os.geteuid() == 0 and shutil.which("iptables-save")
        else ""
    )
    chains = [line for line in rules.splitlines() if name in line and network["bridge"] != "mstr-none"]
    return found + [link for link in links if link == network["bridge"]] + groups + mounts + chains


def run(make_muster):
    """Every check (or those whose name contains a word of the command line) on one cluster; nothing may be left
    behind."""
    wanted = sys.argv[1:]
    counted = Checks()
    muster = make_muster()
    with muster:
        network = (
            json.loads((muster.data / "agent" / "network.json").read_text())
            if os.geteuid() == 0
            else {"bridge": "mstr-none"}
        )
        cluster = Cluster(muster)
        for one in checks:
            if wanted and not any(w in one.__name__ for w in wanted):
                continue
            if not counted.case(one, cluster) and os.environ.get("STOP"):
                print(muster.log()[-3000:])
                break
    left = traces(muster, network)
    counted("stop_leaves_no_trace", not left, left)
    sys.exit(counted.close())
