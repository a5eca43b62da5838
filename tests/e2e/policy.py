#!/usr/bin/env python3
"""A policy of Muster's own from a file, as `muster sim` compares them, in force on a cluster and changed while it runs.

Pods are hollow (reported as running, without a process). Two nodes of 4 GPUs.
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

check = Checks()


def pod(name, gpus):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
        },
    }


class Cluster:
    def __init__(self, muster):
        self.muster = muster

    def make(self, *objects):
        self.muster.kubectl(
            "create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        )

    def node_of(self, name):
        return self.muster.kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}").stdout

    def place(self, name, gpus=1):
        self.make(pod(name, gpus))
        until(lambda: self.node_of(name))
        return self.node_of(name)

    def clear(self):
        self.muster.kubectl("delete", "pods", "--all", "--wait=true")

    def taken(self, times):
        return until(lambda: self.muster.log().count("the new configuration is in force") == times)


def refusals(directory):
    path = pathlib.Path(directory) / "wrong.yaml"
    for text, wanted in (
        ("plcement: spread\n", 'did you mean "placement"?'),
        ("placement: pack\nqueues: [{name: a}]\n", "are its Queue objects"),
    ):
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
        said = done.stdout + done.stderr
        check(f"refused with words: {wanted}", done.returncode != 0 and wanted in said and "wrong.yaml" in said, said)


def placement(c, file):
    check("spread: two pods, two nodes", c.place("s-1") != c.place("s-2"))
    file.write_text("placement: pack\n")
    check("a new policy is taken over", c.taken(1), c.muster.log()[-2000:])
    c.clear()
    check("pack: two pods, one node", c.place("p-1") == c.place("p-2"))
    c.clear()


def order(c, file):
    """Half of each node is taken; the first that waits needs a whole one."""
    file.write_text("backfill: skip\n")
    check("skip is in force", c.taken(2), c.muster.log()[-2000:])
    c.make(pod("half-1", 3), pod("half-2", 3))
    check("both nodes are in use", until(lambda: c.node_of("half-1") and c.node_of("half-2")))
    c.make(pod("whole", 4))
    check("skip: a small one passes", c.place("passes"))
    c.muster.kubectl("delete", "pod", "passes")
    file.write_text("backfill: fifo\n")
    check("fifo is in force", c.taken(3), c.muster.log()[-2000:])
    c.make(pod("behind", 1))
    reason = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
    told = lambda: c.muster.kubectl("get", "pod", "behind", "-o", reason).stdout  # noqa: E731
    check(
        "fifo: a small one stays behind and is told so",
        until(lambda: "ahead" in told()) and not c.node_of("behind"),
        told(),
    )
    c.make(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "free", "annotations": {"muster.dev/backfill": "skip"}},
            "spec": {"weight": 1},
        }
    )
    other = pod("elsewhere", 1)
    other["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "free"}
    c.make(other)
    check("a queue that says otherwise is not held by it", until(lambda: c.node_of("elsewhere")))


def kinds(c, file):
    file.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n")
    check(
        "the other kind waits for the next start, and that is said",
        until(lambda: "takes effect at the next start" in c.muster.log()),
        c.muster.log()[-2000:],
    )


def main():
    if not kubectls():
        skip_all("no kubectl is installed")
    with tempfile.TemporaryDirectory() as directory:
        refusals(directory)
        file = pathlib.Path(directory) / "policy.yaml"
        file.write_text("placement: spread\n")
        with Muster("--hollow", "--scheduler-config", str(file), nodes=2, gpus=4) as muster:
            c = Cluster(muster)
            for part in (placement, order, kinds):
                part(c, file)
    return check.close()


sys.exit(main())
