#!/usr/bin/env python3
"""Frameworks written by hand, as FrameworkController's users write them, on a real cluster: attempts, completion and
retry policies, stop, rescale, deletion, and what a crash leaves behind.
"""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()


def framework(name, command, workers=2, failed=1, succeeded=2, retries=0, fancy=True, task_retries=0, task_fancy=False):
    return {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": name},
        "spec": {
            "executionType": "Start",
            "retryPolicy": {"fancyRetryPolicy": fancy, "maxRetryCount": retries},
            "taskRoles": [
                {
                    "name": "worker",
                    "taskNumber": workers,
                    "frameworkAttemptCompletionPolicy": {
                        "minFailedTaskCount": failed,
                        "minSucceededTaskCount": succeeded,
                    },
                    "task": {
                        "retryPolicy": {"fancyRetryPolicy": task_fancy, "maxRetryCount": task_retries},
                        "podGracefulDeletionTimeoutSec": 600,
                        "pod": {
                            "spec": {
                                "restartPolicy": "Never",
                                "terminationGracePeriodSeconds": 2,
                                "containers": [{"name": "app", "image": "any", "command": ["sh", "-c", command]}],
                            }
                        },
                    },
                }
            ],
        },
    }


class Cluster:
    def __init__(self, muster):
        self.muster = muster

    def create(self, one):
        self.muster.kubectl("create", "-f", "-", input=json.dumps(one))

    def get(self, name):
        return json.loads(self.muster.kubectl("get", "framework", name, "-o", "json").stdout)

    def pods(self):
        items = json.loads(self.muster.kubectl("get", "pods", "-o", "json").stdout)["items"]
        return {item["metadata"]["name"]: item for item in items}

    def until(self, what, name, condition, timeout=40):
        deadline = time.monotonic() + timeout
        seen = {}
        while time.monotonic() < deadline:
            seen = self.get(name)
            if condition(seen.get("status", {})):
                return seen["status"]
            time.sleep(0.1)
        check(what, False, json.dumps(seen.get("status"))[:2000])
        return seen.get("status", {})

    def stop(self, name):
        self.muster.kubectl("patch", "framework", name, "--type=merge", "-p", '{"spec":{"executionType":"Stop"}}')


def done(status):
    return status.get("state") == "Completed"


def code(status):
    return ((status.get("attemptStatus") or {}).get("completionStatus") or {}).get("code")


def tasks(status):
    return status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]


def retries(status):
    counts = status["retryPolicyStatus"]
    return counts["totalRetriedCount"], counts["accountableRetriedCount"]


def policies(cluster):
    cluster.create(framework("good", 'echo "$FC_TASKROLE_NAME $FC_TASK_INDEX of $FC_FRAMEWORK_NAME {{FC_POD_NAME}}"'))
    status = cluster.until("it ends", "good", done)
    check("a Framework of two tasks succeeds", code(status) == 0 and retries(status) == (0, 0), status)
    log = cluster.muster.kubectl("logs", "good-worker-1").stdout
    check("its tasks know who they are", log == "worker 1 of good good-worker-1\n", log)
    task = tasks(status)[1]["attemptStatus"]
    check("the status says where they ran", task["podNodeName"] and task["podIP"] and task["podUID"], task)
    check("an instance is called by attempt and uid", task["instanceUID"] == f"0_{task['podUID']}", task)
    row = cluster.muster.kubectl("get", "frameworks").stdout
    check("kubectl shows its state", "STATE" in row and "Completed" in row, row)

    cluster.create(framework("first", 'test "$FC_TASK_INDEX" = 0 || exec sleep 60', succeeded=1))
    status = cluster.until("it ends", "first", done)
    check("the first success ends it when one is enough", code(status) == 0, status)
    check("the other task is stopped", [code(task) for task in tasks(status)] == [0, -220], tasks(status))

    cluster.create(framework("bad", 'test "$FC_TASK_INDEX" = 0 || exit 3; exec sleep 60'))
    status = cluster.until("it ends", "bad", done)
    trigger = status["attemptStatus"]["completionStatus"]["trigger"]
    check("one failure fails it", code(status) == 3 and retries(status) == (0, 0), status)
    check("and it says which", (trigger["taskRoleName"], trigger["taskIndex"]) == ("worker", 1), trigger)


def retrying(cluster):
    cluster.create(framework("again", "exit 7", workers=1, retries=2))
    status = cluster.until("it ends", "again", done)
    check("an unknown failure is tried as often as it says", retries(status) == (2, 2) and code(status) == 7, status)
    cluster.create(framework("never", "exit 220", workers=1, retries=5))
    status = cluster.until("it ends", "never", done)
    check("a permanent one is not", retries(status) == (0, 0) and code(status) == 220, status)

    cluster.create(framework("gang", "exec sleep 60"))
    status = cluster.until("it runs", "gang", lambda status: status.get("state") == "AttemptRunning")
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items() if name.startswith("gang-")}
    cluster.muster.kubectl("delete", "pod", "gang-worker-0", "--wait=false")
    cluster.until(
        "it runs again",
        "gang",
        lambda status: status["attemptStatus"]["id"] == 1 and status["state"] == "AttemptRunning",
    )
    status = cluster.get("gang")["status"]
    after = {name: pod["metadata"]["uid"] for name, pod in cluster.pods().items() if name.startswith("gang-")}
    check("a pod that others delete brings the whole gang back", retries(status) == (1, 0), status)
    check(
        "in new pods of the same names",
        before.keys() == after.keys() and not set(before.values()) & set(after.values()),
    )

    cluster.create(framework("single", "exec sleep 60", task_fancy=True))
    cluster.until("it runs", "single", lambda status: status.get("state") == "AttemptRunning")
    cluster.muster.wait_idle()
    before = cluster.pods()["single-worker-1"]["metadata"]["uid"]
    cluster.muster.kubectl("delete", "pod", "single-worker-0", "--wait=false")
    status = cluster.until(
        "the task runs again",
        "single",
        lambda status: tasks(status)[0]["attemptStatus"]["id"] == 1 and tasks(status)[0]["state"] == "AttemptRunning",
    )
    check("with retries of tasks only that one comes back", retries(status) == (0, 0), status)
    check("the other goes on", cluster.pods()["single-worker-1"]["metadata"]["uid"] == before)


def changing(cluster):
    def scale(number):
        patch = [{"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": number}]
        cluster.muster.kubectl("patch", "framework", "single", "--type=json", "-p", json.dumps(patch))

    scale(3)
    status = cluster.until(
        "a third task runs", "single", lambda s: len(tasks(s)) == 3 and tasks(s)[2]["state"] == "AttemptRunning"
    )
    check("more tasks join the attempt", status["attemptStatus"]["id"] == 0, status)
    scale(1)
    status = cluster.until("two are gone", "single", lambda s: len(tasks(s)) == 1)
    check("fewer tasks end without failing it", status["state"] == "AttemptRunning", status)
    for name in ("single", "gang"):
        cluster.stop(name)
    for name in ("single", "gang"):
        status = cluster.until("it stops", name, done)
        check(f"stop ends {name} with its code", code(status) == -210 and code(tasks(status)[0]) == -210, status)
    back = cluster.muster.kubectl(
        "patch", "framework", "gang", "--type=merge", "-p", '{"spec":{"executionType":"Start"}}', check=False
    )
    check("and there is no way back", back.returncode != 0 and "never back" in back.stderr, back.stderr)
    wrong = framework("Bad-Name", "true")
    refused = cluster.muster.kubectl("create", "-f", "-", input=json.dumps(wrong), check=False)
    check("a wrong name is refused", refused.returncode != 0, refused.stdout)


def surviving(cluster):
    cluster.create(framework("crash", "exec sleep 3"))
    cluster.until("it runs", "crash", lambda status: status.get("state") == "AttemptRunning")
    cluster.muster.kill()
    cluster.muster.start()
    status = cluster.until("it ends", "crash", done)
    check("a crash costs it nothing", code(status) == 0 and retries(status) == (0, 0), status)
    cluster.muster.kubectl("delete", "framework", "crash")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(name.startswith("crash-") for name in cluster.pods()):
        time.sleep(0.1)
    left = [name for name in cluster.pods() if name.startswith("crash-")]
    maps = cluster.muster.kubectl("get", "configmaps", "-o", "name").stdout
    check("what it owned goes with it", not left and "crash-attempt" not in maps, (left, maps))


def main():
    with Muster(nodes=2, gpus=1) as muster:
        cluster = Cluster(muster)
        for part in (policies, retrying, changing, surviving):
            part(cluster)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
