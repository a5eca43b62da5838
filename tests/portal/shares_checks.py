#!/usr/bin/env python3
"""What the page of queues shows is what Volcano's Queues say in their status, what OpenPAI's REST says of virtual clusters, and
what a script finds by adding up pods: all read at one revision, at several moments of a cluster's day."""
import collections
import json
import pathlib
import sys
import time

from visitor import API, PortalCluster, Visitor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from chromium import PASSWORD, applied, with_password  # noqa: E402

check = Checks()
GPU = "nvidia.com/gpu"
QUEUES = {
    "research": {"weight": 3, "guarantee": {"resource": {GPU: 4}}, "capability": {GPU: 8}},
    "teaching": {"weight": 1, "capability": {GPU: 6, "cpu": "40", "memory": "200Gi"}},
    "idle": {"weight": 2, "deserved": {GPU: 2}},
}


def queue(name, spec):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pod(name, where, gpus, prio=None):
    limits = {GPU: str(gpus), "cpu": f"{50 * gpus + 25}m", "memory": f"{30 * gpus + 10}Mi"}
    notes = {"muster.dev/hollow-duration": "3600s", "scheduling.volcano.sh/queue-name": where}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]}
    if prio:
        spec["priorityClassName"] = prio
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes}, "spec": spec}


def gang(name, where, workers, gpus):
    """All or none of them."""
    one = pod("x", where, gpus)
    one["spec"]["containers"][0]["name"] = "pytorch"
    template = {"metadata": {"annotations": one["metadata"]["annotations"]}, "spec": one["spec"]}
    role = {"replicas": 1, "restartPolicy": "Never", "template": template}
    spec = {
        "runPolicy": {"schedulingPolicy": {"queue": where}},
        "pytorchReplicaSpecs": {"Master": role, "Worker": {**role, "replicas": workers - 1}},
    }
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}


def number(text):
    """A Quantity."""
    text = str(text)
    for end, factor in (("Mi", 2**20), ("Gi", 2**30), ("Ki", 2**10), ("m", 0.001), ("k", 1000), ("M", 10**6)):
        if text.endswith(end):
            return float(text[: -len(end)]) * factor
    return float(text)


def amounts(listed):
    """(GPUs, cores, bytes) of a ResourceList."""
    return tuple(round(number((listed or {}).get(name, 0)), 3) for name in (GPU, "cpu", "memory"))


def shown(value):
    """The same of what the portal says."""
    return value and (value["gpus"], value["cpuMilli"] / 1000, value["memoryBytes"])


def held(pods, where):
    """The same of all pods of a queue that have a node and have not ended."""
    sums = collections.Counter()
    for one in pods:
        notes = one["metadata"].get("annotations", {})
        over = one["status"]["phase"] in ("Succeeded", "Failed")
        if notes.get("scheduling.volcano.sh/queue-name") == where and one["spec"].get("nodeName") and not over:
            for name, text in one["spec"]["containers"][0]["resources"]["limits"].items():
                sums[name] += number(text)
    return amounts(sums)


def moment(muster, admin):
    """Queues, tenants, virtual clusters and pods, between which nothing was written."""

    def listed(path):
        return json.loads(muster.kubectl("get", "--raw", path).stdout)

    def revision():
        return listed("/api/v1/nodes?limit=1")["metadata"]["resourceVersion"]

    for _ in range(50):
        before = revision()
        queues = listed("/apis/scheduling.volcano.sh/v1beta1/queues")["items"]
        pods = listed("/api/v1/pods")["items"]
        tenants = admin.topic("tenants")[1]["value"]
        rest = admin.json("GET", f"{API}/pai/virtual-clusters")[1]
        if revision() == before:
            return {one["metadata"]["name"]: one for one in queues}, {one["name"]: one for one in tenants}, rest, pods
    raise AssertionError("something is written all the time")


def differences(muster, admin):
    """(what differs, what was compared)."""
    queues, tenants, rest, pods = moment(muster, admin)
    wrong, compared = [], 0

    def same(what, *values):
        nonlocal compared
        compared += 1
        if any(value != values[0] for value in values):
            wrong.append((what, *values))

    same("names", set(queues) - set(tenants), set())
    for name, one in queues.items():
        tenant, spec, status = tenants.get(name), one["spec"], one.get("status", {})
        if name == "root" or tenant is None:  # the pool of all
            continue
        used = [shown(tenant["used"]), amounts(status.get("allocated")), held(pods, name)]
        used.append((rest[name]["resourcesUsed"]["gpu"],) + used[0][1:])
        same(f"{name}: used", *used)
        # OpenPAI counts whole cores and mebibytes.
        whole = rest[name]["resourcesUsed"]
        same(f"{name}: REST's cores", int(whole["cpu"]), int(used[0][1]))
        same(f"{name}: REST's memory", int(whole["memory"]), int(used[0][2] // 2**20))
        same(f"{name}: guarantee", shown(tenant["guarantee"]), amounts(spec.get("guarantee", {}).get("resource")))
        if "guarantee" in spec:
            same(f"{name}: REST's guarantee", rest[name]["resourcesGuaranteed"]["gpu"], tenant["guarantee"]["gpus"])
        if "capability" in spec:
            same(f"{name}: limit", tenant["capability"]["gpus"], amounts(spec["capability"])[0])
            same(f"{name}: REST's total", rest[name]["resourcesTotal"]["gpu"], tenant["capability"]["gpus"])
        same(f"{name}: weight", tenant["weight"], spec.get("weight"))
        same(f"{name}: open", tenant["open"], status.get("state", "Open") == "Open")
        same(f"{name}: opportunistic use", tenant["oppo"]["gpus"], 0)
    return wrong, compared


def same_everywhere(muster, admin, when):
    """The scheduler writes allocations down half a second after they have changed."""
    muster.wait_idle()
    deadline = time.monotonic() + 20
    wrong, compared = differences(muster, admin)
    while wrong and time.monotonic() < deadline:
        time.sleep(0.1)
        wrong, compared = differences(muster, admin)
    check(f"[48] {when}: {compared} numbers of queues are those of their status, of REST and of pods", not wrong, wrong)


def used(admin, name):
    return next(one["used"]["gpus"] for one in admin.topic("tenants")[1]["value"] if one["name"] == name)


with with_password(PortalCluster("--hollow", nodes=4, gpus=4)) as muster:
    admin = Visitor(muster.portal)
    admin.sign_in(user="admin", password=PASSWORD)
    applied(muster, json.dumps([queue(name, spec) for name, spec in QUEUES.items()]))
    admin.wait(f"{API}/tenants", lambda answer: len(answer["value"]) >= 4)
    same_everywhere(muster, admin, "while nothing runs")
    first = [gang("three", "teaching", 3, 2), pod("one", "research", 1), pod("two", "research", 2)]
    applied(muster, json.dumps([*first, pod("five", "default", 3)]))
    admin.wait(f"{API}/jobs?state=RUNNING", lambda answer: answer["total"] == 4)
    applied(muster, json.dumps([pod("four", "teaching", 1)]))
    admin.wait(f"{API}/jobs?state=WAITING", lambda answer: answer["total"] == 1 and answer["rows"][0]["wait"])
    same_everywhere(muster, admin, "with a gang, and one that its queue's limit holds back")
    both = used(admin, "teaching"), used(admin, "research")
    check("[48] what waits is not used", both == (6, 3), both)
    muster.kubectl("create", "priorityclass", "urgent", "--value=1000")
    applied(muster, json.dumps([pod(f"urgent-{i}", "research", 2, "urgent") for i in range(3)]))
    admin.wait(f"{API}/jobs?q=urgent-&state=RUNNING", lambda answer: answer["total"] >= 2)
    same_everywhere(muster, admin, "after somebody urgent has come")
    muster.kubectl("delete", "pytorchjob", "three", "--wait=false")
    admin.wait(f"{API}/jobs?q=four&state=RUNNING", lambda answer: answer["total"] == 1)
    same_everywhere(muster, admin, "after the gang was deleted and who waited has its room")
    muster.kubectl(
        "patch", "queue", "idle", "--type=merge", "-p", '{"spec":{"weight":5,"capability":{"nvidia.com/gpu":3}}}'
    )
    admin.wait(f"{API}/tenants", lambda answer: any(one["weight"] == 5 for one in answer["value"]))
    same_everywhere(muster, admin, "after a queue was changed")
    muster.kubectl("delete", "pods", "--all", "--wait=false")
    admin.wait(f"{API}/jobs?limit=1", lambda answer: answer["total"] == 0)
    same_everywhere(muster, admin, "after all has gone")
    muster.kill()
    muster.start()
    back = Visitor(muster.portal)
    back.cookie = admin.cookie
    back.wait(f"{API}/tenants", lambda answer: len(answer["value"]) >= 4)
    same_everywhere(muster, back, "after a restart")
sys.exit(check.close())
