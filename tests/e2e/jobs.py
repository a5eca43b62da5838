#!/usr/bin/env python3
"""What people read about their jobs is true: about a running gang, one job among others, and instances that are gone."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()
KINDS = {"PyTorchJob": ("pytorchReplicaSpecs", "pytorch", "Master"), "TFJob": ("tfReplicaSpecs", "tensorflow", "Chief")}


def job(kind, name, script="sleep 300", workers=1, restart="Never", **policy):
    field, container, first = KINDS[kind]
    pod = {
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {
                    "name": container,
                    "image": "x",
                    "command": ["sh", "-c", script],
                    "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "10m"}},
                }
            ],
        }
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "runPolicy": policy,
            field: {
                first: {"replicas": 1, "restartPolicy": restart, "template": pod},
                "Worker": {"replicas": workers, "restartPolicy": restart, "template": pod},
            },
        },
    }


def main():
    with Muster(nodes=1, gpus=8) as muster:

        def create(thing):
            muster.kubectl("create", "-f", "-", input=json.dumps(thing))

        def get(what, path):
            return muster.kubectl("get", *what.split(), "-o", f"jsonpath={path}", check=False).stdout

        def running(name, pods=2):
            return until(lambda: get(f"podgroups.scheduling.volcano.sh {name}", "{.status.running}") == str(pods))

        create(job("TFJob", "first"))
        create(job("PyTorchJob", "second"))
        check("both jobs run", running("first") and running("second"))
        muster.wait_idle()
        conditions = [
            get(f"podgroups.scheduling.volcano.sh {name}", "{.status.conditions[*].type}")
            for name in ("first", "second")
        ]
        check("a group that runs is not said to wait for members", conditions == ["Scheduled", "Scheduled"], conditions)
        events = muster.cli("get", "first", "-e").stdout
        check(
            "get -e shows the events of the job's own instances",
            "pod/first-chief-0" in events and "pod/second" not in events,
            events,
        )

        muster.cli("suspend", "first")
        check(
            "a suspended job has no pods",
            until(lambda: get("pods -l training.kubeflow.org/job-name=first", "{.items[*].metadata.name}") == ""),
        )
        told = muster.cli("explain", "first").stdout
        check(
            "explain remembers instances of every role that are gone",
            "pod/first-chief-0" in told and "pod/first-worker-0" in told,
            told,
        )
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
