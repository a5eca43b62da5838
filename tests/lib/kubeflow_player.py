"""Scenario files of Kubeflow-style jobs (tests/data/vectors/kubeflow) played on a real API server, with the
controllers of `muster run`.

The files were recorded without kubelet, scheduler, job controller and garbage collector; the control plane here has
none of them either. Compared are the job's conditions and counters and the names of all objects; the contents of
objects are compared by build/tests/vectors.
"""
import time


def places(namespace):
    """Where the kinds are that scenarios look at; None: of all namespaces."""
    ns = f"namespaces/{namespace}/" if namespace else ""
    return {
        "Pod": f"/api/v1/{ns}pods",
        "Service": f"/api/v1/{ns}services",
        "ConfigMap": f"/api/v1/{ns}configmaps",
        "Secret": f"/api/v1/{ns}secrets",
        "ServiceAccount": f"/api/v1/{ns}serviceaccounts",
        "Job": f"/apis/batch/v1/{ns}jobs",
        "StatefulSet": f"/apis/apps/v1/{ns}statefulsets",
        "Role": f"/apis/rbac.authorization.k8s.io/v1/{ns}roles",
        "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/{ns}rolebindings",
        "HorizontalPodAutoscaler": f"/apis/autoscaling/v2/{ns}horizontalpodautoscalers",
        "PodGroup.scheduling.volcano.sh": f"/apis/scheduling.volcano.sh/v1beta1/{ns}podgroups",
        "PodGroup.scheduling.x-k8s.io": f"/apis/scheduling.x-k8s.io/v1alpha1/{ns}podgroups",
    }


KINDS = places("default")
BUILT_IN = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"), ("Service", "kubernetes")}


class Player:
    def __init__(self, real, vector, namespace="default"):
        self.api, self.vector, self.places = real.api, vector, places(namespace)
        self.job = vector["job"]
        self.name = self.job["metadata"]["name"]
        group, version = vector["apiVersion"].split("/")
        self.jobs = f"/apis/{group}/{version}/namespaces/{namespace}/{vector['kind'].lower()}s"
        self.seen_kinds = set()

    def objects(self):
        found = {}
        for kind, path in self.places.items():
            for item in (self.api("GET", path, check=False) or {"items": []})["items"]:
                if (kind, item["metadata"]["name"]) not in BUILT_IN:
                    found[(kind, item["metadata"]["name"])] = item
        return found

    def get_job(self):
        return self.api("GET", f"{self.jobs}/{self.name}", check=False)

    def settle(self, quiet_s=0.5, timeout_s=20):
        """Until nothing has changed for a while."""
        mark = lambda: [
            (k, o["metadata"]["uid"], o["metadata"]["resourceVersion"]) for k, o in self.objects().items()
        ] + [  # noqa: E731
            (self.get_job() or {}).get("metadata", {}).get("resourceVersion")
        ]
        deadline, before, since = time.monotonic() + timeout_s, None, time.monotonic()
        while time.monotonic() < deadline:
            now = mark()
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since >= quiet_s:
                return
            time.sleep(0.05)

    # ---- actions

    def act(self, action):
        getattr(self, "do_" + action["op"])(action)

    def do_createJob(self, _):
        self.api("POST", self.jobs, self.job)

    def do_patchJob(self, action):
        self.api("PATCH", f"{self.jobs}/{self.name}", action["patch"])

    def do_deleteJob(self, _):
        self.api("DELETE", f"{self.jobs}/{self.name}")

    def do_podStatus(self, action):
        for name in action.get("pods", [action.get("pod")]):
            path = f"{self.places['Pod']}/{name}"
            pod = self.api("GET", path)
            if action["status"].get("phase") == "Running" and not pod["spec"].get("nodeName"):
                self.api(
                    "POST",
                    f"{path}/binding",
                    {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n0"}},
                )
            self.api("PATCH", f"{path}/status", {"status": action["status"]})

    def do_podTerminate(self, action):
        for name in action.get("pods", [action.get("pod")]):
            self.api("DELETE", f"{self.places['Pod']}/{name}", {"gracePeriodSeconds": 30})

    def do_podRemove(self, action):
        for name in action.get("pods", [action.get("pod")]):
            self.api("DELETE", f"{self.places['Pod']}/{name}", {"gracePeriodSeconds": 0}, check=False)

    def do_createLauncherPod(self, action):
        job = self.api("GET", f"{self.places['Job']}/{self.name}-launcher")
        template = job["spec"]["template"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job["metadata"]["name"],
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        self.api(
            "POST",
            self.places["Pod"],
            {
                "metadata": {**template["metadata"], "name": action["pod"], "ownerReferences": [owner]},
                "spec": template["spec"],
            },
        )

    def do_launcherJobStatus(self, action):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status = {k: now if v == "$NOW" else v for k, v in action["status"].items()}
        # The real server wants a job that has ended to have started and to have said so first.
        for condition in status.get("conditions", []):
            condition.update(lastTransitionTime=now, lastProbeTime=now)
            before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}.get(condition["type"])
            if before and not any(c["type"] == before for c in status["conditions"]):
                status["conditions"] = [{**condition, "type": before}, *status["conditions"]]
            status.setdefault("startTime", now)
            if condition["type"] == "Complete":
                status.setdefault("completionTime", now)
        self.api("PATCH", f"{self.places['Job']}/{self.name}-launcher/status", {"status": status})

    def do_statefulSetStatus(self, action):
        self.api("PATCH", f"{self.places['StatefulSet']}/{action['name']}/status", {"status": action["status"]})

    def do_podGroupPhase(self, action):
        self.api(
            "PATCH",
            f"{self.places['PodGroup.scheduling.volcano.sh']}/{self.name}/status",
            {"status": {"phase": action["phase"]}},
        )

    def do_createObject(self, action):
        self.api("POST", self.places[action["object"]["kind"]], action["object"])

    def do_settle(self, _):
        self.settle()

    def do_elapse(self, action):
        time.sleep(action["seconds"])

    # ---- what is compared

    def differences(self, expect):
        wrong = []
        job, wanted = self.get_job(), expect.get("job", {})
        if wanted is None or job is None:
            return [] if wanted is None and job is None else [f"job {'is there' if job else 'is missing'}"]
        status = job.get("status", {})
        if "conditions" in wanted or "conditionsAnyOf" in wanted:
            have = [
                {k: c.get(k, "") for k in ("type", "status", "reason", "message")}
                for c in status.get("conditions") or []
            ]
            if have not in ([wanted["conditions"]] if "conditions" in wanted else wanted["conditionsAnyOf"]):
                wrong.append(f"conditions {have}")
        if "replicaStatuses" in wanted or "replicaStatusesAnyOf" in wanted:
            have = {
                t: {k: v for k, v in s.items() if k in ("active", "succeeded", "failed") and v}
                for t, s in (status.get("replicaStatuses") or {}).items()
            }
            if not any(
                have == (one or {})
                for one in (
                    [wanted["replicaStatuses"]] if "replicaStatuses" in wanted else wanted["replicaStatusesAnyOf"]
                )
            ):
                wrong.append(f"replicaStatuses {have}")
        for field in ("startTime", "completionTime"):
            if field in wanted and bool(status.get(field)) != wanted[field]:
                wrong.append(f"{field} {status.get(field)}")
        if "launcherStatus" in wanted and (status.get("launcherStatus") or None) != wanted["launcherStatus"]:
            wrong.append(f"launcherStatus {status.get('launcherStatus')}")
        if "workerReplicas" in wanted and status.get("workerReplicas", 0) != wanted["workerReplicas"]:
            wrong.append(f"workerReplicas {status.get('workerReplicas')}")
        objects = self.objects()
        self.seen_kinds |= set(expect.get("objects", {}))
        for kind in self.seen_kinds:
            have = sorted(
                n for (k, n), o in objects.items() if k == kind and not o["metadata"].get("deletionTimestamp")
            )
            if have != sorted(expect.get("objects", {}).get(kind, [])):
                wrong.append(f"{kind} {have}")
        for place in expect.get("terminating", []):
            kind, name = place.split("/", 1)
            if not objects.get((kind, name), {"metadata": {}})["metadata"].get("deletionTimestamp"):
                wrong.append(f"{place} does not terminate")
        return wrong

    def play(self):
        """The first step that went wrong, or None."""
        for number, step in enumerate(self.vector["steps"]):
            for action in step["actions"]:
                try:
                    self.act(action)
                except RuntimeError as error:
                    return f"step {number}, {action['op']}: {error}"
            deadline = time.monotonic() + 15
            self.settle()
            # Some steps take the controller a back-off or two.
            while (wrong := self.differences(step["expect"])) and time.monotonic() < deadline:
                time.sleep(0.1)
            if wrong:
                return f"step {number} ({step.get('name', '')}): {'; '.join(wrong)}"
        return None

    def clear(self):
        if self.get_job():
            self.api("DELETE", f"{self.jobs}/{self.name}", check=False)
        time.sleep(0.1)
        for (kind, name), item in self.objects().items():
            if item["metadata"].get("finalizers"):
                self.api("PATCH", f"{self.places[kind]}/{name}", {"metadata": {"finalizers": None}}, check=False)
            self.api(
                "DELETE",
                f"{self.places[kind]}/{name}",
                {"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
                check=False,
            )
