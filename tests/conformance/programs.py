#!/usr/bin/env python3
"""Unmodified programs other than kubectl, against Muster's API server and against a real one: client-go 0.37, a
manager of controller-runtime 0.25, the Python clients 22 and 37. And the real kube-scheduler and
kube-controller-manager 1.37 on Muster's server, which run a Deployment, a Job and a namespace deletion to their end.

    tests/conformance/programs.py

Each program checks what it sees. Prints one table: check, client, real, ours.
"""
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402
import real_kubernetes  # noqa: E402

check = Checks()


def client(name, *command):
    """What a program says of each of its checks: {"name: check": account}."""
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=240)
    except subprocess.TimeoutExpired as late:
        return {f"{name}: ends": f"timed out\n{late.stdout}"}
    said = {}
    for line in done.stdout.splitlines():
        if line.startswith("ok    "):
            said[f"{name}: {line[6:]}"] = "ok"
        elif line.startswith("FAIL  "):
            check_name, _, why = line[6:].partition(": ")
            said[f"{name}: {check_name}"] = why or "failed"
    if done.returncode != 0 and all(account == "ok" for account in said.values()):
        said[f"{name}: ends"] = done.stdout[-500:] + done.stderr[-1500:]
    return said


def until(what, condition, timeout=60):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    print(f"      timed out: {what}")
    return False


def control_plane(muster):
    """The real scheduler and controllers on our server; the test plays the kubelet."""
    processes = []
    log = open(muster.data / "control-plane.log", "ab")
    for name, extra in (
        ("kube-scheduler", []),
        ("kube-controller-manager", ["--use-service-account-credentials=false"]),
    ):
        processes.append(
            subprocess.Popen(
                [
                    str(real_kubernetes.BIN / name),
                    "--kubeconfig",
                    str(muster.kubeconfig),
                    "--leader-elect=false",
                    "--secure-port",
                    "0",
                    *extra,
                ],
                stdout=log,
                stderr=log,
                cwd=muster.data,
            )
        )
    try:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1"},
            "status": {
                "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
                "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "KubeletReady",
                        "lastHeartbeatTime": "2030-01-01T00:00:00Z",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
            },
        }
        muster.kubectl("create", "-f", "-", input=json.dumps(node))
        muster.kubectl("create", "ns", "work")
        muster.kubectl("-n", "work", "create", "deployment", "web", "--image=nginx", "--replicas=3")
        muster.kubectl("-n", "work", "create", "job", "once", "--image=busybox")

        def pods():
            return json.loads(muster.kubectl("-n", "work", "get", "pods", "-o", "json").stdout)["items"]

        check(
            "kube-scheduler binds what the controllers make",
            until("4 bound pods", lambda: sum(1 for pod in pods() if pod["spec"].get("nodeName")) == 4),
            [pod["status"] for pod in pods()],
        )
        for pod in pods():
            name = pod["metadata"]["name"]
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            job = name.startswith("once")
            state = (
                {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
                if job
                else {"running": {"startedAt": now}}
            )
            status = {
                "phase": "Succeeded" if job else "Running",
                "startTime": now,
                "conditions": [
                    {"type": kind, "status": "False" if job else "True", "lastTransitionTime": now}
                    for kind in ("Ready", "ContainersReady")
                ],
                "containerStatuses": [
                    {
                        "name": pod["spec"]["containers"][0]["name"],
                        "image": "x",
                        "imageID": "x",
                        "ready": not job,
                        "restartCount": 0,
                        "state": state,
                    }
                ],
            }
            muster.kubectl(
                "-n",
                "work",
                "patch",
                "pod",
                name,
                "--subresource=status",
                "--type=merge",
                "-p",
                json.dumps({"status": status}),
            )
        rollout = muster.kubectl("-n", "work", "rollout", "status", "deploy/web", "--timeout=60s", check=False)
        check(
            "the Deployment becomes available",
            "successfully rolled out" in rollout.stdout,
            rollout.stdout + rollout.stderr,
        )
        complete = muster.kubectl(
            "-n", "work", "wait", "--for=condition=complete", "job/once", "--timeout=60s", check=False
        )
        check("the Job completes", "condition met" in complete.stdout, complete.stdout + complete.stderr)
        events = muster.kubectl("-n", "work", "get", "events").stdout
        check("their events are stored", "Scheduled" in events and "SuccessfulCreate" in events, events)
        muster.kubectl("-n", "work", "scale", "deploy/web", "--replicas=1")
        check(
            "scaling down deletes pods",
            until("terminating pods", lambda: sum(1 for pod in pods() if "deletionTimestamp" in pod["metadata"]) == 2),
        )
        for pod in pods():
            if "deletionTimestamp" in pod["metadata"]:
                muster.kubectl("-n", "work", "delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
        muster.kubectl("delete", "ns", "work", "--wait=false")

        def empty():
            for pod in pods():
                muster.kubectl(
                    "-n", "work", "delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0", check=False
                )
            return muster.kubectl("get", "ns", "work", check=False).returncode != 0

        check("the namespace goes", until("namespace gone", empty))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


def clients(kubeconfig, *pods):
    said = {}
    if real_kubernetes.available():
        said |= client("client-go 0.37", str(real_kubernetes.BIN / "clientgo"), str(kubeconfig))
        said |= client("controller-runtime 0.25", str(real_kubernetes.BIN / "manager"), str(kubeconfig))
    for name, python in (
        ("python 22", "/usr/bin/python3"),
        ("python 37", str(HERE.parents[1] / ".cache/python-37/bin/python3")),
    ):
        if (
            pathlib.Path(python).exists()
            and subprocess.run([python, "-c", "import kubernetes"], capture_output=True).returncode == 0
        ):
            said |= client(name, python, str(HERE / "python_client.py"), str(kubeconfig), *pods)
        else:
            check.skip(name, f"the kubernetes package is not installed for {python}")
    return said


def main():
    with Muster("--without", "controllers", nodes=1) as muster:
        ours = clients(muster.kubeconfig, "--pods")
    real = {}
    if real_kubernetes.available():
        with real_kubernetes.RealKubernetes(controllers=True, groups=True) as kubernetes:
            real = clients(kubernetes.kubeconfig)
    else:
        check.skip("client-go, controller-runtime, kube-scheduler, kube-controller-manager", real_kubernetes.MISSING)
    for name in sorted({*ours, *real}):
        theirs = real.get(name, "-")  # pods do not run on the real one, which has no kubelet
        check(
            f"{name:80} real {theirs[:200]:4} ours {ours.get(name, 'missing')[:6]}",
            ours.get(name) == "ok" and theirs in ("ok", "-"),
            ours.get(name, "missing"),
        )
    if real_kubernetes.available():
        with Muster("--without", "scheduler,controllers,agent", nodes=0) as muster:
            control_plane(muster)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
