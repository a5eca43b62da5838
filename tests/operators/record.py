#!/usr/bin/env python3
"""Plays the scenarios of scenarios.py against the real operators and records what they did, in the format of the scenario
files.

    tests/operators/record.py --out DIR [--runs 3] [--at-once 6] [--quiet 2] [--operator NAME] [--gang NAME] [PREFIX…]

The control plane is kube-apiserver and etcd of .cache/kubernetes (tools/kubernetes), without kubelet, scheduler, Job
controller and garbage collector: this script plays them. Each run of a scenario has a namespace of its own, written
as "default". Runs are merged: what differs between them becomes a choice (…AnyOf, events.sometimes); where
even the set of objects differs, most runs win and the step says so in its notes.
"""
import argparse
import collections
import concurrent.futures
import copy
import json
import pathlib
import random
import string
import sys
import time

import cluster
import kubeflow_player
import scenarios

PROBE_OLD = {
    "apiVersion": "kubeflow.org/v1alpha1",
    "kind": "MPIJob",
    "metadata": {"name": "probe"},
    "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}},
}
VERSIONS = {
    "mpi-operator-v1alpha1": "kubeflow/mpi-operator v0.2.3",
    "training-operator": "kubeflow/training-operator v1.9.0",
    "mpi-operator": "kubeflow/mpi-operator v0.8.2",
}
PROBE = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "probe"},
    "spec": {
        "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "x"}]}}}
        }
    },
}
PROBE_MPI = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "probe"},
    "spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}}},
}


# ---- objects as scenario files show them: without what the server adds


def without(value, /, **defaults):
    return {k: v for k, v in value.items() if not (k in defaults and (defaults[k] is ... or v == defaults[k]))}


def plain_container(container):
    result = without(
        container, terminationMessagePath=..., terminationMessagePolicy=..., imagePullPolicy="Always", resources={}
    )
    if "ports" in result:
        result["ports"] = [without(port, protocol="TCP") for port in result["ports"]]
    if "env" in result:
        result["env"] = [without(entry, value="") for entry in result["env"]]
    return result


def plain_volume(volume):
    return {k: without(v, defaultMode=420) if isinstance(v, dict) else v for k, v in volume.items()}


def plain_pod(spec):
    spec = without(
        spec,
        dnsPolicy="ClusterFirst",
        terminationGracePeriodSeconds=30,
        securityContext={},
        enableServiceLinks=...,
        preemptionPolicy=...,
        priority=...,
        nodeName=...,
        serviceAccount=...,
    )
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [plain_container(container) for container in spec[field]]
    if "volumes" in spec:
        spec["volumes"] = [plain_volume(volume) for volume in spec["volumes"]]
    return spec


def plain_template(template):
    labels = {
        k: v
        for k, v in template["metadata"].get("labels", {}).items()
        if "controller-uid" not in k and k not in ("job-name", "batch.kubernetes.io/job-name")
    }
    metadata = {k: v for k, v in template["metadata"].items() if k in ("annotations", "finalizers")}
    return {"metadata": {**metadata, "labels": labels}, "spec": plain_pod(template["spec"])}


def plain(kind, item):
    metadata = {
        k: v
        for k, v in item["metadata"].items()
        if k in ("name", "labels", "annotations", "ownerReferences", "finalizers")
    }
    result, spec = {"metadata": metadata}, item.get("spec", {})
    if kind == "Pod":
        result["spec"] = plain_pod(spec)
    elif kind == "Service":
        result["spec"] = {k: v for k, v in spec.items() if k in ("clusterIP", "selector", "publishNotReadyAddresses")}
        if "ports" in spec:
            result["spec"]["ports"] = [{k: p[k] for k in ("name", "port") if k in p} for p in spec["ports"]]
    elif kind == "Job":
        spec = without(spec, podReplacementPolicy="TerminatingOrFailed")
        result["spec"] = {
            **{
                k: v
                for k, v in spec.items()
                if k
                in (
                    "backoffLimit",
                    "suspend",
                    "activeDeadlineSeconds",
                    "ttlSecondsAfterFinished",
                    "podReplacementPolicy",
                )
            },
            "template": plain_template(spec["template"]),
        }
    elif kind == "ConfigMap":
        result["data"] = item.get("data", {})
    elif kind == "Secret":
        result.update(type=item["type"], dataKeys=sorted(item.get("data", {})))
    elif kind == "Role":
        result["rules"] = item.get("rules")
    elif kind == "RoleBinding":
        result.update(roleRef=item["roleRef"], subjects=item.get("subjects"))
    elif kind == "StatefulSet":
        result["spec"] = {
            **{k: v for k, v in spec.items() if k in ("replicas", "podManagementPolicy", "serviceName")},
            "selector": spec["selector"],
            "template": plain_template(spec["template"]),
        }
    elif spec:
        result["spec"] = spec
    return result


# ---- one run


class Recorder(kubeflow_player.Player):
    def __init__(self, operators, scenario, quiet):
        self.namespace = "q" + "".join(random.choices(string.ascii_lowercase + string.digits, k=9)) + "q"
        super().__init__(operators.real, copy.deepcopy(scenario), self.namespace)
        self.view, self.quiet, self.made = operators.view, quiet, set()

    def settle(self, *_):
        begin = time.monotonic()
        while time.monotonic() - begin < self.quiet or (
            self.view.quiet_for(self.namespace) < self.quiet and time.monotonic() - begin < 60
        ):
            time.sleep(0.1)

    def do_createLauncherPod(self, action):
        super().do_createLauncherPod(action)
        self.made.add(("Pod", action["pod"]))

    def do_createObject(self, action):
        item = action["object"]
        super().do_createObject(action)
        self.made.add((item["kind"], item["metadata"]["name"]))

    def words(self, value):
        """With the names that a scenario file has instead of this run's own."""
        return json.loads(json.dumps(value).replace(self.namespace, "default").replace(self.uid, "$JOB_UID"))

    def job_now(self):
        return self.view.of(self.namespace).get(("job:" + self.vector["kind"], self.name))

    def job_expectation(self):
        job = self.job_now()
        if job is None:
            return None
        status, result = job.get("status", {}), {}
        if self.vector["apiVersion"].endswith("v1alpha1"):
            return {
                "launcherStatus": status.get("launcherStatus"),
                "workerReplicas": status.get("workerReplicas", 0),
                "startTime": bool(status.get("startTime")),
                "completionTime": bool(status.get("completionTime")),
            }
        result["conditions"] = [
            {k: c.get(k, "") for k in ("type", "status", "reason", "message")} for c in status.get("conditions") or []
        ]
        counts = status.get("replicaStatuses") or None
        result["replicaStatuses"] = counts and {
            t: {k: v for k, v in c.items() if k in ("active", "succeeded", "failed") and v} for t, c in counts.items()
        }
        selectors = {t: c["selector"] for t, c in (counts or {}).items() if c.get("selector")}
        if selectors:
            result["selectors"] = selectors
        result.update(startTime=bool(status.get("startTime")), completionTime=bool(status.get("completionTime")))
        return result

    def step(self, step):
        before = self.view.of(self.namespace)
        self.made, rejected = set(), None
        with self.view.lock:
            self.view.events[self.namespace] = set()
        for action in step["actions"]:
            try:
                self.act(copy.deepcopy(action))
            except RuntimeError as error:
                if not action.get("expectRejected"):
                    raise
                rejected = str(error)
        self.settle()
        after = self.view.of(self.namespace)
        job = self.job_now()
        self.uid = job["metadata"]["uid"] if job else getattr(self, "uid", "no-such-uid")
        is_object = lambda key: not key[0].startswith("job:")  # noqa: E731
        expect = {
            "job": self.job_expectation(),
            "objects": {},
            "terminating": [],
            "changed": {},
            "deleted": [],
            "recreated": [],
        }
        for (kind, name), item in sorted(after.items()):
            if not is_object((kind, name)):
                continue
            if item["metadata"].get("deletionTimestamp"):
                expect["terminating"].append(f"{kind}/{name}")
                continue
            expect["objects"].setdefault(kind, []).append(name)
            was = before.get((kind, name))
            if was and was["metadata"]["uid"] != item["metadata"]["uid"]:
                expect["recreated"].append(f"{kind}/{name}")
            if (kind, name) not in self.made and (
                was is None
                or was["metadata"]["uid"] != item["metadata"]["uid"]
                or plain(kind, was) != plain(kind, item)
            ):
                expect["changed"][f"{kind}/{name}"] = plain(kind, item)
        expect["deleted"] = sorted(f"{k}/{n}" for k, n in before if is_object((k, n)) and (k, n) not in after)
        with self.view.lock:
            events = sorted(self.view.events[self.namespace])
        expect["events"] = [{"type": t, "reason": r, "message": m} for t, r, m in events]
        if rejected:
            expect["rejectedWith"] = rejected
        return self.words(expect)

    def run(self):
        self.api("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        return [self.step(step) for step in self.vector["steps"]]


# ---- runs made one


def distinct(values):
    result = []
    for value in values:
        if value not in result:
            result.append(value)
    return result


def merge_step(step, runs):
    notes, expect = [], {}
    jobs = [run["job"] for run in runs]
    if any(job is None for job in jobs):
        expect["job"] = None
        if any(job is not None for job in jobs):
            notes.append("the job was gone in some runs only")
    else:
        expect["job"] = {}
        for field in ("launcherStatus", "workerReplicas"):
            if field in jobs[0]:
                expect["job"][field] = jobs[0][field]
        for field in ("conditions", "replicaStatuses"):
            if field not in jobs[0]:
                continue
            variants = distinct(job[field] for job in jobs)
            expect["job"][field if len(variants) == 1 else field + "AnyOf"] = (
                variants[0] if len(variants) == 1 else variants
            )
        selectors = {}
        for job in jobs:
            selectors.update(job.get("selectors", {}))
        if selectors:
            expect["job"]["selectors"] = selectors
        for field in ("startTime", "completionTime"):
            if len(distinct(job[field] for job in jobs)) == 1:
                expect["job"][field] = jobs[0][field]
            else:
                notes.append(f"{field} was set in some runs only")
    shape = lambda run: json.dumps(
        [run[field] for field in ("objects", "terminating", "deleted", "recreated")] + [sorted(run["changed"])],
        sort_keys=True,
    )  # noqa: E731
    common = collections.Counter(map(shape, runs)).most_common()
    if len(common) > 1:
        notes.append(f"a race: {len(common)} outcomes, {common[0][1]} of {len(runs)} runs ended like this")
    alike = [run for run in runs if shape(run) == common[0][0]]
    expect["objects"] = alike[0]["objects"]
    for field in ("terminating", "deleted", "recreated"):
        if alike[0][field]:
            expect[field] = alike[0][field]
    for path in alike[0]["changed"]:
        variants = distinct(run["changed"][path] for run in alike)
        expect.setdefault("changed" if len(variants) == 1 else "changedAnyOf", {})[path] = (
            variants[0] if len(variants) == 1 else variants
        )
    always = [event for event in runs[0]["events"] if all(event in run["events"] for run in runs)]
    sometimes = [event for event in distinct(event for run in runs for event in run["events"]) if event not in always]
    expect["events"] = {"typical": always, **({"sometimes": sometimes} if sometimes else {})}
    if any("rejectedWith" in run for run in runs):
        expect["rejectedWith"] = next(run["rejectedWith"] for run in runs if "rejectedWith" in run)
    return {
        "name": step["name"],
        "actions": step["actions"],
        "expect": expect,
        **({"notes": "; ".join(notes)} if notes else {}),
    }


def merged(scenario, runs, server):
    operator = scenario["operator"]
    return {
        "id": scenario["id"],
        "title": scenario["title"],
        "kind": scenario["kind"],
        "apiVersion": scenario["apiVersion"],
        "reference": VERSIONS[operator],
        "provenance": f"recorded by tests/operators/record.py from the real controller on kube-apiserver {server}, {len(runs)} runs",
        "gangScheduler": scenario["gangScheduler"],
        "sources": scenario.get("sources", ["tests/operators/scenarios.py"]),
        "namespace": "default",
        **({"deviations": scenarios.DEVIATIONS[scenario["id"]]} if scenario["id"] in scenarios.DEVIATIONS else {}),
        "job": scenario["job"],
        "steps": [merge_step(step, [run[i] for run in runs]) for i, step in enumerate(scenario["steps"])],
    }


def written(scenario):
    """One line for each step's parts: readable in a diff, without a line for every brace."""
    line = lambda value: json.dumps(value, ensure_ascii=False)  # noqa: E731
    parts = [f"  {line(k)}: {line(v)}" for k, v in scenario.items() if k != "steps"]
    steps = []
    for step in scenario["steps"]:
        expect = []
        for key, value in step["expect"].items():
            if key in ("changed", "changedAnyOf"):
                inner = ",\n".join(f"          {line(k)}: {line(v)}" for k, v in value.items())
                expect.append(f"        {line(key)}: {{\n{inner}\n        }}")
            else:
                expect.append(f"        {line(key)}: {line(value)}")
        rest = [f"      {line(k)}: {line(v)}" for k, v in step.items() if k != "expect"]
        steps.append(
            "    {\n" + ",\n".join([*rest, '      "expect": {\n' + ",\n".join(expect) + "\n      }"]) + "\n    }"
        )
    return "{\n" + ",\n".join(parts) + ',\n  "steps": [\n' + ",\n".join(steps) + "\n  ]\n}\n"


def record(operators, chosen, options, server):
    def one(scenario):
        runs = []
        for _ in range(options.runs):
            try:
                runs.append(Recorder(operators, scenario, options.quiet).run())
            except (RuntimeError, KeyError, OSError) as error:
                print(f"FAIL  {scenario['id']}: {type(error).__name__} {error}", flush=True)
                return False
        result = merged(scenario, runs, server)
        (options.out / f"{scenario['id']}.json").write_text(written(result))
        notes = [step["notes"] for step in result["steps"] if "notes" in step]
        print(f"ok    {scenario['id']}" + (f": {notes}" if notes else ""), flush=True)
        return True

    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        return all(list(pool.map(one, chosen)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--quiet", type=float, default=2)
    parser.add_argument("--operator")
    parser.add_argument("--gang")
    parser.add_argument("prefix", nargs="*")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = {}
    for scenario in scenarios.every():
        if not options.prefix or any(scenario["id"].startswith(prefix) for prefix in options.prefix):
            settings.setdefault((scenario["operator"], scenario["gangScheduler"]), []).append(scenario)
    fine = True
    for (operator, gang), chosen in settings.items():
        if options.operator not in (None, operator) or options.gang not in (None, gang):
            continue
        with cluster.Operators(operator, gang) as operators:
            operators.await_ready(
                {"training-operator": PROBE, "mpi-operator": PROBE_MPI, cluster.OLD: PROBE_OLD}[operator]
            )
            server = operators.real.api("GET", "/version")["gitVersion"]
            fine = record(operators, chosen, options, server) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
