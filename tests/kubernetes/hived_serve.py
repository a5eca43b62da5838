#!/usr/bin/env python3
"""A real kube-scheduler with `muster hived serve` as its extender, as clusters with HiveD are set up."""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from muster import binary  # noqa: E402

check = Checks()
PREFIX = "hivedscheduler.microsoft.com/"
POOL = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 3}
  physicalCells:
  - cellType: POOL
    cellChildren: [{cellAddress: n0}, {cellAddress: n1}, {cellAddress: n2}]
"""
CONFIG = POOL + "virtualClusters: {A: {virtualCells: [{cellType: POOL.NODE, cellNumber: 2}]}}\n"
LARGER = POOL + "virtualClusters: {A: {virtualCells: [{cellType: POOL.NODE, cellNumber: 3}]}}\n"


def scheduler_config(real, port):
    path = real.dir / "scheduler.yaml"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(real.kubeconfig)},
                "leaderElection": {"leaderElect": False},
                "percentageOfNodesToScore": 100,
                "podInitialBackoffSeconds": 1,
                "podMaxBackoffSeconds": 1,
                "extenders": [
                    {
                        "urlPrefix": f"http://127.0.0.1:{port}/v1/extender",
                        "filterVerb": "filter",
                        "preemptVerb": "preempt",
                        "bindVerb": "bind",
                        "enableHTTPS": False,
                        "nodeCacheCapable": True,
                        "ignorable": False,
                        "httpTimeout": "5s",
                        "managedResources": [{"name": PREFIX + "pod-scheduling-enable", "ignoredByScheduler": True}],
                    }
                ],
            }
        )
    )
    return path


def add_node(real, name, ready="True"):
    real.api("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    set_ready(real, name, ready)


def set_ready(real, name, ready):
    status = {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        "capacity": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": "said by the test"}],
    }
    real.api("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})
    # The node lifecycle controller, which would take these away, does not run here.
    real.api("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def pod(real, name, leaves, group=None, members=None, priority=0, priority_class=None):
    spec = {"virtualCluster": "A", "priority": priority, "leafCellNumber": leaves}
    if group:
        spec["affinityGroup"] = {"name": group, "members": members}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {PREFIX + "pod-scheduling-spec": json.dumps(spec)}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    # A GPU's share of the node, as OpenPAI sizes its containers: kube-scheduler asks an extender whom to
                    # preempt only on nodes where it would have to preempt somebody itself.
                    "resources": {"limits": {PREFIX + "pod-scheduling-enable": "1", "cpu": str(16 * leaves)}},
                }
            ],
        },
    }
    if priority_class:
        body["spec"]["priorityClassName"] = priority_class
    real.api("POST", "/api/v1/namespaces/default/pods", body)


def seat(real, name):
    """(node, devices) of a pod that is bound, else None."""
    found = real.api("GET", f"/api/v1/namespaces/default/pods/{name}", check=False) or {}
    node = found.get("spec", {}).get("nodeName")
    return node and (node, found["metadata"]["annotations"].get(PREFIX + "pod-leaf-cell-isolation"))


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def scenarios(real, port, config):
    pair = [{"podNumber": 2, "leafCellNumber": 4}]
    pod(real, "g-0", 4, "gang", pair)
    pod(real, "g-1", 4, "gang", pair)
    until(lambda: seat(real, "g-0") and seat(real, "g-1"), 60)
    seats = [seat(real, "g-0"), seat(real, "g-1")]
    check(
        "a gang of two whole nodes is bound by kube-scheduler, with its devices written on it",
        all(seats) and {s[1] for s in seats} == {"0,1,2,3"} and len({s[0] for s in seats}) == 2,
        seats,
    )
    status, group = get(port, "/v1/inspect/affinitygroups/gang")
    check("the inspect API knows the gang", status == 200 and len(group["status"]["allocatedPods"]) == 2, group)
    check("one it does not know is an error", get(port, "/v1/inspect/affinitygroups/other")[0] == 400)

    pod(real, "more", 4)

    def waits():
        events = real.api("GET", "/api/v1/namespaces/default/events")["items"]
        return any("insufficient capacity when scheduling in VC A" in (e.get("message") or "") for e in events)

    check("what its virtual cluster does not own waits, with HiveD's reason in its events", until(waits, 60))
    check("although a node is free", seat(real, "more") is None)

    real.api(
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "prod"}, "value": 1000, "globalDefault": False},
    )
    pod(real, "prod", 4, priority=100, priority_class="prod")
    check(
        "a higher rank preempts the whole gang through kube-scheduler and takes its place",
        until(lambda: seat(real, "prod"), 90),
        lambda: get(port, "/v1/inspect/affinitygroups/"),
    )
    check("and then there is room for the one that waited", until(lambda: seat(real, "more"), 60))

    config.write_text(LARGER)
    until(lambda: len(get(port, "/v1/inspect/clusterstatus/virtualclusters/A")[1]) == 3, 30)
    pod(real, "third", 4)
    check("a larger virtual cluster holds without a restart", until(lambda: seat(real, "third"), 60))
    check("what ran before runs on", seat(real, "prod") and seat(real, "more"))


def main():
    if not real_kubernetes.available() or not (real_kubernetes.BIN / "kube-scheduler").exists():
        skip_all(real_kubernetes.MISSING)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hived-serve-"))
    config = folder / "hivedscheduler.yaml"
    config.write_text(CONFIG)
    port = real_kubernetes.free_port()
    with real_kubernetes.RealKubernetes(controllers=True) as real:
        for name in ("n0", "n1", "n2"):
            add_node(real, name)
        until(lambda: real.api("GET", "/api/v1/namespaces/default/serviceaccounts/default", check=False))
        log = open(folder / "serve.log", "wb")
        serve = subprocess.Popen(
            [binary(), "hived", "serve", str(config), "--listen", f"127.0.0.1:{port}", "--kubeconfig", real.kubeconfig],
            stdout=log,
            stderr=log,
        )
        try:
            check(
                "the service answers once it knows the cluster",
                until(lambda: get(port, "/v1/inspect/clusterstatus")[0] == 200, 60),
                lambda: (folder / "serve.log").read_text(),
            )
            real.scheduler_args = ["--config", str(scheduler_config(real, port))]
            real.start_scheduler()
            scenarios(real, port, config)
            serve.terminate()
            check("it ends when told to", serve.wait(20) == 0)
        finally:
            serve.kill()
            if check.failed:
                print((folder / "serve.log").read_text()[-3000:])
                print((real.dir / "kube-scheduler.log").read_text()[-3000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
