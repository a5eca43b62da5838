#!/usr/bin/env python3
"""Kills `muster up` with SIGKILL again and again at random moments while people submit jobs through OpenPAI's REST API, jobs fail and are
retried, prod preempts test and oppo, users stop jobs and an administrator changes the virtual clusters.
In the end every acknowledged job exists once and has ended as its policies say; every attempt of every task ran at most
once; nothing half-finished is left.

    tests/crash/pai_crash.py [--rounds 12] [--seed N]
"""
import argparse
import http.client
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402
from pai import Api, free_port  # noqa: E402

# How a job ends: exit code of its tasks, retries it may have, and what must be seen: state, code, counted retries.
KINDS = {
    "good": {"exit": 0, "retries": 0, "class": "test", "vc": "vc1", "ends": {("SUCCEEDED", 0, 0)}},
    "again": {"exit": 7, "retries": 1, "class": "test", "vc": "default", "ends": {("FAILED", 7, 1)}},
    "final": {"exit": 220, "retries": 5, "class": "test", "vc": "vc1", "ends": {("FAILED", 220, 0)}},
    "oppo": {"exit": 0, "retries": 0, "class": "oppo", "vc": "default", "ends": {("SUCCEEDED", 0, 0)}},
    "prod": {"exit": 0, "retries": 0, "class": "prod", "vc": "vc1", "tasks": 2, "ends": {("SUCCEEDED", 0, 0)}},
    # It may have ended before it is stopped, and the word to stop may be lost with the server.
    "stop": {
        "exit": 0,
        "retries": 0,
        "class": "test",
        "vc": "default",
        "ends": {("STOPPED", -210, 0), ("SUCCEEDED", 0, 0)},
    },
}
NODES = "---\n".join(
    f"""apiVersion: v1
kind: Node
metadata: {{name: node-{i}}}
status: {{capacity: {{cpu: "16", memory: 32Gi, nvidia.com/gpu: "2", pods: "110"}}}}
"""
    for i in range(4)
)
# The storage in which each attempt of a task leaves a line; its folder is of this machine.
MARKS = "marks"
GONE = (OSError, http.client.HTTPException)
check = Checks()


def cells(default):
    """Four nodes of two GPUs; so many of them are default's, the others vc1's."""
    share = {"default": default, "vc1": 4 - default}
    return yaml.safe_dump(
        {
            "physicalCluster": {
                "skuTypes": {"GPU": {"gpu": 1, "cpu": 4, "memory": "8192Mi"}},
                "cellTypes": {
                    "NODE": {"childCellType": "GPU", "childCellNumber": 2, "isNodeLevel": True},
                    "POOL": {"childCellType": "NODE", "childCellNumber": 4},
                },
                "physicalCells": [
                    {"cellType": "POOL", "cellChildren": [{"cellAddress": f"node-{i}"} for i in range(4)]}
                ],
            },
            "virtualClusters": {
                vc: {"virtualCells": [{"cellType": "POOL.NODE", "cellNumber": count}]} for vc, count in share.items()
            },
        }
    )


def job(name, kind, seconds):
    mark = f'echo x >> "/mnt/{MARKS}/$PAI_JOB_NAME.$FC_FRAMEWORK_ATTEMPT_ID.$FC_TASK_INDEX.$FC_TASK_ATTEMPT_ID"'
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "jobRetryCount": kind["retries"],
        "secrets": {"word": "hush"},
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "any"}],
        "taskRoles": {
            "train": {
                "instances": kind.get("tasks", 1),
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 1},
                "commands": [mark, f"sleep {seconds:.2f}", f"exit {kind['exit']}"],
            }
        },
        "defaults": {"virtualCluster": kind["vc"]},
        "extras": {"hivedScheduler": {"jobPriorityClass": kind["class"]}, "storages": [{"name": MARKS}]},
    }


class Rounds:
    def __init__(self, muster, port, dice):
        self.muster, self.dice, self.port = muster, dice, port
        password = (muster.data / "admin-password").read_text().strip()
        self.admin = Api(port).login("admin", password)
        self.made, self.unsure, self.strange = {}, {}, []
        self.marks = muster.data / "agent" / "claims" / f"default_{MARKS}"
        self.make_storage()

    def make_storage(self):
        size, shape = {"storage": "1Gi"}, {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        where = {"hostPath": {"path": f"/srv/{MARKS}"}, "capacity": size}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": MARKS},
            "spec": {**shape, **where},
        }
        wish = {**shape, "volumeName": MARKS, "resources": {"requests": size}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": MARKS}, "spec": wish}
        for one in (volume, claim):
            self.muster.kubectl("create", "-f", "-", input=json.dumps(one))
        acls = {"acls": {"admin": False, "virtualClusters": ["default"], "storageConfigs": [MARKS]}}
        change = {"data": {"groupname": "default", "extension": acls}, "patch": True}
        answer = self.admin("PUT", "/groups", change)
        assert answer[0] == 201, answer

    def submit(self, name, kind):
        """Acknowledged, refused as a duplicate, or nobody knows; then it is submitted again later."""
        text = yaml.safe_dump(job(name, KINDS[kind], self.dice.uniform(0.1, 0.9)), sort_keys=False)
        status, answer = self.admin("POST", "/jobs", text, Content_Type="text/yaml")
        if status == 202:
            if name in self.made:
                self.strange.append(f"{name} was taken twice")
            self.made[name] = kind
        elif status == 409 and name in self.unsure:
            self.made[name] = kind
        else:
            self.strange.append((name, status, answer))

    def act(self, number):
        """Until the server is gone: what is not answered is unsure."""
        todo = [("submit", f"r{number}{kind}", kind) for kind in KINDS]
        self.dice.shuffle(todo)
        todo += [("stop", f"r{number}stop", ""), ("cells", "", "")]
        self.dice.shuffle(todo)
        for action, name, kind in todo:
            try:
                if action == "submit":
                    self.unsure[name] = kind
                    self.submit(name, kind)
                    self.unsure.pop(name)
                elif action == "stop":
                    self.admin("PUT", f"/jobs/admin~{name}/executionType", {"value": "STOP"})
                else:
                    self.reconfigure()
            except GONE:
                if action != "submit":
                    continue
                self.unsure[name] = kind

    def reconfigure(self):
        patch = json.dumps({"data": {"hivedscheduler.yaml": cells(self.dice.choice((1, 2, 3)))}})
        where = ["configmap", "-n", "kube-system", "muster-hived"]
        self.muster.kubectl("patch", *where, "--type", "merge", "-p", patch, check=False)

    def round(self, number):
        """People act, and somewhere in between the server is killed."""
        doing = threading.Thread(target=self.act, args=(number,))
        doing.start()
        time.sleep(self.dice.uniform(0, 1.6))
        self.muster.kill()
        doing.join()
        self.muster.start(timeout=60)
        for name, kind in list(self.unsure.items()):
            self.submit(name, kind)
            self.unsure.pop(name)

    def jobs(self):
        return {one["name"]: one for one in self.admin("GET", "/jobs?limit=50000")[1]}

    def end(self):
        def left():
            return {name for name, one in self.jobs().items() if one["subState"] != "Completed"}

        # Two hundred rounds leave a backlog. Stuck is what nothing happens to, not what a busy machine is slow with.
        last, since = None, time.monotonic()
        while (now := left()) and time.monotonic() - since < 240:
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(1)
        seen = self.jobs()
        check("no answer was strange", not self.strange, self.strange[:5])
        check("none is lost, none is more", seen.keys() == self.made.keys(), seen.keys() ^ self.made.keys())
        stuck = {name: (one["state"], one["subState"]) for name, one in seen.items() if one["subState"] != "Completed"}
        check("none is stuck", not stuck, stuck)
        wrong = {}
        for name, one in seen.items():
            how = (one["state"], one["appExitCode"], one["retryDetails"]["user"])
            if how not in KINDS[self.made[name]]["ends"]:
                wrong[name] = (how, self.admin("GET", f"/jobs/admin~{name}")[1]["jobStatus"]["appExitDiagnostics"])
        check(f"{len(seen)} jobs ended as their policies say", not wrong, wrong)
        retried = sum(one["retryDetails"]["platform"] for one in seen.values())
        check(f"of them {retried} were preempted and retried", retried > 0)
        lines = {mark.name: mark.read_text().count("x") for mark in self.marks.iterdir()}
        ran = {name.split("~")[1].split(".")[0] for name in lines}
        silent = {name for name, one in seen.items() if one["state"] != "STOPPED"} - ran
        check(f"{len(lines)} attempts of tasks left their marks", not silent, silent)
        double = {name for name, count in lines.items() if count != 1}
        check("no attempt of a task ran twice", not double, double)
        self.nothing_is_left()

    def nothing_is_left(self):
        frameworks = {one["debugId"] for one in self.jobs().values()}
        pods = json.loads(self.muster.kubectl("get", "pods", "-o", "json").stdout)["items"]
        alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
        check("no pod runs that nobody wants", not alive, alive)
        for kind in ("priorityclasses", "secrets"):
            listed = self.muster.kubectl("get", kind, "-l", "type=kube-launcher", "-o", "name").stdout.split()
            owners = {name.partition("/")[2].partition("-")[0] for name in listed}
            check(f"every one of {len(listed)} {kind} belongs to a job", owners <= frameworks, owners - frameworks)
            check(f"and every job has its {kind}", frameworks <= owners, frameworks - owners)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pai-crash-"))
    (folder / "nodes.yaml").write_text(NODES)
    (folder / "cells.yaml").write_text(cells(2))
    port = free_port()
    arguments = ["--hived-config", str(folder / "cells.yaml"), "--pai-rest", f"127.0.0.1:{port}"]
    try:
        with Muster(*arguments, nodes=folder / "nodes.yaml") as muster:
            # A configuration of the command line would be taken again at each start.
            rounds = Rounds(muster, port, random.Random(options.seed))
            at = muster.args.index("--hived-config")
            del muster.args[at : at + 2]
            for number in range(options.rounds):
                rounds.round(number)
            rounds.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
