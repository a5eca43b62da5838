"""Scenario files in Volcano's terms (tests/data/vectors/volcano) played on a real API server with `muster run` as
scheduler.

The test plays the rest of the cluster: bound pods run at once, evicted pods come back as new ones. The scheduler is
stopped while the operations of a step are made, so that it sees them together, as the format of the files requires.
"""
import json
import signal
import time

import yaml

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
PODS = "/api/v1/namespaces/default/pods"


def scheduler_config(vector):
    config = vector["config"]
    tiers = [{"plugins": tier} for tier in config["tiers"]]
    return yaml.safe_dump({"actions": ", ".join(config["actions"]), "tiers": tiers})


class Player:
    def __init__(self, cluster, vector):
        self.cluster, self.api, self.vector = cluster, cluster.real.api, vector
        self.groups = {}  # name -> {"op", "members": {pod name: task}, "uids": {pod name: uid}, "completed"}
        self.evictions = {}

    # ---- set-up

    def set_up(self):
        for name, value in self.vector.get("priority_classes", {}).items():
            self.api(
                "POST",
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": name}, "value": value},
                check=False,
            )
        for node in self.vector["nodes"]:
            self.add_node(node)
        for queue in self.vector["queues"]:
            self.set_up_queue(queue)

    def add_node(self, node):
        amounts = node["allocatable"]
        self.api(
            "POST",
            "/api/v1/nodes",
            {
                "metadata": {
                    "name": node["name"],
                    "labels": {"kubernetes.io/hostname": node["name"], **node.get("labels", {})},
                },
                "status": {"capacity": amounts, "allocatable": amounts},
            },
        )
        self.api("PATCH", f"/api/v1/nodes/{node['name']}", {"spec": {"taints": None}})

    def set_up_queue(self, queue):
        spec = {"weight": queue.get("weight", 1), "reclaimable": queue.get("reclaimable", True)}
        for field in ("capability", "deserved", "parent", "priority"):
            if field in queue:
                spec[field] = queue[field]
        if "guarantee" in queue:
            spec["guarantee"] = {"resource": queue["guarantee"]}
        made = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": queue["name"]},
            "spec": spec,
        }
        if self.api("POST", QUEUES, made, check=False) is None:
            self.api("PATCH", f"{QUEUES}/{queue['name']}", {"spec": spec})
        if "state" in queue:
            self.api("PATCH", f"{QUEUES}/{queue['name']}/status", {"status": {"state": queue["state"]}})

    # ---- operations

    def do_create_group(self, op):
        spec = {"minMember": op.get("min_member", 1)}
        for ours, theirs in (
            ("queue", "queue"),
            ("min_task_member", "minTaskMember"),
            ("min_resources", "minResources"),
            ("priority_class", "priorityClassName"),
        ):
            if ours in op:
                spec[theirs] = op[ours]
        annotations = {"volcano.sh/sla-waiting-time": op["sla_waiting_time"]} if "sla_waiting_time" in op else {}
        # The real server's creation times count whole seconds; the order of the file must show in them.
        time.sleep(1.05 - time.time() % 1)
        self.api(
            "POST",
            GROUPS,
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": op["name"], "annotations": annotations},
                "spec": spec,
            },
        )
        members = {f"{op['name']}-{task['role']}-{i}": task for task in op["tasks"] for i in range(task["replicas"])}
        self.groups[op["name"]] = {"op": op, "members": members, "uids": {}, "completed": False}
        for name, task in members.items():
            self.make_pod(op["name"], name, task)

    def make_pod(self, group, name, task):
        annotations = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": task["role"]}
        if "preemptable" in task:
            annotations["volcano.sh/preemptable"] = str(task["preemptable"]).lower()
        resources = (
            {"requests": task["requests"], "limits": {k: v for k, v in task["requests"].items() if "/" in k}}
            if task["requests"]
            else {}
        )
        spec = {
            "schedulerName": "volcano",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x", "resources": resources}],
        }
        if task.get("priority"):
            spec["priorityClassName"] = self.class_of(task["priority"])
        if "preemption_policy" in task:
            spec["preemptionPolicy"] = task["preemption_policy"]
        if "node_selector" in task:
            spec["nodeSelector"] = task["node_selector"]
        made = self.api(
            "POST",
            PODS,
            {"metadata": {"name": name, "annotations": annotations, "labels": {"group": group}}, "spec": spec},
        )
        self.groups[group]["uids"][name] = made["metadata"]["uid"]

    def class_of(self, value):
        name = f"value-{value}"
        self.api(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": name}, "value": value},
            check=False,
        )
        return name

    def do_complete_group(self, op):
        group = self.groups[op["group"]]
        group["completed"] = True
        for pod in self.pods_of(op["group"]):
            if pod["spec"].get("nodeName"):
                self.cluster.set_phase(pod, "Succeeded")
            else:
                self.cluster.remove_pod(pod["metadata"]["name"])

    def do_delete_group(self, op):
        self.groups.pop(op["group"])
        for pod in self.pods_of(op["group"]):
            self.cluster.remove_pod(pod["metadata"]["name"])
        self.api("DELETE", f"{GROUPS}/{op['group']}")

    def do_add_node(self, op):
        self.add_node(op["node"])

    def do_remove_node(self, op):
        self.api("DELETE", f"/api/v1/nodes/{op['node']}")
        for name, group in self.groups.items():
            for pod in self.pods_of(name):
                if pod["spec"].get("nodeName") == op["node"]:
                    self.cluster.remove_pod(pod["metadata"]["name"])
                    group["uids"].pop(pod["metadata"]["name"], None)

    def do_set_queue(self, op):
        if "reclaimable" in op:
            self.api("PATCH", f"{QUEUES}/{op['queue']}", {"spec": {"reclaimable": op["reclaimable"]}})
        if "state" in op:
            self.api("PATCH", f"{QUEUES}/{op['queue']}/status", {"status": {"state": op["state"]}})

    # ---- the rest of the cluster

    def pods_of(self, group):
        return [p for p in self.all_pods() if p["metadata"]["labels"].get("group") == group]

    def all_pods(self):
        return self.api("GET", PODS)["items"]

    def live(self):
        """One turn of the cluster's life; True when something was done."""
        changed = False
        there = {p["metadata"]["name"]: p for p in self.all_pods()}
        for name, group in self.groups.items():
            if group["completed"]:
                continue
            for pod_name, task in group["members"].items():
                pod = there.get(pod_name)
                if pod is None:
                    if pod_name in group["uids"]:
                        self.evictions.setdefault(name, set()).add((pod_name, group["uids"][pod_name]))
                    self.make_pod(name, pod_name, task)
                    changed = True
                elif pod["metadata"].get("deletionTimestamp"):
                    self.cluster.remove_pod(pod_name)
                    changed = True
                elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                    self.cluster.set_phase(pod, "Running")
                    changed = True
        return changed

    def settle(self, quiet_s=1.0, timeout_s=40):
        """Until neither we nor the scheduler have done anything for a while."""
        deadline, before, since = time.monotonic() + timeout_s, None, time.monotonic()
        while time.monotonic() < deadline:
            changed = self.live()
            now = [
                (p["metadata"]["uid"], p["spec"].get("nodeName"), p["status"].get("phase")) for p in self.all_pods()
            ] + [(g["metadata"]["name"], g.get("status", {}).get("phase")) for g in self.api("GET", GROUPS)["items"]]
            if changed or now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since >= quiet_s:
                return
            time.sleep(0.05)

    def differences(self, expect):
        wrong = []
        pods, phases = self.all_pods(), {
            g["metadata"]["name"]: g.get("status", {}).get("phase", "Pending") for g in self.api("GET", GROUPS)["items"]
        }
        for name, wanted in expect["groups"].items():
            mine = [p for p in pods if p["metadata"]["labels"].get("group") == name]
            running = [
                p for p in mine if p["spec"].get("nodeName") and p["status"].get("phase") in ("Running", "Pending")
            ]
            done = sum(1 for p in mine if p["status"].get("phase") == "Succeeded")
            group = self.groups[name]
            pending = 0 if group["completed"] else len(group["members"]) - len(running) - done
            least = group["op"].get("min_member", 1)
            state = (
                "completed"
                if group["completed"]
                else "waiting"
                if not running
                else "running"
                if len(running) + done >= least
                else "degraded"
            )
            have = {"state": state, "running": len(running), "pending": pending, "phase": phases.get(name)}
            if any(have[k] != wanted[k] for k in have if k in wanted):
                wrong.append(f"{name}: {have}, wanted {wanted}")
            places = {}
            for pod in running:
                places[pod["spec"]["nodeName"]] = places.get(pod["spec"]["nodeName"], 0) + 1
            if name in expect.get("placement", {}) and places != expect["placement"][name]:
                wrong.append(f"{name} on {places}, wanted {expect['placement'][name]}")
        evicted = {name: len(pods) for name, pods in self.evictions.items()}
        if evicted != {k: v for k, v in expect.get("evicted", {}).items() if v}:
            wrong.append(f"evicted {evicted}, wanted {expect.get('evicted', {})}")
        if "evicted_pods" in expect:
            names = sorted(pod for pods in self.evictions.values() for pod, _ in pods)
            if names != sorted(expect["evicted_pods"]):
                wrong.append(f"evicted {names}, wanted {expect['evicted_pods']}")
        return wrong

    def play(self, scheduler):
        for number, step in enumerate(self.vector["steps"]):
            self.evictions = {}
            scheduler.send_signal(signal.SIGSTOP)
            for op in step["do"]:
                getattr(self, "do_" + op["op"])(op)
            scheduler.send_signal(signal.SIGCONT)
            self.settle()
            wrong = self.differences(step["expect"])
            if wrong:
                return f"step {number}: {'; '.join(wrong)}"
        return None

    def clear(self):
        self.api("DELETE", PODS, {"gracePeriodSeconds": 0})
        self.api("DELETE", GROUPS)
        for node in self.api("GET", "/api/v1/nodes")["items"]:
            self.api("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
        for queue in self.api("GET", QUEUES)["items"]:
            if queue["metadata"]["name"] not in ("root", "default"):
                self.api("DELETE", f"{QUEUES}/{queue['metadata']['name']}", check=False)
        for item in self.api("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")["items"]:
            if not item["metadata"]["name"].startswith("system-"):
                self.api(
                    "DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{item['metadata']['name']}", check=False
                )


def needs_no_time(vector):
    return "sla_waiting_time" not in json.dumps(vector)
