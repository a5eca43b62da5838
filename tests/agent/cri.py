#!/usr/bin/env python3
"""Pods of a real containerd with runc, through CRI: what docs/agent.md says of them. A number in a name is that of the
check in the specification of real containers.

    python3 tests/agent/cri.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, check, equal, host_folder, pod, run, terminated, until  # noqa: E402
from checks import skip_all  # noqa: E402
from images import busybox, missing, write_archive  # noqa: E402
from muster import Muster, kubectls  # noqa: E402

IMAGE = "docker.io/library/small:1"
CONFIG = {"Cmd": ["sh", "-c", "echo from the image"], "Env": ["PATH=/bin", "GREETING=hello"]}
APPLETS = "mount unshare mknod nc wget ping tail dd yes head wc sort nslookup hostname kill ps sync"


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
    # Its events are heard again.
    c.create(cri_pod("afterwards", "exit 5"))
    equal(terminated(c.phase("afterwards", "Failed"))["exitCode"], 5)
    c.muster.kubectl("delete", "pod", "survivor", "--now")


@check
def check_42_long_logs_are_turned_over(c):
    script = "i=0; while [ $i -lt 13 ]; do yes 0123456789012345678901234567890123456789 | head -n 25000; i=$((i+1)); done; sleep 1000"
    c.create(cri_pod("writes", script))
    p = c.running("writes")
    folder = c.muster.data / "agent" / "pods" / p["metadata"]["uid"]
    until("a second file of the log", lambda: len(list(folder.glob("main_0.log*"))) > 1, 60)
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
