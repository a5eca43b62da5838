#!/usr/bin/env python3
"""Every row of the tables that compare us with OpenPAI (docs/openpai.md, docs/openpai-rest.md) is tried here on a real
cluster, and the tables are compared with the rows; `--write` writes the tables.

    tests/e2e/openpai/run.py [--write]
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "lib")]
from checks import Checks, until  # noqa: E402
from fields import FIELDS  # noqa: E402
from muster import ROOT, Muster, binary  # noqa: E402
from pai import Api, free_port  # noqa: E402
from refusals import REFUSALS  # noqa: E402
from routes import ROUTES  # noqa: E402
from rows import World, exists, job, table  # noqa: E402

check = Checks()
TABLES = {
    "fields": ("openpai.md", ["field", "OpenPAI", "here", "why it differs", "seen"], FIELDS),
    "refusals": ("openpai.md", ["what is sent", "OpenPAI", "here", "why it differs", "seen"], REFUSALS),
    "routes": ("openpai-rest.md", ["route", "who", "OpenPAI", "here", "why it differs", "seen"], ROUTES),
}
NODES = """
apiVersion: v1
kind: Node
metadata: {name: hostname-carol}
status: {capacity: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1", pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: hostname-dan}
status: {capacity: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1", pods: "110"}}
"""


class Cluster(World):
    def comes(self, job_id, state):
        seen = lambda: self.alice("GET", f"/jobs/{job_id}")[1]["jobStatus"]["state"] == state  # noqa: E731
        return until(seen, 60, 0.3)

    def jobs(self):
        return {one["name"] for one in self.admin("GET", "/jobs")[1]}

    def leftovers(self):
        """PriorityClasses and Secrets of jobs that there are not."""
        known = {one["debugId"] for one in self.admin("GET", "/jobs")[1]}
        kinds = "priorityclasses,secrets"
        listed = self.muster.kubectl("get", kinds, "-A", "-l", "type=kube-launcher", "-o", "json").stdout
        names = [one["metadata"]["name"] for one in json.loads(listed)["items"]]
        return [name for name in names if name.partition("-")[0] not in known]

    def port_in_use(self):
        """The runtime of a task, as its init container runs it, on a network where somebody has one of its ports."""
        framework = self.alice("GET", "/jobs/alice~kept")[1]
        task = framework["taskRoles"]["train"]["taskStatuses"][0]
        port = int(task["containerPorts"]["http"])
        env = {
            **self.muster.env(),
            "FC_FRAMEWORK_NAMESPACE": "default",
            "FC_FRAMEWORK_NAME": framework["debugId"],
            "FC_FRAMEWORK_ATTEMPT_ID": "0",
            "FC_TASKROLE_NAME": "train",
            "FC_TASK_INDEX": "0",
            "FC_POD_UID": task["containerId"],
        }
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", port))
            holder.listen()
            done = subprocess.run([binary(), "pai-runtime", "init"], env=env, text=True, capture_output=True)
        assert done.returncode == 253 and f"port {port} " in done.stderr, done
        return True


def prepare(muster, port):
    guest = Api(port)
    admin = guest.login("admin", (muster.data / "admin-password").read_text().strip())
    for name in ("alice", "bob"):
        assert admin("POST", "/users", {"username": name, "password": name + "-password"})[0] == 201
    size = {"storage": "1Gi"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "common"},
        "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "resources": {"requests": size}},
    }
    muster.kubectl("create", "-f", "-", input=json.dumps(claim))
    acls = {"acls": {"admin": False, "virtualClusters": ["default"], "storageConfigs": ["common"]}}
    change = {"data": {"groupname": "default", "extension": acls}, "patch": True}
    assert admin("PUT", "/groups", change)[0] == 201
    alice, bob = (guest.login(name, name + "-password") for name in ("alice", "bob"))
    world = Cluster(muster, guest, admin, alice, bob)
    oppo = {"hivedScheduler": {"jobPriorityClass": "oppo"}}
    for name, command in (("kept", "echo hello"), ("long", "sleep 600")):
        made = job(name, role={"commands": [command]}, secrets={"word": "hush"}, extras=oppo)
        assert world.submit(made)[0] == 202
    check(
        "one job is over, another runs", world.comes("alice~kept", "SUCCEEDED") and world.comes("alice~long", "RUNNING")
    )
    return world


def try_rows(world, rows):
    for row in rows:
        if isinstance(row.check, str):
            check(f"{row.what}: there is {row.check}", exists(row.check))
            continue
        try:
            seen, wrong = row.check(world), ""
        except Exception as error:  # noqa: BLE001 - whatever it is, the row is not true
            seen, wrong = False, repr(error)[:1500]
        check(f"{row.what}: {row.seen}", seen, wrong)


def between(name):
    return f"<!-- {name}: tests/e2e/openpai/run.py --write -->\n", f"\n<!-- end of {name} -->"


def compare(write):
    for name, (file, heads, rows) in TABLES.items():
        path = ROOT / "docs" / file
        text = path.read_text()
        begin, end = between(name)
        before, found, rest = text.partition(begin)
        old, _, after = rest.partition(end)
        made = "\n".join(table(heads, rows))
        if write and found:
            path.write_text(before + begin + made + end + after)
            old = made
        check(f"docs/{file} has the table of {name}", old == made, "write it with tests/e2e/openpai/run.py --write")
        unexplained = [row.what for row in rows if row.here not in ("same", "") and not row.why]
        check(f"every difference of {name} has its reason", not unexplained, unexplained)


def main():
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="muster-openpai-") as folder:
        nodes = pathlib.Path(folder) / "nodes.yaml"
        nodes.write_text(NODES)
        cells = ROOT / "tests" / "data" / "lab6" / "hived-config-a.yaml"
        with Muster("--pai-rest", f"127.0.0.1:{port}", "--hived-config", str(cells), nodes=nodes) as muster:
            world = prepare(muster, port)
            try_rows(world, FIELDS)
            try_rows(world, REFUSALS)
            check("nothing of what was refused is stored", world.jobs() == {"kept", "long"}, world.jobs)
            check("and nothing half made", not world.leftovers(), world.leftovers)
            try_rows(world, ROUTES)
    compare("--write" in sys.argv)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
