"""What the people of the course do and see: jobs from the course's files, submitted, inspected and awaited."""
import copy
import hashlib
import time

import yaml

from checks import Checks
from muster import ROOT

DATA = ROOT / "tests" / "data" / "lab6"
# How long the training program and `sleep 5m` of the course take here.
TRAINING_S, SLEEP_S = 2, 6
# Bob looks after the cluster: he submits as admin.
ALICE, BOB, CAROL, DAN = PEOPLE = ("alice", "admin", "carol", "dan")
CAROLS, DANS = "hostname-carol", "hostname-dan"
FINAL = {"SUCCEEDED", "FAILED", "STOPPED"}
check = Checks()


class Lab:
    def __init__(self, muster, driver, watcher, raw):
        self.muster, self.driver, self.watcher, self.raw = muster, driver, watcher, raw
        self.states = {}  # (owner, name) -> every state that was seen
        self.answers = {}  # question of the course -> answer

    @staticmethod
    def document(file, name=None, **changes):
        """A job of the course; `vc`, `instances`, `succeeded` and `extras` differ where asked for. One that `lasts` runs until
        it is stopped, however slow the machine is."""
        document = copy.deepcopy(yaml.safe_load((DATA / f"{file}.yaml").read_text()))
        document["name"] = name or document["name"]
        role = document["taskRoles"]["train"]
        if "vc" in changes:
            document["defaults"]["virtualCluster"] = changes["vc"]
        if changes.get("lasts"):
            role["commands"] = ["sleep 600"]
        if "instances" in changes:
            role["instances"] = changes["instances"]
        if "succeeded" in changes:
            role["completion"]["minSucceededInstances"] = changes["succeeded"]
        for key, value in changes.get("extras", {}).items():
            document["extras"]["hivedScheduler"][key] = value
        for key, value in changes.get("sku", {}).items():
            document["extras"]["hivedScheduler"].setdefault("taskRoles", {})["train"] = {key: value}
        return document

    def submit(self, person, file, name=None, **changes):
        """The job's name; it is taken."""
        document = self.document(file, name, **changes)
        with self.watcher.lock:
            framework = self.framework(person, document["name"])
            self.watcher.order[framework] = len(self.watcher.order)
        _, told = self.driver.submit(person, document)
        right = {"status": 202, "message": f"Update job {document['name']} for user {person} successfully."}
        if told != right:
            check(f"{person} submits {document['name']}", False, told)
        return document["name"]

    def refused(self, what, person, document, status, code, text):
        answer = self.driver.submit(person, document)
        right = answer[0] == status and answer[1].get("code") == code and text in answer[1].get("message", "")
        check(what, right, answer)

    @staticmethod
    def framework(owner, name):
        return hashlib.md5(f"{owner}~{name}".encode()).hexdigest()

    def detail(self, owner, name, attempt=None):
        """As somebody else sees it; what runs has a node and an address in every single answer."""
        status, detail = self.driver.job(CAROL, owner, name, attempt)
        assert status == 200, (owner, name, status, detail)
        self.states.setdefault((owner, name), set()).add(detail["jobStatus"]["state"])
        for role in detail["taskRoles"].values():
            for task in role["taskStatuses"]:
                if task["taskState"] == "RUNNING" and not (task["containerIp"] and task["containerNodeName"]):
                    self.watcher.breaches.append(f"I3: {owner}~{name} shows {task}")
        return detail

    def state(self, owner, name):
        return self.detail(owner, name)["jobStatus"]["state"]

    def tasks(self, owner, name):
        return self.detail(owner, name)["taskRoles"]["train"]["taskStatuses"]

    def until(self, owner, name, *states, timeout=60):
        """Awaits one of these states; the job's detail then."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            detail = self.detail(owner, name)
            if detail["jobStatus"]["state"] in states:
                return detail
            time.sleep(0.25)
        check(f"{owner}~{name} becomes {states}", False, detail["jobStatus"])
        return detail

    def ends(self, owner, name, timeout=90):
        return self.until(owner, name, *FINAL, timeout=timeout)

    def stop(self, owner, *names):
        for name in names:
            self.driver.stop(owner, owner, name)
        for name in names:
            self.ends(owner, name)

    def pods(self, owner, name):
        """Every pod the job ever had, the oldest first."""
        return self.watcher.of(self.framework(owner, name))

    def waiting(self, what, owner, name):
        """A job that cannot start: not now, and not while nothing changes."""
        self.muster.wait_idle()
        detail = self.detail(owner, name)
        tasks = detail["taskRoles"]["train"]["taskStatuses"]
        nowhere = all(task["taskState"] == "WAITING" and not task["containerIp"] for task in tasks)
        check(what, detail["jobStatus"]["state"] == "WAITING" and nowhere, detail["jobStatus"])

    def settled(self):
        """Returns once no task holds anything."""
        self.muster.wait_idle()
        held = [pod.name for pod in self.watcher.pods.values() if pod.holds()]
        check("nothing is left running", not held, held)


def nodes(detail):
    return [task["containerNodeName"] for task in detail["taskRoles"]["train"]["taskStatuses"]]


def retries(detail):
    status = detail["jobStatus"]
    counts = status["retryDetails"]
    return status["retries"], counts["user"], counts["platform"], counts["resource"]


def good(detail):
    return detail["jobStatus"]["state"] == "SUCCEEDED"
