#!/usr/bin/env python3
"""Kills `muster up` with SIGKILL again and again at random moments while Frameworks are submitted, run, fail, are retried,
lose their pods and are stopped. In the end each has ended exactly as its policies say: none is lost, retried once too
often, duplicated or stuck.

    tests/crash/framework_crash.py [--rounds 20] [--seed N]
"""
import argparse
import json
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
import muster as fixture  # noqa: E402

# What is submitted, and how it must end: tasks, policy, exit code of the tasks, retries; code and (total, counted).
KINDS = {
    "good": {"tasks": 2, "succeeded": 2, "exit": 0, "retries": 0, "ends": {(0, 0, 0)}},
    "again": {"tasks": 1, "succeeded": 1, "exit": 7, "retries": 1, "ends": {(7, 1, 1)}},
    "final": {"tasks": 2, "succeeded": 2, "exit": 220, "retries": 5, "ends": {(220, 0, 0)}},
    "first": {"tasks": 3, "succeeded": 1, "exit": 0, "retries": 0, "ends": {(0, 0, 0)}},
    # The pod may have ended by itself before it is deleted, or the job before it is stopped.
    "taken": {"tasks": 2, "succeeded": 2, "exit": 0, "retries": 0, "ends": {(0, 0, 0), (0, 1, 0)}},
    "stopped": {"tasks": 2, "succeeded": 2, "exit": 0, "retries": 0, "ends": {(-210, 0, 0), (0, 0, 0)}},
}
check = Checks()


def framework(name, kind, seconds):
    notes = {"muster.dev/hollow-duration": f"{seconds:.2f}s", "muster.dev/hollow-exit-code": str(kind["exit"])}
    pod = {
        "metadata": {"annotations": notes},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "x"}]},
    }
    role = {
        "name": "worker",
        "taskNumber": kind["tasks"],
        "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceededTaskCount": kind["succeeded"]},
        "task": {"retryPolicy": {"maxRetryCount": 0}, "podGracefulDeletionTimeoutSec": 600, "pod": pod},
    }
    return {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": name},
        "spec": {
            "retryPolicy": {"fancyRetryPolicy": True, "maxRetryCount": kind["retries"]},
            "taskRoles": [role],
        },
    }


class Rounds:
    def __init__(self, muster, dice):
        self.muster, self.dice, self.made = muster, dice, {}

    def act(self, number):
        """Submits one of each kind; what must happen to some of them happens at once."""
        names = {kind: f"r{number}{kind}" for kind in KINDS}
        items = [framework(name, KINDS[kind], self.dice.uniform(0.05, 0.8)) for kind, name in names.items()]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        self.muster.kubectl("apply", "-f", "-", input=json.dumps(listed))
        self.made.update({name: kind for kind, name in names.items()})
        time.sleep(self.dice.uniform(0, 0.3))
        self.muster.kubectl("delete", "pod", f"{names['taken']}-worker-0", "--wait=false", check=False)
        stop = '{"spec":{"executionType":"Stop"}}'
        self.muster.kubectl("patch", "framework", names["stopped"], "--type=merge", "-p", stop)

    def frameworks(self):
        return json.loads(self.muster.kubectl("get", "frameworks", "-o", "json").stdout)["items"]

    def end(self):
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            seen = self.frameworks()
            if all((one.get("status") or {}).get("state") == "Completed" for one in seen):
                break
            time.sleep(0.2)
        seen = {one["metadata"]["name"]: one for one in self.frameworks()}
        check("none is lost, none is more", seen.keys() == self.made.keys(), seen.keys() ^ self.made.keys())
        stuck = {name: (one.get("status") or {}).get("state") for name, one in seen.items()}
        check(
            "none is stuck", set(stuck.values()) == {"Completed"}, {k: v for k, v in stuck.items() if v != "Completed"}
        )
        wrong = {}
        for name, one in seen.items():
            status = one.get("status") or {}
            ended = (status.get("attemptStatus") or {}).get("completionStatus") or {}
            counts = status.get("retryPolicyStatus") or {}
            how = (ended.get("code"), counts.get("totalRetriedCount"), counts.get("accountableRetriedCount"))
            if how not in KINDS[self.made[name]]["ends"]:
                wrong[name] = how
        check(f"{len(seen)} Frameworks ended as their policies say", not wrong, wrong)
        pods = json.loads(self.muster.kubectl("get", "pods", "-o", "json").stdout)["items"]
        alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        check("no pod runs that nobody wants", not alive, alive)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    dice = random.Random(options.seed)
    with fixture.Muster("--hollow", nodes=4, gpus=8) as muster:
        rounds = Rounds(muster, dice)
        for number in range(options.rounds):
            rounds.act(number)
            time.sleep(dice.uniform(0, 1.2))
            muster.kill()
            muster.start()
        rounds.end()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
