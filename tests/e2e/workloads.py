#!/usr/bin/env python3
"""Kubernetes' own workloads with real kubectl on real processes: DaemonSets, CronJobs, rollouts, EndpointSlices."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()


def until(what, look, timeout=60):
    deadline = time.monotonic() + timeout
    seen = None
    while time.monotonic() < deadline:
        seen = look()
        if seen is True:
            break
        time.sleep(0.2)
    check(what, seen is True, seen)


def items(muster, *words):
    return json.loads(muster.kubectl("get", *words, "-o", "json").stdout)["items"]


def apply(muster, text):
    muster.kubectl("apply", "-f", "-", input=text)


TEMPLATE = "{metadata: {labels: {app: %s, v: '%s'}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: x, command: [sleep, '1000']}]}}"


def daemon_set(muster):
    text = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {selector: {matchLabels: {app: d}}, template: %s}}"
    apply(muster, text % (TEMPLATE % ("d", 1)))
    muster.kubectl("rollout", "status", "daemonset/d", "--timeout=60s")
    pods = items(muster, "pods", "-l", "app=d")
    check(
        "one daemon on each node",
        sorted(p["spec"]["nodeName"] for p in pods) == ["node-0", "node-1", "node-2"],
        [p["spec"].get("nodeName") for p in pods],
    )
    apply(muster, text % (TEMPLATE % ("d", 2)))
    muster.kubectl("rollout", "status", "daemonset/d", "--timeout=60s")
    check(
        "all daemons are new",
        {
            p["metadata"]["labels"]["v"]
            for p in items(muster, "pods", "-l", "app=d")
            if not p["metadata"].get("deletionTimestamp")
        }
        == {"2"},
    )
    history = muster.kubectl("rollout", "history", "daemonset/d").stdout
    check("two revisions", history.count("\n1 ") + history.count("\n2 ") == 2, history)
    muster.kubectl("rollout", "undo", "daemonset/d")
    muster.kubectl("rollout", "status", "daemonset/d", "--timeout=60s")
    check(
        "undone",
        {
            p["metadata"]["labels"]["v"]
            for p in items(muster, "pods", "-l", "app=d")
            if not p["metadata"].get("deletionTimestamp")
        }
        == {"1"},
    )
    muster.kubectl("taint", "node", "node-1", "x=y:NoExecute")
    until(
        "a tainted node loses its daemon",
        lambda: sorted(p["spec"].get("nodeName", "") for p in items(muster, "pods", "-l", "app=d"))
        == ["node-0", "node-2"]
        or muster.kubectl("get", "pods", "-o", "wide").stdout,
    )
    muster.kubectl("taint", "node", "node-1", "x-")
    until(
        "and gets it back",
        lambda: len(items(muster, "pods", "-l", "app=d")) == 3 or muster.kubectl("get", "pods", "-o", "wide").stdout,
    )
    muster.kubectl("delete", "daemonset", "d")


def deployment(muster):
    text = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: %s}}"
    apply(muster, text % (TEMPLATE % ("web", 1)))
    muster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    apply(
        muster,
        "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}",
    )

    def ready():
        slices = items(muster, "endpointslices", "-l", "kubernetes.io/service-name=web")
        ends = [e for s in slices for e in s.get("endpoints") or []]
        return (
            len(slices) == 1
            and len(ends) == 2
            and all(e["conditions"]["ready"] for e in ends)
            and slices[0]["ports"][0]["port"] == 80
        ) or slices

    until("the service has a slice of two ready endpoints", ready)
    apply(muster, text % (TEMPLATE % ("web", 2)))
    muster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    until("old endpoints have left the slice", ready)
    muster.kubectl("rollout", "undo", "deployment/web")
    muster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    history = muster.kubectl("rollout", "history", "deployment/web").stdout
    check(
        "undo made revision 3 of revision 1", "\n2 " in history and "\n3 " in history and "\n1 " not in history, history
    )
    pods = [p for p in items(muster, "pods", "-l", "app=web") if not p["metadata"].get("deletionTimestamp")]
    check("the first template is back", {p["metadata"]["labels"]["v"] for p in pods} == {"1"}, pods)
    muster.kubectl("rollout", "restart", "deployment/web")
    muster.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    muster.kubectl("delete", "deployment/web", "service/web")
    until(
        "the slice goes with its service",
        lambda: not items(muster, "endpointslices", "-l", "kubernetes.io/service-name=web"),
    )


def stateful_set(muster):
    text = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {serviceName: s, replicas: 2, selector: {matchLabels: {app: s}}, template: %s}}"
    apply(muster, text % (TEMPLATE % ("s", 1)))
    muster.kubectl("rollout", "status", "statefulset/s", "--timeout=60s")
    apply(muster, text % (TEMPLATE % ("s", 2)))
    muster.kubectl("rollout", "status", "statefulset/s", "--timeout=60s")
    muster.kubectl("rollout", "undo", "statefulset/s")
    muster.kubectl("rollout", "status", "statefulset/s", "--timeout=60s")
    check(
        "a StatefulSet is undone", {p["metadata"]["labels"]["v"] for p in items(muster, "pods", "-l", "app=s")} == {"1"}
    )
    muster.kubectl("delete", "statefulset/s")


def cron_job(muster):
    apply(
        muster,
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {schedule: '@every 3s', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x, command: ['true']}]}}}}}}",
    )
    # Jobs are named after the minute they were due in, as Kubernetes names them: the second comes with the next minute.
    until(
        "a CronJob makes Jobs that succeed",
        lambda: sum(j.get("status", {}).get("succeeded", 0) for j in items(muster, "jobs")) >= 2
        or muster.kubectl("get", "cronjobs,jobs").stdout,
        90,
    )
    muster.kubectl("patch", "cronjob", "tick", "-p", '{"spec":{"suspend":true}}')
    muster.kubectl("create", "job", "by-hand", "--from=cronjob/tick")
    until(
        "and one made by hand runs",
        lambda: json.loads(muster.kubectl("get", "job", "by-hand", "-o", "json").stdout)
        .get("status", {})
        .get("succeeded", 0)
        == 1,
    )
    muster.kubectl("delete", "cronjob", "tick")
    until("Jobs go with their CronJob", lambda: not items(muster, "jobs") or muster.kubectl("get", "jobs").stdout)


with Muster(nodes=3, gpus=1) as cluster:
    for part in (daemon_set, deployment, stateful_set, cron_job):
        part(cluster)
sys.exit(check.close())
