#!/usr/bin/env python3
"""Kubernetes' own groups (scheduling.k8s.io), with real kubectl. Numbers are those of the list of what a drop-in scheduler must do.

Six nodes of 8 GPUs in two racks and one zone; pods are hollow (reported as running, without a process). A pod asks for a whole node.
"""
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, skip_all, until  # noqa: E402
from muster import Muster, kubectls  # noqa: E402

checks = Checks()


def check(number, what, condition, detail=""):
    checks(f"{number:>2} {what}", condition, detail)


def pod(name, group=None, gpus=8, **spec):
    body = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
        **spec,
    }
    if group:
        body["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def members(group, count, gpus=8, first=0, **spec):
    return [pod(f"{group}-{i}", group, gpus, **spec) for i in range(first, first + count)]


def group(name, count=None, **spec):
    policy = {"basic": {}} if count is None else {"gang": {"minCount": count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def composite(name, count, **spec):
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": {
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "schedulingPolicy": {"gang": {"minGroupCount": count}},
            **spec,
        },
    }


class Cluster:
    def __init__(self, muster):
        self.muster = muster
        self.rack = {}  # node -> rack

    def racks_of(self, prefix):
        return {self.rack.get(node) for node in self.nodes_of(prefix)}

    def make(self, *objects):
        self.muster.kubectl(
            "create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        )

    def get(self, *args):
        return json.loads(self.muster.kubectl("get", *args, "-o", "json").stdout)

    def pods(self, prefix=""):
        return [p for p in self.get("pods")["items"] if p["metadata"]["name"].startswith(prefix)]

    def bound(self, prefix):
        return sum(1 for p in self.pods(prefix) if p["spec"].get("nodeName"))

    def nodes_of(self, prefix):
        return {p["spec"].get("nodeName") for p in self.pods(prefix)}

    def condition(self, name):
        found = self.get("podgroups.v1beta1.scheduling.k8s.io", name).get("status", {}).get("conditions", [])
        return next((c for c in found if c["type"] == "PodGroupInitiallyScheduled"), {})

    def pod_message(self, name):
        found = self.get("pod", name)["status"].get("conditions", [])
        return next((c for c in found if c["type"] == "PodScheduled"), {})

    def events(self, name):
        return [
            (e["reason"], e.get("message", ""))
            for e in self.get("events")["items"]
            if e["involvedObject"]["name"] == name
        ]

    def clear(self):
        """Everything of the last check goes; nothing lingers on the nodes."""
        self.muster.kubectl("delete", "jobs,pods", "--all", "--wait=true", "--grace-period=0", "--force", check=False)
        self.muster.kubectl(
            "delete",
            "podgroups.v1beta1.scheduling.k8s.io,workloads.v1beta1.scheduling.k8s.io,compositepodgroups.v1alpha3.scheduling.k8s.io",
            "--all",
            "--wait=true",
            check=False,
        )


def gangs(c):
    c.make(*members("early", 2))
    check(9, "pods of a missing group wait", not until(lambda: c.bound("early"), 1))
    check(
        9,
        "and say so (better than native)",
        until(lambda: '"default/early" does not exist' in c.pod_message("early-0").get("message", "")),
        c.pod_message("early-0"),
    )
    c.make(group("early", 3))
    check(9, "below minCount they wait", not until(lambda: c.bound("early"), 1))
    begun = time.monotonic()
    c.make(*members("early", 1, first=2))
    check(
        9,
        "the last member starts them at once",
        until(lambda: c.bound("early") == 3, 5),
        f"{time.monotonic() - begun:.1f} s, {c.bound('early')}",
    )
    check(
        14,
        "the condition turns True",
        until(lambda: c.condition("early").get("status") == "True"),
        c.condition("early"),
    )
    check(14, "with reason Scheduled", c.condition("early").get("reason") == "Scheduled", c.condition("early"))
    check(
        2,
        "STATUS says Scheduled",
        "Scheduled" in c.muster.kubectl("get", "podgroups.v1beta1.scheduling.k8s.io", "early").stdout,
    )

    c.make(group("large", 5), *members("large", 5))
    check(11, "too large: nobody is bound", not until(lambda: c.bound("large"), 1))
    check(
        14,
        "the condition is False, Unschedulable",
        until(lambda: c.condition("large").get("reason") == "Unschedulable"),
        c.condition("large"),
    )
    text = "minCount (5) cannot be satisfied: 3 scheduled, 1 remaining"
    check(
        15,
        "the pod says what native says",
        until(lambda: text in c.pod_message("large-0").get("message", "")),
        c.pod_message("large-0"),
    )
    check(
        15,
        "as condition PodScheduled=False/Unschedulable",
        (c.pod_message("large-0").get("status"), c.pod_message("large-0").get("reason")) == ("False", "Unschedulable"),
    )
    check(
        15,
        "and as event FailedScheduling",
        until(lambda: any(r == "FailedScheduling" and text in m for r, m in c.events("large-0"))),
        c.events("large-0"),
    )
    c.make(pod("single"))
    check(11, "other work uses the nodes meanwhile", until(lambda: c.bound("single") == 1))
    c.muster.kubectl("delete", "pod", "early-0", "early-1", "--force", "--grace-period=0")
    check(
        14,
        "never back to False",
        not until(lambda: c.condition("early").get("status") != "True", 1),
        c.condition("early"),
    )
    c.muster.kubectl("delete", "pod", "single", "--force", "--grace-period=0")
    check(
        9,
        "freed room starts the waiting gang at once (better than native)",
        until(lambda: c.bound("large") == 5, 5),
        c.bound("large"),
    )
    c.clear()

    c.make(group("surplus", 4), *members("surplus", 8))
    check(12, "minCount and as many more as fit", until(lambda: c.bound("surplus") == 6), c.bound("surplus"))
    c.muster.kubectl(
        "delete",
        "pod",
        *[p["metadata"]["name"] for p in c.pods("surplus") if p["spec"].get("nodeName")][:1],
        "--force",
        "--grace-period=0",
    )
    check(12, "later ones when room appears", until(lambda: c.bound("surplus") == 6), c.bound("surplus"))
    c.clear()

    c.make(group("basic"), *members("basic", 8))
    check(13, "basic: as many as fit", until(lambda: c.bound("basic") == 6), c.bound("basic"))
    check(14, "and its condition is True", until(lambda: c.condition("basic").get("status") == "True"))
    c.clear()

    c.make(group("count", 4), *members("count", 4))
    until(lambda: c.bound("count") == 4)
    c.muster.kubectl("delete", "pod", "count-0", "count-1", "--force", "--grace-period=0")
    c.make(*members("count", 1, first=4))
    check(10, "two bound and one new of four wait", not until(lambda: c.bound("count") == 3, 1), c.bound("count"))
    c.make(*members("count", 1, first=5))
    check(10, "with the second they start", until(lambda: c.bound("count") == 4), c.bound("count"))
    c.clear()

    c.make(group("lower", 8), *members("lower", 8))
    check(21, "eight of six nodes wait", not until(lambda: c.bound("lower"), 1))
    c.muster.kubectl(
        "patch",
        "podgroups.v1beta1.scheduling.k8s.io",
        "lower",
        "--type=merge",
        "-p",
        '{"spec":{"schedulingPolicy":{"gang":{"minCount":5}}}}',
    )
    check(21, "a lower minCount takes effect", until(lambda: c.bound("lower") == 6), c.bound("lower"))
    c.muster.kubectl(
        "patch",
        "podgroups.v1beta1.scheduling.k8s.io",
        "lower",
        "--type=merge",
        "-p",
        '{"spec":{"schedulingPolicy":{"gang":{"minCount":8}}}}',
    )
    check(21, "a higher one evicts nobody", not until(lambda: c.bound("lower") != 6, 1), c.bound("lower"))
    c.clear()

    c.make(
        group("gated", 2), pod("gated-x", "gated", schedulingGates=[{"name": "example.com/hold"}]), *members("gated", 2)
    )
    check(22, "a gated member holds its group", not until(lambda: c.bound("gated"), 1))
    c.muster.kubectl("patch", "pod", "gated-x", "--type=json", "-p", '[{"op":"remove","path":"/spec/schedulingGates"}]')
    check(22, "until the gate is gone", until(lambda: c.bound("gated") == 3), c.bound("gated"))
    c.clear()

    c.make(group("leaving", 2), *members("leaving", 2))
    until(lambda: c.bound("leaving") == 2)
    c.muster.kubectl("delete", "podgroups.v1beta1.scheduling.k8s.io", "leaving", "--wait=false")
    c.make(*members("leaving", 1, first=2))
    check(23, "a group under deletion still places members", until(lambda: c.bound("leaving") == 3), c.bound("leaving"))
    check(
        5,
        "its finalizer keeps it",
        "leaving" in c.muster.kubectl("get", "podgroups.v1beta1.scheduling.k8s.io", "-o", "name").stdout,
    )
    c.muster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    check(
        5,
        "until its members are gone",
        until(
            lambda: "leaving" not in c.muster.kubectl("get", "podgroups.v1beta1.scheduling.k8s.io", "-o", "name").stdout
        ),
    )
    c.clear()

    c.make(group("ref", 1, workloadRef={"workloadName": "nowhere", "templateName": "t"}), *members("ref", 1))
    check(24, "a workloadRef need not resolve", until(lambda: c.bound("ref") == 1))
    c.clear()


def ranks(c):
    for name, value in (("low", 100), ("high", 1000)):
        c.make(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        )
    c.make(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "patient"},
            "value": 1000,
            "preemptionPolicy": "Never",
        }
    )
    c.make(group("x", 2, priorityClassName="high"), *members("x", 2, priorityClassName="low"))
    text = "all pods in a single pod group should have the same priority as the pod group's priority, got 100 and 1000"
    check(16, "unequal priority is an error", until(lambda: c.condition("x").get("message") == text), c.condition("x"))
    check(
        16,
        "of reason SchedulerError, on group and pod",
        until(
            lambda: (c.condition("x").get("reason"), c.pod_message("x-0").get("reason"))
            == ("SchedulerError", "SchedulerError")
        ),
        (c.condition("x"), c.pod_message("x-0")),
    )
    check(16, "and nobody is bound", c.bound("x-") == 0)
    c.clear()

    blockers = [pod(f"blocker-{i}") for i in range(6)]
    c.make(*blockers)
    until(lambda: c.bound("blocker") == 6)
    c.make(group("old", 6), *members("old", 6))
    c.make(
        group("young", 6, priorityClassName="patient", preemptionPolicy="Never"),
        *members("young", 6, priorityClassName="patient"),
    )
    check(
        18, "preemptionPolicy Never evicts nobody", not until(lambda: c.bound("blocker") < 6, 1.5), c.bound("blocker")
    )
    c.muster.kubectl("delete", "pod", *[b["metadata"]["name"] for b in blockers], "--force", "--grace-period=0")
    check(
        17,
        "the group's priority goes before age",
        until(lambda: c.bound("young") == 6),
        (c.bound("young"), c.bound("old")),
    )
    check(17, "the older waits", c.bound("old") == 0)
    c.clear()

    for mode, left in (("all", 0), ("single", 4)):
        low, high = f"low-{mode}", f"high-{mode}"
        c.make(
            group(low, 6, disruptionMode={mode: {}}, priorityClassName="low"), *members(low, 6, priorityClassName="low")
        )
        until(lambda: c.bound(low) == 6)
        victims = {p["metadata"]["name"] for p in c.pods(low)}
        c.make(group(high, 2, priorityClassName="high"), *members(high, 2, priorityClassName="high"))
        check(18, f"a gang of higher priority takes its room, {mode}", until(lambda: c.bound(high) == 2), c.bound(high))
        check(18, f"{mode}: {left} of the six stay", until(lambda: len(c.pods(low)) == left), len(c.pods(low)))
        gone = sorted(victims - {p["metadata"]["name"] for p in c.pods(low)})
        check(
            18,
            f"{mode}: the victims were told",
            gone and any(r == "Preempted" for r, _ in c.events(gone[0])),
            c.events(gone[0]) if gone else "none",
        )
        c.clear()

    c.make(group("even", 6, priorityClassName="low"), *members("even", 6, priorityClassName="low"))
    until(lambda: c.bound("even") == 6)
    c.make(group("equal", 1, priorityClassName="low"), *members("equal", 1, priorityClassName="low"))
    check(18, "equal priority evicts nobody", not until(lambda: c.bound("equal-") or len(c.pods("even-")) < 6, 1.5))
    c.clear()

    c.make(
        group("slow", 6, priorityClassName="low"),
        *[
            {**p, "spec": {**p["spec"], "terminationGracePeriodSeconds": 3}}
            for p in members("slow", 6, priorityClassName="low")
        ],
    )
    until(lambda: c.bound("slow") == 6)
    c.make(group("next", 1, priorityClassName="high"), *members("next", 1, priorityClassName="high"))
    check(
        18,
        "the preemptor is nominated while its victim leaves",
        until(lambda: c.get("pod", "next-0")["status"].get("nominatedNodeName") or c.bound("next-0")),
        c.get("pod", "next-0")["status"],
    )
    check(18, "and bound when it has left", until(lambda: c.bound("next-0") == 1))
    c.clear()


def places(c):
    rack = {"topology": [{"key": "rack"}]}
    c.make(group("near", 3, schedulingConstraints=rack), *members("near", 3))
    check(
        19,
        "all members share a rack",
        until(lambda: c.bound("near") == 3) and len(c.racks_of("near")) == 1,
        c.nodes_of("near"),
    )
    c.clear()
    c.make(group("wide", 4, schedulingConstraints=rack), *members("wide", 4))
    check(19, "four do not fit a rack of three", not until(lambda: c.bound("wide"), 1))
    check(19, "and are told", until(lambda: c.condition("wide").get("reason") == "Unschedulable"), c.condition("wide"))
    c.clear()
    c.make(group("nokey", 2, schedulingConstraints={"topology": [{"key": "no-such-label"}]}), *members("nokey", 2))
    check(
        19,
        "an unknown key is Unschedulable",
        until(lambda: c.condition("nokey").get("reason") == "Unschedulable"),
        c.condition("nokey"),
    )
    check(19, "unlabelled nodes are no candidates", c.bound("nokey") == 0)
    c.clear()
    c.make(group("pin", 2, schedulingConstraints=rack), *members("pin", 2))
    until(lambda: c.bound("pin") == 2)
    c.make(*members("pin", 2, first=2))
    check(19, "bound members pin the rack: one more fits", until(lambda: c.bound("pin") == 3), c.bound("pin"))
    check(19, "the other waits though the other rack is free", not until(lambda: c.bound("pin") == 4, 1))
    c.clear()

    zone = {"topology": [{"key": "zone"}]}
    c.make(composite("root", 2, schedulingConstraints=zone))
    for child in ("l0", "l1"):
        c.make(
            group(
                child,
                3,
                schedulingConstraints=rack,
                workloadRef={"workloadName": "w", "templateName": "t"},
                parentCompositePodGroupName="root",
            )
        )
    c.make(*members("l0", 3))
    check(20, "one child alone waits for the tree", not until(lambda: c.bound("l0"), 1))
    c.make(*members("l1", 3))
    check(20, "both start together", until(lambda: c.bound("l") == 6), c.bound("l"))
    check(
        20, "each in one rack", all(len(c.racks_of(g)) == 1 for g in ("l0", "l1")), (c.nodes_of("l0"), c.nodes_of("l1"))
    )
    c.clear()
    c.make(pod("taken"))
    until(lambda: c.bound("taken") == 1)
    c.make(composite("root", 2, schedulingConstraints=zone))
    for child in ("l0", "l1"):
        c.make(
            group(
                child,
                3,
                schedulingConstraints=rack,
                workloadRef={"workloadName": "w", "templateName": "t"},
                parentCompositePodGroupName="root",
            ),
            *members(child, 3),
        )
    check(20, "room for one child only: nobody starts", not until(lambda: c.bound("l"), 1.5), c.bound("l"))
    c.clear()
    c.make(
        group(
            "orphan", 1, workloadRef={"workloadName": "w", "templateName": "t"}, parentCompositePodGroupName="nobody"
        ),
        *members("orphan", 1),
    )
    check(9, "a missing ancestor keeps the members waiting", not until(lambda: c.bound("orphan"), 1))
    c.make(composite("nobody", 1))
    check(9, "and they start when it comes", until(lambda: c.bound("orphan")), c.pod_message("orphan-0"))
    c.clear()


def job(name, parallelism, scheduling=None, **more):
    spec = {
        "parallelism": parallelism,
        "completions": parallelism,
        "completionMode": "Indexed",
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "c",
                        "image": "x",
                        "command": ["sleep", "600"],
                        "resources": {"limits": {"nvidia.com/gpu": 8}},
                    }
                ],
            }
        },
        **more,
    }
    if scheduling is not None:
        spec["scheduling"] = scheduling
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def jobs(c):
    gang = {"schedulingPolicy": {"gang": {}}}
    c.make(job("train", 4, gang))
    check(26, "a gang Job's pods are bound together", until(lambda: c.bound("train-") == 4), c.bound("train-"))
    workload = c.get("workloads.v1beta1.scheduling.k8s.io")["items"][0]
    made = c.get("podgroups.v1beta1.scheduling.k8s.io")["items"][0]
    uid = c.get("job", "train")["metadata"]["uid"]
    check(
        26,
        "names: Workload <job>-<hash>, PodGroup <workload>-<job>-pgt-0-<hash>",
        workload["metadata"]["name"].startswith("train-")
        and made["metadata"]["name"].startswith(workload["metadata"]["name"] + "-train-pgt-0-"),
        (workload["metadata"]["name"], made["metadata"]["name"]),
    )
    check(
        26,
        "controllerRef and owners",
        workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "train"}
        and [(o["kind"], o.get("controller", False)) for o in made["metadata"]["ownerReferences"]]
        == [("Job", True), ("Workload", False)]
        and workload["metadata"]["ownerReferences"][0]["uid"] == uid,
        (workload["spec"].get("controllerRef"), made["metadata"]["ownerReferences"]),
    )
    check(
        26,
        "pods name the group",
        all(p["spec"]["schedulingGroup"]["podGroupName"] == made["metadata"]["name"] for p in c.pods("train-")),
    )
    check(
        26,
        "events",
        until(lambda: {"WorkloadCreated", "PodGroupCreated"} <= {r for r, _ in c.events("train")}),
        c.events("train"),
    )
    check(
        27,
        "minCount is parallelism",
        made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}},
        made["spec"]["schedulingPolicy"],
    )
    c.muster.kubectl("patch", "job", "train", "--type=merge", "-p", '{"spec":{"parallelism":5,"completions":5}}')
    counts = lambda: (
        c.get("podgroups.v1beta1.scheduling.k8s.io")["items"][0]["spec"]["schedulingPolicy"]["gang"][
            "minCount"
        ],  # noqa: E731
        c.get("workloads.v1beta1.scheduling.k8s.io")["items"][0]["spec"]["podGroupTemplates"][0]["schedulingPolicy"][
            "gang"
        ]["minCount"],
    )
    check(27, "and follows it", until(lambda: counts() == (5, 5)), counts())
    check(27, "with the fifth pod", until(lambda: c.bound("train-") == 5), c.bound("train-"))
    c.muster.kubectl("delete", "job", "train", "--cascade=foreground")
    check(
        26,
        "deletion cascades",
        until(
            lambda: not c.get("podgroups.v1beta1.scheduling.k8s.io")["items"]
            and not c.get("workloads.v1beta1.scheduling.k8s.io")["items"]
        ),
    )
    c.clear()

    c.make(group("mine", 2))
    own = job("byo", 2, gang)
    own["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    c.make(own)
    check(
        28,
        "a template's own group is honoured",
        until(lambda: c.bound("byo-") == 2)
        and {p["spec"]["schedulingGroup"]["podGroupName"] for p in c.pods("byo-")} == {"mine"},
    )
    check(28, "and nothing is made beside it", not c.get("workloads.v1beta1.scheduling.k8s.io")["items"])
    c.clear()

    c.make(job("sleeper", 2, gang, suspend=True))
    check(
        29,
        "a suspended Job has its objects",
        until(lambda: len(c.get("podgroups.v1beta1.scheduling.k8s.io")["items"]) == 1),
    )
    check(29, "and no pods", not until(lambda: c.pods("sleeper-"), 1))
    c.muster.kubectl("patch", "job", "sleeper", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    check(29, "pods come on resume", until(lambda: c.bound("sleeper-") == 2), c.bound("sleeper-"))
    c.clear()


def main():
    if not kubectls():
        skip_all("no kubectl is installed")
    with Muster("--hollow", nodes=6, gpus=8) as muster:
        c = Cluster(muster)
        names = sorted(n["metadata"]["name"] for n in c.get("nodes")["items"])
        for i, name in enumerate(names):
            c.rack[name] = "rack-a" if i < 3 else "rack-b"
            muster.kubectl("label", "node", name, f"rack={c.rack[name]}", "zone=z")
        for part in (gangs, ranks, places, jobs):
            part(c)
    return checks.close()


sys.exit(main())
