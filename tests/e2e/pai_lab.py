#!/usr/bin/env python3
"""The experiments of a course on OpenPAI with HiveD, with the course's own job files (tests/data/lab6), submitted by four
people: virtual cluster safety, priority, opportunistic jobs, gangs and incremental scheduling. Two worker nodes with one
GPU each; the training program and `sleep` are stand-ins that take seconds. A watcher holds what must always hold.
"""
import json
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks  # noqa: E402
from course import NODES  # noqa: E402
from muster import ROOT, Muster, binary  # noqa: E402

DATA = ROOT / "tests" / "data" / "lab6"
TRAINING_S, SLEEP_S = 1, 5
PEOPLE = ("alice", "bob", "carol", "dan")
check = Checks()


def stand_ins(folder):
    """The course's image as a folder: a training program and a `sleep` that does not take five minutes."""
    program = folder / "examples" / "mnist" / "main.py"
    program.parent.mkdir(parents=True)
    program.write_text(f"import time\ntime.sleep({TRAINING_S})\nprint('trained')\n")
    (folder / "bin").mkdir()
    sleep = folder / "bin" / "sleep"
    sleep.write_text(f'#!/bin/sh\n[ "$1" = 5m ] || exec /bin/sleep "$@"\nexec /bin/sleep {SLEEP_S}\n')
    sleep.chmod(0o755)
    images = folder / "images.yaml"
    images.write_text(
        json.dumps(
            {
                "images": [
                    {
                        "name": "openpai/pai.example.pytorch",
                        "workingDir": str(folder),
                        "env": {"PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin"},
                    }
                ]
            }
        )
    )
    return images


class Lab:
    """What one sees of jobs: Frameworks by the name their owner gave them."""

    def __init__(self, muster):
        self.muster = muster
        self.kubeconfigs = {}
        for person in PEOPLE:
            muster.kubectl("create", "serviceaccount", person)
            token = muster.kubectl("create", "token", person).stdout.strip()
            config = json.loads(muster.kubectl("config", "view", "--raw", "-o", "json").stdout)
            for user in config["users"]:
                user["user"] = {"token": token}
            path = muster.data / f"{person}.kubeconfig"
            path.write_text(json.dumps(config))
            self.kubeconfigs[person] = str(path)
            muster.kubectl("create", "rolebinding", person, "--clusterrole=edit", f"--serviceaccount=default:{person}")

    def submit(self, file, person="alice"):
        return self.muster.cli("--config", self.kubeconfigs[person], "submit", "pai", str(DATA / file), check=False)

    def jobs(self):
        items = json.loads(self.muster.kubectl("get", "frameworks", "-o", "json").stdout)["items"]
        return {
            (one["metadata"]["labels"]["userName"].rpartition("-")[2], one["metadata"]["annotations"]["jobName"]): one
            for one in items
        }

    def job(self, name, person="alice"):
        return self.jobs().get((person, name), {})

    def until(self, what, condition, timeout=60):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            jobs = self.jobs()
            if condition(jobs):
                return jobs
            time.sleep(0.1)
        check(what, False, {key: (one.get("status") or {}).get("state") for key, one in self.jobs().items()})
        return self.jobs()

    def until_runs(self, name, person="alice", attempt=0):
        def runs(jobs):
            status = jobs[(person, name)].get("status") or {}
            return status.get("state") == "AttemptRunning" and status["attemptStatus"]["id"] == attempt

        return self.until(f"{name} runs", runs)

    def until_ends(self, *names, person="alice", timeout=60):
        return self.until(
            f"{names} end", lambda jobs: all(state(jobs[(person, name)]) == "Completed" for name in names), timeout
        )

    def clear(self):
        self.muster.kubectl("delete", "frameworks", "--all", "--wait=false")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.muster.kubectl("get", "pods", "-o", "name").stdout:
            time.sleep(0.1)


class Watcher(threading.Thread):
    """Looks at pods and Frameworks all the time: one task a GPU, guaranteed tasks at home, running tasks somewhere."""

    def __init__(self, muster, homes):
        super().__init__(daemon=True)
        self.muster, self.homes = muster, homes
        self.over = threading.Event()
        self.breaches, self.looks, self.nodes = [], 0, {}

    def look(self):
        pods = json.loads(self.muster.kubectl("get", "pods", "-o", "json").stdout)["items"]
        here = {}
        for pod in pods:
            node, phase = pod["spec"].get("nodeName"), pod["status"].get("phase")
            name = pod["metadata"]["name"]
            if not node:
                continue
            self.nodes.setdefault(name, set()).add(node)
            if phase in ("Pending", "Running"):
                here.setdefault(node, []).append(name)
            spec = pod["metadata"]["annotations"]["hivedscheduler.microsoft.com/pod-scheduling-spec"]
            guaranteed = "priority: -1" not in spec
            cluster = pod["metadata"]["labels"]["virtualCluster"]
            if guaranteed and node not in self.homes[cluster]:
                self.breaches.append(f"{name} of {cluster} is on {node}")
        self.breaches += [f"{node} runs {names}" for node, names in here.items() if len(names) > 1]
        for one in json.loads(self.muster.kubectl("get", "frameworks", "-o", "json").stdout)["items"]:
            for role in ((one.get("status") or {}).get("attemptStatus") or {}).get("taskRoleStatuses", []):
                for task in role["taskStatuses"]:
                    attempt = task["attemptStatus"]
                    if task["state"] == "AttemptRunning" and not (attempt["podNodeName"] and attempt["podIP"]):
                        self.breaches.append(f"{attempt['podName']} runs nowhere")
        self.looks += 1

    def run(self):
        while not self.over.wait(0.2):
            self.look()

    def close(self):
        self.over.set()
        self.join()
        check(f"what must always hold held in {self.looks} looks", not self.breaches and self.looks, self.breaches[:5])


def state(job):
    return (job.get("status") or {}).get("state")


def ended(job):
    return (((job.get("status") or {}).get("attemptStatus") or {}).get("completionStatus") or {}).get("code")


def retries(job):
    counts = job["status"]["retryPolicyStatus"]
    return counts["totalRetriedCount"], counts["accountableRetriedCount"]


def tasks(job):
    return job["status"]["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]


def nodes(job):
    return [task["attemptStatus"]["podNodeName"] for task in tasks(job)]


def good(job):
    return state(job) == "Completed" and ended(job) == 0


def safety(lab):
    for person in PEOPLE:
        done = lab.submit("job-config-0.yaml", person)
        check(f"L2: {person} submits", done.returncode == 0, done.stderr)
    again = lab.submit("job-config-0.yaml", "alice")
    check(
        "I4: the same name twice is refused", again.returncode == 1 and "already exists." in again.stderr, again.stderr
    )
    jobs = lab.until("L2: all four end", lambda jobs: all(state(one) == "Completed" for one in jobs.values()))
    ours = [jobs[(person, "job-config-0")] for person in PEOPLE]
    check("L2: all four succeed without a retry", all(good(one) and retries(one) == (0, 0) for one in ours))
    check("L2: only on dan", [nodes(one) for one in ours] == [["hostname-dan"]] * 4, [nodes(one) for one in ours])
    spans = [(one["status"]["runTime"], one["status"]["completionTime"]) for one in ours]
    check("L2: one after the other, in the order of submission", spans == sorted(spans), spans)
    lab.clear()


def priority(lab):
    lab.submit("job-config-1.yaml")
    lab.until_runs("job-config-1")
    before = tasks(lab.job("job-config-1"))[0]["attemptStatus"]
    lab.submit("job-config-2.yaml")
    jobs = lab.until_runs("job-config-2")
    low = jobs[("alice", "job-config-1")]
    check("L3: prod runs in the place of test", nodes(jobs[("alice", "job-config-2")]) == ["hostname-dan"])
    check(
        "L3: test waits, tried again by the platform",
        retries(low) == (1, 0) and state(low) != "Completed",
        low["status"],
    )
    shown = lab.muster.cli("get", "job-config-1", "--type", "pai").stdout
    check("L3: and is shown as waiting", "STATUS: PENDING" in shown, shown)
    jobs = lab.until_ends("job-config-1", "job-config-2")
    low, high = jobs[("alice", "job-config-1")], jobs[("alice", "job-config-2")]
    check("L3: both succeed", good(low) and good(high), (ended(low), ended(high)))
    check("L3: prod was never tried again, test once", (retries(high), retries(low)) == ((0, 0), (1, 0)))
    check("L3: test ended after prod", low["status"]["completionTime"] >= high["status"]["completionTime"])
    after = tasks(low)[0]["attemptStatus"]
    check(
        "L3: in a new pod of the same name",
        (before["podName"], before["podUID"] != after["podUID"]) == (after["podName"], True),
        after,
    )
    lab.clear()


def opportunism(lab):
    lab.submit("job-config-3.yaml")
    lab.until_runs("job-config-3")
    lab.submit("job-config-4.yaml")
    jobs = lab.until_runs("job-config-4")
    check("L4: oppo runs at once, outside its cluster", nodes(jobs[("alice", "job-config-4")]) == ["hostname-carol"])
    lab.submit("x-default-test.yaml")
    jobs = lab.until_runs("x-default-test")
    guest = jobs[("alice", "job-config-4")]
    check("L4: the owner takes carol back", nodes(jobs[("alice", "x-default-test")]) == ["hostname-carol"])
    check(
        "L4: oppo was taken away and waits", retries(guest) == (1, 0) and state(guest) != "Completed", guest["status"]
    )
    jobs = lab.until_ends("job-config-3", "job-config-4", "x-default-test")
    check("L4: prod was left alone", retries(jobs[("alice", "job-config-3")]) == (0, 0))
    check("L4: all succeed", all(good(one) for one in jobs.values()))
    lab.clear()


def gang(lab):
    lab.submit("job-config-5.yaml")
    lab.until_runs("job-config-5")
    lab.submit("job-config-6.yaml")
    lab.muster.wait_idle()
    both = tasks(lab.job("job-config-6"))
    waits = all(not task["attemptStatus"]["podNodeName"] and not task["attemptStatus"]["podIP"] for task in both)
    check("L6: no task of the gang has a place beside the first job", waits, both)
    jobs = lab.until_ends("job-config-5", "job-config-6")
    ours = jobs[("alice", "job-config-6")]
    check("L6: the gang succeeds with its first task", good(ours) and retries(ours) == (0, 0), ours["status"])
    check("L6: its tasks were on both nodes", sorted(nodes(ours)) == ["hostname-carol", "hostname-dan"], nodes(ours))
    check(
        "L6: the other task ended too, or was stopped", {ended({"status": task}) for task in tasks(ours)} <= {0, -220}
    )
    first = jobs[("alice", "job-config-5")]["status"]["completionTime"]
    check("L6: it began when the first job had ended", ours["status"]["runTime"] >= first, (first, ours["status"]))
    lab.clear()


def increments(lab):
    lab.submit("job-config-5.yaml")
    lab.until_runs("job-config-5")
    lab.submit("x-7-both.yaml")
    jobs = lab.until_runs("x-7-both")
    check("L7: one task runs beside the first job", state(jobs[("alice", "job-config-5")]) == "AttemptRunning")
    ours = lab.until_ends("x-7-both")[("alice", "x-7-both")]
    check("L7: both tasks succeed", [ended({"status": task}) for task in tasks(ours)] == [0, 0], tasks(ours))
    lab.until_ends("job-config-5")
    lab.clear()
    lab.submit("job-config-5.yaml")
    lab.until_runs("job-config-5")
    lab.submit("job-config-7.yaml")
    ours = lab.until_ends("job-config-7")[("alice", "job-config-7")]
    codes = sorted(ended({"status": task}) for task in tasks(ours))
    check("L7: the exact file ends with its first success", good(ours) and codes == [-220, 0], tasks(ours))
    stopped = [task for task in tasks(ours) if ended({"status": task}) == -220][0]
    check("L7: the task that never ran has no node", not stopped["attemptStatus"]["podNodeName"], stopped)
    lab.until_ends("job-config-5")
    lab.clear()


def over_quota(lab):
    lab.submit("x-7-four.yaml")
    refused = lab.submit("x-6-four.yaml")
    text = "Job requests 4 SKUs, exceeds maximum 2 SKUs in VC default."
    check("L7: a gang larger than the cluster is refused", refused.returncode == 1 and text in refused.stderr, refused)
    ours = lab.until_ends("x-7-four")[("alice", "x-7-four")]
    check("L7: four increments on two GPUs all succeed", good(ours) and len(tasks(ours)) == 4, ours["status"])
    lab.submit("x-7-wide.yaml")
    lab.muster.wait_idle()
    said = lab.muster.cli("explain", "x-7-wide", check=False).stdout
    check("L7: what can never fit waits", state(lab.job("x-7-wide")) == "AttemptPreparing")
    check("L7: and is told why", "insufficient capacity" in said, said)
    lab.clear()


def experiment(folder, images, config, homes, parts):
    nodes_file = folder / "nodes.yaml"
    nodes_file.write_text(NODES)
    with Muster("--hived-config", str(DATA / config), "--images", str(images), nodes=nodes_file) as muster:
        lab = Lab(muster)
        watcher = Watcher(muster, homes)
        watcher.start()
        for part in parts:
            part(lab)
        watcher.close()
        on_master = [name for name, where in watcher.nodes.items() if "hostname-bob" in where]
        check("nothing ever ran on the master", not on_master, on_master)


def main():
    # Pods see the folder of the program, wherever that is; not every other one.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lab6-", dir=pathlib.Path(binary()).resolve().parent))
    folder.chmod(0o755)
    try:
        images = stand_ins(folder)
        a = {"default": {"hostname-carol"}, "vc1": {"hostname-dan"}}
        b = {"default": {"hostname-carol", "hostname-dan"}}
        experiment(folder, images, "hived-config-a.yaml", a, (safety, priority, opportunism))
        experiment(folder, images, "hived-config-b.yaml", b, (gang, increments, over_quota))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
