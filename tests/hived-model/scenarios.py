#!/usr/bin/env python3
"""scenarios.py FOLDER: writes the single-behaviour scenarios of tests/vectors/hived.

What each is about is written by hand (`claims`: what a step must lead to); the model fills in the remaining
expectations and must agree with the claims.
"""
from __future__ import annotations

import itertools
import json
import os
import sys

import extender
from model import Insane
from scenario import Scenario, differs


def types(**kinds):
    out = {}
    for name, (child, number, *node) in kinds.items():
        out[name.replace("_", "-")] = {
            "childCellType": child,
            "childCellNumber": number,
            **({"isNodeLevel": True} if node else {}),
        }
    return out


NODE = types(SW=("G", 2), NODE=("SW", 2, True))


def nodes(*names, **extra):
    return [{"cellAddress": n, **extra} for n in names]


def conf(kinds, cells, clusters):
    return {"physicalCluster": {"cellTypes": kinds, "physicalCells": cells}, "virtualClusters": clusters}


def vc(*cells, pinned=()):
    out = {"virtualCells": [{"cellType": t, "cellNumber": n} for t, n in cells]}
    if pinned:
        out["pinnedCells"] = [{"pinnedCellId": p} for p in pinned]
    return out


# One pool of four nodes with 2 switches of 2 devices each; A and B own two nodes each.
POOL = {**NODE, "POOL": {"childCellType": "NODE", "childCellNumber": 4}}
POOL4 = conf(
    POOL,
    [{"cellType": "POOL", "cellChildren": nodes("n0", "n1", "n2", "n3")}],
    {"A": vc(("POOL.NODE", 2)), "B": vc(("POOL.NODE", 2))},
)
# Two racks of two nodes; A owns a rack, B two nodes.
RACK = {**NODE, "RACK": {"childCellType": "NODE", "childCellNumber": 2}}
RACKS = conf(
    RACK,
    [
        {"cellType": "RACK", "cellChildren": nodes("r0a", "r0b")},
        {"cellType": "RACK", "cellChildren": nodes("r1a", "r1b")},
    ],
    {"A": vc(("RACK", 1)), "B": vc(("RACK.NODE", 2))},
)


def spec(cluster, priority, leaves, group=None, members=None, **more):
    out = {"virtualCluster": cluster, "priority": priority, "leafCellNumber": leaves, **more}
    if group:
        out["affinityGroup"] = {
            "name": group,
            "members": [{"podNumber": n, "leafCellNumber": k} for n, k in members or [(1, leaves)]],
        }
    return out


def run(pod, *args, phase="Filtering", suggested="all", claim=None, **more):
    return {
        "op": "schedule",
        "pod": pod,
        "phase": phase,
        "suggestedNodes": suggested,
        "spec": spec(*args, **more),
    }, claim


def again(pod, phase="Filtering", suggested="all", claim=None):
    return {"op": "schedule", "pod": pod, "phase": phase, "suggestedNodes": suggested}, claim


def gone(pod):
    return {"op": "deleteAllocated", "pod": pod}, None


def given_up(pod):
    return {"op": "deleteUnallocated", "pod": pod}, None


def bad(node):
    return {"op": "setNodeBad", "node": node}, None


def well(node):
    return {"op": "setNodeHealthy", "node": node}, None


def restart(**more):
    return {"op": "restart", "initialNodes": "allHealthy", "chainOrder": "descending", **more}, None


def look(claim=None):
    return {"op": "inspect"}, claim


def on(node, *leaves):
    return {"bind": {"node": node, **({"leafCells": list(leaves)} if leaves else {})}}


def wait(reason=None):
    return {"wait": {"reason": reason} if reason else {}}


def kill(*pods):
    return {"preempt": {"victims": sorted(pods)}}


def error(text):
    return {"error": {"kind": "user", "message": text}}


def state(**groups):
    return {"state": {"groups": {k.replace("__", "/"): v for k, v in groups.items()}}}


NO_ROOM_A = "insufficient capacity when scheduling in VC A"
SPEC = "Pod annotation hivedscheduler.microsoft.com/pod-scheduling-spec: "

SCENARIOS = {
    "order-of-free-nodes": (
        "After all nodes were reported the first node given out is n0, then the last one that filled its place.",
        POOL4,
        [
            run("a", "A", 0, 4, claim=on("n0")),
            run("b", "A", 0, 4, claim=on("n3")),
            run("c", "B", 0, 4, claim=on("n2")),
            run("d", "B", 0, 4, claim=on("n1")),
            run("e", "A", 0, 1, claim=wait(NO_ROOM_A)),
            look(),
        ],
    ),
    "buddies-split-and-merge": (
        "Pods that leave give switches, nodes and the pool back as they were.",
        POOL4,
        [
            run("a", "A", 0, 1),
            run("b", "B", 0, 1),
            run("c", "A", 0, 2),
            look(),
            gone("a"),
            look(),
            gone("c"),
            gone("b"),
            look(),
        ],
    ),
    "devices-of-one-switch": (
        "Two devices come from one switch, three need the node.",
        POOL4,
        [
            run("a", "A", 0, 1, claim=on("n0", 0)),
            run("b", "A", 0, 2, claim=on("n0", 2, 3)),
            run("c", "A", 0, 1, claim=on("n0", 1)),
            run("d", "A", 0, 3, claim=on("n3", 0, 1, 2)),
        ],
    ),
    "gang-all-or-nothing": (
        "A gang larger than its virtual cluster waits as a whole; a smaller one runs past it.",
        POOL4,
        [
            run("a0", "A", 0, 4, "big", [(3, 4)], claim=wait(NO_ROOM_A)),
            run("b0", "A", 0, 4, "small", [(2, 4)], claim=on("n0")),
            again("b0", claim=on("n3")),
            run(
                "b2",
                "A",
                0,
                4,
                "small",
                [(2, 4)],
                claim=error(
                    "[b2(test/b2)]: Requesting more pods than the configured number for 4 leaf cells (2 pods) in affinity group small"
                ),
            ),
        ],
    ),
    "gang-of-two-sizes": (
        "Members with equal leaf numbers count together; small pods are placed first.",
        POOL4,
        [
            run("w0", "A", 0, 2, "g", [(1, 2), (1, 4), (1, 2)], claim=on("n0", 0, 1)),
            run("w1", "A", 0, 4, "g", [(1, 4), (2, 2)], claim=on("n3", 0, 1, 2, 3)),
            run("w2", "A", 0, 2, "g", [(2, 2), (1, 4)], claim=on("n0", 2, 3)),
            look(),
            gone("w0"),
            gone("w1"),
            look(),
            gone("w2"),
            look(),
        ],
    ),
    "greedy-search-misses": (
        "Pods of 1, 1, 3 and 3 on two nodes of 4: the search never goes back, so the gang waits.",
        POOL4,
        [run("p", "A", 0, 1, "g", [(2, 1), (2, 3)], claim=wait(NO_ROOM_A))],
    ),
    "preempt-inside": (
        "A higher priority takes the cells of a lower one of its own virtual cluster, whole gangs at a time.",
        POOL4,
        [
            run("low0", "A", 1, 4, "low", [(2, 4)]),
            run("low1", "A", 1, 4, "low", [(2, 4)]),
            run("same", "A", 1, 4, claim=wait(NO_ROOM_A)),
            run("high", "A", 2, 1, claim={"anyOf": [kill("low0"), kill("low1")]}),
            look(),
            again("high", phase="Preempting"),
            look(state(low={"state": "BeingPreempted"}, test__high={"state": "Preempting"})),
            again(
                "low0",
                claim=error(
                    "[low0(test/low0)]: Requesting more pods than the configured number for 4 leaf cells (2 pods) in affinity group low"
                ),
            ),
            gone("low0"),
            again("high", phase="Preempting"),
            gone("low1"),
            look(),
            again("high", claim=on("n0", 0)),
            look(),
        ],
    ),
    "preempt-given-up": (
        "The last waiting pod of a preempting gang goes: its victims have their cells back.",
        POOL4,
        [
            run("low", "A", 0, 4, claim=on("n0")),
            run("low2", "A", 0, 4),
            run("high", "A", 9, 4, phase="Preempting"),
            look(),
            given_up("high"),
            look(),
            run("other", "A", 9, 4, claim={"anyOf": [kill("low"), kill("low2")]}),
        ],
    ),
    "preemptor-preempted": (
        "A still higher gang takes a reservation over; the first preemptor is forgotten.",
        POOL4,
        [
            run("low", "A", 0, 4),
            run("low2", "A", 0, 4),
            run("mid", "A", 5, 4, phase="Preempting"),
            run("high", "A", 9, 4, "h", [(2, 4)], phase="Preempting"),
            look(),
            gone("low"),
            gone("low2"),
            again("high"),
            look(),
            again("mid", claim=wait(NO_ROOM_A)),
        ],
    ),
    "reserved-cells-and-filtering": (
        "A higher gang that fits on reserved cells is bound and the preemptor cancelled, in the filtering phase too.",
        POOL4,
        [
            run("low", "A", 0, 4),
            run("low2", "A", 0, 4),
            run("mid", "A", 5, 4, phase="Preempting"),
            look(),
            gone("low"),
            gone("low2"),
            look(),
            run("high", "A", 9, 4, "h", [(2, 4)]),
            look(),
            again("mid", claim=wait(NO_ROOM_A)),
        ],
        "hived-bug",
    ),
    "being-preempted-pod": (
        "A missing pod of a gang that is being preempted waits or takes its slot; it does not break anything.",
        POOL4,
        [
            run("l0", "A", 0, 4, "low", [(2, 4)]),
            run("high", "A", 9, 4, phase="Preempting", claim=kill("l0")),
            run("l1", "A", 0, 4, "low", [(2, 4)], claim=wait()),
            given_up("high"),
            again("l1", claim=on("n3")),
            look(),
        ],
        "hived-bug",
    ),
    "lazy-preemption": (
        "A gang that allows it is downgraded instead of killed, and stays so.",
        POOL4,
        [
            run("lazy", "A", 0, 4, lazyPreemptionEnable=True, claim=on("n0")),
            run("plain", "A", 1, 4),
            run("high", "A", 2, 4, claim=on("n2")),
            look(state(test__lazy={"lazyPreempted": True, "preemptor": "test/high", "virtualPlacement": None})),
            gone("high"),
            look(),
            run("b0", "B", 0, 4, "b", [(2, 4)]),
            look(),
            restart(),
            look(),
        ],
    ),
    "lazy-preemption-reverted": (
        "Mapping fails after the downgrade: everything is as before.",
        RACKS,
        [
            run("lazy", "A", 0, 4, lazyPreemptionEnable=True, claim=on("r0a")),
            bad("r0b"),
            look(),
            run("high", "A", 1, 4, suggested={"allExcept": ["r0a"]}, ignoreK8sSuggestedNodes=False),
            look(),
        ],
    ),
    "opportunistic-anywhere": (
        "Opportunistic pods use idle cells of anybody and give way to whoever owns them.",
        POOL4,
        [
            run("o0", "A", -1, 4, "o", [(4, 4)], claim=on("n0")),
            again("o0", claim=on("n1")),
            look(),
            run("b", "B", 0, 1),
            look(),
            again("b", phase="Preempting"),
            look(),
            run("o9", "B", -1, 1, claim=wait("insufficient capacity when scheduling in physical cluster")),
        ],
    ),
    "opportunistic-spared": (
        "Mapping prefers cells without opportunistic pods.",
        POOL4,
        [
            run("o", "A", -1, 1, claim=on("n0", 0)),
            run("a", "A", 0, 4, claim=on("n1")),
            run("b", "B", 0, 4),
            run("b2", "B", 0, 4),
            run("a2", "A", 0, 4, claim=kill("o")),
        ],
    ),
    "single-cells-never-combined": (
        "A virtual cluster that owns devices runs no pod of two, even on one switch.",
        conf(NODE, [{"cellType": "NODE", "cellAddress": "n"}], {"A": vc(("NODE.SW.G", 4))}),
        [
            run("two", "A", 0, 2, claim=wait(NO_ROOM_A)),
            run("one", "A", 0, 1, claim=on("n", 0)),
            run("g0", "A", 0, 1, "g", [(3, 1)], claim=on("n", 1)),
            look(),
        ],
    ),
    "whole-nodes-first": (
        "A node is broken although single devices are free.",
        conf(
            NODE, [{"cellType": "NODE", "cellAddress": n} for n in ("x", "y")], {"A": vc(("NODE.SW.G", 2), ("NODE", 1))}
        ),
        [run("one", "A", 0, 1), look(), run("four", "A", 0, 4, claim=wait(NO_ROOM_A))],
    ),
    "pinned-at-each-level": (
        "A pinned device, switch, node and rack; each serves only pods that name it, unless opportunistic.",
        conf(
            RACK,
            [
                {
                    "cellType": "RACK",
                    "cellChildren": [
                        {"cellAddress": "p0", "pinnedCellId": "node"},
                        {
                            "cellAddress": "p1",
                            "cellChildren": [
                                {"pinnedCellId": "switch"},
                                {"cellChildren": [{"pinnedCellId": "device"}, {}]},
                            ],
                        },
                    ],
                },
                {"cellType": "RACK", "pinnedCellId": "rack", "cellChildren": nodes("p2", "p3")},
            ],
            {"A": vc(pinned=("node", "switch", "device")), "B": vc(("RACK.NODE.SW.G", 1), pinned=("rack",))},
        ),
        [
            look(),
            run("d", "A", 0, 1, pinnedCellId="device", claim=on("p1", 2)),
            run("d2", "A", 0, 1, pinnedCellId="device", claim=wait(NO_ROOM_A)),
            run("s", "A", 0, 2, pinnedCellId="switch", claim=on("p1", 0, 1)),
            run("n", "A", 0, 4, pinnedCellId="node", claim=on("p0")),
            run("r", "B", 0, 4, "r", [(2, 4)], pinnedCellId="rack", claim=on("p2")),
            run("g", "B", 0, 1, claim=on("p1", 3)),
            run("plain", "A", 0, 1, claim=wait(NO_ROOM_A)),
            run(
                "typed",
                "A",
                0,
                1,
                leafCellType="G",
                claim=error("[typed(test/typed)]: Pod requesting leaf cell type G which VC A does not have"),
            ),
            run(
                "foreign",
                "A",
                0,
                1,
                pinnedCellId="rack",
                claim=error("[foreign(test/foreign)]: VC A does not have pinned cell rack"),
            ),
            run(
                "oppo",
                "A",
                -1,
                1,
                pinnedCellId="node",
                claim=error("[oppo(test/oppo)]: opportunistic pod not supported to use pinned cell node"),
            ),
            look(),
            gone("n"),
            run("o", "B", -1, 4, claim=on("p0")),
            look(),
            again("n", claim=kill("o")),
        ],
    ),
    "any-leaf-type": (
        "A pod that names no type is tried on every type; one that names a type only there.",
        conf(
            {**NODE, "M": {"childCellType": "H", "childCellNumber": 2, "isNodeLevel": True}},
            [{"cellType": "NODE", "cellAddress": "g"}, {"cellType": "M", "cellAddress": "h"}],
            {"A": vc(("NODE", 1), ("M", 1)), "B": vc()},
        ),
        [
            run("a", "A", 0, 4, leafCellType="G", claim=on("g")),
            run("b", "A", 0, 1, claim=on("h", 0)),
            run("c", "A", 0, 1, leafCellType="G", claim=wait(NO_ROOM_A)),
            run(
                "d",
                "A",
                0,
                1,
                leafCellType="X",
                claim=error("[d(test/d)]: Pod requesting leaf cell type X which the whole cluster does not have"),
            ),
            run(
                "e",
                "B",
                0,
                1,
                leafCellType="G",
                claim=error("[e(test/e)]: Pod requesting leaf cell type G which VC B does not have"),
            ),
            run("f", "B", 0, 1, claim=wait()),
            run("g", "B", -1, 1, leafCellType="H", claim=on("h", 1)),
            run("h", "nobody", 0, 1, claim=error("[h(test/h)]: VC nobody does not exists!")),
        ],
    ),
    "chains-of-one-type": (
        "Chains of one type are tried in descending order of name; a gang never spans two.",
        conf(
            types(ONE=("G", 2, True), TWO=("G", 2, True)),
            [{"cellType": t, "cellAddress": a} for t, a in (("ONE", "a"), ("TWO", "b"), ("ONE", "c"), ("TWO", "d"))],
            {"A": vc(("ONE", 2), ("TWO", 2))},
        ),
        [
            run("p", "A", 0, 2, leafCellType="G", claim={"bind": {"cellChain": "TWO"}}),
            run("q", "A", 0, 2, "q", [(2, 2)], claim={"bind": {"cellChain": "ONE"}}),
            run("r", "A", 0, 2, "r", [(2, 2)], claim=wait(NO_ROOM_A)),
            look(),
        ],
    ),
    "one-node-in-two-chains": (
        "Two kinds of devices of one machine are two chains; a failure hits both.",
        conf(
            types(GN=("G", 2, True), HN=("H", 2, True)),
            [
                {"cellType": "GN", "cellAddress": "m"},
                {"cellType": "HN", "cellAddress": "m", "cellChildren": [{"cellAddress": 8}, {"cellAddress": 9}]},
            ],
            {"A": vc(("GN", 1), ("HN", 1))},
        ),
        [
            run("g", "A", 0, 2, leafCellType="G", claim=on("m", 0, 1)),
            bad("m"),
            look(),
            run(
                "h",
                "A",
                0,
                1,
                leafCellType="H",
                claim=wait("have to use at least one bad node m when scheduling in VC A"),
            ),
            well("m"),
            again("h", claim=on("m", 8)),
            look(),
        ],
    ),
    "odd-device-numbers": (
        "Devices keep the numbers they were given, in the order of the tree.",
        conf(
            NODE,
            [
                {
                    "cellType": "NODE",
                    "cellAddress": "n",
                    "cellChildren": [
                        {"cellAddress": "s", "cellChildren": [{"cellAddress": 7}, {"cellAddress": 1}]},
                        {"cellChildren": [{"cellAddress": "5"}, {}]},
                    ],
                }
            ],
            {"A": vc(("NODE", 1))},
        ),
        [run("a", "A", 0, 2, claim=on("n", 7, 1)), run("b", "A", 0, 2), look()],
    ),
    "bad-node-waits": (
        "The next fitting node is bad: the pod waits and says which; it runs when the node heals.",
        POOL4,
        [
            bad("n1"),
            bad("n2"),
            bad("n3"),
            look(),
            run("a", "A", 0, 4, claim=on("n0")),
            look(),
            run("a2", "A", 0, 4, claim=wait()),
            run("b", "B", 0, 1, claim=wait()),
            look(),
            well("n2"),
            look(),
            again("a2"),
            again("b"),
            look(),
            well("n1"),
            well("n3"),
            look(),
            again("b"),
        ],
    ),
    "bad-under-a-pod": (
        "A node fails under a running pod: the pod keeps its cells; they go back when both are over.",
        POOL4,
        [
            run("a", "A", 0, 2, claim=on("n0", 0, 1)),
            bad("n0"),
            look(),
            run("a2", "A", 0, 2, claim=on("n3")),
            gone("a"),
            look(),
            well("n0"),
            look(),
            gone("a2"),
            look(),
        ],
    ),
    "doomed-bind-and-unbind": (
        "With too few healthy nodes a promise is shown as lost on a bad one, and comes back with health.",
        POOL4,
        [
            bad("n0"),
            look(),
            bad("n1"),
            bad("n2"),
            look(),
            well("n1"),
            look(),
            bad("n3"),
            look(),
            bad("n1"),
            look(),
            *[well(n) for n in ("n3", "n0", "n2", "n1")],
            look(),
        ],
    ),
    "doomed-rack-in-use": (
        "A rack with a bad node is doomed, used through its good node, heals in use, and is whole afterwards.",
        RACKS,
        [
            bad("r0b"),
            bad("r1b"),
            look(),
            run("a", "A", 0, 4),
            look(),
            well("r0b"),
            well("r1b"),
            look(),
            gone("a"),
            look(),
            run("a0", "A", 0, 4, "a", [(2, 4)]),
            again("a0"),
            look(),
        ],
        "hived-bug",
    ),
    "opportunistic-on-a-failing-node": (
        "An opportunistic pod on a node that becomes a lost promise of another virtual cluster leaves the books in order.",
        POOL4,
        [
            run("o", "A", -1, 4, claim=on("n0")),
            bad("n0"),
            bad("n1"),
            bad("n2"),
            look(),
            gone("o"),
            look(),
            well("n0"),
            well("n1"),
            well("n2"),
            look(),
            run("b", "B", 0, 4, "b", [(2, 4)]),
            look(),
        ],
        "hived-bug",
    ),
    "storm-at-start": (
        "Nothing is healthy at first; nodes come one by one, fail and come again.",
        POOL4,
        [
            look(),
            run("a", "A", 0, 1, claim=wait()),
            well("n2"),
            again("a", claim=on("n2", 0)),
            bad("n2"),
            look(),
            *[well(n) for n in ("n3", "n2", "n0", "n1")],
            look(),
            *[step for n in ("n0", "n1", "n2", "n3") for step in (bad(n), well(n))],
            look(),
            gone("a"),
            look(),
        ],
        "",
        "allBad",
    ),
    "not-suggested": (
        "A node that Kubernetes does not suggest is avoided unless the pod ignores suggestions.",
        POOL4,
        [
            run("a", "A", 0, 4, suggested=["n1", "n2"], ignoreK8sSuggestedNodes=False, claim=on("n1")),
            run("b", "A", 0, 4, suggested=["n0"], claim=on("n0")),
            run("c", "B", 0, 4, suggested=[], ignoreK8sSuggestedNodes=False, claim=wait()),
            run("d", "B", 0, 4, suggested=[], claim=on("n2")),
            run(
                "o",
                "B",
                -1,
                4,
                suggested=["n0", "n2"],
                ignoreK8sSuggestedNodes=False,
                claim=wait("have to use at least one non-suggested node 0/n3 when scheduling in physical cluster"),
            ),
        ],
    ),
    "preemption-replanned": (
        "A node of a preempting gang turns bad: cancelled and planned anew in the same call.",
        POOL4,
        [
            run("l0", "A", 0, 4, claim=on("n0")),
            run("l1", "A", 0, 4, claim=on("n3")),
            run("high", "A", 5, 4, phase="Preempting"),
            look(),
            bad("n0"),
            again("high", phase="Preempting"),
            look(),
        ],
    ),
    "ignored-suggestions-are-kept": (
        "A preempting gang that ignores suggestions is not cancelled by them.",
        POOL4,
        [
            run("l0", "A", 0, 4),
            run("l1", "A", 0, 4),
            run("high", "A", 5, 4, phase="Preempting"),
            look(),
            again("high", phase="Preempting", suggested=["n1"]),
            look(),
        ],
        "hived-bug",
    ),
    "restart-in-any-order": (
        "The first pod listed need not be the first of its gang; ends of single pods free nothing.",
        POOL4,
        [
            run("w0", "A", 0, 2, "g", [(3, 2)]),
            run("w1", "A", 0, 2, "g", [(3, 2)]),
            run("w2", "A", 0, 2, "g", [(3, 2)]),
            restart(replay=["w2", "w0", "w1"]),
            look(),
            gone("w0"),
            look(),
            restart(replay=["w1", "w2"]),
            run("w3", "A", 0, 2, "g", [(3, 2)], claim=on("n0", 0, 1)),
            gone("w1"),
            gone("w2"),
            look(),
            gone("w3"),
            look(),
        ],
        "hived-bug",
    ),
    "restart-forgets-preemption": (
        "Only bound pods survive: reservations and downgrades do not.",
        POOL4,
        [
            run("l0", "A", 0, 4, lazyPreemptionEnable=True),
            run("l1", "A", 0, 4),
            run("high", "A", 5, 4, "h", [(2, 4)], phase="Preempting"),
            look(),
            restart(),
            look(),
            again("high", phase="Preempting"),
            look(),
        ],
    ),
    "recover-while-bad": (
        "Pods are listed before any node is known to be healthy.",
        conf(POOL, POOL4["physicalCluster"]["physicalCells"], {"A": vc(("POOL.NODE", 4))}),
        [
            run("a", "A", 0, 4),
            run("a2", "A", 0, 1),
            restart(initialNodes="allBad"),
            look(),
            *[well(n) for n in ("n0", "n1", "n2", "n3")],
            look(),
            gone("a"),
            gone("a2"),
            look(),
        ],
    ),
    "reconfig-vc-removed": (
        "The virtual cluster is gone: its gang is downgraded and can be preempted by the new owner.",
        POOL4,
        [
            run("a", "A", 0, 4, "a", [(2, 4)]),
            again("a"),
            run("o", "A", -1, 1),
            restart(config=conf(POOL, POOL4["physicalCluster"]["physicalCells"], {"B": vc(("POOL.NODE", 4))})),
            look(state(a={"lazyPreempted": True, "preemptor": "a"})),
            run("late", "A", 0, 1, claim=error("[late(test/late)]: VC A does not exists!")),
            run("b", "B", 0, 4, "b", [(4, 4)], phase="Preempting"),
            look(),
        ],
    ),
    "reconfig-vc-shrunk": (
        "Whoever is listed later finds no cell and is downgraded, or takes it with a higher priority.",
        POOL4,
        [
            run("low", "A", 0, 4),
            run("high", "A", 7, 4),
            restart(
                config=conf(
                    POOL,
                    POOL4["physicalCluster"]["physicalCells"],
                    {"A": vc(("POOL.NODE", 1)), "B": vc(("POOL.NODE", 2))},
                ),
                replay=["low", "high"],
            ),
            look(),
            restart(
                config=conf(
                    POOL,
                    POOL4["physicalCluster"]["physicalCells"],
                    {"A": vc(("POOL.NODE", 1)), "B": vc(("POOL.NODE", 2))},
                ),
                replay=["high", "low"],
            ),
            look(),
        ],
    ),
    "reconfig-node-removed": (
        "Cells that are gone are ignored; a missing pod of the gang still goes to its old node.",
        POOL4,
        [
            run("a0", "A", 0, 4, "a", [(2, 4)], claim=on("n0")),
            restart(
                config=conf(
                    {**POOL, "POOL": {"childCellType": "NODE", "childCellNumber": 3}},
                    [{"cellType": "POOL", "cellChildren": nodes("n0", "n1", "n2")}],
                    {"A": vc(("POOL.NODE", 2))},
                )
            ),
            look(),
            run("a1", "A", 0, 4, "a", [(2, 4)], claim=on("n3", 0, 1, 2, 3)),
            look(),
            gone("a0"),
            gone("a1"),
            look(),
        ],
        "hived-bug",
    ),
    "reconfig-level-renamed": (
        "The type a pod was promised is no longer in the chain: downgraded.",
        POOL4,
        [
            run("a", "A", 0, 4),
            restart(
                config=conf(
                    {
                        "SW": NODE["SW"],
                        "BOX": {"childCellType": "SW", "childCellNumber": 2, "isNodeLevel": True},
                        "POOL": {"childCellType": "BOX", "childCellNumber": 4},
                    },
                    POOL4["physicalCluster"]["physicalCells"],
                    {"A": vc(("POOL.BOX", 2)), "B": vc(("POOL.BOX", 2))},
                )
            ),
            look(state(test__a={"lazyPreempted": True})),
        ],
    ),
    "reconfig-moved-chain": (
        "The node is in another chain now: its devices are found there.",
        POOL4,
        [
            run("a", "A", 0, 4, claim=on("n0")),
            restart(
                config=conf(
                    {
                        **NODE,
                        "SMALL": {"childCellType": "NODE", "childCellNumber": 1},
                        "POOL": {"childCellType": "NODE", "childCellNumber": 3},
                    },
                    [
                        {"cellType": "POOL", "cellChildren": nodes("n1", "n2", "n3")},
                        {"cellType": "SMALL", "cellChildren": nodes("n0")},
                    ],
                    {"A": vc(("POOL.NODE", 2)), "B": vc(("SMALL", 1))},
                )
            ),
            look(),
        ],
    ),
    "reconfig-breaks-promises": (
        "More was promised than is left: gangs are downgraded, nothing crashes.",
        POOL4,
        [
            run("b", "B", 0, 4, "b", [(2, 4)]),
            again("b"),
            restart(config=conf(POOL, POOL4["physicalCluster"]["physicalCells"], {"A": vc(("POOL", 1)), "B": vc()})),
            look(),
            run("a", "A", 0, 4, "a", [(4, 4)], phase="Preempting"),
            look(),
        ],
        "hived-bug",
    ),
    "wrong-specs": (
        "Every check of the annotation, in order.",
        POOL4,
        [
            (
                {"op": "schedule", "pod": "none", "phase": "Filtering", "suggestedNodes": "all", "spec": None},
                error(SPEC + "Annotation does not exist or is empty"),
            ),
            run("vc", "", -5, 0, claim=error(SPEC + "VirtualCluster is empty")),
            run("low", "A", -2, 0, claim=error(SPEC + "Priority is less than -1")),
            run("high", "A", 1001, 0, claim=error(SPEC + "Priority is greater than 1000")),
            run("zero", "A", 1000, 0, claim=error(SPEC + "LeafCellNumber is non-positive")),
            (
                {
                    "op": "schedule",
                    "pod": "name",
                    "phase": "Filtering",
                    "suggestedNodes": "all",
                    "spec": {**spec("A", 0, 1), "affinityGroup": {"name": "", "members": []}},
                },
                error(SPEC + "AffinityGroup.Name is empty"),
            ),
            run(
                "pods", "A", 0, 1, "g", [(0, 1)], claim=error(SPEC + "AffinityGroup.Members has non-positive PodNumber")
            ),
            run(
                "leaves",
                "A",
                0,
                1,
                "g",
                [(1, 0)],
                claim=error(SPEC + "AffinityGroup.Members has non-positive LeafCellNumber"),
            ),
            run(
                "other",
                "A",
                0,
                1,
                "g",
                [(1, 2)],
                claim=error(SPEC + "AffinityGroup.Members does not contains current Pod"),
            ),
            run("fine", "A", 1000, 1, "g", [(1, 1)], claim=on("n0", 0)),
            look(),
        ],
    ),
    "old-names": (
        "The names before the rename of GPUs to leaf cells are read.",
        POOL4,
        [
            (
                {
                    "op": "schedule",
                    "pod": "old",
                    "phase": "Filtering",
                    "suggestedNodes": "all",
                    "annotation": "virtualCluster: A\ngpuType: G\ngpuNumber: 2\naffinityGroup:\n  name: g\n  members:\n  - podNumber: 1\n    gpuNumber: 2\n",
                },
                on("n0", 0, 1),
            ),
            look(),
        ],
    ),
    "joins-by-name": (
        "A group is known by its name alone: a pod of another virtual cluster joins it.",
        POOL4,
        [
            run("a", "A", 0, 4, "same", [(2, 4)], claim=on("n0")),
            run("b", "B", 9, 4, "same", [(2, 4)], claim=on("n3")),
            look(state(same={"vc": "A", "priority": 0})),
        ],
    ),
    "plan-without-commit": (
        "A decision that is not carried out changes nothing.",
        POOL4,
        [
            (
                {
                    "op": "schedule",
                    "pod": "a",
                    "phase": "Filtering",
                    "suggestedNodes": "all",
                    "spec": spec("A", 0, 4),
                    "commit": False,
                },
                on("n0"),
            ),
            look(state()),
            again("a", claim=on("n0")),
            look(),
        ],
    ),
    "chain-without-owner": (
        "A chain that nobody owns serves opportunistic pods.",
        conf(
            types(ONE=("G", 2, True), TWO=("H", 2, True)),
            [{"cellType": "ONE", "cellAddress": "a"}, {"cellType": "TWO", "cellAddress": "b"}],
            {"A": vc(("ONE", 1))},
        ),
        [
            run("a", "A", 0, 2, claim=on("a", 0, 1)),
            run("o", "A", -1, 2, claim=on("b", 0, 1)),
            bad("b"),
            look(),
            gone("o"),
            well("b"),
            look(),
        ],
        "hived-bug",
    ),
}

# What a configuration may not say, and what the answer must name.
WRONG = {
    "unknown-top-type": (
        conf(NODE, [{"cellType": "NODES", "cellAddress": "n"}], {}),
        "physicalCells contains unknown cellType: NODES",
    ),
    "top-is-a-leaf": (
        conf(NODE, [{"cellType": "G", "cellAddress": "0"}], {}),
        "physicalCells contains unknown cellType: G",
    ),
    "top-below-node": (
        conf(NODE, [{"cellType": "SW", "cellAddress": "n"}], {}),
        "top cell must be node-level or above: SW",
    ),
    "no-node-level": (
        conf(types(SW=("G", 2), BOX=("SW", 2)), [{"cellType": "BOX", "cellAddress": "n"}], {}),
        "top cell must be node-level or above: BOX",
    ),
    "device-not-a-number": (
        conf(
            NODE,
            [
                {
                    "cellType": "NODE",
                    "cellAddress": "n",
                    "cellChildren": [{"cellChildren": [{"cellAddress": "gpu0"}, {}]}, {}],
                }
            ],
            {},
        ),
        "invalid literal for int32",
    ),
    "device-too-large": (
        conf(
            NODE,
            [
                {
                    "cellType": "NODE",
                    "cellAddress": "n",
                    "cellChildren": [{"cellChildren": [{"cellAddress": 4294967296}, {}]}, {}],
                }
            ],
            {},
        ),
        "invalid literal for int32",
    ),
    "unknown-vc-type": (
        conf(NODE, [{"cellType": "NODE", "cellAddress": "n"}], {"A": vc(("NODE.SWITCH", 1))}),
        'unknown cell type "SWITCH"',
    ),
    "unknown-vc-chain": (
        conf(NODE, [{"cellType": "NODE", "cellAddress": "n"}], {"A": vc(("POOL.NODE", 1))}),
        "Chain POOL does not exists in physical cluster",
    ),
    "chain-without-cells": (
        conf(POOL, [{"cellType": "NODE", "cellAddress": "n"}], {"A": vc(("POOL.NODE", 1))}),
        "Chain POOL does not exists in physical cluster",
    ),
    "pinned-unknown": (
        conf(NODE, [{"cellType": "NODE", "cellAddress": "n"}], {"A": vc(pinned=("p",))}),
        "pinned cell not found in physicalCells: VC: A, ID: p",
    ),
    "pinned-twice": (
        conf(
            NODE,
            [{"cellType": "NODE", "cellAddress": "n", "pinnedCellId": "p"}, {"cellType": "NODE", "cellAddress": "m"}],
            {"A": vc(pinned=("p",)), "B": vc(pinned=("p",))},
        ),
        'pinned cell "p" is given to VC "A" and to VC "B"',
    ),
    "too-many-tops": (
        conf(NODE, [{"cellType": "NODE", "cellAddress": "n"}], {"A": vc(("NODE", 1)), "B": vc(("NODE", 1))}),
        "Insufficient physical cells at chain NODE level 3: 2 needed, 1 available",
    ),
    "too-many-below": (
        conf(
            NODE,
            [{"cellType": "NODE", "cellAddress": n} for n in "ab"],
            {"A": vc(("NODE", 1), ("NODE.SW", 1)), "B": vc(("NODE.SW.G", 3))},
        ),
        "Insufficient physical cells at chain NODE level 1: 3 needed, 2 available",
    ),
    "pinned-counts": (
        conf(
            NODE,
            [{"cellType": "NODE", "cellAddress": "n", "pinnedCellId": "p"}],
            {"A": vc(("NODE", 1)), "B": vc(pinned=("p",))},
        ),
        "Insufficient physical cells at chain NODE level 3: 2 needed, 1 available",
    ),
    "circle-of-types": (
        conf(types(A=("B", 2), B=("A", 2, True)), [{"cellType": "A", "cellAddress": "n"}], {}),
        "contains itself",
    ),
    "not-yaml": ("physicalCluster: [", ""),
    "not-a-mapping": ("- a\n- b\n", "wanted a mapping"),
    "number-is-text": (
        "physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: two, isNodeLevel: true}\n",
        "line 3: childCellNumber: wanted a whole number",
    ),
    "flag-is-text": (
        "physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: maybe}\n",
        "isNodeLevel: wanted true or false",
    ),
    "list-is-text": ("physicalCluster:\n  physicalCells: all\n", "physicalCells: wanted a list"),
}


def fill(name, about, config, steps, tag="", initial="allHealthy"):
    file = {
        "name": name,
        "description": about,
        "config": config,
        "chainOrder": "descending",
        "initialNodes": initial,
        "tags": [tag] if tag else [],
        "steps": [],
    }
    scenario = Scenario(".")
    scenario.load(file, config)
    for i, (step, claim) in enumerate(steps):
        try:
            expect = scenario.step(file, step)
        except Insane as why:
            raise SystemExit(f"{name} step {i} {step}: {why}") from why
        if claim is not None and not agrees(claim, expect):
            raise SystemExit(
                f"{name} step {i} {step}: the model says {json.dumps(expect)[:600]}, claimed {json.dumps(claim)}"
            )
        file["steps"].append({**step, "expect": expect})
    return file


def agrees(claim, expect):
    claims = claim.get("anyOf", [claim])
    options = expect.get("anyOf", [expect])
    return any(not differs(c, o) for c, o in itertools.product(claims, options))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    files = [fill(name, *scenario) for name, scenario in SCENARIOS.items()]
    for name, (config, text) in WRONG.items():
        files.append(
            {
                "name": f"wrong-{name}",
                "description": f"A configuration that is refused: {name.replace('-', ' ')}.",
                "config": config,
                "expectConfigError": text or "yaml",
            }
        )
    files += extender.files()
    for file in files:
        with open(os.path.join(folder, file["name"] + ".json"), "w", encoding="utf-8") as f:
            json.dump(file, f, separators=(",", ":"))
            f.write("\n")
    print(f"{len(files)} scenarios")


if __name__ == "__main__":
    main(sys.argv[1])
