#!/usr/bin/env python3
"""What `explain` says about how jobs ended is true, and what crashes is restarted with growing delays."""
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster, binary  # noqa: E402

check = Checks()

CRASHING = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "MPIJob",
    "metadata": {"name": "crashing"},
    "spec": {
        "worker": {
            "replicas": 2,
            "cmd": ["sleep", "60"],
            "template": {"spec": {"containers": [{"name": "mpi-worker", "image": "i"}]}},
        },
        # A program that ends at once, as an sshd does that misses its folder.
        "ssh": {"sshdPath": "/bin/false"},
        "mpiHome": "/usr/local",
    },
}


def gang(name, pods, gpus):
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": pods,
            "tasks": [
                {
                    "name": "w",
                    "replicas": pods,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "c",
                                    "image": "i",
                                    "command": ["sleep", "60"],
                                    "resources": {"limits": {"nvidia.com/gpu": gpus}},
                                }
                            ],
                        }
                    },
                }
            ],
        },
    }


def deployment(name, script):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{"name": "c", "image": "i", "command": ["/bin/sh", "-c", script]}],
                },
            },
        },
    }


def apply(muster, *objects):
    return muster.kubectl(
        "apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    )


def explain(muster, name):
    done = muster.run(binary(), "explain", name, check=False)
    return done.stdout + done.stderr


def backs_off(muster):
    apply(muster, CRASHING)
    time.sleep(15)  # the time itself is what is measured
    made = muster.kubectl("get", "events", "-o", "json").stdout
    made = sum(
        event.get("count", 1) or 1
        for event in json.loads(made)["items"]
        if event["reason"] == "SuccessfulCreatePod" and event["involvedObject"]["name"] == "crashing"
    )
    check("workers that end at once come back a few times in 15 s, not a thousand", 3 <= made <= 12, made)
    told = muster.kubectl("describe", "mpijobs.batch.tensorstack.dev", "crashing").stdout
    check("the job says why: an event with the exit code", "BackOff" in told and "exit code 1" in told, told)
    check("so does explain", "BackOff" in explain(muster, "crashing"), lambda: explain(muster, "crashing"))


def tells_the_truth(muster):
    apply(muster, gang("never", 5, 4))
    told = explain(muster, "never")
    check("right after submission explain has the scheduler's answer", "has not looked" not in told, told)
    until(lambda: "never start" in explain(muster, "never"), 20)
    told = explain(muster, "never")
    check("a gang that is larger than the cluster can never start", "It can never start here" in told, told)
    check("and is not promised to", "starts by itself" not in told, told)

    apply(muster, deployment("web", "echo first; echo no such model >&2; exit 7"))
    until(lambda: "exit code 7" in explain(muster, "web"), 60)
    told = explain(muster, "deployment/web")
    check("a Deployment that crashes: its exit code and its last words", "exit code 7" in told, told)
    check("which are the log's last lines", "no such model" in told, told)
    until(lambda: "does not run" in explain(muster, "web"), 60)
    check("it is not said to run", "does not run" in explain(muster, "web"), lambda: explain(muster, "web"))

    told = explain(muster, "queue/default")
    check("explain queue/default names what waits there and why", "never" in told and "Waiting" in told, told)
    node = json.loads(muster.kubectl("get", "nodes", "-o", "json").stdout)["items"][0]["metadata"]["name"]
    muster.kubectl("cordon", node)
    told = explain(muster, f"node/{node}")
    check("explain node/NAME says that it is cordoned, and its GPUs", "cordoned" in told and "GPUs: " in told, told)
    muster.kubectl("uncordon", node)


def refuses(muster):
    wrong = gang("wrong", 2, 1)
    wrong["spec"]["minAvailable"] = 3
    done = muster.kubectl("apply", "-f", "-", check=False, input=json.dumps(wrong))
    check("a Volcano Job that could only fail is refused", done.returncode != 0 and "minAvailable" in done.stderr, done)

    muster.run(binary(), "queue", "create", "night", "--weight", "1")
    asleep = gang("asleep", 1, 1)
    asleep["spec"]["queue"] = "night"
    apply(muster, asleep)
    state = "jsonpath={.status.state}"
    until(lambda: "asleep" in muster.kubectl("get", "podgroups", "-o", "name").stdout, 20)
    muster.run(binary(), "queue", "close", "night")
    check(
        "a queue that still has a gang is closing",
        muster.kubectl("get", "queue", "night", "-o", state).stdout == "Closing",
    )
    muster.kubectl("delete", "jobs.batch.volcano.sh", "asleep")
    check(
        "and closed when it is gone",
        until(lambda: muster.kubectl("get", "queue", "night", "-o", state).stdout == "Closed", 60),
        lambda: muster.kubectl("get", "queue,podgroups", "-o", "yaml").stdout,
    )


def main():
    with Muster(nodes=3, gpus=4) as muster:
        backs_off(muster)
        tells_the_truth(muster)
        refuses(muster)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
