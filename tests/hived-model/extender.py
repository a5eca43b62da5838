"""Scenarios of the HTTP extender and the inspect API, with expectations written by hand from the specification."""
from __future__ import annotations

import yaml

PREFIX = "hivedscheduler.microsoft.com/"
WAITING = "Pod is waiting for preemptible or free resource to appear: "


def pod(name, spec=None, uid=None, node=None, phase=None, enabled=1, **annotations):
    notes = {PREFIX + k.replace("_", "-"): v for k, v in annotations.items()}
    if spec is not None:
        notes[PREFIX + "pod-scheduling-spec"] = yaml.safe_dump(spec, sort_keys=False)
    out = {
        "metadata": {"name": name, "namespace": "ns", "uid": uid or "u-" + name, "annotations": notes},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {PREFIX + "pod-scheduling-enable": enabled}}}]},
    }
    if node:
        out["spec"]["nodeName"] = node
    if phase:
        out["status"] = {"phase": phase}
    return out


def node(op, name, ready=True, unschedulable=False):
    return {"op": op, "node": {"name": name, "ready": str(ready), "unschedulable": unschedulable}}


def seen(p, op="podAdded"):
    return {"op": op, "pod": p}


def post(path, body, expect, status=200, **more):
    return {
        "op": "http",
        "method": "POST",
        "path": "/v1/extender/" + path,
        "body": body,
        "expect": {"status": status, "body": expect, **more},
    }


def get(path, expect, status=200):
    return {
        "op": "http",
        "method": "GET",
        "path": path,
        "expect": {"status": status, "contentType": "application/json", "body": expect},
    }


def answer(names=None, failed=None, error=""):
    return {"Nodes": None, "NodeNames": names, "FailedNodes": failed, "Error": error}


def user(label, routine, text):
    return f"hivedscheduler: User Error: [{label}]: {routine}: Failed: {text}"


def filter_(p, suggested, expect, **more):
    return post("filter", {"Pod": p, "NodeNames": suggested}, expect, **more)


def bind_(p, on, error, **more):
    meta = p["metadata"]
    return post(
        "bind",
        {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": on},
        {"Error": error},
        **more,
    )


def preempt_(p, suggested, expect, status=200):
    victims = {n: {"Pods": [], "NumPDBViolations": 0} for n in suggested}
    return post("preempt", {"Pod": p, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}, expect, status)


def bind_info(on, leaves, chain, kind):
    return yaml.safe_dump(
        {
            "node": on,
            "leafCellIsolation": list(leaves),
            "cellChain": chain,
            "affinityGroupBindInfo": [
                {
                    "podPlacements": [
                        {
                            "physicalNode": on,
                            "physicalLeafCellIndices": list(leaves),
                            "preassignedCellTypes": [kind] * len(leaves),
                        }
                    ]
                }
            ],
        },
        sort_keys=False,
    )


def binding(p, on, leaves, chain, kind):
    meta = p["metadata"]
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
            "annotations": {
                PREFIX + "pod-bind-info": bind_info(on, leaves, chain, kind),
                PREFIX + "pod-leaf-cell-isolation": ",".join(map(str, leaves)),
            },
        },
        "target": {"kind": "Node", "name": on},
    }


ONE = {
    "physicalCluster": {
        "cellTypes": {"BOX": {"childCellType": "G", "childCellNumber": 2, "isNodeLevel": True}},
        "physicalCells": [{"cellType": "BOX", "cellAddress": "a"}, {"cellType": "BOX", "cellAddress": "b"}],
    },
    "virtualClusters": {"A": {"virtualCells": [{"cellType": "BOX", "cellNumber": 2}]}, "E": {}},
}
UP = [node("nodeAdded", "a"), node("nodeAdded", "b")]

WHOLE = {"virtualCluster": "A", "priority": 0, "leafCellNumber": 2}
P, Q = pod("p", WHOLE), pod("q", WHOLE)
LOW = [
    pod(f"low{i}", {**WHOLE, "affinityGroup": {"name": "low", "members": [{"podNumber": 2, "leafCellNumber": 2}]}})
    for i in range(2)
]
HIGH = pod("high", {**WHOLE, "priority": 9})
UNKNOWN = "Pod does not exist, completed or has not been informed to the scheduler"


def leaf(address, **more):
    return {
        "cellType": "G",
        "cellAddress": address,
        "cellState": "Free",
        "cellHealthiness": "Healthy",
        "cellPriority": -2,
        **more,
    }


def top(address, state="Free", priority=-2, children=None, healthy="Healthy", **more):
    return {
        "leafCellType": "G",
        "cellType": "BOX",
        "isNodeLevel": True,
        "cellAddress": address,
        "cellState": state,
        "cellHealthiness": healthy,
        "cellPriority": priority,
        **({"cellChildren": children} if children else {}),
        **more,
    }


def used(cell, priority=0, **more):
    return {**cell, "cellState": "Used", "cellPriority": priority, **more}


SCENARIOS = {
    "extender-bind": (
        "A pod is filtered, bound, and told again what was decided.",
        [
            *UP,
            filter_(P, ["a", "b"], answer(error="Code: 400, Message: " + user("u-p(ns/p)", "filterRoutine", UNKNOWN))),
            seen(P),
            bind_(
                P,
                "a",
                "Code: 400, Message: "
                + user("u-p(ns/p)", "bindRoutine", "Pod cannot be bound without a scheduling placement"),
            ),
            filter_(P, ["a", "b"], answer(["a"]), k8sBindings=[]),
            filter_(P, ["a", "b"], answer(["a"]), k8sBindings=[]),
            bind_(
                P,
                "b",
                "Code: 400, Message: "
                + user("u-p(ns/p)", "bindRoutine", "Pod binding node mismatch: expected a, received b"),
                k8sBindings=[],
            ),
            bind_(P, "a", "", k8sBindings=[binding(P, "a", [0, 1], "BOX", "BOX")]),
            seen(pod("p", WHOLE, node="a"), "podUpdated"),
            bind_(
                P,
                "a",
                "Code: 400, Message: " + user("u-p(ns/p)", "bindRoutine", "Pod has already been bound to node a"),
                k8sBindings=[],
            ),
            seen(pod("p", WHOLE, node="a", phase="Succeeded"), "podUpdated"),
            seen(Q),
            filter_(Q, ["a", "b"], answer(["b"])),
        ],
    ),
    "extender-force-bind": (
        "A decision that Kubernetes does not carry out is carried out: unknown or unsuggested node, or too many attempts.",
        [
            *UP,
            seen(P),
            filter_(P, ["a", "b"], answer(["a"]), k8sBindings=[]),
            *[filter_(P, ["a"], answer(["a"]), k8sBindings=[]) for _ in range(2)],
            filter_(P, ["a"], answer(["a"]), k8sBindings=[binding(P, "a", [0, 1], "BOX", "BOX")]),
            seen(Q),
            filter_(Q, ["a"], answer(["b"]), k8sBindings=[binding(Q, "b", [0, 1], "BOX", "BOX")]),
        ],
    ),
    "extender-bind-fails": (
        "The API server refuses the binding: a platform error, and the decision stands.",
        [
            *UP,
            seen(P),
            filter_(P, ["a", "b"], answer(["a"])),
            {"op": "setBindStatus", "status": 500},
            bind_(
                P,
                "a",
                "Code: 500, Message: hivedscheduler: Platform Error: [u-p(ns/p)]: bindRoutine: Failed: x",
                k8sBindings=[binding(P, "a", [0, 1], "BOX", "BOX")],
            ),
            {"op": "setBindStatus", "status": 201},
            bind_(P, "a", "", k8sBindings=[binding(P, "a", [0, 1], "BOX", "BOX")]),
        ],
    ),
    "extender-wait": (
        "What does not fit waits, with the reason under the scheduler's own name.",
        [
            *UP,
            seen(P),
            seen(Q),
            filter_(P, ["a", "b"], answer(["a"])),
            filter_(Q, ["a", "b"], answer(["b"])),
            seen(pod("r", WHOLE)),
            filter_(
                pod("r", WHOLE),
                ["a", "b"],
                answer(failed={"hivedscheduler": WAITING + "insufficient capacity when scheduling in VC A"}),
            ),
            preempt_(pod("r", WHOLE), ["a", "b"], {"NodeNameToMetaVictims": None}),
            seen(P, "podDeleted"),
            filter_(pod("r", WHOLE), ["a", "b"], answer(["a"])),
        ],
    ),
    "extender-preempt": (
        "Filtering names the victims, preempting reserves their cells, the next filter binds.",
        [
            *UP,
            *[seen(p) for p in LOW],
            filter_(LOW[0], ["a", "b"], answer(["a"])),
            filter_(LOW[1], ["a", "b"], answer(["b"])),
            seen(HIGH),
            {
                "op": "http",
                "method": "POST",
                "path": "/v1/extender/filter",
                "body": {"pod": HIGH, "nodenames": ["a", "b"]},
                "expect": {
                    "status": 200,
                    "body": {
                        "anyOf": [
                            answer(failed={n: f"node({n}) has preemptible Pods: u-{p}(ns/{p})"})
                            for n, p in (("a", "low0"), ("b", "low1"))
                        ]
                    },
                },
            },
            preempt_(LOW[0], ["a"], user("u-low0(ns/low0)", "preemptRoutine", "x"), 400),
            post(
                "preempt",
                {"Pod": HIGH, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u-low0"}]}, "b": {}}},
                {
                    "anyOf": [
                        {"NodeNameToMetaVictims": {n: {"Pods": [{"UID": f"u-{p}"}], "NumPDBViolations": 0}}}
                        for n, p in (("a", "low0"), ("b", "low1"))
                    ]
                },
            ),
            get(
                "/v1/inspect/affinitygroups/ns/high",
                {
                    "metadata": {"name": "ns/high"},
                    "status": {
                        "vc": "A",
                        "priority": 9,
                        "state": "Preempting",
                        "physicalPlacement": {"a": [0, 1]},
                        "virtualPlacement": {"A/0": ["A/0/0", "A/0/1"]},
                        "preemptingPods": ["u-high"],
                    },
                },
            ),
            seen(LOW[0], "podDeleted"),
            seen(LOW[1], "podDeleted"),
            preempt_(HIGH, ["a", "b"], {"NodeNameToMetaVictims": None}),
            filter_(HIGH, ["a", "b"], answer(["a"])),
        ],
    ),
    "extender-wrong-requests": (
        "Requests that cannot be understood, methods and paths that do not exist.",
        [
            {
                "op": "http",
                "method": "POST",
                "path": "/v1/extender/filter",
                "rawBody": "{",
                "expect": {"status": 200, "body": answer(error="Code: 400, Message: x")},
            },
            {
                "op": "http",
                "method": "POST",
                "path": "/v1/extender/preempt",
                "rawBody": "{",
                "expect": {"status": 400, "body": "x"},
            },
            post("bind", {"PodName": "p"}, {"Error": "Code: 400, Message: x"}),
            post("filter", {"NodeNames": []}, answer(error="Code: 400, Message: x")),
            {
                "op": "http",
                "method": "POST",
                "path": "/v1/inspect/clusterstatus",
                "expect": {"status": 400, "body": "NotImplemented: POST: /v1/inspect/clusterstatus"},
            },
            get("/v2", "Path not found: /v2", 404),
            get(
                "/v1/inspect/affinitygroups/none",
                "Affinity group none does not exist since it is not allocated or preempting",
                400,
            ),
            get("/v1/inspect/clusterstatus/virtualclusters/none", "VC none not found", 400),
            seen(pod("s", {"virtualCluster": "A", "leafCellNumber": 0})),
            filter_(
                pod("s", {"virtualCluster": "A", "leafCellNumber": 0}),
                ["a"],
                answer(
                    error="Code: 400, Message: "
                    + user(
                        "u-s(ns/s)",
                        "filterRoutine",
                        "Pod annotation " + PREFIX + "pod-scheduling-spec: LeafCellNumber is non-positive",
                    )
                ),
            ),
        ],
    ),
    "extender-recovery": (
        "Bound pods are taken over from their annotations; those bound by somebody else, and those of no interest, are not counted.",
        [
            *UP,
            seen(pod("old", WHOLE, node="b", pod_bind_info=bind_info("b", [0, 1], "BOX", "BOX"))),
            seen(pod("stranger", WHOLE, node="a")),
            seen(pod("plain", None, enabled=0, node="a")),
            get(
                "/v1/inspect/affinitygroups/",
                {
                    "items": [
                        {
                            "metadata": {"name": "ns/old"},
                            "status": {
                                "vc": "A",
                                "priority": 0,
                                "state": "Allocated",
                                "physicalPlacement": {"b": [0, 1]},
                                "virtualPlacement": {"A/0": ["A/0/0", "A/0/1"]},
                                "allocatedPods": ["u-old"],
                            },
                        }
                    ]
                },
            ),
            seen(P),
            filter_(P, ["a", "b"], answer(["a"])),
            seen(pod("old", WHOLE, node="b", phase="Failed"), "podUpdated"),
            seen(Q),
            filter_(Q, ["a", "b"], answer(["b"])),
        ],
    ),
    "extender-renewed-pod": (
        "The same name with another UID is another pod.",
        [
            *UP,
            seen(P),
            filter_(P, ["a", "b"], answer(["a"])),
            seen(pod("p", WHOLE, uid="second"), "podUpdated"),
            get("/v1/inspect/affinitygroups/", {"items": None}),
            filter_(pod("p", WHOLE, uid="second"), ["a", "b"], answer(["b"])),
        ],
    ),
    "extender-node-health": (
        "Cordoned, unready and deleted nodes are bad.",
        [
            *UP,
            node("nodeUpdated", "a", unschedulable=True),
            seen(P),
            filter_(P, ["a", "b"], answer(["b"])),
            seen(Q),
            filter_(
                Q,
                ["a", "b"],
                answer(
                    failed={"hivedscheduler": WAITING + "have to use at least one bad node a when scheduling in VC A"}
                ),
            ),
            node("nodeUpdated", "a"),
            node("nodeUpdated", "a", ready=False),
            filter_(
                Q,
                ["a", "b"],
                answer(
                    failed={"hivedscheduler": WAITING + "have to use at least one bad node a when scheduling in VC A"}
                ),
            ),
            {"op": "nodeDeleted", "node": {"name": "a"}},
            node("nodeAdded", "a"),
            filter_(Q, ["a", "b"], answer(["a"])),
        ],
    ),
    "inspect-cells": (
        "The cluster as JSON: free, used, opportunistic, bad and lost cells.",
        [
            *UP,
            get(
                "/",
                {
                    "paths": [
                        "/",
                        "/v1/extender/filter",
                        "/v1/extender/bind",
                        "/v1/extender/preempt",
                        "/v1/inspect/affinitygroups/",
                        "/v1/inspect/clusterstatus",
                        "/v1/inspect/clusterstatus/physicalcluster",
                        "/v1/inspect/clusterstatus/virtualclusters/",
                    ]
                },
            ),
            get("/v1/inspect/affinitygroups/", {"items": None}),
            get(
                "/v1/inspect/clusterstatus",
                {
                    "physicalCluster": [top(n, children=[leaf(f"{n}/0"), leaf(f"{n}/1")]) for n in "ab"],
                    "virtualClusters": {
                        "A": [top(f"A/{i}", children=[leaf(f"A/{i}/0"), leaf(f"A/{i}/1")]) for i in (0, 1)],
                        "E": [],
                    },
                },
            ),
            seen(pod("one", {**WHOLE, "leafCellNumber": 1, "priority": 5})),
            filter_(pod("one", {**WHOLE, "leafCellNumber": 1, "priority": 5}), ["a", "b"], answer(["a"])),
            seen(pod("o", {"virtualCluster": "E", "priority": -1, "leafCellNumber": 1})),
            filter_(pod("o", {"virtualCluster": "E", "priority": -1, "leafCellNumber": 1}), ["a", "b"], answer(["b"])),
            get(
                "/v1/inspect/clusterstatus/physicalcluster",
                [
                    top(
                        "a",
                        "Used",
                        5,
                        [used(leaf("a/0"), 5, vc="A", virtualCell=used(leaf("A/0/0"), 5)), leaf("a/1")],
                        vc="A",
                        virtualCell=top("A/0", "Used", 5),
                    ),
                    top("b", "Used", -1, [used(leaf("b/0"), -1, vc="E"), leaf("b/1")]),
                ],
            ),
            get(
                "/v1/inspect/clusterstatus/virtualclusters/A",
                [
                    top(
                        "A/0",
                        "Used",
                        5,
                        [used(leaf("A/0/0"), 5, physicalCell=used(leaf("a/0"), 5, vc="A")), leaf("A/0/1")],
                        physicalCell=top("a", "Used", 5, vc="A"),
                    ),
                    top("A/1", children=[leaf("A/1/0"), leaf("A/1/1")]),
                ],
            ),
            get(
                "/v1/inspect/clusterstatus/virtualclusters/E",
                [used(leaf("b/0-opp"), -1, physicalCell=used(leaf("b/0"), -1, vc="E"))],
            ),
            seen(pod("o"), "podDeleted"),
            node("nodeUpdated", "b", ready=False),
            get(
                "/v1/inspect/clusterstatus/virtualclusters/A",
                [
                    top(
                        "A/0",
                        "Used",
                        5,
                        [used(leaf("A/0/0"), 5, physicalCell=used(leaf("a/0"), 5, vc="A")), leaf("A/0/1")],
                        physicalCell=top("a", "Used", 5, vc="A"),
                    ),
                    top(
                        "A/1",
                        healthy="Bad",
                        physicalCell=top("b", healthy="Bad", vc="A"),
                        children=[
                            {
                                **leaf(f"A/1/{i}"),
                                "cellHealthiness": "Bad",
                                "physicalCell": {**leaf(f"b/{i}"), "cellHealthiness": "Bad", "vc": "A"},
                            }
                            for i in (0, 1)
                        ],
                    ),
                ],
            ),
        ],
    ),
}


def files():
    return [
        {"name": name, "description": about, "config": ONE, "chainOrder": "descending", "steps": steps}
        for name, (about, steps) in SCENARIOS.items()
    ]
