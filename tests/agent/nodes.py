"""A node that falls silent: NotReady, taints, and pods that leave when their tolerations end."""
import datetime
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, pod, run, until  # noqa: E402
from muster import Muster  # noqa: E402


def lease(name, renewed):
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
    }


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@check
def a_silent_node_is_left(c):
    # A kubelet of somebody else that joined, renewed its lease once, and was never heard of again.
    c.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stranger"}, "spec": {}}, lease("stranger", now())
    )
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now()[:19] + "Z"}
    c.muster.kubectl(
        "patch",
        "node",
        "stranger",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps(
            {
                "status": {
                    "conditions": [condition],
                    "capacity": {"cpu": "4", "pods": "10"},
                    "allocatable": {"cpu": "4", "pods": "10"},
                }
            }
        ),
    )
    tolerates = {
        "tolerations": [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
    }
    c.create(
        pod(
            "leaves",
            "true",
            nodeName="stranger",
            terminationGracePeriodSeconds=0,
            tolerations=[
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 2,
                }
            ],
        ),
        pod("stays", "true", nodeName="stranger", terminationGracePeriodSeconds=0, **tolerates),
    )
    until(
        "node becomes NotReady",
        lambda: "NotReady" in c.muster.kubectl("get", "node", "stranger", "--no-headers").stdout,
    )
    node = until("taints", lambda: (lambda n: n if n["spec"].get("taints") else None)(c.get("node", "stranger")))
    ready = next(x for x in node["status"]["conditions"] if x["type"] == "Ready")
    equal(
        (ready["status"], ready["reason"], ready["message"]),
        ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
    )
    equal(
        sorted((t["key"], t["effect"]) for t in node["spec"]["taints"]),
        [("node.kubernetes.io/unreachable", "NoExecute"), ("node.kubernetes.io/unreachable", "NoSchedule")],
    )
    until(
        "pod is deleted",
        lambda: (lambda d: d.returncode != 0 or "deletionTimestamp" in json.loads(d.stdout)["metadata"])(
            c.muster.kubectl("get", "pod", "leaves", "-o", "json", check=False)
        ),
    )
    equal(c.wait_event("leaves", "TaintManagerEviction")[2], "Marking for deletion Pod default/leaves")
    assert "deletionTimestamp" not in c.get("pod", "stays")["metadata"]
    # It comes back.
    c.muster.kubectl(
        "patch",
        "lease",
        "-n",
        "kube-node-lease",
        "stranger",
        "--type=merge",
        "-p",
        json.dumps({"spec": {"renewTime": now()}}),
    )
    c.muster.kubectl(
        "patch",
        "node",
        "stranger",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": {"conditions": [condition]}}),
    )
    until("taints are taken away", lambda: not c.get("node", "stranger")["spec"].get("taints"))
    c.muster.kubectl("delete", "node", "stranger")
    c.muster.kubectl("delete", "pod", "leaves", "stays", "--force", check=False)


@check
def own_nodes_have_stayed_ready(c):  # while the check before outlasted the grace period
    nodes = json.loads(c.muster.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    equal(
        [x["status"] for n in nodes for x in n["status"]["conditions"] if x["type"] == "Ready"], ["True"] * len(nodes)
    )


@check
def a_taint_by_hand_moves_pods(c):
    c.create(pod("mover", "exec sleep 1000", nodeName="node-1", terminationGracePeriodSeconds=0))
    c.running("mover")
    c.muster.kubectl("taint", "node", "node-1", "maintenance=now:NoExecute")
    c.gone("mover")
    c.muster.kubectl("taint", "node", "node-1", "maintenance-")
    c.muster.kubectl("cordon", "node-1")
    until(
        "cordon shows as a taint",
        lambda: any(
            t["key"] == "node.kubernetes.io/unschedulable" for t in c.get("node", "node-1")["spec"].get("taints", [])
        ),
    )
    c.muster.kubectl("uncordon", "node-1")
    until("and goes with it", lambda: not c.get("node", "node-1")["spec"].get("taints"))


if __name__ == "__main__":
    run(lambda: Muster("--node-monitor-grace-period", "15s"))
