#!/usr/bin/env python3
"""`muster run` as scheduler and operator of a real Kubernetes 1.37, under exactly the rights that deploy/ grants.

The cluster has an API server, etcd and the controller manager, but no kubelet: the test marks bound pods running.
"""
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, skip_all, until  # noqa: E402
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402

check = Checks()


class Cluster:
    def __init__(self, real):
        self.real = real
        self.process = None

    def json(self, *args):
        return json.loads(self.real.kubectl("get", *args, "-o", "json").stdout)

    def apply(self, *objects):
        self.real.kubectl(
            "create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        )

    def pods(self, selector=""):
        return self.json("pods", *(["-l", selector] if selector else []))["items"]

    def prepare(self):
        self.real.kubectl("apply", "--server-side", "-f", str(ROOT / "src" / "kube" / "crds"))
        self.real.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        self.real.kubectl("apply", "--server-side", "-f", str(ROOT / "deploy" / "kustomize" / "namespace.yaml"))
        applied = self.real.kubectl("apply", "--server-side", "-k", str(ROOT / "deploy" / "kustomize"), check=False)
        check("the manifests of deploy/ are accepted", applied.returncode == 0, applied.stderr)
        self.real.kubectl("-n", "muster-system", "scale", "deploy/muster", "--replicas=0")
        for i in range(3):
            amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4"}
            self.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": f"n{i}"},
                    "status": {
                        "capacity": amounts,
                        "allocatable": amounts,
                        "conditions": [
                            {
                                "type": "Ready",
                                "status": "True",
                                "reason": "KubeletReady",
                                "lastHeartbeatTime": "2040-01-01T00:00:00Z",
                                "lastTransitionTime": "2026-01-01T00:00:00Z",
                            }
                        ],
                    },
                }
            )
            # The node lifecycle controller takes the taint away once it believes the node; there is no kubelet, so
            # the test does.
            until(
                lambda: self.real.kubectl(
                    "patch", "node", f"n{i}", "--type=merge", "-p", '{"spec":{"taints":null}}', check=False
                ).returncode
                == 0
            )

    def start_muster(self, *extra):
        """As the service account of deploy/, so that a missing right shows."""
        token = self.real.kubectl("-n", "muster-system", "create", "token", "muster").stdout.strip()
        kubeconfig = self.real.dir / "muster-kubeconfig"
        kubeconfig.write_text(self.real.kubeconfig.read_text().replace(self.real.token, token))
        log = open(self.real.dir / "muster.log", "ab")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        return subprocess.Popen(
            [
                muster_fixture.binary(),
                "run",
                "--kubeconfig",
                str(kubeconfig),
                "--metrics",
                f"127.0.0.1:{self.port}",
                *extra,
            ],
            stdout=log,
            stderr=log,
        )

    def idle(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.port}/debug/idle", timeout=5).status == 200
        except OSError:
            return False

    def wait_idle(self):
        """Nothing left to do, several looks in a row: what has not happened by then does not happen by itself."""
        quiet = 0
        while quiet < 5:
            quiet = quiet + 1 if self.idle() else 0
            time.sleep(0.1)

    def log(self):
        return (self.real.dir / "muster.log").read_text(errors="replace")

    def run_bound_pods(self, phase="Running"):
        """Plays the kubelet once over all pods."""
        for pod in self.pods():
            if not pod["spec"].get("nodeName") or pod["status"].get("phase") in (phase, "Succeeded", "Failed"):
                continue
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            running = phase == "Running"
            states = [
                {
                    "name": c["name"],
                    "image": c["image"],
                    "imageID": "x",
                    "ready": running,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}}
                    if running
                    else {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}},
                }
                for c in pod["spec"]["containers"]
            ]
            status = {
                "phase": phase,
                "startTime": now,
                "containerStatuses": states,
                "conditions": [{"type": "Ready", "status": "True" if running else "False", "lastTransitionTime": now}],
            }
            self.real.kubectl(
                "patch",
                "pod",
                pod["metadata"]["name"],
                "--subresource=status",
                "--type=merge",
                "-p",
                json.dumps({"status": status}),
            )


def plain_pod(name, gpus, scheduler="muster", priority=None, labels=None):
    spec = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
    }
    if priority:
        spec["priorityClassName"] = priority
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def native_group(name, count):
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}},
    }


def member(pod, group):
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    return pod


PYTORCH = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train"},
    "spec": {
        "pytorchReplicaSpecs": {
            kind: {
                "replicas": count,
                "restartPolicy": "Never",
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}
                        ]
                    }
                },
            }
            for kind, count in (("Master", 1), ("Worker", 2))
        }
    },
}


def scheduling(cluster):
    bound = lambda *names: all(
        any(p["metadata"]["name"] == n and p["spec"].get("nodeName") for p in cluster.pods()) for n in names
    )  # noqa: E731
    cluster.apply(plain_pod("one", 2), plain_pod("other", 1, scheduler="somebody-else"))
    check("a pod of ours is bound", until(lambda: bound("one")), cluster.log()[-2000:])
    check("a pod of another scheduler is not", not bound("other"))
    events = cluster.real.kubectl("get", "events").stdout
    check(
        "Scheduled is recorded",
        until(lambda: "Successfully assigned default/one to" in cluster.real.kubectl("get", "events").stdout),
        events,
    )
    cluster.apply(plain_pod("big", 9))
    check(
        "an impossible pod is told why",
        until(
            lambda: "nvidia.com/gpu"
            in cluster.real.kubectl("get", "pod", "big", "-o", "jsonpath={.status.conditions}").stdout
        ),
    )
    cluster.real.kubectl("delete", "pod", "one", "big", "other", "--force", "--grace-period=0")

    cluster.apply(*[member(plain_pod(f"g-{i}", 4), "gang") for i in range(3)])
    cluster.wait_idle()
    check("members wait for their group", not any(p["spec"].get("nodeName") for p in cluster.pods()))
    cluster.apply(native_group("gang", 3))
    check("and start together when it appears", until(lambda: bound("g-0", "g-1", "g-2")), cluster.log()[-2000:])
    condition = lambda: cluster.real.kubectl(
        "get",
        "podgroups.scheduling.k8s.io",
        "gang",
        "-o",
        "jsonpath={.status.conditions[0].type}={.status.conditions[0].status}",
    ).stdout  # noqa: E731
    check("the group says so", until(lambda: condition() == "PodGroupInitiallyScheduled=True"), condition())
    cluster.apply(native_group("second", 2), *[member(plain_pod(f"s-{i}", 4), "second") for i in range(2)])
    cluster.wait_idle()
    check(
        "a gang that does not fit leaves nothing bound",
        not any(p["spec"].get("nodeName") for p in cluster.pods() if p["metadata"]["name"].startswith("s-")),
    )
    cluster.real.kubectl("delete", "pod", "g-0", "g-1", "--force", "--grace-period=0")
    begin = time.monotonic()
    check("freed room is used", until(lambda: bound("s-0", "s-1")))
    print(f"      {time.monotonic() - begin:.2f} s after the room came free")
    cluster.run_bound_pods()
    cluster.apply(plain_pod("vip", 4, priority="critical"))
    check("a more important pod takes room", until(lambda: bound("vip")), cluster.log()[-2000:])
    check(
        "its victim was told", until(lambda: "by default/vip on node" in cluster.real.kubectl("get", "events").stdout)
    )
    cluster.real.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    cluster.real.kubectl("delete", "podgroups.scheduling.k8s.io", "--all")


def operating(cluster):
    cluster.apply(PYTORCH)
    check(
        "a PyTorchJob's pods are made and bound as a gang",
        until(
            lambda: sum(1 for p in cluster.pods("training.kubeflow.org/job-name=train") if p["spec"].get("nodeName"))
            == 3
        ),
        cluster.log()[-3000:],
    )
    cluster.run_bound_pods()
    state = lambda: cluster.real.kubectl(
        "get", "pytorchjob", "train", "-o", "jsonpath={.status.conditions[-1:].type}"
    ).stdout  # noqa: E731
    check("the job runs", until(lambda: state() == "Running"), state())
    cluster.run_bound_pods("Succeeded")
    check("and succeeds", until(lambda: state() == "Succeeded"), state())
    cluster.real.kubectl("delete", "pytorchjob", "train")
    check("nothing is left", until(lambda: not cluster.pods("training.kubeflow.org/job-name=train")))


def failover(cluster, rounds):
    """kill -9 of the leader in the middle of a gang: the other completes it; no gang stays partly bound."""
    partial = []
    leaders = [cluster.start_muster("--leader-elect") for _ in range(2)]
    try:
        for i in range(rounds):
            name = f"f{i}"
            cluster.apply(
                native_group(name, 12),
                *[member(plain_pod(f"{name}-{k}", 1, labels={"gang": name}), name) for k in range(12)],
            )
            until(lambda: any(p["spec"].get("nodeName") for p in cluster.pods(f"gang={name}")), 60)
            holder = cluster.real.kubectl(
                "-n", "muster-system", "get", "lease", "muster", "-o", "jsonpath={.spec.holderIdentity}"
            ).stdout
            victim = next((p for p in leaders if f"_{p.pid}_" in holder), None)
            if victim is None:
                partial.append((name, f"nobody leads: {holder}"))
                continue
            victim.kill()
            victim.wait()
            leaders[leaders.index(victim)] = cluster.start_muster("--leader-elect")
            whole = until(lambda: sum(1 for p in cluster.pods(f"gang={name}") if p["spec"].get("nodeName")) == 12, 60)
            if not whole:
                partial.append((name, sum(1 for p in cluster.pods(f"gang={name}") if p["spec"].get("nodeName"))))
            cluster.real.kubectl("delete", "pods", "-l", f"gang={name}", "--force", "--grace-period=0")
            cluster.real.kubectl("delete", "podgroups.scheduling.k8s.io", name)
        check(f"{rounds} leaders killed, no gang left partly bound", not partial, partial)
    finally:
        for process in leaders:
            process.kill()
            process.wait()


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with real_kubernetes.RealKubernetes(controllers=True, groups=True) as real:
        cluster = Cluster(real)
        cluster.prepare()
        process = cluster.start_muster()
        try:
            scheduling(cluster)
            operating(cluster)
        finally:
            process.terminate()
            process.wait(20)
        log = cluster.log()
        check(
            "no right was missing",
            "forbidden" not in log.lower(),
            [line for line in log.splitlines() if "forbidden" in line.lower()][:5],
        )
        failover(cluster, rounds)
        if check.failed:
            print(cluster.log()[-3000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
