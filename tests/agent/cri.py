#!/usr/bin/env python3
"""Pods run by a real containerd and runc through CRI, checked against docs/agent.md. Numbers in names are those of the
checks in the specification of real containers.

    python3 tests/agent/cri.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, check, equal, host_folder, pod, run, terminated, until  # noqa: E402
from checks import skip_all  # noqa: E402
from images import busybox, free_port, missing, write_archive  # noqa: E402
from muster import Muster, kubectls  # noqa: E402

IMAGE = "docker.io/library/small:1"
CONFIG = {"Cmd": ["sh", "-c", "echo from the image"], "Env": ["PATH=/bin", "GREETING=hello"]}
APPLETS = "mount unshare mknod nc wget ping tail dd yes head wc sort nslookup hostname kill ps sync tar awk"


def small():
    return {**busybox(), **{f"bin/{name}": ("link", "busybox") for name in APPLETS.split()}}


def cri_pod(name, script=None, **spec):
    container = {"image": IMAGE, "imagePullPolicy": "IfNotPresent", **spec.pop("container", {})}
    return pod(name, script, container=container, **spec)


def output(c, name, script=None, **spec):
    c.create(cri_pod(name, script, **spec))
    p = c.phase(name, "Succeeded", "Failed")
    assert terminated(p)["exitCode"] == 0, (terminated(p), c.logs(name))
    return c.logs(name)


def containerd_pid(c):
    return int((c.muster.data / "containerd" / "pid").read_text())


@check
def a_pod_is_the_runtimes(c):
    """By the node's flag: its processes hang below a shim of containerd, and its status says whose they are."""
    equal(output(c, "hello", None), "from the image\n")
    ended = c.get("pod", "hello")["status"]["containerStatuses"][0]
    assert ended["state"]["terminated"]["containerID"].startswith("containerd://"), ended
    c.create(cri_pod("sleeper", "sleep 1000"))
    c.running("sleeper")
    p = c.get("pod", "sleeper")
    assert p["status"]["containerStatuses"][0]["containerID"].startswith("containerd://"), p["status"]
    listed = subprocess.run(
        ["ctr", "-a", str(c.muster.data / "containerd" / "containerd.sock"), "-n", "k8s.io", "tasks", "ls", "-q"],
        capture_output=True,
        text=True,
    ).stdout
    assert p["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://") in listed, listed
    version = c.get("node", "node-0")["status"]["nodeInfo"]["containerRuntimeVersion"]
    assert version.startswith("containerd://"), version
    c.muster.kubectl("delete", "pod", "sleeper", "--now")


@check
def check_12_to_18_what_a_pod_may_not(c):
    script = f"""
exec 2>/dev/null
for f in {c.muster.data}/pki/ca.key {c.muster.data}/kubeconfig; do test -e $f && echo sees $f; done
grep Seccomp: /proc/self/status | cut -f2
echo x > /proc/sys/kernel/hostname && echo writes sysctl
echo x > /proc/sysrq-trigger && echo writes sysrq
for g in /sys/fs/cgroup /sys/fs/cgroup/memory; do test -e $g/cgroup.procs && echo $$ > $g/cgroup.procs && echo leaves its group; done
ls /dev | grep -E 'sd|vd|nvme|kmsg|fuse'
cat /proc/keys /proc/timer_list | grep . && echo reads proc
mount -t tmpfs x /tmp && echo mounts
unshare -m true && echo unshares
mknod /tmp/d b 8 0 && dd if=/tmp/d of=/dev/null count=1 && echo reads a disk
echo done
"""
    equal(output(c, "attacks", script), "2\ndone\n")
    status = "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | cut -f2"
    none = {"securityContext": {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "Unconfined"}}}
    equal(output(c, "no-new", status, container=none), "1\n0\n")
    folder = c.muster.data / "seccomp"
    folder.mkdir()
    rule = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}
    (folder / "no-mkdir.json").write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}))
    profile = {"seccompProfile": {"type": "Localhost", "localhostProfile": "no-mkdir.json"}}
    script = "mkdir /tmp/x 2>/dev/null || echo refused; touch /tmp/y && echo touched"
    equal(output(c, "profiled", script, securityContext=profile), "refused\ntouched\n")


@check
def check_18_open_files_and_20_terminals(c):
    equal(output(c, "open-files", "ls /proc/self/fd | wc -l; ls /dev/pts"), "4\nptmx\n")


def maps_users():
    """Whether the containerd and runc that come first in PATH can give pods users of their own."""
    versions = []
    for program in ("containerd", "runc"):
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        versions.append(tuple(int(x) for x in re.search(r" v?(\d+)\.(\d+)\.", said).groups()))
    return versions[0] >= (2, 0) and versions[1] >= (1, 2)


@check
def check_22_host_users_false_is_never_the_machines_root(c):
    """Users of its own where containerd and runc can give them, with owners of files as they are on disk; elsewhere no pod."""
    folder = pathlib.Path(host_folder("muster-cri-users-"))
    (folder / "seen").write_text("mine\n")
    (folder / "seen").chmod(0o600)
    mounts = [{"name": "h", "mountPath": "/h"}, {"name": "m", "mountPath": "/m"}, {"name": "e", "mountPath": "/e"}]
    spec = {
        "hostUsers": False,
        "restartPolicy": "Always",
        "volumes": [
            {"name": "h", "hostPath": {"path": str(folder)}},
            {"name": "m", "emptyDir": {"medium": "Memory"}},
            {"name": "e", "emptyDir": {}},
        ],
        "container": {"volumeMounts": mounts},
    }
    script = """id -u; cat /h/seen; cat /proc/self/uid_map; touch /m/x /e/x /dev/shm/x && chmod 666 /dev/termination-log && echo writes
stat -c %u /h/seen > /h/written; if test -e /h/stop; then exec sleep 1000; fi; while ! test -e /h/stop; do sleep 0.1; done; exit 3"""
    c.create(cri_pod("users", script, **spec))
    if not maps_users():
        event = c.wait_event("users", "FailedCreatePodSandBox")
        assert "cannot give pods users of their own" in event[2], event
        equal([s for s in c.get("pod", "users")["status"].get("containerStatuses", []) if "running" in s["state"]], [])
        c.muster.kubectl("delete", "pod", "users", "--now")
        return
    c.running("users")
    until("what it writes", lambda: (folder / "written").exists() and (folder / "written").read_text())
    lines = c.logs("users").split()
    equal([*lines[:2], *lines[3:]], ["0", "mine", lines[3], "65536", "writes"])
    assert int(lines[3]) >= 1_000_000, lines
    equal(((folder / "written").read_text(), (folder / "written").stat().st_uid), ("0\n", 0))
    equal(c.muster.kubectl("exec", "users", "--", "cat", "/proc/self/uid_map").stdout.split(), ["0", lines[3], "65536"])
    # The next agent knows them, for containers that it starts and for pods that are new.
    c.muster.kill()
    c.muster.start()
    c.create(cri_pod("others", "cat /proc/self/uid_map; sleep 1000", hostUsers=False))
    c.running("others")
    first = until("its map", lambda: c.logs("others").split())[1]
    assert int(first) >= 1_000_000 and first != lines[3], (first, lines)
    (folder / "stop").touch()
    c.wait("users", lambda p: p and p["status"]["containerStatuses"][0]["restartCount"] == 1)
    again = until("its second attempt", lambda: c.logs("users").split())
    equal(again[3], lines[3])
    c.muster.kubectl("delete", "pod", "users", "others", "--now")


@check
def policies_hold_for_its_pods(c):
    serve = "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nserved\\n' | nc -l -p 8080; done"
    c.create(cri_pod("fenced", serve), cri_pod("caller", "exec sleep 1000"))
    c.ready("fenced"), c.ready("caller")
    address = c.get("pod", "fenced")["status"]["podIP"]

    def served():
        ask = f"nc -w 3 {address} 8080 < /dev/null"
        return c.muster.kubectl("exec", "caller", "--", "sh", "-c", ask, check=False).stdout.endswith("served\n")

    until("an open pod is reached", served)
    closed = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "closed"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }
    c.create(closed)
    until("a closed one is not", lambda: not served())
    c.muster.kubectl("delete", "networkpolicy", "closed")
    until("and is again", served)
    c.muster.kubectl("delete", "pod", "fenced", "caller", "--now")


@check
def check_28_names_and_ports(c):
    """On the bridge of all pods: names, services, the way to a pod of processes and back."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    serve = "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nserved\\n' | nc -l -p 8080; done"
    c.create(service, cri_pod("web", serve, metadata={"labels": {"app": "web"}}))
    c.ready("web")
    until(
        "endpoints of the service",
        lambda: c.get("endpoints", "web").get("subsets"),
    )
    asks = "for i in 1 2 3 4 5 6 7 8 9 10; do wget -q -O - http://web && exit 0; sleep 0.3; done; exit 1"
    equal(output(c, "asks", asks), "served\n")
    machine = {"image": "muster/host", "command": ["sh", "-c", asks.replace("wget", "busybox wget")]}
    c.create(pod("asks-from-host", container=machine))
    c.phase("asks-from-host", "Succeeded")
    equal(c.logs("asks-from-host"), "served\n")
    equal(output(c, "own-name", "hostname; cat /etc/hostname"), "own-name\nown-name\n")
    c.muster.kubectl("delete", "pod", "web", "--now")


@check
def check_28_exec_attach_and_port_forward(c):
    c.create(cri_pod("shell", "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nforwarded\\n' | nc -l -p 8080; done"))
    c.running("shell")
    done = c.muster.kubectl("exec", "shell", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    equal((done.stdout, done.returncode), ("out\n", 7))
    assert "err\n" in done.stderr, done.stderr
    piped = c.muster.kubectl("exec", "-i", "shell", "--", "cat", input="through\n" * 20000)
    equal(piped.stdout, "through\n" * 20000)
    forward = subprocess.Popen(
        [kubectls()[0][1], "port-forward", "shell", ":8080"],
        stdout=subprocess.PIPE,
        text=True,
        env=c.muster.env(),
    )
    try:
        port = int(forward.stdout.readline().split(":")[1].split()[0])
        with socket.create_connection(("127.0.0.1", port), 10) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            s.settimeout(10)
            answer = b""
            while b"forwarded" not in answer:
                more = s.recv(4096)
                assert more, answer
                answer += more
    finally:
        forward.kill()
        forward.wait()
    c.muster.kubectl("delete", "pod", "shell", "--now")
    c.create(cri_pod("listens", "read line; echo got $line", container={"stdin": True, "stdinOnce": True}))
    c.running("listens")
    c.muster.kubectl("attach", "-i", "listens", input="words\n", check=False)
    c.phase("listens", "Succeeded")
    equal(c.logs("listens"), "got words\n")


@check
def check_28_ping_low_ports_copies_and_a_debug_container(c):
    serve = "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nserved\\n' | nc -l -p 80; done"
    port = free_port()
    ports = {"ports": [{"containerPort": 80, "hostPort": port}], "securityContext": {"runAsUser": 1000}}
    c.create(cri_pod("low", serve, container=ports))
    p = c.ready("low")
    equal(output(c, "pings", f"ping -c 1 -W 5 {p['status']['podIP']} >/dev/null && echo there"), "there\n")

    def reached():
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return b"served" in s.recv(4096) + s.recv(4096)
        except OSError:
            return False

    until("the pod by a port of the machine", reached)
    file = pathlib.Path(host_folder("muster-cri-cp-")) / "words"
    file.write_text("copied\n" * 1000)
    c.muster.kubectl("cp", str(file), "low:/tmp/words")
    c.muster.kubectl("cp", "low:/tmp/words", str(file) + ".back")
    equal(pathlib.Path(str(file) + ".back").read_text(), file.read_text())
    c.muster.kubectl(
        "debug", "low", f"--image={IMAGE}", "--target=main", "--container=look", "--", "sh", "-c", "ps; id -u"
    )
    looked = until(
        "the debug container's end",
        lambda: [
            s for s in c.get("pod", "low")["status"].get("ephemeralContainerStatuses", []) if "terminated" in s["state"]
        ],
    )
    equal(looked[0]["state"]["terminated"]["exitCode"], 0)
    assert "nc -l -p 80" in c.logs("low", "-c", "look"), c.logs("low", "-c", "look")
    c.muster.kubectl("delete", "pod", "low", "--now")


@check
def check_41_how_containers_end(c):
    c.create(
        cri_pod("exits", "echo said > /dev/termination-log; exit 3"),
        cri_pod("oom", "tail /dev/zero", container={"resources": {"limits": {"memory": "16Mi"}}}),
        cri_pod("absent", container={"command": ["/no/such/program"]}),
    )
    p = c.phase("exits", "Failed")
    equal((terminated(p)["exitCode"], terminated(p)["reason"], terminated(p)["message"]), (3, "Error", "said\n"))
    p = c.phase("oom", "Failed")
    equal(terminated(p)["reason"], "OOMKilled")
    p = c.phase("absent", "Failed")
    equal((terminated(p)["exitCode"], terminated(p)["reason"]), (128, "StartError"))
    assert "/no/such/program" in terminated(p)["message"], terminated(p)


@check
def volumes_and_links_that_lead_out(c):
    """Check 8: a subPath through a link that leaves the volume; check 7: the data folder is no hostPath."""
    folder = host_folder("muster-cri-")
    pathlib.Path(folder, "seen").write_text("host\n")
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "h", "mountPath": "/h"}, {"name": "m", "mountPath": "/m"}]
    spec = {
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "h", "hostPath": {"path": folder}},
            {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ],
        "initContainers": [
            {
                "name": "first",
                "image": IMAGE,
                "command": ["sh", "-c", "ln -s / /v/out; mkdir /v/in; echo inside > /v/in/f"],
                "volumeMounts": mounts,
            }
        ],
    }
    script = "cat /h/seen /s/f; echo w > /h/written; dd if=/dev/zero of=/m/f bs=1M count=2 2>/dev/null || echo full"
    inner = {"volumeMounts": [*mounts, {"name": "v", "mountPath": "/s", "subPath": "in"}]}
    equal(output(c, "mounts", script, container=inner, **spec), "host\ninside\nfull\n")
    equal(pathlib.Path(folder, "written").read_text(), "w\n")
    outer = {"volumeMounts": [*mounts, {"name": "v", "mountPath": "/s", "subPath": "out"}]}
    c.create(cri_pod("leads-out", "ls /s", container=outer, **spec))
    p = c.wait(
        "leads-out",
        lambda p: p
        and any(
            "waiting" in s["state"] and s["state"]["waiting"].get("message")
            for s in p["status"].get("containerStatuses", [])
        ),
    )
    assert "running" not in p["status"]["containerStatuses"][0]["state"], p["status"]
    c.muster.kubectl("delete", "pod", "leads-out", "--now")


@check
def limits_and_usage(c):
    limits = {"resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}}
    c.create(cri_pod("busy", "while true; do :; done", container=limits))
    c.running("busy")
    found = until(
        "usage of the pod",
        lambda: (c.muster.kubectl("top", "pod", "busy", "--no-headers", check=False).stdout or "").split(),
        60,
    )
    equal(found[0], "busy")
    c.muster.kubectl("delete", "pod", "busy", "--now")


@check
def a_container_restarts(c):
    c.create(
        cri_pod(
            "again",
            "echo try; test -e /v/done || { touch /v/done; exit 1; }; sleep 1000",
            restartPolicy="Always",
            volumes=[{"name": "v", "emptyDir": {}}],
            container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        )
    )
    c.wait("again", lambda p: p and (p["status"].get("containerStatuses") or [{}])[0].get("restartCount") == 1)
    c.running("again")
    equal(c.logs("again", "--previous"), "try\n")
    c.muster.kubectl("delete", "pod", "again", "--now")


@check
def check_42_muster_is_killed_and_goes_on(c):
    c.create(
        cri_pod("survivor", "i=0; while true; do i=$((i+1)); echo line $i; sleep 0.1; done", restartPolicy="Always")
    )
    p = c.running("survivor")
    pid = containerd_pid(c)
    c.muster.kill()
    time.sleep(1)  # lines are written meanwhile
    c.muster.start()
    q = c.running("survivor")
    for field in ("containerID", "restartCount"):
        equal(q["status"]["containerStatuses"][0][field], p["status"]["containerStatuses"][0][field])
    equal(containerd_pid(c), pid)
    c.muster.kubectl("exec", "survivor", "--", "true")
    lines = c.logs("survivor").splitlines()
    equal(lines, [f"line {i + 1}" for i in range(len(lines))])


@check
def check_42_containerd_is_killed_and_comes_back(c):
    p = c.running("survivor")
    os.kill(containerd_pid(c), signal.SIGKILL)
    until("an exec that works", lambda: c.muster.kubectl("exec", "survivor", "--", "true", check=False).returncode == 0)
    q = c.get("pod", "survivor")
    equal(
        q["status"]["containerStatuses"][0]["containerID"],
        p["status"]["containerStatuses"][0]["containerID"],
    )
    lines = c.logs("survivor").splitlines()
    equal(lines, [f"line {i + 1}" for i in range(len(lines))])
    assert "the last lines may be missing" in c.muster.log(), "a line that says what may be missing"
    # Its events are heard again.
    c.create(cri_pod("afterwards", "exit 5"))
    equal(terminated(c.phase("afterwards", "Failed"))["exitCode"], 5)
    c.muster.kubectl("delete", "pod", "survivor", "--now")


@check
def check_42_a_log_of_100_mb_is_turned_over_and_followed(c):
    """About a million lines: files of 10 MiB and what is written in a second, five of them, and whoever follows misses none."""
    lines = 1000 * 1000
    # In pieces, so that the machine is not busy with this alone.
    write = f'BEGIN {{ for (i = 1; i <= {lines}; ++i) {{ print i, "{"x" * 60}"; if (i % 20000 == 0) system("sleep 0.2") }} }}'
    c.create(cri_pod("writes", f"awk '{write}'"))
    p = c.running("writes")
    counted = subprocess.Popen(
        ["sh", "-c", f"'{kubectls()[0][1]}' logs -f writes | tr -d '\\n' | cksum"],
        stdout=subprocess.PIPE,
        text=True,
        env=c.muster.env(),
    )
    # Ends of lines are left out: containerd begins a new line in a new file, wherever it was in the old one.
    same = write.replace('system("sleep 0.2")', "")
    wanted = subprocess.run(["sh", "-c", f"awk '{same}' | tr -d '\\n' | cksum"], capture_output=True, text=True).stdout
    try:
        equal(counted.communicate(timeout=240)[0], wanted)
    finally:
        counted.kill()
    folder = c.muster.data / "agent" / "pods" / p["metadata"]["uid"]
    sizes = sorted(one.stat().st_size for one in folder.glob("main_0.log*"))
    equal(len(sizes), 5)
    assert sum(sizes) < 100 << 20 and sizes[-2] >= 10 << 20, sizes
    assert f"{lines} x" in c.logs("writes", "--tail=2"), c.logs("writes", "--tail=2")
    c.muster.kubectl("delete", "pod", "writes", "--now")


@check
def check_43_an_end_behind_our_back(c):
    """A pod whose process somebody else kills ends all the same."""
    c.create(cri_pod("ended", "sleep 1000"))
    p = c.running("ended")
    container = p["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    subprocess.run(
        ["ctr", "-a", str(c.muster.data / "containerd" / "containerd.sock"), "-n", "k8s.io"]
        + ["tasks", "kill", "-s", "SIGKILL", container],
        check=True,
    )
    equal(terminated(c.phase("ended", "Failed", timeout=15))["exitCode"], 137)


class Between:
    """Stands between muster and its containerd and counts what muster says in HTTP/2."""

    HEADERS, PING = 1, 6

    def __init__(self, path):
        self.path, self.real = str(path), str(path) + ".real"
        self.connections, self.closed_by_server = [], 0

    def __enter__(self):
        os.rename(self.path, self.real)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        os.unlink(self.path)
        os.rename(self.real, self.path)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.real)
            one = {"requests": 0, "pings": 0, "swallows": False, "begun": time.monotonic(), "open": True}
            self.connections.append(one)
            threading.Thread(target=self.there, args=(client, server, one), daemon=True).start()
            threading.Thread(target=self.back, args=(client, server, one), daemon=True).start()

    def there(self, client, server, one):
        rest, preface = b"", 24
        while data := self.read(client):
            rest += data
            skipped = min(preface, len(rest))
            rest, preface = rest[skipped:], preface - skipped
            while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
                kind, flags = rest[3], rest[4]
                one["requests"] += kind == self.HEADERS
                one["pings"] += kind == self.PING and not flags & 1
                rest = rest[9 + int.from_bytes(rest[:3], "big") :]
            server.sendall(data)
        one["open"] = False
        server.close()

    def back(self, client, server, one):
        while data := self.read(server):
            if not one["swallows"]:
                client.sendall(data)
        self.closed_by_server += one["open"]
        client.close()

    @staticmethod
    def read(stream):
        try:
            return stream.recv(65536)
        except OSError:
            return b""

    def events(self):
        """The connection of one request that stays: the stream of events."""
        return next((one for one in self.connections if one["open"] and one["requests"] == 1), None)


@check
def check_43_a_cut_stream_of_events_and_no_pings(c):
    """The stream goes silent, which nobody can tell from nothing happening: an end is found by looking, within 10 s."""
    socket_path = c.muster.data / "containerd" / "containerd.sock"
    with Between(socket_path) as between:
        c.muster.kill()
        c.muster.start()
        c.create(cri_pod("cut", "sleep 1000"))
        p = c.running("cut")
        until("the stream of events", between.events)["swallows"] = True
        container = p["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        ctr = ["ctr", "-a", str(socket_path) + ".real", "-n", "k8s.io", "tasks"]
        subprocess.run([*ctr, "kill", "-s", "SIGKILL", container], check=True)
        begun = time.monotonic()
        equal(terminated(c.phase("cut", "Failed", timeout=20))["exitCode"], 137)
        took = time.monotonic() - begun
        assert took < 12, took  # ten seconds and a kubectl
        stream = between.events()
        # The client of other peers asks after 15 s of silence whether they are there; containerd would hang up for it.
        until("more than 15 s of silence", lambda: time.monotonic() - stream["begun"] > 20)
        muster = [one for one in between.connections if one["open"]]  # and none of the ctr that imported an archive
        equal((sum(one["pings"] for one in muster), between.closed_by_server, stream["open"]), (0, 0, True))
        c.muster.kill()
    c.muster.start()
    equal(output(c, "uncut", None), "from the image\n")


@check
def classes_choose_the_runtime(c):
    """runtimeClassName host: this machine's files, though the node's pods are the runtime's."""
    c.create(
        pod("of-host", "test -e /etc/debian_version && echo machine", runtimeClassName="host"),
        cri_pod("of-cri", "test -e /etc/debian_version || echo image", runtimeClassName="cri"),
    )
    for name, said in (("of-host", "machine\n"), ("of-cri", "image\n")):
        c.phase(name, "Succeeded")
        equal(c.logs(name), said)
    # And the other way round: one pod of the class on a node of processes.
    archive = c.muster.data / "images" / "small.tar"
    other = Muster("--image-source", "containerd", nodes=1, gpus=0)
    (other.data / "images").mkdir(parents=True)
    shutil.copy(archive, other.data / "images")
    with other as muster:
        d = Cluster(muster)
        d.create(cri_pod("by-class", "sleep 1000", runtimeClassName="cri"), cri_pod("plain", "sleep 1000"))
        d.running("by-class")
        d.running("plain")
        listed = subprocess.run(
            ["ctr", "-a", str(muster.data / "containerd" / "containerd.sock"), "-n", "k8s.io", "tasks", "ls", "-q"],
            capture_output=True,
            text=True,
        ).stdout.split()
        equal(len(listed), 2)  # its container and its sandbox, and nothing of the other


def main():
    why = missing("containerd", "ctr", "runc", "busybox")
    if not why and not os.path.exists("/usr/lib/cni/bridge"):
        why = "containernetworking-plugins not installed"
    if why:
        skip_all(why)
    muster = Muster("--runtime", "cri", nodes=2, gpus=0)
    (muster.data / "images").mkdir(parents=True)
    write_archive(muster.data / "images" / "small.tar", IMAGE, [small()], CONFIG)
    file = muster.data / "images.yaml"
    file.write_text(json.dumps({"images": [{"name": "muster/host", "host": True}]}))
    muster.args += ["--images", str(file)]
    run(lambda: muster)


if __name__ == "__main__":
    main()
