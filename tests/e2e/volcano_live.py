#!/usr/bin/env python3
"""A cluster under Volcano's own configuration file, with real kubectl: phases, conditions, queues, commands,
HyperNodes.

Pods are hollow (reported as running, without a process). Four nodes of 2 GPUs.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, skip_all, until  # noqa: E402
from muster import Muster, binary, kubectls  # noqa: E402

CONFIG = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: capacity
    enableHierarchy: true
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: nodeorder
  - name: network-topology-aware
"""

HIERARCHY = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
    enableJobStarving: false
  - name: drf
    enableHierarchy: true
- plugins:
  - name: predicates
"""

check = Checks()


def queue(name, **spec):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def group(name, members, queue_name="default", **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members, "queue": queue_name, **spec},
    }


def pods(name, count, gpus=1, **spec):
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-worker-{i}",
                "annotations": {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": "worker"},
            },
            "spec": {
                "schedulerName": "volcano",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
                **spec,
            },
        }
        for i in range(count)
    ]


def command(name, queue_object, action):
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": name},
        "action": action,
        "target": {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "name": queue_object["metadata"]["name"],
            "uid": queue_object["metadata"]["uid"],
        },
    }


class Cluster:
    def __init__(self, muster):
        self.muster = muster

    def make(self, *objects):
        self.muster.kubectl(
            "create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        )

    def get(self, *args):
        return json.loads(self.muster.kubectl("get", *args, "-o", "json").stdout)

    def bound(self, prefix):
        return sum(
            1
            for p in self.get("pods")["items"]
            if p["metadata"]["name"].startswith(prefix + "-") and p["spec"].get("nodeName")
        )

    def status(self, name):
        return self.get("podgroups.v1beta1.scheduling.volcano.sh", name).get("status", {})

    def queue(self, name):
        return self.get("queues.v1beta1.scheduling.volcano.sh", name)

    def state(self, name):
        return self.queue(name).get("status", {}).get("state")

    def clear(self):
        self.muster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", check=False)
        self.muster.kubectl("delete", "podgroups.v1beta1.scheduling.volcano.sh", "--all", check=False)


def phases(c):
    c.make(group("a", 4), *pods("a", 4))
    check("a gang runs", until(lambda: c.bound("a") == 4))
    check(
        "its phase is Running, with a count",
        until(lambda: (c.status("a").get("phase"), c.status("a").get("running")) == ("Running", 4)),
        c.status("a"),
    )
    check(
        "condition Scheduled",
        until(
            lambda: any(x["type"] == "Scheduled" and x["status"] == "True" for x in c.status("a").get("conditions", []))
        ),
        c.status("a"),
    )
    c.make(group("b", 5), *pods("b", 5))
    check("one that does not fit is Inqueue", until(lambda: c.status("b").get("phase") == "Inqueue"), c.status("b"))
    reason = lambda: next(
        (x for x in c.status("b").get("conditions", []) if x["type"] == "Unschedulable"), {}
    )  # noqa: E731
    check(
        "condition Unschedulable, NotEnoughResources",
        until(
            lambda: reason().get("reason") == "NotEnoughResources"
            and "Insufficient nvidia.com/gpu" in reason().get("message", "")
        ),
        c.status("b"),
    )
    check(
        "its pods say why",
        until(lambda: "Insufficient nvidia.com/gpu" in c.muster.kubectl("describe", "pod", "b-worker-0").stdout),
    )
    check(
        "FailedScheduling is recorded", "FailedScheduling" in c.muster.kubectl("describe", "pod", "b-worker-0").stdout
    )
    check("nobody of it is bound", c.bound("b") == 0)
    c.make(group("few", 3), *pods("few", 1))
    check(
        "too few pods: NotEnoughTasks",
        until(lambda: any(x.get("reason") == "NotEnoughTasks" for x in c.status("few").get("conditions", []))),
        c.status("few"),
    )
    c.make(
        queue("small", capability={"nvidia.com/gpu": "2"}),
        group("asks", 1, "small", minResources={"nvidia.com/gpu": "3"}),
        *pods("asks", 1),
    )
    check(
        "refused admission shows Pending", until(lambda: c.status("asks").get("phase") == "Pending"), c.status("asks")
    )
    c.muster.kubectl("delete", "pod", "a-worker-0", "--force", "--grace-period=0")
    check("a lost member that cannot come back: below its minimum", until(lambda: c.bound("a") == 3))
    c.muster.kubectl(
        "patch", "podgroups.v1beta1.scheduling.volcano.sh", "a", "--type=merge", "-p", '{"spec":{"minMember":3}}'
    )
    check("Running once the minimum is met", until(lambda: c.status("a").get("phase") == "Running"), c.status("a"))
    wide = c.muster.kubectl("get", "pg", "a", "-o", "wide").stdout
    check(
        "kubectl shows STATUS, minMember, RUNNINGS, QUEUE",
        all(x in wide for x in ("STATUS", "MINMEMBER", "RUNNINGS", "QUEUE")) and "default" in wide,
        wide,
    )
    c.clear()


def queues(c):
    check(
        "root and default are there and open", until(lambda: (c.state("root"), c.state("default")) == ("Open", "Open"))
    )
    check(
        "default hangs from the root",
        until(lambda: c.queue("default")["spec"].get("parent") == "root"),
        c.queue("default")["spec"],
    )
    c.make(
        queue("team", deserved={"nvidia.com/gpu": "4"}),
        queue("t1", parent="team", deserved={"nvidia.com/gpu": "2"}),
        queue("t2", parent="team"),
    )
    check("a new queue opens", until(lambda: c.state("t1") == "Open"))
    c.make(group("run", 2, "t1"), *pods("run", 2))
    check("a leaf's gang runs", until(lambda: c.bound("run") == 2))
    allocated = lambda name: c.queue(name)["status"].get("allocated", {}).get("nvidia.com/gpu")  # noqa: E731
    check(
        "allocated is written, up to the ancestors",
        until(lambda: (allocated("t1"), allocated("team")) == ("2", "2")),
        (allocated("t1"), allocated("team")),
    )
    check(
        "groups are counted by phase",
        until(lambda: c.queue("t1")["status"].get("running") == 1),
        c.queue("t1")["status"],
    )
    c.make(command("close", c.queue("team"), "CloseQueue"))
    check("CloseQueue closes a queue without groups", until(lambda: c.state("team") == "Closed"), c.state("team"))
    check(
        "its children follow: Closing with groups, Closed without",
        until(lambda: (c.state("t1"), c.state("t2")) == ("Closing", "Closed")),
        (c.state("t1"), c.state("t2")),
    )
    check(
        "they are marked",
        c.queue("t2")["metadata"].get("annotations", {}).get("volcano.sh/closed-by-parent") == "true",
        c.queue("t2")["metadata"],
    )
    check("the command is gone", until(lambda: not c.get("commands.v1alpha1.bus.volcano.sh")["items"]))
    c.make(group("late", 1, "t1"), *pods("late", 1))
    check("a closing queue starts nothing", not until(lambda: c.bound("late"), 1.5))
    check("what runs goes on", c.bound("run") == 2)
    c.make(command("alone", c.queue("t1"), "OpenQueue"))
    check("a child does not open below a closed parent", not until(lambda: c.state("t1") == "Open", 1))
    c.make(command("open", c.queue("team"), "OpenQueue"))
    check(
        "OpenQueue opens it and the marked children",
        until(lambda: (c.state("team"), c.state("t1"), c.state("t2")) == ("Open",) * 3),
        (c.state("team"), c.state("t1"), c.state("t2")),
    )
    check("the waiting gang starts", until(lambda: c.bound("late") == 1))
    c.make(command("shut", c.queue("t1"), "CloseQueue"))
    check("with groups: Closing", until(lambda: c.state("t1") == "Closing"))
    c.clear()
    check("without: Closed", until(lambda: c.state("t1") == "Closed"), c.state("t1"))
    c.make(command("rooted", c.queue("root"), "CloseQueue"))
    check("the root stays open", not until(lambda: c.state("root") != "Open", 1))
    c.make(command("again", c.queue("t1"), "OpenQueue"))
    until(lambda: c.state("t1") == "Open")


def taking_back(c):
    c.make(group("greedy", 1, "t2"), *pods("greedy", 8))
    check("a queue without deserved borrows the whole cluster", until(lambda: c.bound("greedy") == 8))
    c.make(group("due", 2, "t1"), *pods("due", 2))
    check("t1 takes back what it deserves", until(lambda: c.bound("due") == 2), c.bound("due"))
    check("from the surplus of t2", until(lambda: c.bound("greedy") == 6), c.bound("greedy"))
    c.clear()


def hypernodes(c):
    names = sorted(n["metadata"]["name"] for n in c.get("nodes")["items"])
    member = lambda kind, name: {"type": kind, "selector": {"exactMatch": {"name": name}}}  # noqa: E731
    hyper = lambda name, tier, members: {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": members},
    }  # noqa: E731
    c.make(
        hyper("s0", 1, [member("Node", n) for n in names[:2]]),
        hyper("s1", 1, [member("Node", n) for n in names[2:]]),
        hyper("s2", 2, [member("HyperNode", "s0"), member("HyperNode", "s1")]),
    )
    where = lambda prefix: {
        p["spec"].get("nodeName") for p in c.get("pods")["items"] if p["metadata"]["name"].startswith(prefix + "-")
    }  # noqa: E731
    c.make(group("near", 4, networkTopology={"mode": "hard", "highestTierAllowed": 1}), *pods("near", 4))
    check(
        "a hard tier 1 keeps the gang below one switch",
        until(lambda: c.bound("near") == 4) and where("near") in (set(names[:2]), set(names[2:])),
        where("near"),
    )
    c.make(group("wide", 5, networkTopology={"mode": "hard", "highestTierAllowed": 1}), *pods("wide", 5))
    check("one that is too large for a switch waits", not until(lambda: c.bound("wide"), 1.5))
    c.clear()
    c.make(group("two", 6, networkTopology={"mode": "hard", "highestTierAllowed": 2}), *pods("two", 6))
    check("tier 2 lets it cross", until(lambda: c.bound("two") == 6), c.bound("two"))
    c.clear()
    c.make(group("soft", 6, networkTopology={"mode": "soft"}), *pods("soft", 6))
    check("soft runs wherever it can", until(lambda: c.bound("soft") == 6), c.bound("soft"))
    c.clear()


def changes(c, config):
    """The file is read again while the cluster runs; one that is wrong changes nothing."""
    config.write_text(CONFIG.replace("allocate, ", "conquer, "))
    check(
        "a wrong file is named with what is wrong",
        until(lambda: '"conquer" is unknown' in c.muster.log() and "stays as it was" in c.muster.log()),
        c.muster.log()[-2000:],
    )
    c.make(group("before", 1), *pods("before", 1))
    check("and the old configuration goes on", until(lambda: c.bound("before") == 1))
    config.write_text(CONFIG.replace("allocate, ", ""))
    check(
        "a new one is in force",
        until(lambda: "the new configuration is in force" in c.muster.log()),
        c.muster.log()[-2000:],
    )
    c.make(group("after", 1), *pods("after", 1))
    check("without allocate nothing starts", not until(lambda: c.bound("after"), 1.5))
    config.write_text(CONFIG)
    check("with it again it does", until(lambda: c.bound("after") == 1))
    c.clear()


def hierarchy(c, config):
    """drf's own tree of queues, by their annotations."""
    config.write_text(HIERARCHY)
    check(
        "drf with a hierarchy is in force",
        until(lambda: c.muster.log().count("the new configuration is in force") == 3),
        c.muster.log()[-2000:],
    )
    for name, weight in (("sci", 1), ("eng", 3)):
        made = queue(name)
        made["metadata"]["annotations"] = {
            "volcano.sh/hierarchy": f"root/{name}",
            "volcano.sh/hierarchy-weights": f"1/{weight}",
        }
        c.make(made)
    c.make(group("older", 1, "sci"), *pods("older", 8))
    check("alone it has everything", until(lambda: c.bound("older") == 8), c.bound("older"))
    c.make(group("younger", 1, "eng"), *pods("younger", 8))
    check(
        "three times the weight takes back while it is behind: 5 and 3",
        until(lambda: (c.bound("younger"), c.bound("older")) == (5, 3)),
        (c.bound("younger"), c.bound("older")),
    )
    c.clear()


def refusals(directory):
    for text, wanted in (
        ("actions: elect\n", '"elect" is unknown'),
        ("actions: [allocate]\n", "wanted one string"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]\n",
            "exclude each other",
        ),
    ):
        path = pathlib.Path(directory) / "bad.conf"
        path.write_text(text)
        done = subprocess.run(
            [
                binary(),
                "up",
                "--data",
                str(pathlib.Path(directory) / "d"),
                "--listen",
                "127.0.0.1:0",
                "--hollow",
                "--scheduler-config",
                str(path),
            ],
            text=True,
            capture_output=True,
            timeout=60,
        )
        check(
            f"refused with words: {wanted}",
            done.returncode != 0 and wanted in done.stdout + done.stderr and "bad.conf" in done.stdout + done.stderr,
            done.stdout + done.stderr,
        )


def main():
    if not kubectls():
        skip_all("no kubectl is installed")
    with tempfile.TemporaryDirectory() as directory:
        refusals(directory)
        config = pathlib.Path(directory) / "volcano-scheduler.conf"
        config.write_text(CONFIG)
        with Muster("--hollow", "--scheduler-config", str(config), nodes=4, gpus=2) as muster:
            c = Cluster(muster)
            for part in (phases, queues, taking_back, hypernodes):
                part(c)
            changes(c, config)
            hierarchy(c, config)
    return check.close()


sys.exit(main())
