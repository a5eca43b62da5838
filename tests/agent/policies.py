"""NetworkPolicies: who reaches whom, by address and through a service, whatever a pod does to its own end.

    python3 tests/agent/policies.py

One server with two ports and a readiness probe in the namespace "red", a friend and a stranger beside it, a neighbour
in "blue". Each case creates policies, waits until a connection is refused or let through, and removes them.
Everything runs twice: where the kernel filters what crosses a bridge (br_netfilter) and where it does not, in networks
of the test's own, since the setting applies to the whole machine.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import Muster  # noqa: E402

SERVER = """
import socketserver, threading
class Hello(socketserver.BaseRequestHandler):
    def handle(self): self.request.sendall(self.client_address[0].encode())
class Server(socketserver.ThreadingTCPServer): allow_reuse_address = True
for port in (8080, 8081): threading.Thread(target=Server(("", port), Hello).serve_forever).start()
"""
# "open" and who the server thinks it talks to, or "closed".
CALL = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])) as s: print("open", s.recv(99).decode())
except OSError as e: print("closed", e)
"""


def pod(name, command, ns="red", **spec):
    ports = [{"name": "web", "containerPort": 8080}]
    container = {"name": "main", "image": "host", "command": command, "ports": ports, **spec.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ns, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def policy(name, ns="red", **spec):
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": ns},
        "spec": {"podSelector": {}, **spec},
    }


def until(wanted, seconds=60):
    """Asks again until it is so: policies are in force a moment after they are stored."""
    end = time.monotonic() + seconds
    while not wanted() and time.monotonic() < end:
        time.sleep(0.1)
    return bool(wanted())


class World:
    def __init__(self, muster):
        self.muster = muster

    def apply(self, *objects):
        text = "\n---\n".join(json.dumps(one) for one in objects)
        return self.muster.kubectl("apply", "-f", "-", input=text, check=False)

    def get(self, *words):
        return json.loads(self.muster.kubectl("get", *words, "-o", "json").stdout)

    def address(self, name, ns="red"):
        return self.get("pod", name, "-n", ns)["status"]["podIP"]

    def call(self, name, host, port, ns="red", patience=20):
        words = ["exec", "-n", ns, name, "--", "python3", "-c", CALL, host, str(port), str(patience)]
        return self.muster.kubectl(*words, check=False).stdout.strip()

    def reaches(self, name, port=8080, ns="red", host=None):
        return until(lambda: self.call(name, host or self.server, port, ns).startswith("open"))

    def cannot(self, name, port=8080, ns="red", host=None):
        return until(lambda: self.call(name, host or self.server, port, ns, patience=1.5).startswith("closed"))

    def clear(self):
        for ns in ("red", "blue"):
            self.muster.kubectl("delete", "networkpolicies", "--all", "-n", ns)

    def build(self):
        for ns in ("red", "blue"):
            self.muster.kubectl("create", "namespace", ns)
        probe = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 2}}
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "server", "namespace": "red"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        sleep = ["sleep", "3600"]
        self.apply(pod("server", ["python3", "-c", SERVER], container=probe), service)
        self.apply(pod("friend", sleep), pod("stranger", sleep), pod("neighbour", sleep, ns="blue"))
        for ns in ("red", "blue"):
            self.muster.kubectl("wait", "pod", "--all", "-n", ns, "--for=condition=Ready", "--timeout=60s")
        self.server = self.address("server")
        self.service = self.get("service", "server", "-n", "red")["spec"]["clusterIP"]


def open_as_kubernetes_has_it(w, check):
    check("without a policy a pod is open", w.reaches("stranger"))
    check("and to other namespaces", w.reaches("neighbour", ns="blue"))
    seen = w.call("friend", w.service, 80)
    check("who is called through a service sees who calls", seen == f"open {w.address('friend')}", seen)
    seen = w.call("server", w.service, 80)
    check("a pod reaches itself through its service", seen.startswith("open"), seen)


def who_calls(w, check):
    w.apply(policy("closed", policyTypes=["Ingress"]))
    check("a policy without rules closes", w.cannot("friend") and w.cannot("stranger"))
    check("from other namespaces as well", w.cannot("neighbour", ns="blue"))
    check("through a service as well", w.cannot("friend", 80, host=w.service))
    listed = w.muster.kubectl("get", "networkpolicies", "-n", "red").stdout
    check("it is listed", "closed" in listed and "POD-SELECTOR" in listed, listed)
    rule = {"from": [{"podSelector": {"matchLabels": {"app": "friend"}}}], "ports": [{"port": "web"}]}
    w.apply(policy("friends", podSelector={"matchLabels": {"app": "server"}}, ingress=[rule]))
    check("a policy beside it opens for whom it names", w.reaches("friend"))
    check("through a service as well", w.reaches("friend", 80, host=w.service))
    check("at the port that it names only", w.cannot("friend", 8081))
    check("for nobody else", w.cannot("stranger"))
    w.muster.kubectl("label", "pod", "stranger", "-n", "red", "app=friend", "--overwrite")
    check("a label that comes later counts", w.reaches("stranger"))
    w.muster.kubectl("label", "pod", "stranger", "-n", "red", "app=stranger", "--overwrite")
    check("and one that goes", w.cannot("stranger"))
    ready = w.get("pod", "server", "-n", "red")["status"]["conditions"]
    check("probes come from this machine, which is always let in", {"True"} == {c["status"] for c in ready}, ready)


def from_where(w, check):
    named = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}}
    w.apply(policy("blue", podSelector={"matchLabels": {"app": "server"}}, ingress=[{"from": [named]}]))
    check("a namespace is named by its labels", w.reaches("neighbour", ns="blue"))
    check("which are not those of the own one", w.cannot("friend"))
    w.clear()
    block = {"cidr": "10.0.0.0/8", "except": [f"{w.address('friend')}/32"]}
    ports = [{"port": 8079, "endPort": 8080}]
    w.apply(policy("block", ingress=[{"from": [{"ipBlock": block}], "ports": ports}]))
    check("but for an exception", w.cannot("friend"))
    check("a block of addresses is let in", w.reaches("stranger"))
    check("at a range of ports", w.cannot("stranger", 8081))


def whom_one_calls(w, check):
    friend = {"matchLabels": {"app": "friend"}}
    w.apply(policy("out", podSelector=friend, policyTypes=["Egress"], egress=[{"ports": [{"port": 8081}]}]))
    check("who calls is kept to what its policy names", w.cannot("friend"))
    check("and reaches that", w.reaches("friend", 8081))
    check("others are not concerned", w.reaches("stranger"))
    seen = w.muster.kubectl("exec", "-n", "red", "friend", "--", "getent", "hosts", "server", check=False).stdout
    check("names are this machine's, which is always reached", w.service in seen, seen)


def no_way_around(w, check):
    mac = w.muster.kubectl("exec", "-n", "red", "server", "--", "cat", "/sys/class/net/eth0/address").stdout.strip()
    w.apply(policy("closed", policyTypes=["Ingress"]))
    check("closed", w.cannot("stranger"))
    call = ["python3", "-c", CALL, w.server, "8080", "3"]
    w.apply(pod("early", call))
    w.muster.kubectl("wait", "pod", "early", "-n", "red", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    seen = w.muster.kubectl("logs", "early", "-n", "red").stdout
    check("a pod that comes later is not let in for a moment", seen.startswith("closed"), seen)
    text = f"ip neigh replace {w.server} lladdr {mac} dev eth0 && ip neigh show && exec sleep 3600"
    w.apply(pod("rogue", ["sh", "-c", text], container={"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}))
    w.muster.kubectl("wait", "pod", "rogue", "-n", "red", "--for=condition=Ready", "--timeout=60s")
    told = until(lambda: mac in w.muster.kubectl("logs", "rogue", "-n", "red").stdout)
    check("not even one that writes to the server's own link", told and w.cannot("rogue"))
    w.muster.kill()
    w.muster.start()
    check("nor after a crash", w.cannot("stranger"))
    w.clear()
    check("without policies all is open again", w.reaches("stranger"))


# Says something five times a second to whoever has connected, and each says what it heard last, and when it hears nothing more.
SPEAK = """
import socket, threading, time
def speak(s):
    for i in range(100000):
        s.sendall(b"%d\\n" % i); time.sleep(0.2)
l = socket.create_server(("", 9000))
while True: threading.Thread(target=speak, args=(l.accept()[0],), daemon=True).start()
"""
HEAR = """
import socket, sys
s = socket.create_connection((sys.argv[1], 9000), 20)
s.settimeout(3)
try:
    while s.recv(64): print("heard", flush=True)
except OSError: print("silence", flush=True)
s.settimeout(None)
import time; time.sleep(3600)
"""


def connections_that_were_open(w, check):
    """A policy closes them, too; those that it allows go on."""
    w.apply(pod("speaker", ["python3", "-c", SPEAK]))
    w.muster.kubectl("wait", "pod", "speaker", "-n", "red", "--for=condition=Ready", "--timeout=60s")
    host = w.address("speaker")
    kept = pod("kept", ["python3", "-c", HEAR, host])
    w.apply(kept, pod("cut", ["python3", "-c", HEAR, host]))

    def heard(name):
        return w.muster.kubectl("logs", name, "-n", "red", check=False).stdout.split()

    check("connections are open", until(lambda: heard("kept")[-1:] == heard("cut")[-1:] == ["heard"]))
    rule = {"from": [{"podSelector": {"matchLabels": {"app": "kept"}}}]}
    w.apply(policy("some", podSelector={"matchLabels": {"app": "speaker"}}, ingress=[rule]))
    check("one that a policy closes is cut", until(lambda: heard("cut")[-1:] == ["silence"]))
    count = len(heard("kept"))
    check(
        "one that it allows goes on", until(lambda: len(heard("kept")) > count + 5) and "silence" not in heard("kept")
    )
    w.clear()


def bad_ones(w, check):
    both = {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}
    said = w.apply(policy("bad", ingress=[{"from": [both]}])).stderr
    check("a peer is one thing", "may not specify both ipBlock and another peer" in said, said)
    said = w.apply(policy("bad", ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0"}}]}])).stderr
    check("a block is a block", "must be a valid CIDR value" in said, said)
    said = w.apply(policy("bad", ingress=[{"ports": [{"port": 80, "endPort": 8}]}])).stderr
    check("a range goes up", "must be greater than or equal to `port`" in said, said)


def rules_that_cannot_be_written(check):
    """A pod that waits for policies says so, and muster ends though iptables-restore does not."""
    programs = pathlib.Path(tempfile.mkdtemp(prefix="muster-policies-"))
    hang = programs / "hang"
    real = shutil.which("iptables-restore")
    fake = programs / "iptables-restore"
    fake.write_text(f'#!/bin/sh\n[ -e {hang} ] && exec sleep 1000\nexec {real} "$@"\n')
    fake.chmod(0o755)
    muster = Muster(nodes=1, gpus=0)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{programs}:{path}"
    try:
        with muster:
            hang.touch()
            world = World(muster)
            world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "red"}})
            world.apply(policy("all"))
            world.apply(pod("waits", ["sleep", "1000"]))

            def told():
                said = muster.kubectl("-n", "red", "get", "events", "-o", "json").stdout
                return [x["message"] for x in json.loads(said)["items"] if x["reason"] == "NetworkNotReady"]

            check("it says what it waits for", until(told))
            begun = time.monotonic()
            muster.process.terminate()
            muster.process.wait(60)
            took = time.monotonic() - begun
            check("muster ends", took < 45, f"{took:.1f} s")
    finally:
        os.environ["PATH"] = path
        shutil.rmtree(programs)


SETTING = pathlib.Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


def in_a_network_of_its_own(filtered):
    """Runs this program again; how many checks passed and failed."""
    name = f"muster-policies-{os.getpid()}-{filtered}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        words = ["ip", "netns", "exec", name, sys.executable, __file__, str(filtered)]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)
    *lines, last = done.stdout.rstrip().split("\n")
    print("\n".join(lines), flush=True)
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed, 0 skipped", last)
    return (int(counts[1]), int(counts[2])) if counts else (0, 1)


def main():
    if os.geteuid() != 0:
        skip_all("without root pods have no network that can be filtered")
    check = Checks()
    if len(sys.argv) < 2:
        for filtered in (0, 1) if SETTING.exists() else (0,):
            print(f"br_netfilter {filtered}", flush=True)
            passed, failed = in_a_network_of_its_own(filtered)
            check.passed, check.failed = check.passed + passed, check.failed + failed
        if not SETTING.exists():
            check.skip("with br_netfilter", "the kernel's module is not loaded")
        return check.close()
    if SETTING.exists():
        SETTING.write_text(sys.argv[1])
    with Muster(nodes=1, gpus=0) as muster:
        world = World(muster)
        world.build()
        for case in (
            open_as_kubernetes_has_it,
            who_calls,
            from_where,
            whom_one_calls,
            connections_that_were_open,
            no_way_around,
            bad_ones,
        ):
            print(case.__name__.replace("_", " "), flush=True)
            case(world, check)
            world.clear()
    print("rules that cannot be written", flush=True)
    rules_that_cannot_be_written(check)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
