#!/usr/bin/env python3
"""HiveD's cells in `muster run` on a real Kubernetes 1.37: the watched ConfigMap, queues below virtual clusters,
gangs without HiveD's annotation, a live change of cells, kill -9, and a take-over of pods that HiveD bound.
"""
import json
import sys
import time

import yaml
from real_cluster import Cluster, check, plain_pod, real_kubernetes, skip_all, until

SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
BIND = "hivedscheduler.microsoft.com/pod-bind-info"
ISOLATION = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"


def cells(**clusters):
    """Three nodes of 2 switches with 2 devices; clusters own whole nodes."""
    return yaml.safe_dump(
        {
            "physicalCluster": {
                "cellTypes": {
                    "SWITCH": {"childCellType": "K80", "childCellNumber": 2},
                    "NODE": {"childCellType": "SWITCH", "childCellNumber": 2, "isNodeLevel": True},
                    "POOL": {"childCellType": "NODE", "childCellNumber": 3},
                },
                "physicalCells": [{"cellType": "POOL", "cellChildren": [{"cellAddress": f"n{i}"} for i in range(3)]}],
            },
            "virtualClusters": {
                name: {"virtualCells": [{"cellType": "POOL.NODE", "cellNumber": number}]}
                for name, number in clusters.items()
            },
        }
    )


def config_map(text):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "muster-hived", "namespace": "kube-system"},
        "data": {"hivedscheduler.yaml": text},
    }


def pod(name, gpus, queue=None, group=None, spec=None, **more):
    out = plain_pod(name, gpus, **more)
    notes = out["metadata"].setdefault("annotations", {})
    if queue:
        notes["scheduling.volcano.sh/queue-name"] = queue
    if group:
        notes["scheduling.k8s.io/group-name"] = group
    if spec:
        notes[SPEC] = yaml.safe_dump(spec)
    return out


def queue(name, vc=None, parent=None, gpus=None):
    meta = {"name": name, **({"annotations": {"muster.dev/virtual-cluster": vc}} if vc else {})}
    spec = {
        "weight": 1,
        **({"parent": parent} if parent else {}),
        **({"capability": {"nvidia.com/gpu": gpus}} if gpus else {}),
    }
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": meta, "spec": spec}


def group(name, members, queue_name):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members, "queue": queue_name},
    }


class Cells(Cluster):
    def pod(self, name):
        return next((p for p in self.pods() if p["metadata"]["name"] == name), None)

    def note(self, name, key):
        found = self.pod(name)
        return (found or {}).get("metadata", {}).get("annotations", {}).get(key, "")

    def bound(self, *names):
        return all((self.pod(n) or {"spec": {}})["spec"].get("nodeName") for n in names)

    def told(self, name):
        found = self.pod(name) or {"status": {}}
        return " ".join(c.get("message", "") for c in found["status"].get("conditions", []))

    def remove(self, *names):
        self.real.kubectl("delete", "pod", *names, "--force", "--grace-period=0", check=False)

    def devices_twice(self):
        """Devices that two live pods hold."""
        seen, twice = {}, []
        for one in self.pods():
            for index in filter(None, one["metadata"].get("annotations", {}).get(ISOLATION, "").split(",")):
                key = (one["spec"].get("nodeName"), index)
                if key in seen:
                    twice.append((key, seen[key], one["metadata"]["name"]))
                seen[key] = one["metadata"]["name"]
        return twice

    def set_cells(self, text):
        self.real.kubectl(
            "-n",
            "kube-system",
            "patch",
            "configmap",
            "muster-hived",
            "--type=merge",
            "-p",
            json.dumps({"data": {"hivedscheduler.yaml": text}}),
        )

    def events(self):
        return self.real.kubectl("-n", "kube-system", "get", "events").stdout


def placing(c):
    c.apply(pod("hived", 2, spec={"virtualCluster": "a", "priority": 1, "leafCellType": "K80", "leafCellNumber": 2}))
    check("a pod with HiveD's annotation is bound to cells", until(lambda: c.bound("hived")), c.log()[-2000:])
    check(
        "and carries them in HiveD's format",
        c.note("hived", ISOLATION) == "0,1" and yaml.safe_load(c.note("hived", BIND))["cellChain"] == "POOL",
        c.note("hived", BIND),
    )

    c.apply(queue("team", vc="b"), queue("small", parent="team", gpus=1))
    c.apply(pod("plain", 2, queue="team"))
    check(
        "a pod without it is bound to the virtual cluster of its queue",
        until(lambda: c.bound("plain")),
        c.told("plain"),
    )
    check(
        "and carries the spec that was made for it",
        until(lambda: (yaml.safe_load(c.note("plain", SPEC)) or {}).get("virtualCluster") == "b"),
        c.note("plain", SPEC),
    )
    c.apply(pod("over", 2, queue="small"))
    check(
        "a queue below a virtual cluster keeps its limit",
        until(lambda: "queue small may hold 1 nvidia.com/gpu" in c.told("over")),
        c.told("over"),
    )
    c.apply(pod("nowhere", 1, queue="elsewhere"))
    check(
        "a pod of no virtual cluster is told which there are",
        until(lambda: "belongs to none" in c.told("nowhere") and "(a, b)" in c.told("nowhere")),
        c.told("nowhere"),
    )
    c.remove("over", "nowhere")

    c.apply(queue("a"), pod("w0", 4, group="gang"))
    check("a gang waits for its PodGroup", until(lambda: "no such PodGroup" in c.told("w0")), c.told("w0"))
    c.apply(group("gang", 2, "a"))
    check("and for its pods", until(lambda: "has 1 of 2 pods" in c.told("w0")), c.told("w0"))
    c.apply(pod("w1", 4, group="gang"))
    check(
        "and says what it needs, in cells",
        until(lambda: "a needs 2 x 4" in c.told("w0") and "wait for default/hived" in c.told("w0")),
        c.told("w0"),
    )
    c.remove("hived")
    check(
        "it starts whole",
        until(lambda: c.bound("w0", "w1")) and c.pod("w0")["spec"]["nodeName"] != c.pod("w1")["spec"]["nodeName"],
        c.told("w0"),
    )
    check("no device is held twice", not c.devices_twice(), c.devices_twice())


def changing(c):
    c.set_cells("physicalCluster: {cellTypes: {NODE: {childCellNumber: many}}}\n")
    check(
        "a wrong configuration is refused with its line",
        until(lambda: "CellsRefused" in c.events() and "line 1" in c.events()),
        c.events(),
    )
    c.set_cells(cells(c=2, b=1))
    check("a right one is taken over", until(lambda: "CellsReconfigured" in c.events()), c.events())
    c.apply(pod("new", 4, spec={"virtualCluster": "c", "priority": 5, "leafCellNumber": 4}))
    check(
        "the gang whose virtual cluster is gone gives way to the new owner",
        until(lambda: c.bound("new")),
        c.told("new"),
    )
    check(
        "as a whole",
        until(lambda: c.pod("w0") is None and c.pod("w1") is None),
        [p["metadata"]["name"] for p in c.pods()],
    )


def surviving(c, process):
    c.apply(*[pod(f"k{i}", 1, spec={"virtualCluster": "c", "priority": 5, "leafCellNumber": 1}) for i in range(3)])
    check("more pods run", until(lambda: c.bound("k0", "k1", "k2")), c.told("k0"))
    before = {
        p["metadata"]["name"]: p["metadata"]["annotations"].get(ISOLATION)
        for p in c.pods()
        if p["spec"].get("nodeName")
    }
    process.kill()
    process.wait()
    # A pod that HiveD bound while nobody looked, under HiveD's own scheduler name.
    node = c.pod("k0")["spec"]["nodeName"]
    theirs = pod(
        "theirs", 4, spec={"virtualCluster": "c", "priority": 5, "leafCellNumber": 4}, scheduler="hivedscheduler-ds-c"
    )
    theirs["metadata"]["annotations"].update(
        {
            ISOLATION: "0,1,2,3",
            BIND: yaml.safe_dump(
                {
                    "node": node,
                    "leafCellIsolation": [0, 1, 2, 3],
                    "cellChain": "POOL",
                    "affinityGroupBindInfo": [
                        {
                            "podPlacements": [
                                {
                                    "physicalNode": node,
                                    "physicalLeafCellIndices": [0, 1, 2, 3],
                                    "preassignedCellTypes": ["NODE"] * 4,
                                }
                            ]
                        }
                    ],
                }
            ),
        }
    )
    c.remove("k0", "k1", "k2")
    theirs["spec"]["nodeName"] = node
    c.apply(theirs)
    process = c.start_muster()
    c.apply(pod("late", 1, spec={"virtualCluster": "c", "priority": 5, "leafCellNumber": 1}))
    check(
        "after kill -9 the cells are those of the pods: the virtual cluster is full",
        until(lambda: "insufficient capacity when scheduling in VC c" in c.told("late")),
        c.told("late"),
    )
    after = {
        p["metadata"]["name"]: p["metadata"]["annotations"].get(ISOLATION)
        for p in c.pods()
        if p["spec"].get("nodeName")
    }
    check("nobody moved", all(after.get(n) == before[n] for n in ("new", "plain")), (before, after))
    c.remove("theirs")
    check(
        "what HiveD's pod held is given out when it ends",
        until(lambda: c.bound("late")) and not c.devices_twice(),
        (c.told("late"), c.devices_twice()),
    )
    return process


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    with real_kubernetes.RealKubernetes(controllers=True, groups=True) as real:
        c = Cells(real)
        c.prepare()
        c.apply(config_map(cells(a=2, b=1)))
        process = c.start_muster()
        try:
            begin = time.monotonic()
            placing(c)
            changing(c)
            process = surviving(c, process)
            print(f"      {time.monotonic() - begin:.0f} s")
        finally:
            process.kill()
            process.wait()
        log = c.log()
        check(
            "no right was missing",
            "forbidden" not in log.lower(),
            [line for line in log.splitlines() if "forbidden" in line.lower()][:5],
        )
        if check.failed:
            print(log[-3000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
