#!/usr/bin/env python3
"""The experiments of a HiveD course on a cluster of two GPU nodes: virtual cluster safety, priority, opportunistic
jobs, gangs and incremental scheduling. Jobs are plain pods with HiveD's annotation; every outcome is asserted.
"""
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks  # noqa: E402
from course import NODES  # noqa: E402
from muster import Muster  # noqa: E402

CONFIG_A = """
physicalCluster:
  skuTypes:
    GPU-C: {gpu: 1, cpu: 2, memory: 4096Mi}
    GPU-D: {gpu: 1, cpu: 2, memory: 4096Mi}
  cellTypes:
    GPU-C-NODE: {childCellType: GPU-C, childCellNumber: 1, isNodeLevel: true}
    GPU-C-NODE-POOL: {childCellType: GPU-C-NODE, childCellNumber: 1}
    GPU-D-NODE: {childCellType: GPU-D, childCellNumber: 1, isNodeLevel: true}
    GPU-D-NODE-POOL: {childCellType: GPU-D-NODE, childCellNumber: 1}
  physicalCells:
  - cellType: GPU-C-NODE-POOL
    cellChildren: [{cellAddress: hostname-carol}]
  - cellType: GPU-D-NODE-POOL
    cellChildren: [{cellAddress: hostname-dan}]
virtualClusters:
  default:
    virtualCells: [{cellType: GPU-C-NODE-POOL.GPU-C-NODE, cellNumber: 1}]
  vc1:
    virtualCells: [{cellType: GPU-D-NODE-POOL.GPU-D-NODE, cellNumber: 1}]
"""
CONFIG_B = """
physicalCluster:
  skuTypes:
    GPU: {gpu: 1, cpu: 2, memory: 4096Mi}
  cellTypes:
    GPU-NODE: {childCellType: GPU, childCellNumber: 1, isNodeLevel: true}
    GPU-NODE-POOL: {childCellType: GPU-NODE, childCellNumber: 2}
  physicalCells:
  - cellType: GPU-NODE-POOL
    cellChildren: [{cellAddress: hostname-carol}, {cellAddress: hostname-dan}]
virtualClusters:
  default:
    virtualCells: [{cellType: GPU-NODE-POOL.GPU-NODE, cellNumber: 2}]
"""
PRIORITY = {"oppo": -1, "test": 10, "prod": 100}
check = Checks()


def pod(name, vc, rank, seconds, group=None, members=1):
    spec = f"virtualCluster: {vc}\npriority: {PRIORITY[rank]}\nleafCellNumber: 1\n"
    if group:
        spec += f"affinityGroup:\n  name: {group}\n  members:\n  - {{podNumber: {members}, leafCellNumber: 1}}\n"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"hivedscheduler.microsoft.com/pod-scheduling-spec": spec}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "train",
                    "image": "openpai/pai.example.pytorch",
                    "command": ["sleep", str(seconds)],
                    "resources": {"limits": {"cpu": "100m", "nvidia.com/gpu": 1}},
                }
            ],
        },
    }


class Lab:
    def __init__(self, muster):
        self.muster = muster

    def submit(self, *pods):
        for one in pods:
            self.muster.kubectl("create", "-f", "-", input=json.dumps(one))

    def pods(self):
        return {
            item["metadata"]["name"]: item
            for item in json.loads(self.muster.kubectl("get", "pods", "-o", "json").stdout)["items"]
        }

    def until(self, what, condition, timeout=40):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            pods = self.pods()
            if condition(pods):
                return pods
            time.sleep(0.1)
        check(
            what,
            False,
            {
                name: (
                    one["status"].get("phase"),
                    one["spec"].get("nodeName"),
                    one["status"].get("conditions", [{}])[-1].get("message"),
                )
                for name, one in self.pods().items()
            },
        )
        return self.pods()

    def clear(self):
        self.muster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def phase(pods, name):
    return pods[name]["status"].get("phase") if name in pods else None


def node(pods, name):
    return pods[name]["spec"].get("nodeName", "") if name in pods else ""


def span(pods, name):
    """When the container of a finished pod ran, to the second."""
    state = pods[name]["status"]["containerStatuses"][0]["state"].get("terminated", {})
    return state.get("startedAt", ""), state.get("finishedAt", "")


def two_clusters(lab):
    # Safety: four guaranteed jobs of vc1 run one after the other on dan, though carol idles.
    names = [f"safety-{i}" for i in range(4)]
    lab.submit(*[pod(name, "vc1", "prod", 1) for name in names])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(phase(lab.pods(), name) != "Succeeded" for name in names):
        time.sleep(0.05)
    pods = lab.pods()
    check("four jobs of vc1 all succeed", all(phase(pods, name) == "Succeeded" for name in names))
    seen = {node(pods, name) for name in names}
    spans = sorted(span(pods, name) for name in names)
    apart = all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))
    check("only on dan, one at a time", seen == {"hostname-dan"} and apart, (seen, spans))
    lab.clear()

    # Priority: prod takes the cell from test at once.
    lab.submit(pod("low", "vc1", "test", 60))
    lab.until("test runs", lambda pods: phase(pods, "low") == "Running")
    lab.submit(pod("high", "vc1", "prod", 10))
    pods = lab.until("prod runs in the cell of test", lambda pods: phase(pods, "high") == "Running")
    check("prod preempts test", node(pods, "high") == "hostname-dan" and phase(pods, "low") is None, pods.keys())
    events = lab.muster.kubectl("get", "events").stdout
    check("the victim was told", "Preempted" in events and "by default/high on node hostname-dan" in events, events)
    lab.submit(pod("low", "vc1", "test", 1))
    lab.muster.wait_idle()
    check("test waits for prod", phase(lab.pods(), "low") == "Pending")
    pods = lab.until("test runs again afterwards", lambda pods: phase(pods, "low") == "Succeeded")
    check("and ends", phase(pods, "low") == "Succeeded")
    lab.clear()

    # Opportunistic: idle cells of another virtual cluster, until their owner wants them.
    lab.submit(pod("owner", "vc1", "prod", 60))
    lab.until("prod runs", lambda pods: phase(pods, "owner") == "Running")
    lab.submit(pod("guest", "vc1", "oppo", 60))
    pods = lab.until("oppo runs at once", lambda pods: phase(pods, "guest") == "Running")
    check("oppo runs outside its virtual cluster", node(pods, "guest") == "hostname-carol", node(pods, "guest"))
    lab.submit(pod("claim", "default", "test", 60))
    pods = lab.until("the owner takes its cell back", lambda pods: phase(pods, "claim") == "Running")
    check(
        "oppo was preempted, prod was not",
        phase(pods, "guest") is None and phase(pods, "owner") == "Running",
        {name: phase(pods, name) for name in pods},
    )
    check("on carol", node(pods, "claim") == "hostname-carol")
    lab.submit(pod("guest2", "vc1", "oppo", 1))
    lab.muster.wait_idle()
    check("oppo never preempts", phase(lab.pods(), "guest2") == "Pending" and phase(lab.pods(), "claim") == "Running")
    reason = lab.muster.kubectl(
        "get", "pod", "guest2", "-o", 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}'
    ).stdout
    check("and is told why it waits", "insufficient" in reason.lower(), reason)
    lab.clear()


def tree_and_new_cells(lab, folder):
    lab.submit(pod("stay", "default", "prod", 60), pod("away", "vc1", "prod", 60))
    lab.until("both run", lambda pods: phase(pods, "stay") == phase(pods, "away") == "Running")
    text = lab.muster.cli("hived", "tree").stdout
    check(
        "the tree shows both virtual clusters and who sits where",
        all(word in text for word in ("vc1", "default", "hostname-dan", "default/stay", "default/away")),
        text,
    )
    check("without colours when nobody looks", "\x1b" not in text, text)
    groups = json.loads(lab.muster.cli("hived", "tree", "-o", "json").stdout)["affinityGroups"]
    check("the tree as JSON names the gangs", "default/away" in json.dumps(groups), groups)

    new = pathlib.Path(folder) / "new.yaml"
    new.write_text(CONFIG_B)
    done = lab.muster.cli("hived", "check", str(new))
    check(
        "the check says what becomes of the gangs",
        "default/away" in done.stdout and "default/stay" in done.stdout,
        done.stdout,
    )
    tried = json.loads(lab.muster.cli("whatif", "--hived", str(new), "-o", "json").stdout)
    check(
        "33 what-if names the gang that loses its cells, as the check does",
        any("default/away" in warning for warning in tried["warnings"]),
        (tried["warnings"], done.stdout),
    )
    new.write_text(CONFIG_B.replace("cellNumber: 2}", "cellNumber: 3}"))
    done = lab.muster.cli("hived", "check", str(new), check=False)
    check(
        "and refuses promises that cannot be kept",
        done.returncode == 1 and done.stderr,
        (done.returncode, done.stdout, done.stderr),
    )

    def publish(config):
        lab.muster.kubectl(
            "patch",
            "configmap",
            "-n",
            "kube-system",
            "muster-hived",
            "--type=merge",
            "-p",
            json.dumps({"data": {"hivedscheduler.yaml": config}}),
        )

    def told(reason):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            out = lab.muster.kubectl(
                "get",
                "events",
                "-n",
                "kube-system",
                "--field-selector",
                f"involvedObject.name=muster-hived,reason={reason}",
                "-o",
                "jsonpath={.items[*].message}",
            ).stdout
            if out:
                return out
            time.sleep(0.1)
        return ""

    publish(CONFIG_B.replace("cellNumber: 2}", "cellNumber: 3}"))
    check("wrong cells are refused by an event", "stay as they were" in told("CellsRefused"))
    check("and the old ones go on", all(phase(lab.pods(), name) == "Running" for name in ("stay", "away")))
    publish(CONFIG_B)
    check("right ones are taken over live", told("CellsReconfigured"))
    check("running pods stay", all(phase(lab.pods(), name) == "Running" for name in ("stay", "away")))
    lab.clear()
    # Both GPUs belong to one virtual cluster now, as the old cells never allowed.
    lab.submit(*[pod(f"pair-{i}", "default", "prod", 1, "pair", 2) for i in range(2)])
    pods = lab.until(
        "a gang over both nodes runs on the new cells", lambda pods: all(node(pods, f"pair-{i}") for i in range(2))
    )
    check(
        "on both nodes", {node(pods, f"pair-{i}") for i in range(2)} == {"hostname-carol", "hostname-dan"}, pods.keys()
    )
    lab.clear()
    lab.muster.stop()
    lab.muster.args = [word for word in lab.muster.args if word != "--hived-config" and not word.endswith("hived.yaml")]
    lab.muster.start()
    check("the next start remembers the cells", "GPU-NODE-POOL" in lab.muster.cli("hived", "tree").stdout)


def one_cluster(lab):
    # Gang: both tasks or none.
    lab.submit(pod("first", "default", "prod", 10))
    lab.until("first runs", lambda pods: phase(pods, "first") == "Running")
    lab.submit(*[pod(f"gang-{i}", "default", "prod", 2, "gang", 2) for i in range(2)])
    lab.muster.wait_idle()
    pods = lab.pods()
    check(
        "no task of the gang runs beside the first job",
        all(phase(pods, f"gang-{i}") == "Pending" and not node(pods, f"gang-{i}") for i in range(2)),
    )
    pods = lab.until("both run when both GPUs are free", lambda pods: all(node(pods, f"gang-{i}") for i in range(2)))
    check("on different nodes", node(pods, "gang-0") != node(pods, "gang-1"))
    lab.until("the gang ends", lambda pods: all(phase(pods, f"gang-{i}") == "Succeeded" for i in range(2)))
    lab.clear()

    # Incremental: each task by itself.
    lab.submit(pod("first", "default", "prod", 6))
    lab.until("first runs", lambda pods: phase(pods, "first") == "Running")
    lab.submit(pod("step-0", "default", "prod", 1), pod("step-1", "default", "prod", 1))
    pods = lab.until(
        "one task runs at once",
        lambda pods: phase(pods, "step-0") in ("Running", "Succeeded")
        or phase(pods, "step-1") in ("Running", "Succeeded"),
    )
    check("while the first job still runs", phase(pods, "first") == "Running")
    pods = lab.until("both end", lambda pods: phase(pods, "step-0") == phase(pods, "step-1") == "Succeeded")
    check("one after the other on the same node", node(pods, "step-0") == node(pods, "step-1"))
    lab.clear()

    # More than there is.
    lab.submit(*[pod(f"many-{i}", "default", "prod", 1) for i in range(4)])
    ended = lambda pods: all(phase(pods, f"many-{i}") == "Succeeded" for i in range(4))  # noqa: E731
    check("over quota, incremental", ended(lab.until("four incremental tasks on two GPUs all end", ended)))
    lab.submit(*[pod(f"wide-{i}", "default", "prod", 1, "wide", 4) for i in range(4)])
    lab.muster.wait_idle()
    check(
        "a gang larger than its virtual cluster waits",
        all(phase(lab.pods(), f"wide-{i}") == "Pending" for i in range(4)),
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        nodes = pathlib.Path(folder) / "nodes.yaml"
        nodes.write_text(NODES)
        for config, experiments in (
            (CONFIG_A, two_clusters),
            (CONFIG_A, lambda lab: tree_and_new_cells(lab, folder)),
            (CONFIG_B, one_cluster),
        ):
            hived = pathlib.Path(folder) / "hived.yaml"
            hived.write_text(config)
            with Muster("--hived-config", str(hived), nodes=nodes) as muster:
                experiments(Lab(muster))
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
