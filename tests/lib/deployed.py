"""`muster run` on a real control plane as deploy/ runs it: with its CRDs, rights and service account."""
import pathlib
import subprocess
import time

import muster as muster_fixture
from checks import until

ROOT = pathlib.Path(__file__).resolve().parents[2]
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "lastHeartbeatTime": "2040-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}

# As much of the Prometheus operator's kind as the API server needs to know it.
SERVICE_MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


class Deployed:
    def __init__(self, real):
        self.real = real
        self.started = []

    def install(self):
        self.real.kubectl("apply", "--server-side", "-f", str(ROOT / "deploy" / "kustomize" / "namespace.yaml"))
        applied = self.real.kubectl("apply", "--server-side", "-k", str(ROOT / "deploy" / "kustomize"), check=False)
        self.real.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        # No kubelet would start it; the test does.
        self.real.kubectl("-n", "muster-system", "scale", "deploy/muster", "--replicas=0")
        self.real.api(
            "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}, check=False
        )
        return applied

    def add_node(self, name, amounts=None, labels=None):
        amounts = {
            "cpu": "16",
            "memory": "64Gi",
            "pods": "110",
            "ephemeral-storage": "100Gi",
            "nvidia.com/gpu": "4",
            **(amounts or {}),
        }
        self.real.api(
            "POST",
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
                "status": {"capacity": amounts, "allocatable": amounts, "conditions": [READY]},
            },
        )
        # Admission taints new nodes until a kubelet reports; there is none.
        self.real.api("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def kubeconfig(self):
        """For the service account of deploy/, so that a missing right shows."""
        token = self.real.kubectl("-n", "muster-system", "create", "token", "muster", "--duration=24h").stdout.strip()
        path = self.real.dir / "muster-kubeconfig"
        path.write_text(self.real.kubeconfig.read_text().replace(self.real.token, token))
        return path

    def start(self, *arguments):
        log = open(self.real.dir / "muster.log", "ab")
        process = subprocess.Popen(
            [muster_fixture.binary(), "run", "--kubeconfig", str(self.kubeconfig()), *arguments], stdout=log, stderr=log
        )
        self.started.append(process)
        return process

    def await_start(self):
        """Until the process that was started last has its picture of the cluster."""
        return until(lambda: "scheduler: started" in self.log().rpartition("main: working")[2])

    def stop(self, process=None):
        for one in [process] if process else self.started:
            if one.poll() is None:
                one.terminate()
                one.wait(30)
        if process is None:
            self.started = []

    def log(self):
        path = self.real.dir / "muster.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # ---- objects

    def pods(self, selector="", ns="default"):
        query = f"?labelSelector={selector}" if selector else ""
        return self.real.api("GET", f"/api/v1/namespaces/{ns}/pods{query}")["items"]

    def bound(self, *names):
        have = {p["metadata"]["name"] for p in self.pods() if p["spec"].get("nodeName")}
        return set(names) <= have

    def create(self, *objects):
        for item in objects:
            self.real.kubectl("create", "-f", "-", input=__import__("json").dumps(item))

    def pod(self, name, gpus=1, scheduler="muster", group=None, labels=None, **spec):
        spec = {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}}
            ],
            **spec,
        }
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        return self.real.api(
            "POST",
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": name, "labels": labels or {}}, "spec": spec},
        )

    def group(self, name, count):
        return self.real.api(
            "POST",
            "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
            {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": count}}}},
        )

    def set_phase(self, pod, phase, ns="default"):
        """What a kubelet would report."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        running = phase == "Running"
        state = (
            {"running": {"startedAt": now}}
            if running
            else {"terminated": {"exitCode": int(phase == "Failed"), "startedAt": now, "finishedAt": now}}
        )
        status = {
            "phase": phase,
            "startTime": now,
            "conditions": [{"type": "Ready", "status": str(running), "lastTransitionTime": now}],
            "containerStatuses": [
                {"name": c["name"], "image": "x", "imageID": "x", "ready": running, "restartCount": 0, "state": state}
                for c in pod["spec"]["containers"]
            ],
        }
        self.real.api(
            "PATCH", f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}/status", {"status": status}, check=False
        )

    def remove_pod(self, name, ns="default"):
        self.real.api("DELETE", f"/api/v1/namespaces/{ns}/pods/{name}", {"gracePeriodSeconds": 0}, check=False)

    def clear(self):
        self.real.api("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
        self.real.api("DELETE", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups", check=False)
        until(lambda: not self.pods())
