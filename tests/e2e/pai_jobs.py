#!/usr/bin/env python3
"""What OpenPAI's protocol promises inside a task, on a real cluster without cells: variables and ports, secrets,
plugins, storages, prerequisites, retries, exit codes, notifications; and what is refused to ordinary users.
"""
import hashlib
import json
import pathlib
import shutil
import sys
import time

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()


def job(name, commands, **more):
    role = {
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 0, **more.pop("resources", {})},
        "commands": commands,
        **more.pop("role", {}),
    }
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "any"}, *more.pop("prerequisites", [])],
        "taskRoles": {"worker": role},
        **more,
    }


class Lab:
    def __init__(self, muster):
        self.muster = muster
        self.user = json.loads(muster.cli("whoami").stdout)["Name"]

    def submit(self, one, *flags):
        file = self.muster.data / "job.yaml"
        file.write_text(one if isinstance(one, str) else yaml.safe_dump(one, sort_keys=False))
        return self.muster.cli("submit", "pai", str(file), *flags, check=False)

    def id_of(self, name):
        return hashlib.md5(f"{self.user}~{name}".encode()).hexdigest()

    def framework(self, name):
        return json.loads(self.muster.kubectl("get", "framework", self.id_of(name), "-o", "json").stdout)

    def log(self, name, index=0, role="worker"):
        return self.muster.kubectl("logs", f"{self.id_of(name)}-{role}-{index}", check=False).stdout

    def until(self, name, condition, timeout=40):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            status = self.framework(name).get("status") or {}
            if condition(status):
                return status
            time.sleep(0.1)
        check(f"{name} gets there", False, json.dumps(self.framework(name).get("status"))[:1500])
        return self.framework(name).get("status") or {}

    def until_ends(self, name):
        return self.until(name, lambda status: status.get("state") == "Completed")


def code(status):
    return ((status.get("attemptStatus") or {}).get("completionStatus") or {}).get("code")


def ports(uid, label, count):
    """OpenPAI's formula, written down a second time."""
    out = []
    for k in range(count):
        digest = hashlib.md5(f"[{uid}][{label}][{k}]".encode()).hexdigest()
        parts = [int(digest[a:b], 16) for a, b in ((0, 12), (12, 24), (24, 32))]
        out.append(str(sum(parts) % (39999 - 15000) + 15000))
    return ",".join(out)


def variables(lab):
    shown = [
        "echo $PAI_JOB_NAME $PAI_TASK_INDEX $PAI_TASK_ROLE_LIST $PAI_RESOURCE_worker",
        "echo $PAI_PORT_LIST_worker_0_grpc $PAI_worker_1_http_PORT $PAI_CONTAINER_HOST_grpc_PORT_LIST",
        "echo $PAI_HOST_IP_worker_0 $PAI_HOST_IP_worker_1 $PAI_CURRENT_CONTAINER_IP",
        "hostname -i || true",
    ]
    lab.submit(job("variables", shown, role={"instances": 2}, resources={"ports": {"grpc": 2}}), "--wait")
    status = lab.until_ends("variables")
    tasks = [one["attemptStatus"] for one in status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]]
    first, second = (task["podUID"] for task in tasks)
    lines = lab.log("variables", 1).splitlines()
    check("static variables", lines[0] == f"{lab.user}~variables 1 worker 0,1,128,512", lines)
    check(
        "ports by the formula",
        lines[1] == f"{ports(first, 'grpc', 2)} {ports(second, 'http', 1)} {ports(second, 'grpc', 2)}",
        lines,
    )
    addresses = [tasks[0]["podIP"], tasks[1]["podIP"], tasks[1]["podIP"]]
    check("addresses of everybody", lines[2].split() == addresses and tasks[0]["podIP"] != tasks[1]["podIP"], lines)


def secrets(lab):
    one = job("hidden", ["echo <% $secrets.word %>-<% $parameters.n %>"], secrets={"word": "hush"}, parameters={"n": 3})
    lab.submit(one, "--wait")
    check("a secret is rendered in the pod", lab.log("hidden") == "hush-3\n", lab.log("hidden"))
    text = json.dumps(lab.framework("hidden")) + lab.muster.kubectl("get", "pods", "-o", "yaml").stdout
    check("and stands in no Framework and no pod", "hush" not in text)
    lab.muster.cli("delete", "hidden")
    deadline = time.monotonic() + 20
    left = "?"
    while time.monotonic() < deadline and left:
        left = [
            line for line in lab.muster.kubectl("get", "secrets", "-o", "name").stdout.split() if "configcred" in line
        ]
        time.sleep(0.1)
    check("it goes with its job", not left, left)


def plugins(lab):
    plugin = "com.microsoft.pai.runtimeplugin"
    extras = {plugin: [{"plugin": "cmd", "parameters": {"preCommands": ["echo pre"], "postCommands": ["echo post"]}}]}
    hooks = {
        "name": "hook",
        "type": "script",
        "plugin": plugin + ".cmd",
        "callbacks": [
            {"event": "taskStarts", "commands": ["echo starts"]},
            {"event": "taskSucceeds", "commands": ["echo succeeds"]},
        ],
    }
    one = job("plugged", ["echo user"], extras=extras, prerequisites=[hooks], role={"prerequisites": ["hook"]})
    lab.submit(one, "--wait")
    seen = lab.log("plugged").split()
    check(
        "plugins and prerequisites run around the commands", seen == ["pre", "starts", "user", "post", "succeeds"], seen
    )
    if not shutil.which("sshd"):
        return check.skip("tasks reach each other by ssh", "sshd is not installed")
    ssh = {"plugin": "ssh", "parameters": {"jobssh": True, "sshbarrier": True, "sshbarrierTimeout": 1}}
    # Each ends once the other has reached it.
    commands = [
        "ssh worker-$((1 - PAI_TASK_INDEX)) touch /tmp/reached",
        "until [ -e /tmp/reached ]; do sleep 0.1; done",
        "echo from-$PAI_TASK_INDEX",
    ]
    one = job("reached", commands, extras={plugin: [ssh]}, role={"instances": 2})
    lab.submit(one, "--wait", "--timeout=90s")
    seen = lab.log("reached", 0) + lab.log("reached", 1)
    check("tasks reach each other by ssh", "from-0" in seen and "from-1" in seen, seen)


def failures(lab):
    done = lab.submit(job("absent", ["no-such-program-here"], jobRetryCount=3), "--wait")
    status = lab.until_ends("absent")
    check("a command that is not there is 220, and final", code(status) == 220 and done.returncode == 3, status)
    notify = {"jobStatusChangeNotification": {"retried": True, "failed": True}}
    lab.submit(job("twice", ["exit 9"], jobRetryCount=1, extras=notify), "--wait")
    status = lab.until_ends("twice")
    counts = status["retryPolicyStatus"]
    check("an unknown failure is tried once more", (code(status), counts["accountableRetriedCount"]) == (9, 1), counts)
    told = lab.muster.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}").stdout.split()
    check("who asked is told", {"JobRetried", "JobFailed"} <= set(told), told)
    shown = lab.muster.cli("get", "twice").stdout
    check("get says how it ended", "STATUS: FAILED" in shown, shown)
    one = job("alone", ["exit 5"], role={"taskRetryCount": 2}, extras={"gangAllocation": False})
    lab.submit(one, "--wait")
    task = lab.until_ends("alone")["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"][0]
    check("an incremental task is tried alone", task["retryPolicyStatus"]["accountableRetriedCount"] == 2, task)
    lab.submit(job("stopped", ["sleep 60"]), "--wait=running")
    lab.muster.kubectl(
        "patch", "framework", lab.id_of("stopped"), "--type=merge", "-p", '{"spec":{"executionType":"Stop"}}'
    )
    begun = time.monotonic()
    status = lab.until_ends("stopped")
    check("stop reaches the commands at once", code(status) == -210 and time.monotonic() - begun < 10, status)


def storages(lab):
    for name, share in (("common", "true"), ("private", "false")):
        size = {"storage": "1Gi"}
        shape = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**shape, "capacity": size, "hostPath": {"path": f"/srv/{name}"}},
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "labels": {"share": share}},
            "spec": {**shape, "volumeName": name, "resources": {"requests": size}},
        }
        for one in (volume, claim):
            lab.muster.kubectl("create", "-f", "-", input=json.dumps(one))
    extras = {"storages": [{"name": "common"}, {"name": "private", "mountPath": "/mine"}]}
    lab.submit(job("stores", ["echo a > /mnt/common/f", "echo b > /mine/f"], extras=extras), "--wait", "--timeout=60s")
    # On the nodes of `muster up` a claim is a folder of the data.
    claims = lab.muster.data / "agent" / "claims"
    found = sorted(str(path.relative_to(claims)) for path in claims.rglob("f"))
    wanted = ["default_common/f", f"default_private/{lab.user}/f"]
    check("storages are mounted, private ones by user", found == wanted, found)


def refusals(lab):
    good = job("refused", ["true"])
    cases = {
        "line": "protocolVersion: 2\nname: [a\n",
        "should NOT have additional properties": {**good, "more": 1},
        "Prerequisite nope does not exist.": job("refused", ["true"], role={"dockerImage": "nope"}),
        "is not allowed to do operation in nowhere": {**good, "defaults": {"virtualCluster": "nowhere"}},
        "Storage nope is not found.": {**good, "extras": {"storages": [{"name": "nope"}]}},
        "at most 1048576 are allowed": "#" * (1024 * 1024 + 1),
    }
    for want, one in cases.items():
        done = lab.submit(one)
        check(f"refused: {want}", done.returncode == 1 and want in done.stderr, done.stderr[:500])
    check("and nothing is stored", lab.id_of("refused") not in lab.muster.kubectl("get", "frameworks").stdout)


def main():
    with Muster(nodes=2, gpus=1) as muster:
        lab = Lab(muster)
        for part in (variables, secrets, plugins, storages, failures, refusals):
            part(lab)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
