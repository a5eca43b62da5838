#!/usr/bin/env python3
"""The T9k MPIJob document: its example as a real MPI program over sshd on five workers with three processes each,
then debugging and pausing as the document describes them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import Muster, binary  # noqa: E402
from walkthrough import walkthrough  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = walkthrough("t9k-mpijob.yaml")
if os.geteuid() != 0:
    skip_all("sshd in pods needs root")
if not shutil.which("mpicc") or not os.path.exists("/usr/sbin/sshd"):
    skip_all("mpicc and sshd are needed (tools/packages test)")

check = Checks()


def image(directory):
    """What the document's image brings, laid over this machine's files in a mount namespace: MPI and the program below
    /usr/local, and the folder that sshd wants. Returns the program that stands for muster."""
    upper = directory / "upper"
    (upper / "bin").mkdir(parents=True)
    (upper / "code").mkdir()
    for program in ("mpirun", "orted"):
        (upper / "bin" / program).symlink_to(f"/usr/bin/{program}")
    subprocess.run(
        [
            "mpicc",
            "-O1",
            "-Wall",
            "-Werror",
            "-o",
            str(upper / "code" / "random_walk"),
            str(HERE / "data" / "random_walk.c"),
        ],
        check=True,
    )
    setup = directory / "setup.sh"
    setup.write_text(
        f"""set -e
mkdir -p {directory}/layer
mount -t tmpfs tmpfs {directory}/layer
mkdir {directory}/layer/up {directory}/layer/work
cp -a {upper}/. {directory}/layer/up/
mount -t overlay overlay -o lowerdir=/usr/local,upperdir={directory}/layer/up,workdir={directory}/layer/work /usr/local
exec {binary()} "$@"
"""
    )
    script = directory / "muster"
    script.write_text(f'#!/bin/sh\nexec unshare --mount --propagation private bash {setup} "$@"\n')
    script.chmod(0o755)
    return script


class Job:
    def __init__(self, muster, name, manifest):
        self.muster, self.name = muster, name
        muster.kubectl("create", "-f", "-", input=manifest.replace("name: mpi-example", f"name: {name}"))

    def get(self):
        return json.loads(self.muster.kubectl("get", "mpijobs.batch.tensorstack.dev", self.name, "-o", "json").stdout)

    def pods(self):
        items = json.loads(self.muster.kubectl("get", "pods", "-l", f"mpijob={self.name}", "-o", "json").stdout)[
            "items"
        ]
        return {item["metadata"]["name"]: item["status"].get("phase") for item in items}

    def patch(self, spec):
        self.muster.kubectl(
            "patch", "mpijobs.batch.tensorstack.dev", self.name, "--type=merge", "-p", json.dumps({"spec": spec})
        )

    def until(self, what, condition, timeout=240):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            job = self.get()
            if condition(job.get("status", {})):
                check(what, True)
                return job
            time.sleep(0.2)
        logs = self.muster.kubectl("logs", f"{self.name}-launcher", "--tail=20", check=False)
        check(what, False, (self.get().get("status"), self.pods(), logs.stdout, logs.stderr))
        return self.get()

    def delete(self):
        self.muster.kubectl("delete", "mpijobs.batch.tensorstack.dev", self.name)


def conditions(job):
    return {one["type"]: one["status"] for one in job["status"].get("conditions", [])}


def phases(job, kind):
    return [one["phase"] for task in job["status"].get("tasks", []) if task["type"] == kind for one in task["status"]]


def example(muster):
    job = Job(muster, "mpi-example", EXAMPLE)
    seen = job.until("all six replicas run", lambda status: status.get("aggregate", {}).get("running") == 6)
    check(
        "phase and conditions say so",
        seen["status"]["phase"] == "Running"
        and conditions(seen).get("Initialized") == "True"
        and conditions(seen).get("Running") == "True",
        seen["status"],
    )
    check(
        "one launcher and five workers",
        phases(seen, "launcher") == ["Running"] and phases(seen, "worker") == ["Running"] * 5,
        seen["status"]["tasks"],
    )
    done = job.until("the job ends", lambda status: status.get("phase") in ("Succeeded", "Failed"))
    logs = muster.kubectl("logs", "mpi-example-launcher").stdout
    check(
        "Succeeded, Completed and not Failed",
        done["status"]["phase"] == "Succeeded"
        and conditions(done).get("Completed") == "True"
        and conditions(done).get("Failed") == "False",
        (done["status"], logs),
    )
    ranks = sorted((int(rank), host) for rank, host in re.findall(r"rank (\d+) of 15 on (\S+)", logs))
    check(
        "fifteen ranks, three on each worker", ranks == [(i, f"mpi-example-worker-{i // 3}") for i in range(15)], logs
    )
    total = re.search(r"(\d+) walkers finished after (\d+) steps of (\d+)", logs)
    check("every walker walked its steps", total and total[1] == "30" and total[2] == total[3], logs)
    job.until("the workers are cleaned up", lambda _: not any("worker" in name for name in job.pods()))
    job.delete()


def debugging(muster):
    job = Job(muster, "debugged", EXAMPLE + "  runMode:\n    debug:\n      enabled: true\n")
    job.until("debug mode: all replicas wait", lambda status: status.get("aggregate", {}).get("running") == 6)
    line = muster.kubectl(
        "exec", "debugged-launcher", "--", "sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline; ps -eo args"
    ).stdout
    check("the launcher sleeps", "sleep inf" in line, line)
    out = muster.kubectl(
        "exec",
        "debugged-launcher",
        "--",
        "ssh",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "debugged-worker-3",
        "hostname",
        check=False,
    )
    check("and reaches its workers by ssh", out.stdout.strip() == "debugged-worker-3", (out.stdout, out.stderr))
    job.delete()


def pausing(muster):
    manifest = (
        EXAMPLE.replace('- "40"', '- "40000000"').replace("replicas: 5", "replicas: 2")
        + "  runMode:\n    pause:\n      enabled: true\n"
    )
    job = Job(muster, "paused", manifest)
    job.until("paused from the start", lambda status: status.get("phase") == "Paused")
    check("without replicas", job.pods() == {}, job.pods())
    job.patch({"runMode": {"pause": {"enabled": False}}})
    job.until(
        "resumed: its replicas run",
        lambda status: status.get("phase") == "Running" and status.get("aggregate", {}).get("running") == 3,
    )
    job.patch({"runMode": {"pause": {"enabled": True}}})
    seen = job.until("paused again", lambda status: status.get("phase") == "Paused" and job.pods() == {})
    check(
        "the condition says so",
        conditions(seen).get("Paused") == "True" and conditions(seen).get("Running") == "False",
        seen["status"],
    )
    job.delete()


def queued(muster):
    job = Job(
        muster,
        "queued",
        EXAMPLE
        + "  scheduler:\n    t9kScheduler:\n      queue: default\n      priority: 50\n  runMode:\n    debug:\n      enabled: true\n",
    )
    job.until(
        "T9k's default queue is there and lets the gang in",
        lambda status: status.get("aggregate", {}).get("running") == 6,
    )
    job.delete()


def main():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="muster-t9k-"))
    os.environ["MUSTER"] = str(image(directory))
    try:
        with Muster(nodes=3, gpus=0, data=directory / "data") as muster:
            for part in (example, debugging, pausing, queued):
                part(muster)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
