#!/usr/bin/env python3
"""The job controllers and the scheduler of `muster run` on a real API server, under exactly the rights of deploy/: scenario files of job kinds,
scenario files in Volcano's terms, volumes, gates, claims of dynamic resource allocation; then the rights themselves: none missing, none unused.

    tests/kubernetes/suite.py [jobs|volcano|rules …]
"""
import json
import os
import pathlib
import re
import sys
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import kubeflow_player  # noqa: E402
import real_kubernetes  # noqa: E402
import volcano_player  # noqa: E402
from deployed import Checks, Deployed, until  # noqa: E402

VECTORS = pathlib.Path(os.environ.get("VECTORS", ROOT.parent / "shared" / "vectors"))
check = Checks()


def files(kind):
    for path in sorted((VECTORS / kind).glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def jobs(cluster):
    by_setting = {}
    for name, vector in files("kubeflow"):
        if "steps" in vector:
            by_setting.setdefault(vector.get("gangScheduler", "none"), []).append((name, vector))
    for setting, vectors in by_setting.items():
        process = cluster.start("--without", "scheduler", "--gang-scheduler", setting)
        for name, vector in vectors:
            player = kubeflow_player.Player(cluster.real, vector)
            wrong = player.play()
            check(f"jobs: {name}", wrong is None, wrong)
            player.clear()
        cluster.stop(process)


def training_job(kind, specs_field, container, types, name, **extra):
    template = {"spec": {"containers": [{"name": container, "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"runPolicy": {"ttlSecondsAfterFinished": 0, "cleanPodPolicy": "All"}, **extra,
                     specs_field: {t: {"replicas": 1, "restartPolicy": "Never", "template": template} for t in types}}}


ELASTIC = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 2, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}
T9K = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "MPIJob", "metadata": {"name": "every-t9k"}, "spec": {
    "runPolicy": {"cleanUpWorkers": True}, "scheduler": {"t9kScheduler": {"queue": "default", "priority": 50}},
    "worker": {"replicas": 1, "cmd": ["true"], "template": {"spec": {"containers": [{"name": "mpi-worker", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}}


def every_kind(cluster):
    """One job of each kind from submission to its end, placed by our scheduler, pods played by the test; then the operator's clean-up."""
    api = cluster.real.api
    made = [training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Master", "Worker"], "every-pt"),
            training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Worker"], "every-elastic", **ELASTIC),
            training_job("TFJob", "tfReplicaSpecs", "tensorflow", ["Chief", "Worker"], "every-tf"),
            training_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", ["Master", "Worker"], "every-xgb"),
            training_job("PaddleJob", "paddleReplicaSpecs", "paddle", ["Master", "Worker"], "every-paddle"),
            training_job("JAXJob", "jaxReplicaSpecs", "jax", ["Worker"], "every-jax"),
            training_job("MPIJob", "mpiReplicaSpecs", "mpi", ["Launcher", "Worker"], "every-mpi"), T9K]
    for gang in ("muster", "plugins"):
        process = cluster.start("--scheduler-name", "muster,plugins,t9k-scheduler", *([] if gang == "muster" else ["--gang-scheduler", gang]))
        for job in made if gang == "muster" else made[:1]:
            group = job["apiVersion"].split("/")[0]
            path = f"/apis/{job['apiVersion']}/namespaces/default/{job['kind'].lower()}s"
            name = job["metadata"]["name"]
            api("POST", path, job)

            def ended():
                for pod in cluster.pods():
                    if pod["spec"].get("nodeName") and pod["status"].get("phase") in ("Pending", "Running"):
                        launcher = group != "batch.tensorstack.dev" or "launcher" in pod["metadata"]["name"]
                        cluster.set_phase(pod, "Running" if pod["status"]["phase"] == "Pending" or not launcher else "Succeeded")
                job_now = api("GET", f"{path}/{name}", check=False)
                if job_now is None:
                    return True
                done = {c["type"] for c in job_now.get("status", {}).get("conditions", []) if c["status"] == "True"} | {job_now.get("status", {}).get("phase")}
                return group == "batch.tensorstack.dev" and "Succeeded" in done

            check(f"{job['kind']} {name} ({gang}) runs to its end", until(ended, 40),
                  lambda: (api("GET", f"{path}/{name}", check=False) or {}).get("status"))
            api("DELETE", f"{path}/{name}", check=False)
            cluster.clear()
            for kind, place in kubeflow_player.KINDS.items():
                for item in (api("GET", place, check=False) or {"items": []})["items"]:
                    if (kind, item["metadata"]["name"]) not in kubeflow_player.BUILT_IN and item["metadata"].get("ownerReferences"):
                        api("DELETE", f"{place}/{item['metadata']['name']}", {"gracePeriodSeconds": 0}, check=False)
        cluster.stop(process)


def volcano(cluster):
    for node in cluster.real.api("GET", "/api/v1/nodes")["items"]:
        cluster.real.api("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    for name, vector in files("volcano"):
        if not volcano_player.needs_no_time(vector):
            continue
        config = cluster.real.dir / "scheduler.yaml"
        config.write_text(volcano_player.scheduler_config(vector))
        player = volcano_player.Player(cluster, vector)
        player.clear()
        player.set_up()
        process = cluster.start("--without", "controllers", "--scheduler-name", "volcano", "--scheduler-config", str(config))
        cluster.await_start()
        wrong = player.play(process)
        check(f"volcano: {name}", wrong is None, wrong)
        cluster.stop(process)
        player.clear()


def message(cluster, name):
    conditions = cluster.real.api("GET", f"/api/v1/namespaces/default/pods/{name}")["status"].get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


def volumes(cluster):
    api = cluster.real.api
    for name, mode, provisioner in (("now", "Immediate", "example.com/none"), ("later", "WaitForFirstConsumer", "example.com/none"),
                                    ("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")):
        api("POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})

    def claim(name, storage_class, volume=None):
        spec = {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        api("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": name}, "spec": {**spec, **({"volumeName": volume} if volume else {})}})

    def volume(name, storage_class, node):
        api("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": {
            "storageClassName": storage_class, "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}})

    def uses(claim_name):
        return [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]

    def node_of(pod):
        return api("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName")

    cluster.pod("no-claim", volumes=uses("absent"))
    check("a missing claim is named", until(lambda: 'persistentvolumeclaim "absent" not found' in message(cluster, "no-claim")), lambda: message(cluster, "no-claim"))
    claim("pending", "now")
    cluster.pod("immediate", volumes=uses("pending"))
    check("an unbound immediate claim is the reason", until(lambda: "unbound immediate PersistentVolumeClaims" in message(cluster, "immediate")), lambda: message(cluster, "immediate"))
    volume("here", "now", "n2")
    check("and the pod follows the volume once it is bound", until(lambda: node_of("immediate") == "n2"), lambda: (node_of("immediate"), message(cluster, "immediate")))

    claim("first", "later")
    cluster.pod("consumer", volumes=uses("first"))
    chosen = lambda: api("GET", "/api/v1/namespaces/default/persistentvolumeclaims/first")["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node")  # noqa: E731
    check("a claim that waits for its consumer is told the node", until(chosen), lambda: message(cluster, "consumer"))
    check("the pod waits for the volume", node_of("consumer") is None)
    # What a provisioner does: a volume for that claim on that node.
    volume("made", "later", chosen())
    api("PATCH", "/api/v1/persistentvolumes/made", {"spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "first"}}})
    check("and goes to that node with it", until(lambda: node_of("consumer") is not None and node_of("consumer") == chosen()), lambda: (node_of("consumer"), chosen()))

    volume("local-n1", "local", "n1")
    claim("disk", "local")
    cluster.pod("local", volumes=uses("disk"))
    check("a volume made by hand draws the pod to its node", until(lambda: node_of("local") == "n1"), lambda: (node_of("local"), message(cluster, "local"), cluster.log()[-1500:]))
    cluster.clear()


def rules(cluster):
    for i in range(3):
        cluster.add_node(f"n{i}")
    process = cluster.start("--metrics", f"127.0.0.1:{(port := real_kubernetes.free_port())}")
    api = cluster.real.api
    get = lambda path: urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read().decode()  # noqa: E731
    check("readyz says when the picture is whole", until(lambda: get("/readyz") == "ok"))
    cluster.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    cluster.pod("free")
    check("a pod without gates goes past one with", until(lambda: cluster.bound("free")) and not cluster.bound("gated"))
    api("PATCH", "/api/v1/namespaces/default/pods/gated", {"spec": {"schedulingGates": None}})
    check("and the other when its gate is lifted", until(lambda: cluster.bound("gated")))
    cluster.pod("claims", 0, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "any"}])
    check("claims of dynamic resource allocation are refused aloud", until(lambda: "resourceClaims" in message(cluster, "claims")), lambda: message(cluster, "claims"))
    events = lambda: [e["message"] for e in api("GET", "/api/v1/namespaces/default/events")["items"] if e["involvedObject"]["name"] == "claims"]  # noqa: E731
    check("with an event", until(lambda: any("resourceClaims" in e for e in events())), events)
    cluster.clear()
    volumes(cluster)
    cluster.group("gang", 3)
    for i in range(3):
        cluster.pod(f"gang-{i}", 4, group="gang")
    check("a native gang", until(lambda: cluster.bound("gang-0", "gang-1", "gang-2")))
    cluster.pod("vip", 4, priorityClassName="critical")
    check("a victim makes room", until(lambda: cluster.bound("vip")), lambda: cluster.log()[-1500:])
    metrics_are_documented(get("/metrics"))
    cluster.clear()
    cluster.stop(process)


def metrics_are_documented(page):
    names = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    text = (ROOT / "docs" / "metrics.md").read_text()
    documented = set(re.findall(r"^\| `((?:muster|process)_\w+)`", text, re.M))
    check("docs/metrics.md lists exactly what /metrics serves", names == documented, names ^ documented)
    panels = (ROOT / "deploy" / "overlays" / "monitoring" / "dashboard.json").read_text()
    shown = set(re.findall(r"\b((?:muster|process)_[a-z_]+?)(?:_bucket|_sum|_count)?(?=[\[{)\" ])", panels))
    check("and the dashboard shows nothing else", shown and shown <= names, shown - names)


def granted():
    """(group, resource, verb) of deploy/'s roles."""
    rights = set()
    for item in yaml.safe_load_all((ROOT / "deploy" / "kustomize" / "rbac.yaml").read_text()):
        for rule in item.get("rules", []) if item["kind"] in ("ClusterRole", "Role") else []:
            rights |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    return rights


def seldom(group, resource, verb):
    """Rights that are checked, not called (who hands a right on must have it), or that only an accident calls for."""
    if resource.endswith("/finalizers") or resource == "pods/exec" or (resource, verb) == ("pods", "get"):
        return True
    # The status of a job that has just gone is tried as an update of the job; objects that somebody changed are put right with a patch.
    if verb == "update" and resource.endswith("jobs"):
        return True
    # What goes only when its owner is changed in the middle (a launcher Job, an autoscaler, T9k's group), or with an option of the job.
    if verb == "delete" and group in ("batch", "autoscaling", "batch.tensorstack.dev", "scheduler.tensorstack.dev"):
        return True
    # Volcano's commands to queues: no scenario here sends one.
    if group == "bus.volcano.sh":
        return True
    # The lease: tests/kubernetes/faults.py.
    return verb == "patch" or group == "coordination.k8s.io"


def rights(cluster, whole):
    used, refused = set(), []
    for line in open(cluster.real.audit_log):
        entry = json.loads(line)
        if entry["user"]["username"] != "system:serviceaccount:muster-system:muster" or "objectRef" not in entry:
            continue
        place = entry["objectRef"]
        resource = place["resource"] + (f"/{place['subresource']}" if place.get("subresource") else "")
        used.add((place.get("apiGroup", ""), resource, entry["verb"]))
        if entry.get("responseStatus", {}).get("code") == 403:
            refused.append((entry["verb"], resource, place.get("apiGroup", "")))
    check("no right was missing", not refused, sorted(set(refused)))
    unused = {right for right in granted() - used if not seldom(*right)}
    if whole:
        check("no right is unused", not unused, sorted(unused))
    else:
        print(f"      not used by this part of the suite: {len(unused)} rights")


def main():
    if not real_kubernetes.available():
        print("skipped: no real Kubernetes here (tools/kubernetes builds it)\n0 passed, 0 failed, 1 skipped")
        return 0
    parts = sys.argv[1:] or ["jobs", "volcano", "rules"]
    if not VECTORS.exists() and parts != ["rules"]:
        print("skipped: no scenario files here, so jobs and volcano are left out")
        parts = ["rules"]
    with real_kubernetes.RealKubernetes(groups=True, audit=True) as real:
        cluster = Deployed(real)
        check("the manifests of deploy/ are accepted", (applied := cluster.install()).returncode == 0, applied.stderr)
        for name, value in (("test-pc", 100000), ("high-priority", 1000000)):
            real.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        if "jobs" in parts:
            cluster.add_node("n0")
            jobs(cluster)
            real.api("DELETE", "/api/v1/nodes/n0")
        if "rules" in parts:
            # Volumes are bound by the cluster's own controllers.
            real.start_controllers("persistentvolume-binder-controller")
            rules(cluster)
            every_kind(cluster)
        if "volcano" in parts:
            real.kill("kube-controller-manager") if "kube-controller-manager" in real.processes else None
            volcano(cluster)
        rights(cluster, set(parts) >= {"jobs", "volcano", "rules"})
        if check.failed:
            print(cluster.log()[-4000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
