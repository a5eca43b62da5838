#!/usr/bin/env python3
"""A preempted job that asks to come back does: it gets SIGTERM first, and later starts again as a whole, before what was
submitted after it.

Two GPUs. `low` (annotation muster.dev/on-preempt: requeue) holds both; `high` takes them; `later` asks for both while
`high` runs. `low` gets SIGTERM and writes its checkpoint, waits, starts again as a whole before `later`, and ends
from its checkpoint. The tests of their controllers check the same for a T9k MPIJob and an MPIJob v2beta1.

An MPIJob v1alpha1 has no PodGroup that would remember its place: what was submitted before its pods came back, but after
the job, waits for it all the same.
"""
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()
TRAIN = """
mark=/checkpoints/$HOSTNAME
if [ -e $mark ]; then echo resumed from $(cat $mark); exit 0; fi
trap 'echo step 7 > $mark; echo saved; exit 143' TERM
echo fresh
while true; do sleep 0.1; done
"""


def job(name, script, folder, requeue=False, priority=None):
    pod = {
        "spec": {
            "terminationGracePeriodSeconds": 20,
            "volumes": [{"name": "c", "hostPath": {"path": folder}}],
            "containers": [
                {
                    "name": "pytorch",
                    "image": "x",
                    "command": ["sh", "-c", script],
                    "volumeMounts": [{"name": "c", "mountPath": "/checkpoints"}],
                    "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "100m"}},
                }
            ],
        }
    }
    if priority:
        pod["spec"]["priorityClassName"] = priority
    spec = {"replicas": 1, "restartPolicy": "Never", "template": pod}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "annotations": {"muster.dev/on-preempt": "requeue"} if requeue else {}},
        # A worker that still looks for its master's name when the master has ended must not keep its GPU.
        "spec": {
            "runPolicy": {
                "cleanPodPolicy": "Running",
                "schedulingPolicy": {"priorityClass": priority} if priority else {},
            },
            "pytorchReplicaSpecs": {"Master": spec, "Worker": spec},
        },
    }


# The first run of the launcher goes on for ever, the second says whether `later` was let in before it.
LAUNCH = """
if [ ! -e /checkpoints/began ]; then touch /checkpoints/began; while true; do sleep 0.1; done; fi
if [ -e /checkpoints/later ]; then echo behind; else echo before; fi > /checkpoints/place
"""


def mpi_job(folder):
    container = {
        "name": "mpi",
        "image": "x",
        "command": ["sh", "-c", LAUNCH],
        "volumeMounts": [{"name": "c", "mountPath": "/checkpoints"}],
    }
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "MPIJob",
        "metadata": {"name": "plain", "annotations": {"muster.dev/on-preempt": "requeue"}},
        "spec": {
            "gpus": 2,
            "gpusPerNode": 2,
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "volumes": [{"name": "c", "hostPath": {"path": folder}}],
                    "containers": [container],
                }
            },
        },
    }


def pod(name, script, folder, priority=None):
    spec = {
        "restartPolicy": "Never",
        "volumes": [{"name": "c", "hostPath": {"path": folder}}],
        "containers": [
            {
                "name": "c",
                "image": "x",
                "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "c", "mountPath": "/checkpoints"}],
                "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": "100m"}},
            }
        ],
    }
    if priority:
        spec["priorityClassName"] = priority
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def without_a_group(muster, create, get):
    with tempfile.TemporaryDirectory() as folder:
        create(mpi_job(folder))
        check(
            "a job without a PodGroup runs",
            until(lambda: (pathlib.Path(folder) / "began").exists()),
            get("pods", "{.items[*].status.phase}"),
        )
        check("it has no PodGroup", get("podgroups.scheduling.volcano.sh plain", "{.metadata.name}") == "")
        submitted = get("mpijob plain", "{.metadata.creationTimestamp}")
        # Times of creation have whole seconds.
        until(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > submitted)
        create(pod("later", "touch /checkpoints/later", folder))
        muster.wait_idle()
        first = get("pod plain-worker-0", "{.metadata.uid}")
        create(pod("high", "until [ -e /checkpoints/go ]; do sleep 0.1; done", folder, priority="urgent"))
        check("it is preempted", until(lambda: get("pod high", "{.status.phase}") == "Running"))
        check(
            "its worker comes back after what was submitted later",
            until(lambda: get("pod plain-worker-0", "{.metadata.uid}") not in ("", first)),
        )
        (pathlib.Path(folder) / "go").touch()
        check(
            "it ends",
            until(lambda: get("mpijob plain", "{.status.launcherStatus}") == "Succeeded"),
            get("mpijob plain", "{.status}"),
        )
        place = (pathlib.Path(folder) / "place").read_text().strip()
        check("it kept its place in the queue", place == "before", place)
        check(
            "what was submitted later runs afterwards",
            until(lambda: get("pod later", "{.status.phase}") == "Succeeded"),
        )


def main():
    with tempfile.TemporaryDirectory() as folder, Muster(nodes=1, gpus=2) as muster:

        def create(thing):
            muster.kubectl("create", "-f", "-", input=json.dumps(thing))

        def wait(name, state, timeout=90):
            return (
                muster.kubectl(
                    "wait", f"pytorchjob/{name}", f"--for=condition={state}", f"--timeout={timeout}s", check=False
                ).returncode
                == 0
            )

        def get(what, path):
            return muster.kubectl("get", *what.split(), "-o", f"jsonpath={path}", check=False).stdout

        create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "urgent"},
                "value": 1000,
            }
        )
        create(job("low", TRAIN, folder, requeue=True))
        check("low runs", wait("low", "Running"))
        check(
            "both of its processes have begun",
            until(
                lambda: all(
                    "fresh" in muster.kubectl("logs", f"low-{pod}-0", check=False).stdout
                    for pod in ("master", "worker")
                )
            ),
        )
        submitted = get("pytorchjob low", "{.metadata.creationTimestamp}")
        stamp = "{.metadata.annotations.muster\\.dev/submitted-at}"
        check(
            "its pods and its group carry its submission time",
            [
                get(f"{what} {name}", stamp)
                for what, name in (
                    ("pod", "low-master-0"),
                    ("pod", "low-worker-0"),
                    ("podgroups.scheduling.volcano.sh", "low"),
                )
            ]
            == [submitted] * 3,
        )
        before = get("pods", "{.items[*].metadata.uid}").split()

        create(job("high", "until [ -e /checkpoints/go ]; do sleep 0.1; done", folder, priority="urgent"))
        check("high runs", wait("high", "Running"))
        saved = sorted(path.read_text() for path in pathlib.Path(folder).iterdir())
        check("every process of low was told with SIGTERM and saved", saved == ["step 7\n"] * 2, saved)
        state = get("pytorchjob low", "{.status.conditions[-1:].type} {.status.conditions[-1:].reason}")
        check("low waits, it has not failed", state == "Restarting PyTorchJobRequeued", state)
        create(job("later", "true", folder))
        muster.wait_idle()
        check(
            "nothing of low or later runs beside high",
            all(get(f"pod {name}-master-0", "{.spec.nodeName}") == "" for name in ("low", "later")),
        )

        (pathlib.Path(folder) / "go").touch()
        check("low ends from its checkpoint", wait("low", "Succeeded"), get("pytorchjob low", "{.status.conditions}"))
        log = muster.kubectl("logs", "low-master-0").stdout
        check("it resumed", log == "resumed from step 7\n", log)
        check("all of it was made anew", not set(before) & set(get("pods", "{.items[*].metadata.uid}").split()))
        check("later runs afterwards", wait("later", "Succeeded"))
        began = {
            name: get(f"pod {name}-master-0", "{.status.containerStatuses[0].state.terminated.startedAt}")
            for name in ("high", "low", "later")
        }
        check("in the order high, low, later", began["high"] <= began["low"] <= began["later"], began)
        restarted = get("pytorchjob low", "{.metadata.creationTimestamp}")
        check("and it is the same job", restarted == submitted)
        events = get("events --field-selector involvedObject.name=low", "{.items[*].reason}")
        check("the events tell of it", "PyTorchJobRequeued" in events, events)
        muster.kubectl("delete", "pytorchjobs", "--all")
        without_a_group(muster, create, get)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
