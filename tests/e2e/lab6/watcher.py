"""Sees every change of pods and Frameworks during the whole run, and checks what must always hold:

I1  a GPU runs at most one task at a time
I2  a guaranteed task runs only on a node of its own virtual cluster
I3  no task is RUNNING without node and address
I4  one job for each owner and name
I5  what /virtual-clusters counts as used never includes opportunistic use
I6  inside a virtual cluster the higher priority goes first, then the earlier submission, also of jobs that are retried
"""
import json
import subprocess
import threading
import time

import yaml

SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
# Long enough for a change to have come through the watch.
SETTLE_S = 0.4


class Pod:
    """What is known of one pod; times are of this process's clock."""

    def __init__(self, pod):
        labels, spec = pod["metadata"]["labels"], yaml.safe_load(pod["metadata"]["annotations"][SPEC])
        self.uid, self.name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self.framework, self.vc = labels["FC_FRAMEWORK_NAME"], labels["virtualCluster"]
        self.priority, self.wanted = spec["priority"], spec["leafCellNumber"]
        group = spec.get("affinityGroup")
        self.gang = sum(each["podNumber"] for each in group["members"]) if group else 1
        self.node, self.bound, self.ran, self.ended = "", None, None, None

    def holds(self):
        return bool(self.node) and self.ended is None

    def waits(self):
        return not self.node and self.ended is None

    def guaranteed(self):
        return self.priority >= 0


class Watcher:
    def __init__(self, muster, kubectl, admin):
        self.muster, self.kubectl, self.admin = muster, kubectl, admin
        self.lock = threading.RLock()
        self.pods, self.frameworks = {}, {}
        self.homes = {}  # virtual cluster -> its nodes
        self.order = {}  # framework -> which submission it was
        self.breaches, self.changes, self.compared = [], 0, 0
        self.over = threading.Event()
        self.threads, self.watches = [], []

    def start(self):
        for kind, see in (("pods", self.see_pod), ("frameworks", self.see_framework)):
            watch = subprocess.Popen(
                [self.kubectl, "get", kind, "-n", "default", "--watch", "--output-watch-events", "-o", "json"],
                env=self.muster.env(),
                stdout=subprocess.PIPE,
                text=True,
            )
            self.watches.append(watch)
            self.threads.append(threading.Thread(target=self.follow, args=(watch, see), daemon=True))
        self.threads.append(threading.Thread(target=self.compare_usage, daemon=True))
        for thread in self.threads:
            thread.start()

    def follow(self, watch, see):
        """kubectl writes each event as an object, some versions on one line and others indented."""
        lines = []
        for line in watch.stdout:
            lines.append(line)
            if line.startswith("{") and line.rstrip().endswith("}") or line.rstrip() == "}":
                event = json.loads("".join(lines))
                lines = []
                with self.lock:
                    self.changes += 1
                    see(event["type"], event["object"])
        if not self.over.is_set():
            self.breaches.append("the watch ended before the run did")

    def see_pod(self, kind, seen):
        now, uid = time.monotonic(), seen["metadata"]["uid"]
        if uid not in self.pods:
            self.pods[uid] = Pod(seen)
        pod = self.pods[uid]
        node, phase = seen["spec"].get("nodeName", ""), seen["status"].get("phase")
        if node and not pod.node:
            pod.node, pod.bound = node, now
            self.check_bound(pod)
        if phase == "Running" and pod.ran is None:
            pod.ran = now
        if (kind == "DELETED" or phase in ("Succeeded", "Failed")) and pod.ended is None:
            pod.ended = now

    def check_bound(self, pod):
        others = [
            each.name for each in self.pods.values() if each is not pod and each.holds() and each.node == pod.node
        ]
        if others:
            self.breaches.append(f"I1: {pod.name} came to {pod.node} beside {others}")
        if pod.guaranteed() and pod.node not in self.homes.get(pod.vc, set()):
            self.breaches.append(f"I2: {pod.name} of {pod.vc} is on {pod.node}")
        if not pod.guaranteed():
            return
        # Who may be overtaken: gangs that do not fit, and what no node can hold.
        rank = (-pod.priority, self.order.get(pod.framework, 0))
        for other in self.pods.values():
            mine = other.framework == pod.framework or not other.waits() or other.vc != pod.vc
            if mine or not other.guaranteed() or other.gang > 1 or other.wanted > 1:
                continue
            if (-other.priority, self.order.get(other.framework, 0)) < rank:
                self.breaches.append(f"I6: {pod.name} went before {other.name}")

    def see_framework(self, kind, seen):
        name = seen["metadata"]["name"]
        job = (seen["metadata"]["labels"]["userName"], seen["metadata"]["annotations"]["jobName"])
        if self.frameworks.setdefault(job, name) != name:
            self.breaches.append(f"I4: {job} is both {self.frameworks[job]} and {name}")
        attempt = (seen.get("status") or {}).get("attemptStatus") or {}
        for role in attempt.get("taskRoleStatuses") or []:
            for task in role["taskStatuses"]:
                now = task["attemptStatus"]
                if task["state"] == "AttemptRunning" and not (now.get("podNodeName") and now.get("podIP")):
                    self.breaches.append(f"I3: {now.get('podName')} runs without node or address")

    def used(self):
        """GPUs that guaranteed tasks hold, by virtual cluster, as pods tell it."""
        with self.lock:
            held = [each for each in self.pods.values() if each.holds() and each.guaranteed()]
            return {vc: sum(each.wanted for each in held if each.vc == vc) for vc in self.homes}

    def compare_usage(self):
        """I5, at moments around which nothing changes."""
        while not self.over.wait(0.6):
            before = self.changes
            if self.over.wait(SETTLE_S) or before != self.changes:
                continue
            status, told = self.admin("GET", "/virtual-clusters")
            wanted = self.used()
            if self.over.wait(SETTLE_S) or before != self.changes or status != 200 or set(told) != set(wanted):
                continue
            self.compared += 1
            seen = {vc: each["resourcesUsed"]["gpu"] for vc, each in told.items()}
            if seen != wanted:
                self.breaches.append(f"I5: /virtual-clusters says {seen}, guaranteed tasks hold {wanted}")

    def of(self, framework):
        with self.lock:
            return [each for each in self.pods.values() if each.framework == framework]

    def since(self, moment):
        """Pods that were bound after a moment."""
        with self.lock:
            return [each for each in self.pods.values() if each.bound is not None and each.bound >= moment]

    def close(self, check):
        self.over.set()
        for watch in self.watches:
            watch.terminate()
            watch.wait()
        for thread in self.threads:
            thread.join()
        check(f"I1 to I6 held through {self.changes} changes", self.changes > 100 and not self.breaches, self.breaches)
        check(f"I5 was compared {self.compared} times", self.compared >= 10, self.compared)
        masters = [each.name for each in self.pods.values() if each.node == "hostname-bob"]
        check("nothing ever ran on the master", not masters, masters)
