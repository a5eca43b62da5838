#!/usr/bin/env python3
"""What a crash leaves behind: nothing.

Muster is killed with SIGKILL at random moments while it binds a large gang and while it makes room for one; a node
disappears under a job; the process that runs the pods dies too. After each, jobs end as their rules say, every gang runs
whole or waits whole, no GPU is given out twice, and once the jobs are deleted the cluster is as empty as before.

The moments come from a seed that is printed; FAULTS_SEED repeats them, FAULTS_ROUNDS says how many kills of each kind.
"""
import json
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster  # noqa: E402

ROUNDS = int(os.environ.get("FAULTS_ROUNDS", "4"))
SEED = int(os.environ.get("FAULTS_SEED", str(random.randrange(1 << 30))))
NODES, GPUS = 20, 8
INDEXES = "muster.dev/gpu-indices"
check = Checks()


def job(name, workers, priority=None, requeue=False, command=None, gpus=1):
    container = {"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus, "cpu": "10m"}}}
    if command:
        container["command"] = command
    pod = {
        "metadata": {"annotations": {"muster.dev/hollow-stop-duration": "200ms"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 3},
    }
    if priority:
        pod["spec"]["priorityClassName"] = priority
    specs = {"Master": {"replicas": 1, "restartPolicy": "Never", "template": pod}}
    if workers:
        specs["Worker"] = {"replicas": workers, "restartPolicy": "Never", "template": pod}
    policy = {"cleanPodPolicy": "All", "schedulingPolicy": {"priorityClass": priority} if priority else {}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "annotations": {"muster.dev/on-preempt": "requeue"} if requeue else {}},
        "spec": {"runPolicy": policy, "pytorchReplicaSpecs": specs},
    }


class Cluster:
    def __init__(self, muster):
        self.muster = muster

    def apply(self, *objects):
        self.muster.kubectl(
            "create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        )

    def items(self, *what):
        done = self.muster.kubectl("get", *what, "-o", "json", check=False)
        return json.loads(done.stdout)["items"] if done.returncode == 0 else []

    def pods(self, of=None):
        return [
            pod
            for pod in self.items("pods")
            if of is None or pod["metadata"]["labels"].get("training.kubeflow.org/job-name") == of
        ]

    def bound(self, of):
        return [
            pod for pod in self.pods(of) if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        ]

    def state(self, name):
        found = self.muster.kubectl(
            "get", "pytorchjob", name, "-o", "jsonpath={.status.conditions[-1:].type}", check=False
        )
        return found.stdout

    def whole(self, name, count):
        """All pods of the job run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.bound(name)) == count

    def whole_or_none(self, name, count):
        bound = len(self.bound(name))
        return bound in (0, count), bound

    def given_twice(self):
        """GPUs that two living pods hold, and nodes that hold more than they have."""
        wrong, taken, held = [], {}, {}
        for pod in self.pods():
            node = pod["spec"].get("nodeName")
            if not node or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            held[node] = held.get(node, 0) + sum(
                int(c["resources"].get("limits", {}).get("nvidia.com/gpu", 0)) for c in pod["spec"]["containers"]
            )
            for index in filter(None, pod["metadata"].get("annotations", {}).get(INDEXES, "").split(",")):
                other = taken.setdefault((node, index), pod["metadata"]["name"])
                if other != pod["metadata"]["name"]:
                    wrong.append((node, index, other, pod["metadata"]["name"]))
        return wrong + [(node, n) for node, n in held.items() if n > GPUS]

    def empty(self):
        """Deletes all jobs; what is left afterwards."""
        self.muster.kubectl("delete", "pytorchjobs", "--all", "--wait=false")
        kinds = ("pods", "services", "podgroups.scheduling.volcano.sh")
        left = lambda: [
            f"{kind}/{item['metadata']['name']}"
            for kind in kinds
            for item in self.items(kind)
            if item["metadata"]["name"] != "kubernetes"
        ]  # noqa: E731
        until(lambda: not left(), 60)
        return left()

    def crash(self, delay):
        time.sleep(delay)
        self.muster.kill()
        self.muster.start(60)


def binding(cluster, dice):
    """A gang of every GPU: killed while it is made and bound."""
    size = NODES * GPUS
    for turn in range(ROUNDS):
        delay = dice.uniform(0.0, 2.5)
        cluster.apply(job("gang", size - 1))
        cluster.crash(delay)
        mark = f"round {turn}, killed after {delay:.2f} s"
        check(
            f"binding, {mark}: the gang comes up whole",
            until(lambda: cluster.whole("gang", size)),
            (cluster.state("gang"), len(cluster.bound("gang")), len(cluster.pods("gang"))),
        )
        check(
            f"binding, {mark}: the job runs",
            until(lambda: cluster.state("gang") == "Running", 20),
            cluster.state("gang"),
        )
        check(f"binding, {mark}: no GPU twice", not cluster.given_twice(), cluster.given_twice()[:3])
        left = cluster.empty()
        check(f"binding, {mark}: nothing is left", not left, left[:5])


def preempting(cluster, dice):
    """Two gangs fill the cluster; a more important one needs the place of one: killed while it takes it."""
    half = NODES * GPUS // 2
    for turn in range(ROUNDS):
        delay = dice.uniform(0.0, 2.0)
        requeue = turn % 2 == 1
        cluster.apply(job("low-a", half - 1, requeue=requeue), job("low-b", half - 1, requeue=requeue))
        if not check(
            "both low gangs run",
            until(lambda: cluster.whole("low-a", half) and cluster.whole("low-b", half)),
            (cluster.state("low-a"), cluster.state("low-b")),
        ):
            continue
        cluster.apply(job("high", half - 1, "urgent"))
        cluster.crash(delay)
        mark = f"round {turn}, killed after {delay:.2f} s"
        check(
            f"preemption, {mark}: the important gang comes up whole",
            until(lambda: cluster.whole("high", half)),
            (cluster.state("high"), len(cluster.bound("high"))),
        )
        settled = lambda name: cluster.state(name) == "Failed" or cluster.whole_or_none(name, half)[0]  # noqa: E731
        check(
            f"preemption, {mark}: no gang is left in part",
            until(lambda: settled("low-a") and settled("low-b"), 60),
            (cluster.whole_or_none("low-a", half), cluster.whole_or_none("low-b", half)),
        )
        cluster.muster.wait_idle()
        states = sorted((cluster.state("low-a"), cluster.state("low-b")))
        if requeue:
            running = [name for name in ("low-a", "low-b") if cluster.whole(name, half)]
            check(
                f"preemption, {mark}: one low gang runs, the other waits whole",
                len(running) == 1 and "Failed" not in states,
                states,
            )
            cluster.muster.kubectl("delete", "pytorchjob", "high", "--wait=false")
            check(
                f"preemption, {mark}: and comes back whole",
                until(lambda: cluster.whole("low-a", half) and cluster.whole("low-b", half)),
                (cluster.state("low-a"), cluster.state("low-b")),
            )
        else:
            check(
                f"preemption, {mark}: the victim under Never failed, the other runs",
                states == ["Failed", "Running"],
                states,
            )
        check(f"preemption, {mark}: no GPU twice", not cluster.given_twice(), cluster.given_twice()[:3])
        left = cluster.empty()
        check(f"preemption, {mark}: nothing is left", not left, left[:5])


def node_loss(cluster):
    """A node is taken out of the cluster under a job that asks to be requeued, and under one that does not."""
    for requeue in (True, False):
        cluster.apply(job("lost", 3, requeue=requeue, gpus=GPUS))
        check("the job runs", until(lambda: cluster.whole("lost", 4)), cluster.state("lost"))
        node = cluster.bound("lost")[0]["spec"]["nodeName"]
        kept = json.loads(cluster.muster.kubectl("get", "node", node, "-o", "json").stdout)
        uids = {pod["metadata"]["uid"] for pod in cluster.pods("lost")}
        cluster.muster.kubectl("delete", "node", node)
        if requeue:
            fresh = lambda: cluster.whole("lost", 4) and not uids & {
                pod["metadata"]["uid"] for pod in cluster.pods("lost")
            }  # noqa: E731
            check(
                "node loss: a job that asks for it comes back whole on other nodes",
                until(fresh, 90) and node not in {pod["spec"]["nodeName"] for pod in cluster.bound("lost")},
                (cluster.state("lost"), len(cluster.bound("lost"))),
            )
        else:
            check(
                "node loss: a job under Never fails",
                until(lambda: cluster.state("lost") == "Failed", 90),
                cluster.state("lost"),
            )
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
            kept["metadata"].pop(field, None)
        kept["spec"].pop("taints", None)
        cluster.apply(kept)
        cluster.muster.kubectl(
            "patch", "node", node, "--subresource=status", "--type=merge", "-p", json.dumps({"status": kept["status"]})
        )
        left = cluster.empty()
        check("node loss: nothing is left", not left, left[:5])


def node_trouble(cluster):
    """A node stops being Ready: tainted, and its pods go when they no longer tolerate it."""
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "guest"},
            "spec": {
                "tolerations": [
                    {
                        "key": "node.kubernetes.io/not-ready",
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 1,
                    }
                ],
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "x"}],
            },
        }
    )
    running = lambda: [
        p["spec"]["nodeName"] for p in cluster.items("pods") if p["status"].get("phase") == "Running"
    ]  # noqa: E731
    check("the guest runs", until(lambda: len(running()) == 1))
    node = running()[0]
    ready = lambda status: cluster.muster.kubectl(
        "patch",
        "node",
        node,
        "--subresource=status",
        "--type=strategic",
        "-p",
        json.dumps({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Test"}]}}),
    )  # noqa: E731
    taints = lambda: cluster.muster.kubectl(
        "get", "node", node, "-o", "jsonpath={.spec.taints[*].key}"
    ).stdout.split()  # noqa: E731
    ready("False")
    check(
        "a node that is not Ready is tainted",
        until(lambda: taints() == ["node.kubernetes.io/not-ready"] * 2, 20),
        taints(),
    )
    check(
        "the pod leaves when its toleration ends", until(lambda: not cluster.items("pods"), 20), cluster.items("pods")
    )
    ready("True")
    check("and the taints go when it is Ready again", until(lambda: taints() == [], 20), taints())


def agent_loss():
    """Real processes: the pods of a killed muster live on and are found again by the next."""
    with Muster(nodes=2, gpus=2) as muster:
        cluster = Cluster(muster)
        script = (
            "trap 'exit 0' TERM; echo started; i=0; while [ ! -e /tmp/never ]; do i=$((i+1)); echo $i; sleep 0.2; done"
        )
        cluster.apply(job("train", 1, command=["sh", "-c", script]))
        check("processes run", until(lambda: cluster.whole("train", 2), 60), cluster.state("train"))
        uids = {pod["metadata"]["uid"] for pod in cluster.pods("train")}
        muster.kill()
        muster.start(60)
        lines = lambda: muster.kubectl("logs", "train-worker-0", check=False).stdout.splitlines()  # noqa: E731
        check(
            "the same pods still run",
            until(lambda: cluster.whole("train", 2), 60)
            and uids == {pod["metadata"]["uid"] for pod in cluster.pods("train")},
            cluster.state("train"),
        )
        before = len(lines())
        check(
            "and go on where they were",
            until(lambda: len(lines()) > before, 20) and lines().count("started") == 1,
            lines()[-3:],
        )
        check("the job still runs", cluster.state("train") == "Running", cluster.state("train"))
        left = cluster.empty()
        check("nothing is left", not left, left)


def main():
    print(f"FAULTS_SEED={SEED}")
    dice = random.Random(SEED)
    with Muster("--hollow", nodes=NODES, gpus=GPUS) as muster:
        cluster = Cluster(muster)
        cluster.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "urgent"},
                "value": 1000,
            }
        )
        binding(cluster, dice)
        preempting(cluster, dice)
        node_loss(cluster)
        node_trouble(cluster)
    agent_loss()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
