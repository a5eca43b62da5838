#!/usr/bin/env python3
"""Asks the operators' own validators and defaulters about many jobs and writes the tables of tests/vectors.

    tests/operators/tables.py --out DIR

Each case is a plain job of its kind with one thing changed (or two). Of an MPIJob v1 only the
first fault is reported, and its map has no order, so its cases have one fault each.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys

import cluster
import record
import scenarios

KINDS = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", "tensorflow", ("Chief", "PS", "Worker")),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", "paddle", ("Master", "Worker")),
    "JAXJob": ("jaxReplicaSpecs", "jax", ("Worker",)),
}
PORTS = {
    "PyTorchJob": "pytorchjob-port",
    "TFJob": "tfjob-port",
    "XGBoostJob": "xgboostjob-port",
    "PaddleJob": "master",
    "JAXJob": "jaxjob-port",
}
LIMITS = {"activeDeadlineSeconds": 10, "backoffLimit": 3, "ttlSecondsAfterFinished": 5, "suspend": True}


# v1.9.0 compares a new PyTorchJob with itself, so that a change of managedBy slips through; ours refuses it.
COMPARED_WITH_ITSELF = ("managedby-update", "managedBy given later", "managedBy taken away")
SHOULD_BE = {"acceptedShouldBe": False}


def changed(job, *changes):
    """A copy with `path: value`; None removes."""
    job = copy.deepcopy(job)
    for path, value in changes:
        place, *_ = [job]
        for key in path[:-1]:
            place = place[key] if isinstance(place, list) else place.setdefault(key, {})
        if value is None:
            place.pop(path[-1], None)
        else:
            place[path[-1]] = value
    return job


def names(base):
    for name in (
        "Upper",
        "1digit",
        "-dash",
        "dash-",
        "dot.ted",
        "under_score",
        "a" * 63,
        "a" * 64,
        "a",
        "a1-b2",
        "a" * 253,
        "ä",
    ):
        yield f"name {name[:12]}{' of ' + str(len(name)) if len(name) > 12 else ''}", changed(
            base, (("metadata", "name"), name)
        )


def run_policies(base, operator):
    policy = ("spec", "runPolicy")
    yield "run policy", changed(base, (policy, LIMITS))
    yield "negative limits", changed(
        base, (policy, {"activeDeadlineSeconds": -1, "backoffLimit": -1, "ttlSecondsAfterFinished": -1})
    )
    yield "zero limits", changed(
        base, (policy, {"activeDeadlineSeconds": 0, "backoffLimit": 0, "ttlSecondsAfterFinished": 0})
    )
    for value in ("None", "Running", "All", "Sometimes", ""):
        yield f"cleanPodPolicy {value or 'empty'}", changed(base, ((*policy, "cleanPodPolicy"), value))
    for value in (
        "kubeflow.org/training-operator",
        "kubeflow.org/mpi-operator",
        "kueue.x-k8s.io/multikueue",
        "other.org/me",
        "",
    ):
        yield f"managedBy {value or 'empty'}", changed(base, ((*policy, "managedBy"), value))
    yield "scheduling policy", changed(
        base,
        (
            (*policy, "schedulingPolicy"),
            {
                "minAvailable": 2,
                "queue": "q",
                "priorityClass": "p",
                "minResources": {"cpu": "1"},
                "scheduleTimeoutSeconds": 3,
            },
        ),
    )
    yield "odd scheduling policy", changed(
        base, ((*policy, "schedulingPolicy"), {"minAvailable": -2, "scheduleTimeoutSeconds": -3})
    )


def replica_specs(base, field, container, types):
    specs = ("spec", field)
    yield "no replica specs", changed(base, (specs, None))
    yield "empty replica specs", changed(base, (specs, {}))
    for kind in types:
        one = (*specs, kind)
        yield f"{kind} left out", changed(base, (one, None))
        yield f"{kind} alone", changed(base, (specs, {kind: base["spec"][field][kind]}))
        yield f"{kind} in lower case", changed(base, (one, None), ((*specs, kind.lower()), base["spec"][field][kind]))
        yield f"{kind} in upper case", changed(base, (one, None), ((*specs, kind.upper()), base["spec"][field][kind]))
        for count in (None, 0, -1, 1, 2, 5):
            yield f"{kind} replicas {count}", changed(base, ((*one, "replicas"), count))
        for policy in ("Never", "OnFailure", "Always", "ExitCode", "Sometimes", ""):
            yield f"{kind} restartPolicy {policy or 'empty'}", changed(base, ((*one, "restartPolicy"), policy))
        containers = (*one, "template", "spec", "containers")
        yield f"{kind} no containers", changed(base, (containers, None))
        yield f"{kind} empty containers", changed(base, (containers, []))
        yield f"{kind} no template", changed(base, ((*one, "template"), None))
        yield f"{kind} no image", changed(base, (containers, [{"name": container}]))
        yield f"{kind} empty image", changed(base, (containers, [{"name": container, "image": ""}]))
        yield f"{kind} no name", changed(base, (containers, [{"image": "i"}]))
        yield f"{kind} other name", changed(base, (containers, [{"name": "other", "image": "i"}]))
        yield f"{kind} named one second", changed(
            base, (containers, [{"name": "other", "image": "i"}, {"name": container, "image": "i"}])
        )
        yield f"{kind} second without image", changed(
            base, (containers, [{"name": container, "image": "i"}, {"name": "other"}])
        )
        yield f"{kind} both without image", changed(base, (containers, [{"name": container}, {"name": "other"}]))
        yield f"{kind} wrong name and no image", changed(base, (containers, [{"name": "other"}]))
        yield f"{kind} init containers only", changed(
            base,
            (containers, None),
            ((*one, "template", "spec", "initContainers"), [{"name": container, "image": "i"}]),
        )
        yield f"{kind} template restartPolicy", changed(base, ((*one, "template", "spec", "restartPolicy"), "Always"))
    yield "unknown type", changed(base, ((*specs, "Other"), base["spec"][field][types[-1]]))
    yield "everything wrong", changed(
        base,
        (("metadata", "name"), "Bad"),
        (("spec", "runPolicy"), {"managedBy": "me", "backoffLimit": -1}),
        ((*specs, types[0]), {"replicas": 0, "template": {"spec": {"containers": []}}}),
        ((*specs, "Other"), {}),
    )


def ports(base, field, container, types, name):
    containers = ("spec", field, types[-1], "template", "spec", "containers")
    for what, given in (
        ("of that name", [{"name": name, "containerPort": 7}]),
        ("of another", [{"name": "http", "containerPort": 80}]),
        ("of that number", [{"name": "http", "containerPort": 23456}]),
        ("without name", [{"containerPort": 9}]),
    ):
        yield f"a port {what}", changed(base, (containers, [{"name": container, "image": "i", "ports": given}]))
    yield "a port on the sidecar", changed(
        base,
        (
            containers,
            [
                {"name": "side", "image": "i", "ports": [{"name": name, "containerPort": 7}]},
                {"name": container, "image": "i"},
            ],
        ),
    )


def updates(base):
    policy = ("spec", "runPolicy")
    ours, other = "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"
    yield "managedby-update", changed(base, ((*policy, "managedBy"), other)), changed(
        base, ((*policy, "managedBy"), ours)
    )
    yield "managedBy given later", changed(base, ((*policy, "managedBy"), ours)), base
    yield "managedBy taken away", base, changed(base, ((*policy, "managedBy"), ours))
    yield "managedBy kept", changed(base, ((*policy, "managedBy"), ours)), changed(base, ((*policy, "managedBy"), ours))
    yield "suspend changed", changed(base, ((*policy, "suspend"), True)), base
    yield "made worse", changed(base, (("metadata", "name"), "Bad")), base


def pytorch_only(base):
    elastic = ("spec", "elasticPolicy")
    for what, given in (
        ("empty", {}),
        ("least", {"minReplicas": 1}),
        ("most", {"maxReplicas": 4}),
        ("both", {"minReplicas": 1, "maxReplicas": 4}),
        ("crossed", {"minReplicas": 4, "maxReplicas": 1}),
        ("zero", {"minReplicas": 0, "maxReplicas": 0}),
        ("old nProcPerNode", {"nProcPerNode": 2}),
        ("backend", {"rdzvBackend": "nonsense"}),
        (
            "everything",
            {
                "minReplicas": 1,
                "maxReplicas": 2,
                "rdzvBackend": "etcd",
                "rdzvPort": 1,
                "rdzvHost": "h",
                "rdzvId": "i",
                "rdzvConf": [{"key": "a", "value": "b"}],
                "standalone": True,
                "maxRestarts": 3,
            },
        ),
    ):
        yield f"elastic {what}", changed(base, (elastic, given))
    yield "elastic without workers", changed(base, (elastic, {}), (("spec", "pytorchReplicaSpecs", "Worker"), None))
    yield "elastic without master", changed(base, (elastic, {}), (("spec", "pytorchReplicaSpecs", "Master"), None))
    yield "elastic without specs", changed(base, (elastic, {}), (("spec", "pytorchReplicaSpecs"), None))
    yield "both numbers of processes", changed(base, (elastic, {"nProcPerNode": 2}), (("spec", "nprocPerNode"), "4"))
    yield "both, without workers", changed(
        base,
        (elastic, {"nProcPerNode": 2}),
        (("spec", "nprocPerNode"), "4"),
        (("spec", "pytorchReplicaSpecs", "Worker"), None),
    )
    for value in ("auto", "cpu", "gpu", "4", "0", "-1", "many", ""):
        yield f"nprocPerNode {value or 'empty'}", changed(base, (("spec", "nprocPerNode"), value))


def paddle_only(base):
    elastic = ("spec", "elasticPolicy")
    for what, given in (
        ("empty", {}),
        ("least", {"minReplicas": 1}),
        ("most", {"maxReplicas": 4}),
        ("both", {"minReplicas": 1, "maxReplicas": 4}),
    ):
        yield f"elastic {what}", changed(base, (elastic, given))


def tf_only(base):
    one = base["spec"]["tfReplicaSpecs"]["Worker"]
    for types in (("Chief", "Master"), ("Master", "Worker"), ("Evaluator", "Chief"), ("Chief", "chief"), ("PS", "ps")):
        yield " and ".join(types), changed(base, (("spec", "tfReplicaSpecs"), {t: one for t in types}))
    for value in ("", "AllWorkers", "Other"):
        yield f"successPolicy {value or 'empty'}", changed(base, (("spec", "successPolicy"), value))
    yield "dynamic", changed(base, (("spec", "enableDynamicWorker"), True))


def mpi_v1(base):
    yield from replica_specs(base, "mpiReplicaSpecs", "mpi", ("Launcher", "Worker"))
    yield from names(base)
    yield from run_policies(base, "training")
    for old, new in (("All", None), (None, "All"), ("All", "Running"), ("Running", "None"), ("", "")):
        yield f"cleanPodPolicies {old} and {new}", changed(
            base, (("spec", "cleanPodPolicy"), old), (("spec", "runPolicy", "cleanPodPolicy"), new)
        )
    for slots in (0, -1, 8):
        yield f"slots {slots}", changed(base, (("spec", "slotsPerWorker"), slots))
    yield "mainContainer", changed(base, (("spec", "mainContainer"), "mpi"))


def mpi_v2(base):
    yield from replica_specs(base, "mpiReplicaSpecs", "main", ("Launcher", "Worker"))
    yield from names(base)
    yield from run_policies(base, "mpi")
    for slots in (0, -1, 8):
        yield f"slots {slots}", changed(base, (("spec", "slotsPerWorker"), slots))
    for field, values in (
        ("sshAuthMountPath", ("", "/home", "relative")),
        ("mpiImplementation", ("OpenMPI", "Intel", "MPICH", "openmpi", "")),
        ("launcherCreationPolicy", ("AtStartup", "WaitForWorkersReady", "Never", "")),
        ("runLauncherAsWorker", (True, False)),
    ):
        for value in values:
            yield f"{field} {value if value != '' else 'empty'}", changed(base, (("spec", field), value))
    for length in (52, 53, 54, 55):
        for workers in (10, 11, 100, 101):
            yield f"name of {length}, {workers} workers", changed(
                base, (("metadata", "name"), "a" * length), (("spec", "mpiReplicaSpecs", "Worker", "replicas"), workers)
            )
    yield "long name without workers", changed(
        base, (("metadata", "name"), "a" * 60), (("spec", "mpiReplicaSpecs", "Worker"), None)
    )


def ask(operator, questions):
    judge = cluster.build_judge(operator)
    given = "".join(json.dumps(question) + "\n" for question in questions)
    answers = subprocess.run([str(judge)], input=given, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in answers.splitlines()]


def table(operator, kind, version, title, cases):
    questions = [{"job": case[1], **({"oldJob": case[2]} if len(case) > 2 else {})} for case in cases]
    rows = []
    for case, question, answer in zip(cases, questions, ask(operator, questions), strict=True):
        if not answer.get("error", "").startswith(("panic", "decoding")):
            rows.append(
                {
                    "name": case[0],
                    **question,
                    **answer,
                    **(SHOULD_BE if kind == "PyTorchJob" and case[0] in COMPARED_WITH_ITSELF else {}),
                }
            )
    return {
        "id": title,
        "title": f"{kind}: what the real validators and defaulters answer",
        "kind": kind,
        "apiVersion": f"kubeflow.org/{version}",
        "reference": record.VERSIONS[operator],
        "provenance": "recorded by tests/operators/tables.py: the functions of the module itself",
        "cases": rows,
    }


def every():
    for kind, (field, container, types) in KINDS.items():
        one = lambda count: scenarios.replicas(count, scenarios.template(container, image="i"))  # noqa: E731, B023
        base = scenarios.job(kind, field, {t: one(1 if t in ("Master", "Chief") else 2) for t in types}, name="j")
        cases = [
            ("plain", base),
            *names(base),
            *run_policies(base, "training"),
            *replica_specs(base, field, container, types),
            *ports(base, field, container, types, PORTS[kind]),
            *updates(base),
        ]
        cases += {"PyTorchJob": pytorch_only, "PaddleJob": paddle_only, "TFJob": tf_only}.get(kind, lambda _: [])(base)
        yield table("training-operator", kind, "v1", f"{kind.lower()}-validation", cases)
    one = lambda count, name: scenarios.replicas(count, scenarios.template(name, image="i"))  # noqa: E731
    base = scenarios.job("MPIJob", "mpiReplicaSpecs", {"Launcher": one(1, "mpi"), "Worker": one(2, "mpi")}, name="j")
    yield table("training-operator", "MPIJob", "v1", "mpi-v1-validation", [("plain", base), *mpi_v1(base)])
    base = scenarios.job(
        "MPIJob", "mpiReplicaSpecs", {"Launcher": one(1, "main"), "Worker": one(2, "main")}, name="j", version="v2beta1"
    )
    yield table("mpi-operator", "MPIJob", "v2beta1", "mpi-v2-validation", [("plain", base), *mpi_v2(base)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for made in every():
        rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in made.pop("cases"))
        head = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in made.items())
        (options.out / f"{made['id']}.json").write_text("{\n" + head + ',\n  "cases": [\n' + rows + "\n  ]\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
