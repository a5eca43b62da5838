#!/usr/bin/env python3
"""The job controllers and the scheduler of `muster run` on a real API server, under exactly the rights of deploy/:
scenario files of job kinds, scenario files in Volcano's terms, volumes, gates, claims of dynamic resource allocation,
objects changed by others, a cluster without native groups; then the rights themselves: none missing, none unused.

    tests/kubernetes/suite.py [jobs|volcano|rules|plain …]
"""
import itertools
import json
import os
import pathlib
import re
import sys
import threading
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import kubeflow_player  # noqa: E402
import real_kubernetes  # noqa: E402
import volcano_player  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402

VECTORS = pathlib.Path(os.environ.get("VECTORS", ROOT / "tests" / "data" / "vectors"))
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
    template = {
        "spec": {"containers": [{"name": container, "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"ttlSecondsAfterFinished": 0, "cleanPodPolicy": "All"},
            **extra,
            specs_field: {t: {"replicas": 1, "restartPolicy": "Never", "template": template} for t in types},
        },
    }


ELASTIC = {
    "elasticPolicy": {
        "minReplicas": 1,
        "maxReplicas": 2,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    }
}
T9K = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "MPIJob",
    "metadata": {"name": "every-t9k"},
    "spec": {
        "runPolicy": {"cleanUpWorkers": True},
        "scheduler": {"t9kScheduler": {"queue": "default", "priority": 50}},
        "worker": {
            "replicas": 1,
            "cmd": ["true"],
            "template": {
                "spec": {
                    "containers": [
                        {"name": "mpi-worker", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
                    ]
                }
            },
        },
    },
}

# Tried again even after success, so that an attempt's ConfigMap is deleted, too.
FRAMEWORK = {
    "apiVersion": "frameworkcontroller.microsoft.com/v1",
    "kind": "Framework",
    "metadata": {"name": "everyframework"},
    "spec": {
        "retryPolicy": {"maxRetryCount": -2},
        "taskRoles": [
            {
                "name": "worker",
                "taskNumber": 1,
                "task": {
                    "pod": {
                        "spec": {
                            "restartPolicy": "Never",
                            "schedulerName": "muster",
                            "containers": [{"name": "app", "image": "x"}],
                        }
                    }
                },
            }
        ],
    },
}


def every_job():
    return [
        training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Master", "Worker"], "every-pt"),
        training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Worker"], "every-elastic", **ELASTIC),
        training_job("TFJob", "tfReplicaSpecs", "tensorflow", ["Chief", "Worker"], "every-tf"),
        training_job("XGBoostJob", "xgbReplicaSpecs", "xgboost", ["Master", "Worker"], "every-xgb"),
        training_job("PaddleJob", "paddleReplicaSpecs", "paddle", ["Master", "Worker"], "every-paddle"),
        training_job("JAXJob", "jaxReplicaSpecs", "jax", ["Worker"], "every-jax"),
        training_job("MPIJob", "mpiReplicaSpecs", "mpi", ["Launcher", "Worker"], "every-mpi"),
        T9K,
        FRAMEWORK,
    ]


def every_kind(cluster):
    """One job of each kind from submission to its end, placed by our scheduler, pods played by the test; then the
    operator's clean-up."""
    api = cluster.real.api
    made = every_job()
    for gang in ("muster", "plugins"):
        process = cluster.start(
            "--scheduler-name",
            "muster,plugins,t9k-scheduler",
            *([] if gang == "muster" else ["--gang-scheduler", gang]),
        )
        for job in made if gang == "muster" else made[:1]:
            group = job["apiVersion"].split("/")[0]
            path = f"/apis/{job['apiVersion']}/namespaces/default/{job['kind'].lower()}s"
            name = job["metadata"]["name"]
            api("POST", path, job)

            def ended():
                for pod in cluster.pods():
                    if pod["spec"].get("nodeName") and pod["status"].get("phase") in ("Pending", "Running"):
                        launcher = group != "batch.tensorstack.dev" or "launcher" in pod["metadata"]["name"]
                        cluster.set_phase(
                            pod, "Running" if pod["status"]["phase"] == "Pending" or not launcher else "Succeeded"
                        )
                job_now = api("GET", f"{path}/{name}", check=False)
                if job_now is None:
                    return True
                done = {c["type"] for c in job_now.get("status", {}).get("conditions", []) if c["status"] == "True"} | {
                    job_now.get("status", {}).get("phase")
                }
                if job["kind"] == "Framework":
                    return job_now.get("status", {}).get("attemptStatus", {}).get("id") == 1
                return group == "batch.tensorstack.dev" and "Succeeded" in done

            check(
                f"{job['kind']} {name} ({gang}) runs to its end",
                until(ended, 40),
                lambda: (api("GET", f"{path}/{name}", check=False) or {}).get("status"),
            )
            api("DELETE", f"{path}/{name}", check=False)
            sweep(cluster)
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
        process = cluster.start(
            "--without", "controllers", "--scheduler-name", "volcano", "--scheduler-config", str(config)
        )
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
    for name, mode, provisioner in (
        ("now", "Immediate", "example.com/none"),
        ("later", "WaitForFirstConsumer", "example.com/none"),
        ("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner"),
    ):
        api(
            "POST",
            "/apis/storage.k8s.io/v1/storageclasses",
            {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode},
        )

    def claim(name, storage_class, volume=None):
        spec = {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        api(
            "POST",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {"metadata": {"name": name}, "spec": {**spec, **({"volumeName": volume} if volume else {})}},
        )

    def volume(name, storage_class, node):
        api(
            "POST",
            "/api/v1/persistentvolumes",
            {
                "metadata": {"name": name},
                "spec": {
                    "storageClassName": storage_class,
                    "capacity": {"storage": "2Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "local": {"path": "/x"},
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
                                    ]
                                }
                            ]
                        }
                    },
                },
            },
        )

    def uses(claim_name):
        return [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]

    def node_of(pod):
        return api("GET", f"/api/v1/namespaces/default/pods/{pod}")["spec"].get("nodeName")

    cluster.pod("no-claim", volumes=uses("absent"))
    check(
        "a missing claim is named",
        until(lambda: 'persistentvolumeclaim "absent" not found' in message(cluster, "no-claim")),
        lambda: message(cluster, "no-claim"),
    )
    claim("pending", "now")
    cluster.pod("immediate", volumes=uses("pending"))
    check(
        "an unbound immediate claim is the reason",
        until(lambda: "unbound immediate PersistentVolumeClaims" in message(cluster, "immediate")),
        lambda: message(cluster, "immediate"),
    )
    volume("here", "now", "n2")
    check(
        "and the pod follows the volume once it is bound",
        until(lambda: node_of("immediate") == "n2"),
        lambda: (node_of("immediate"), message(cluster, "immediate")),
    )

    claim("first", "later")
    cluster.pod("consumer", volumes=uses("first"))
    chosen = (
        lambda: api("GET", "/api/v1/namespaces/default/persistentvolumeclaims/first")["metadata"]
        .get("annotations", {})
        .get("volume.kubernetes.io/selected-node")
    )  # noqa: E731
    check("a claim that waits for its consumer is told the node", until(chosen), lambda: message(cluster, "consumer"))
    check("the pod waits for the volume", node_of("consumer") is None)
    # What a provisioner does: a volume for that claim on that node.
    volume("made", "later", chosen())
    api(
        "PATCH",
        "/api/v1/persistentvolumes/made",
        {
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": "default",
                    "name": "first",
                }
            }
        },
    )
    check(
        "and goes to that node with it",
        until(lambda: node_of("consumer") is not None and node_of("consumer") == chosen()),
        lambda: (node_of("consumer"), chosen()),
    )

    volume("local-n1", "local", "n1")
    claim("disk", "local")
    cluster.pod("local", volumes=uses("disk"))
    check(
        "a volume made by hand draws the pod to its node",
        until(lambda: node_of("local") == "n1"),
        lambda: (node_of("local"), message(cluster, "local"), cluster.log()[-1500:]),
    )
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
    check(
        "claims of dynamic resource allocation are refused aloud",
        until(lambda: "resourceClaims" in message(cluster, "claims")),
        lambda: message(cluster, "claims"),
    )
    events = lambda: [
        e["message"]
        for e in api("GET", "/api/v1/namespaces/default/events")["items"]
        if e["involvedObject"]["name"] == "claims"
    ]  # noqa: E731
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
            rights |= {
                (group, resource, verb)
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
            }
    return rights


NS = "namespaces/default"
CORE = f"/api/v1/{NS}"


def mended(cluster):
    """What somebody changed under a job's hands is put right, and what a change of the job makes superfluous goes.
    With leader election, as deploy/ runs it."""
    api = cluster.real.api
    get = lambda path: api("GET", path, check=False) or {}  # noqa: E731
    names = ("--leader-elect", "--scheduler-name", "muster,plugins")
    process = cluster.start(*names)
    jobs = f"/apis/kubeflow.org/v1/{NS}"

    api(
        "POST",
        f"{jobs}/pytorchjobs",
        training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Worker"], "mend-pt", **ELASTIC),
    )
    scaler = f"/apis/autoscaling/v2/{NS}/horizontalpodautoscalers/mend-pt"
    check("an elastic job has an autoscaler", until(lambda: get(scaler)), lambda: cluster.log()[-1000:])
    api("PATCH", scaler, {"spec": {"maxReplicas": 9}})
    check(
        "its limits are put right",
        until(lambda: get(scaler)["spec"]["maxReplicas"] == 2),
        lambda: get(scaler).get("spec"),
    )
    group = f"/apis/scheduling.volcano.sh/v1beta1/{NS}/podgroups/mend-pt"
    check("a job has a PodGroup", until(lambda: get(group)))
    least = get(group)["spec"]["minMember"]
    api("PATCH", group, {"spec": {"minMember": 77}})
    check("whose size is put right", until(lambda: get(group)["spec"]["minMember"] == least), lambda: get(group))
    api("PATCH", f"{jobs}/pytorchjobs/mend-pt", {"spec": {"runPolicy": {"suspend": True}}})
    check("a suspended job has no autoscaler", until(lambda: not get(scaler)))

    template = {"spec": {"containers": [{"name": "mpi", "image": "x"}]}}
    replicas = {"Launcher": {"replicas": 1, "template": template}, "Worker": {"replicas": 1, "template": template}}
    api(
        "POST",
        f"{jobs}/mpijobs",
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": {"name": "mend-mpi1"},
            "spec": {"mpiReplicaSpecs": replicas},
        },
    )
    role = f"/apis/rbac.authorization.k8s.io/v1/{NS}/roles/mend-mpi1-launcher"
    check("a launcher has its role", until(lambda: get(role).get("rules")), lambda: cluster.log()[-1000:])
    api("PATCH", role, {"rules": []})
    check("whose rules are put right", until(lambda: get(role).get("rules")))

    second = f"/apis/kubeflow.org/v2beta1/{NS}/mpijobs"
    api(
        "POST",
        second,
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "mend-mpi2", "annotations": {"muster.dev/on-preempt": "requeue"}},
            "spec": {"mpiReplicaSpecs": replicas},
        },
    )
    service, secret = f"{CORE}/services/mend-mpi2", f"{CORE}/secrets/mend-mpi2-ssh"
    launcher = f"/apis/batch/v1/{NS}/jobs/mend-mpi2-launcher"
    check(
        "a launcher is a Job",
        until(lambda: get(launcher) and get(service) and get(secret)),
        lambda: cluster.log()[-1000:],
    )
    api("PATCH", service, {"spec": {"selector": {"app": "another"}}})
    check(
        "the selector of a service is put right",
        until(lambda: get(service)["spec"]["selector"].get("app") != "another"),
    )
    api("PATCH", secret, {"data": {"ssh-publickey": None}})
    check("a broken key pair is made anew", until(lambda: "ssh-publickey" in get(secret).get("data", {})))
    api("PATCH", f"{launcher}/status", {"status": {"startTime": "2026-01-01T00:00:00Z"}})
    api("PATCH", f"{second}/mend-mpi2", {"spec": {"runPolicy": {"suspend": True}}})
    check("the launcher sleeps with its job", until(lambda: get(launcher)["spec"].get("suspend")))
    api("PATCH", f"{second}/mend-mpi2", {"spec": {"runPolicy": {"suspend": False}}})
    check(
        "and wakes with it, as if new",
        until(
            lambda: not get(launcher)["spec"].get("suspend") and not get(launcher).get("status", {}).get("startTime")
        ),
        lambda: get(launcher),
    )
    uid, worker = get(launcher)["metadata"]["uid"], f"{CORE}/pods/mend-mpi2-worker-0"
    check("workers come back", until(lambda: get(worker)))
    api(
        "PATCH",
        f"{worker}/status",
        {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}},
    )
    check(
        "a job that lost a worker to somebody else goes back to its queue whole, launcher and all",
        until(lambda: get(launcher).get("metadata", {}).get("uid", uid) != uid),
    )
    cluster.stop(process)

    process = cluster.start(*names, "--gang-scheduler", "plugins")
    api("POST", f"{jobs}/tfjobs", training_job("TFJob", "tfReplicaSpecs", "tensorflow", ["Worker"], "mend-group"))
    group = f"/apis/scheduling.x-k8s.io/v1alpha1/{NS}/podgroups/mend-group"
    check("scheduler-plugins' PodGroup", until(lambda: get(group)))
    api("PATCH", group, {"spec": {"minMember": 77}})
    check("is put right too", until(lambda: get(group)["spec"]["minMember"] == 1), lambda: get(group))

    queue = "/apis/scheduling.volcano.sh/v1beta1/queues/mend-queue"
    api(
        "POST",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "mend-queue"},
            "spec": {"weight": 1},
        },
    )
    check("a queue opens", until(lambda: get(queue).get("status", {}).get("state") == "Open"))
    commands = f"/apis/bus.volcano.sh/v1alpha1/{NS}/commands"
    api(
        "POST",
        commands,
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": "close"},
            "action": "CloseQueue",
            "target": {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "name": "mend-queue",
                "uid": get(queue)["metadata"]["uid"],
            },
        },
    )
    check(
        "a command closes it and is gone",
        until(lambda: get(queue)["status"]["state"] == "Closed" and not get(f"{commands}/close")),
        lambda: get(queue).get("status"),
    )
    for path in (f"{jobs}/pytorchjobs", f"{jobs}/tfjobs", f"{jobs}/mpijobs"):
        for job in api("GET", path)["items"]:
            api("DELETE", f"{path}/{job['metadata']['name']}", check=False)
    cluster.stop(process)
    sweep(cluster)


def durations(cluster):
    """A T9k queue's maxDuration stops the owners of pods that have been in it for too long; there is no garbage here
    that would take the pods away."""
    api = cluster.real.api
    get = lambda path: api("GET", path, check=False) or {}  # noqa: E731
    process = cluster.start("--scheduler-name", "muster,t9k-scheduler")
    queues = "/apis/scheduler.tensorstack.dev/v1beta1/namespaces/t9k-system/queues"
    check("the default T9k queue is made", until(lambda: get(queues).get("items")), lambda: cluster.log()[-1000:])
    api(
        "POST",
        queues,
        {
            "apiVersion": "scheduler.tensorstack.dev/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "short"},
            "spec": {"maxDuration": "1s"},
        },
    )
    label, apps = {"scheduler.tensorstack.dev/queue": "short"}, f"/apis/apps/v1/{NS}"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    for kind, name in (("Deployment", "long-d"), ("ReplicaSet", "long-r")):
        made = api(
            "POST",
            f"{apps}/{kind.lower()}s",
            {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"name": name},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template},
            },
        )
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "controller": True,
            "uid": made["metadata"]["uid"],
            "name": name if kind == "ReplicaSet" else f"{name}-abc",
        }
        more = {} if kind == "ReplicaSet" else {"pod-template-hash": "abc"}
        api(
            "POST",
            f"{CORE}/pods",
            {
                "metadata": {"name": f"{name}-pod", "labels": {**label, **more}, "ownerReferences": [owner]},
                "spec": {**template["spec"], "schedulerName": "muster"},
            },
        )
        path = f"{apps}/{kind.lower()}s/{name}"
        check(
            f"a {kind} is brought to 0 replicas",
            until(lambda: get(path)["spec"]["replicas"] == 0),
            lambda: (get(path).get("spec"), cluster.log()[-1000:]),
        )
    job = json.loads(json.dumps(T9K))
    job["metadata"]["name"] = "long-t9k"
    job["spec"]["scheduler"]["t9kScheduler"]["queue"] = "short"
    jobs = f"/apis/batch.tensorstack.dev/v1beta1/{NS}/mpijobs"
    api("POST", jobs, job)
    check(
        "a T9k job is paused",
        until(lambda: get(f"{jobs}/long-t9k").get("status", {}).get("phase") == "Paused"),
        lambda: get(f"{jobs}/long-t9k").get("status"),
    )
    told = lambda: {
        e["involvedObject"]["name"]
        for e in api("GET", f"{CORE}/events")["items"]
        if e["reason"] == "MaxDurationExceeded"
    }  # noqa: E731
    check("and all were told", until(lambda: told() == {"long-d", "long-r", "long-t9k"}), told)
    for path in (f"{apps}/deployments/long-d", f"{apps}/replicasets/long-r", f"{jobs}/long-t9k", f"{queues}/short"):
        api("DELETE", path, check=False)
    cluster.stop(process)
    sweep(cluster)


def sweep(cluster):
    """What a garbage collector would take away with the jobs."""
    cluster.clear()
    for kind, place in kubeflow_player.KINDS.items():
        for item in (cluster.real.api("GET", place, check=False) or {"items": []})["items"]:
            if (kind, item["metadata"]["name"]) not in kubeflow_player.BUILT_IN and (
                item["metadata"].get("ownerReferences") or kind == "Pod"
            ):
                cluster.real.api(
                    "DELETE", f"{place}/{item['metadata']['name']}", {"gracePeriodSeconds": 0}, check=False
                )


def conflicts(cluster):
    """A job that somebody else writes every few milliseconds: updates of its status meet conflicts (409), are tried
    again, and arrive."""
    api, path = cluster.real.api, f"/apis/kubeflow.org/v1/{NS}/pytorchjobs"
    process = cluster.start("--without", "scheduler", "--gang-scheduler", "none")
    job = training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Master"], "contested")
    job["spec"]["runPolicy"] = {}
    api("POST", path, job)
    ended = threading.Event()

    def disturb():
        n = 0
        while not ended.is_set():
            api("PATCH", f"{path}/contested", {"metadata": {"annotations": {"n": str(n := n + 1)}}}, check=False)
            ended.wait(0.005)

    writer = threading.Thread(target=disturb)
    writer.start()
    audit = open(cluster.real.audit_log)
    audit.seek(0, os.SEEK_END)  # what was before is long, and would be read at every turn
    refused = lambda: [
        1 for line in audit if '"code":409' in line and '"pytorchjobs"' in line and "muster-system:muster" in line
    ]  # noqa: E731
    phases = itertools.cycle(["Running", "Pending"])

    def met():
        # Each turn of the pod's phase is a status to write.
        for pod in cluster.pods("training.kubeflow.org/job-name=contested"):
            cluster.set_phase(pod, next(phases))
        return refused()

    check("writes of a contested job meet conflicts", until(met, 60, every=0.1))
    for pod in cluster.pods("training.kubeflow.org/job-name=contested"):
        cluster.set_phase(pod, "Succeeded")
    done = lambda: any(
        c["type"] == "Succeeded" and c["status"] == "True"
        for c in api("GET", f"{path}/contested").get("status", {}).get("conditions", [])
    )  # noqa: E731
    check("and its status arrives all the same", until(done), lambda: api("GET", f"{path}/contested").get("status"))
    ended.set()
    writer.join()
    api("DELETE", f"{path}/contested")
    cluster.stop(process)
    sweep(cluster)


def without_status(cluster):
    """Older definitions of the job kinds have no status subresource: the status is written with the job."""
    api = cluster.real.api
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for name in (
        "pytorchjobs.kubeflow.org",
        "tfjobs.kubeflow.org",
        "xgboostjobs.kubeflow.org",
        "paddlejobs.kubeflow.org",
        "jaxjobs.kubeflow.org",
        "mpijobs.kubeflow.org",
        "mpijobs.batch.tensorstack.dev",
        "frameworks.frameworkcontroller.microsoft.com",
    ):
        definition = api("GET", f"{crds}/{name}")
        for version in definition["spec"]["versions"]:
            version.pop("subresources", None)
        api("PUT", f"{crds}/{name}", definition)
    gone = lambda path: api("GET", f"{path}/status", check=False) is None  # noqa: E731
    process = cluster.start("--without", "scheduler", "--gang-scheduler", "none")
    for job in every_job():
        path = f"/apis/{job['apiVersion']}/{NS}/{job['kind'].lower()}s"
        name = job["metadata"]["name"]
        api("POST", path, job)
        until(lambda: gone(f"{path}/{name}"))
        check(
            f"{job['kind']} {name} without a status subresource",
            until(lambda: api("GET", f"{path}/{name}").get("status")),
            lambda: cluster.log()[-1000:],
        )
        api("DELETE", f"{path}/{name}", check=False)
    cluster.stop(process)
    sweep(cluster)


def plain():
    """A cluster that knows no groups of its own and no watches that begin with what there is. Returns the rights that
    were used."""
    with real_kubernetes.RealKubernetes(audit=True, apiserver_args=["--feature-gates=WatchList=false"]) as real:
        cluster, api = Deployed(real), real.api
        check(
            "deploy/ is accepted by a cluster without native groups",
            (applied := cluster.install()).returncode == 0,
            applied.stderr,
        )
        check("which has none", api("GET", f"/apis/scheduling.k8s.io/v1beta1/{NS}/podgroups", check=False) is None)
        for i in range(2):
            cluster.add_node(f"n{i}")
        process = cluster.start()
        cluster.pod("single")
        check("a pod is bound", until(lambda: cluster.bound("single")), lambda: cluster.log()[-1500:])
        api(
            "POST",
            f"/apis/scheduling.volcano.sh/v1beta1/{NS}/podgroups",
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "gang"},
                "spec": {"minMember": 3},
            },
        )
        for i in range(3):
            if i == 2:
                cluster.pod("another", 0)
                check(
                    "no gang before its last member",
                    until(lambda: cluster.bound("another"))
                    and not cluster.bound("gang-0")
                    and not cluster.bound("gang-1"),
                )
            api(
                "POST",
                f"{CORE}/pods",
                {
                    "metadata": {"name": f"gang-{i}", "annotations": {"scheduling.k8s.io/group-name": "gang"}},
                    "spec": {
                        "schedulerName": "muster",
                        "containers": [
                            {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
                        ],
                    },
                },
            )
        check(
            "a gang is bound", until(lambda: cluster.bound("gang-0", "gang-1", "gang-2")), lambda: cluster.log()[-1500:]
        )
        api(
            "POST",
            f"/apis/kubeflow.org/v1/{NS}/pytorchjobs",
            training_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", ["Master"], "job"),
        )
        check("a job's pod is bound", until(lambda: cluster.bound("job-master-0")), lambda: cluster.log()[-1500:])
        said = [line for line in cluster.log().splitlines() if " warn" in line.lower() or " error" in line.lower()]
        check("and nothing is complained of", not said and process.poll() is None, said)
        refused = used_rights(cluster)[1]
        check("no right was missing there", not refused, refused)
        # The cluster is upgraded under us: kinds that it did not have are asked for every 30 s. (Roles are not known
        # to a server in its first moments.)
        real.kill("kube-apiserver")
        real.groups = True
        real.start_apiserver()
        cluster.clear()
        cluster.group("later", 2)
        for i in range(2):
            cluster.pod(f"later-{i}", 1, group="later")
        check(
            "groups of its own that a cluster learns later are followed",
            until(lambda: cluster.bound("later-0", "later-1"), 180),
            lambda: cluster.log()[-3000:],
        )
        until(
            lambda: {("scheduling.k8s.io", kind, "list") for kind in ("podgroups", "compositepodgroups")}
            <= used_rights(cluster)[0],
            60,
        )
        cluster.stop()
        used = used_rights(cluster)[0]
        check(
            "everything was listed there",
            ("", "pods", "list") in used
            and any(
                '"code":422' in line and "sendInitialEvents" in line and "muster-system:muster" in line
                for line in open(real.audit_log)
            ),
        )
        return used


def checked_rights(cluster):
    """Rights that are never called: the server looks whether we have them when we hand them on (the launcher's role),
    or when what we make shall block the deletion of its job. Taken away, those creates are refused. Returns them."""
    api = cluster.real.api
    place = "/apis/rbac.authorization.k8s.io/v1/clusterroles/muster-controllers"
    role = api("GET", place)
    on_finalizers = lambda group, resource, verb: resource.endswith("/finalizers")  # noqa: E731
    handed_on = lambda group, resource, verb: resource == "pods/exec" or (resource, verb) == (
        "pods",
        "get",
    )  # noqa: E731
    template = {"spec": {"containers": [{"name": "mpi", "image": "x"}]}}
    launcher = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "less"},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template},
                "Worker": {"replicas": 1, "template": template},
            }
        },
    }
    before = set(used_rights(cluster)[1])
    for what, checked, job, expected in (
        ("the rights that its launcher gets, the role", handed_on, launcher, "roles"),
        ("rights on finalizers, what blocks the deletion of its job", on_finalizers, every_job()[0], "pods"),
    ):
        less = [
            rule
            for rule in role["rules"]
            if not all(checked("", resource, verb) for resource in rule["resources"] for verb in rule["verbs"])
        ]
        check("the rule is there", len(less) < len(role["rules"]))
        api("PATCH", place, {"rules": less})
        process = cluster.start("--without", "scheduler", "--gang-scheduler", "none")
        path = f"/apis/{job['apiVersion']}/{NS}/{job['kind'].lower()}s"
        api("POST", path, job)
        refused = lambda: {resource for _, resource, _ in set(used_rights(cluster)[1]) - before}  # noqa: E731
        check(f"without {what} is refused", until(lambda: expected in refused(), 30), refused)
        cluster.stop(process)
        api("PATCH", place, {"rules": role["rules"]})
        api("DELETE", f"{path}/{job['metadata']['name']}")
        sweep(cluster)
    return {right for right in granted() if on_finalizers(*right) or handed_on(*right)}


def used_rights(cluster):
    """What our account asked for, by the audit log, and what it was refused."""
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
    return used, sorted(set(refused))


def rights(cluster, whole, elsewhere):
    used, refused = used_rights(cluster)
    check("no right was missing", not refused, refused)
    unused = granted() - used - elsewhere
    if whole:
        unused -= checked_rights(cluster)
        check("no right is unused", not unused, sorted(unused))
    else:
        print(f"      not used by this part of the suite: {len(unused)} rights")


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    parts = sys.argv[1:] or ["jobs", "volcano", "rules", "plain"]
    elsewhere = plain() if "plain" in parts else set()
    if parts == ["plain"]:
        return check.close()
    # The admission plugin checks the rights on finalizers, as OpenShift does and others may.
    with real_kubernetes.RealKubernetes(
        groups=True, audit=True, apiserver_args=["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]
    ) as real:
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
            mended(cluster)
            durations(cluster)
            conflicts(cluster)
        if "volcano" in parts:
            real.kill("kube-controller-manager") if "kube-controller-manager" in real.processes else None
            volcano(cluster)
        if "rules" in parts:
            without_status(cluster)
        rights(cluster, set(parts) >= {"jobs", "volcano", "rules", "plain"}, elsewhere)
        if check.failed:
            print(cluster.log()[-4000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
