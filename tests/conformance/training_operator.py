#!/usr/bin/env python3
"""Kubeflow's training operator 1.9, unmodified, on Muster's API server: it runs a PyTorchJob to completion, suspends one
and resumes it, and cleans up. Muster's scheduler places the pods and its agent runs them; its own controllers are
left out.

    tests/conformance/training_operator.py
"""
import base64
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from muster import Muster  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
import real_kubernetes  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("OPERATORS", real_kubernetes.BIN)) / "training-operator"
check = Checks()


def get(muster, *what):
    found = muster.kubectl("get", *what, "-o", "json", check=False)
    return json.loads(found.stdout) if found.returncode == 0 else {}


def conditions(muster, name):
    return {c["type"]: c["status"] for c in get(muster, "pytorchjob", name).get("status", {}).get("conditions") or []}


def start(muster):
    """The operator writes its certificate to a Secret that a kubelet would mount where it looks for it, a constant of
    the operator's."""
    muster.kubectl("create", "ns", "kubeflow")
    muster.kubectl("-n", "kubeflow", "create", "secret", "generic", "training-operator-webhook-cert")
    muster.kubectl(
        "create",
        "-f",
        "-",
        input=json.dumps(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "validator.training-operator.kubeflow.org"},
                "webhooks": [],
            }
        ),
    )
    certificates = pathlib.Path("/tmp/k8s-webhook-server/serving-certs")
    certificates.mkdir(parents=True, exist_ok=True)
    log = open(muster.data / "operator.log", "ab")
    operator = subprocess.Popen(
        [
            str(PROGRAM),
            "--metrics-bind-address",
            "0",
            "--health-probe-bind-address",
            "0",
            "--webhook-server-port",
            str(real_kubernetes.free_port()),
        ],
        env={**os.environ, "KUBECONFIG": str(muster.kubeconfig), "TMPDIR": "/tmp"},
        stdout=log,
        stderr=log,
    )
    secret = (
        lambda: get(muster, "-n", "kubeflow", "secret", "training-operator-webhook-cert").get("data") or {}
    )  # noqa: E731
    check("the operator writes its certificate", until(lambda: "tls.crt" in secret()))
    for name, value in secret().items():
        (certificates / name).write_bytes(base64.b64decode(value))
    return operator


def replica(count, script):
    return {
        "replicas": count,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [{"name": "pytorch", "image": "any", "command": ["sh", "-c", script]}]}},
    }


def job(name, script, **run_policy):
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": run_policy,
            "pytorchReplicaSpecs": {"Master": replica(1, script), "Worker": replica(1, "sleep 600")},
        },
    }


def sees_a_job_to_its_end(muster):
    muster.kubectl(
        "create",
        "-f",
        "-",
        input=json.dumps(
            job("once", "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR; sleep 2", cleanPodPolicy="Running")
        ),
    )
    check(
        "the job ends", until(lambda: conditions(muster, "once").get("Succeeded") == "True"), conditions(muster, "once")
    )
    check("it was seen to run", conditions(muster, "once").get("Running") == "False", conditions(muster, "once"))
    check(
        "the master's environment",
        "rank 0 of 2 at once-master-0" in muster.kubectl("logs", "once-master-0", check=False).stdout,
    )
    check(
        "the worker and its service are cleaned up",
        until(lambda: not get(muster, "pod", "once-worker-0") and not get(muster, "service", "once-worker-0")),
    )
    check("the master is kept", get(muster, "pod", "once-master-0").get("status", {}).get("phase") == "Succeeded")


def suspends_and_resumes(muster):
    muster.kubectl("create", "-f", "-", input=json.dumps(job("pause", "sleep 600")))
    check("it runs", until(lambda: conditions(muster, "pause").get("Running") == "True"), conditions(muster, "pause"))
    patch = lambda on: muster.kubectl(
        "patch", "pytorchjob", "pause", "--type=merge", "-p", json.dumps({"spec": {"runPolicy": {"suspend": on}}})
    )  # noqa: E731
    patch(True)
    check(
        "suspended: the pods go",
        until(
            lambda: not get(muster, "pod", "pause-master-0") and conditions(muster, "pause").get("Suspended") == "True"
        ),
    )
    patch(False)
    check(
        "resumed: it runs again",
        until(lambda: conditions(muster, "pause") == {"Created": "True", "Suspended": "False", "Running": "True"}),
        conditions(muster, "pause"),
    )
    muster.kubectl("delete", "pytorchjob", "pause")
    check(
        "deleted: the garbage collector takes its pods",
        until(lambda: not get(muster, "pods", "-l", "training.kubeflow.org/job-name=pause").get("items")),
    )


def main():
    if not PROGRAM.exists():
        skip_all("the training operator is not built (tools/kubernetes)")
    with Muster("--without", "controllers", nodes=1) as muster:
        operator = start(muster)
        try:
            sees_a_job_to_its_end(muster)
            suspends_and_resumes(muster)
        finally:
            operator.terminate()
            operator.wait()
        if check.failed:
            print((muster.data / "operator.log").read_text()[-3000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
