"""The real operators on a real API server, for record.py and tables.py.

The programs are built from their published Go modules (tests/kubernetes/trainingoperator and mpioperator), with the
CRDs of the same modules.
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import kubeflow_player  # noqa: E402
import real_kubernetes  # noqa: E402

OUT = pathlib.Path(os.environ.get("OPERATORS", real_kubernetes.BIN))
PROGRAMS = {
    "training-operator": "github.com/kubeflow/training-operator/cmd/training-operator.v1",
    "mpi-operator": "github.com/kubeflow/mpi-operator/cmd/mpi-operator",
}
CRDS = {
    "training-operator": "manifests/base/crds/kubeflow.org_*jobs.yaml",
    "mpi-operator": "manifests/base/kubeflow.org_mpijobs.yaml",
}
OLD = "mpi-operator-v1alpha1"
OLD_CRD = {
    "metadata": {"name": "mpijobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org",
        "scope": "Namespaced",
        "names": {"kind": "MPIJob", "plural": "mpijobs", "singular": "mpijob"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
CLASSES = {"test-pc": 100000, "high-priority": 1000000, "critical": 1100000, "medium": 1000000}


def module(operator):
    return ROOT / "tests" / "kubernetes" / operator.replace("-", "")


def build(operator):
    """The program, built once. That of v1alpha1 (mpi-operator v0.2.3) wants its own source tree and is not built
    here."""
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / operator
    if not program.exists():
        subprocess.run(["go", "build", "-o", str(program), PROGRAMS[operator]], cwd=module(operator), check=True)
    return program


def build_judge(operator):
    """A program that asks the operator's validators and defaulters."""
    OUT.mkdir(parents=True, exist_ok=True)
    program = OUT / f"judge-{operator}"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=module(operator), check=True)
    return program


def crds(operator):
    name = PROGRAMS[operator].split("/cmd/")[0]
    folder = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", name], cwd=module(operator), check=True, capture_output=True, text=True
    ).stdout.strip()
    return sorted(pathlib.Path(folder).glob(CRDS[operator]))


class View:
    """Everything of the kinds that scenarios look at, kept up to date by watches: no polling while a scenario waits
    for quiet."""

    def __init__(self, real, jobs):
        self.real, self.lock = real, threading.Condition()
        self.objects = {}  # namespace → (kind, name) → object
        self.changed = {}  # namespace → when last
        self.events = {}  # namespace → {(type, reason, message)} since the recorder emptied it
        self.ended = False
        places = {**kubeflow_player.places(None), **jobs, "Event": "/api/v1/events"}
        for kind, place in places.items():
            if real.api("GET", place + "?limit=1", check=False) is not None:
                threading.Thread(target=self.follow, args=(kind, place), daemon=True).start()

    def follow(self, kind, place):
        while not self.ended:
            try:
                listed = self.real.api("GET", place)
                for item in listed["items"]:
                    self.take(kind, "ADDED", item)
                with self.real.open(
                    f"{place}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}&timeoutSeconds=3000"
                ) as stream:
                    for line in stream:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        self.take(kind, event["type"], event["object"])
            except (OSError, RuntimeError, ValueError):
                time.sleep(0.1)

    def take(self, kind, what, item):
        namespace, name = item["metadata"].get("namespace"), item["metadata"]["name"]
        with self.lock:
            if kind == "Event":
                self.changed[namespace] = time.monotonic()
                self.events.setdefault(namespace, set()).add(
                    (item.get("type"), item.get("reason"), item.get("message") or "")
                )
                return
            if (kind, name) in kubeflow_player.BUILT_IN:
                return
            self.changed[namespace] = time.monotonic()
            if what == "DELETED":
                self.objects.setdefault(namespace, {}).pop((kind, name), None)
            else:
                self.objects.setdefault(namespace, {})[(kind, name)] = item

    def of(self, namespace):
        with self.lock:
            return dict(self.objects.get(namespace, {}))

    def quiet_for(self, namespace):
        with self.lock:
            return time.monotonic() - self.changed.get(namespace, 0)


class Operators:
    """A control plane without kubelet, scheduler, job controller and garbage collector, with one operator."""

    def __init__(self, operator, gang):
        self.operator, self.gang = operator, gang
        # Service accounts would put a token into each pod, default tolerations are the server's own.
        self.real = real_kubernetes.RealKubernetes(
            apiserver_args=["--disable-admission-plugins", "ServiceAccount,DefaultTolerationSeconds"]
        )
        self.process = self.view = None

    def __enter__(self):
        self.real.__enter__()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        if self.view is not None:
            self.view.ended = True
        self.real.stop()

    def start(self):
        program, real = build(self.operator), self.real
        if self.operator == OLD:
            real.api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", OLD_CRD)
        else:
            for path in crds(self.operator):
                real.kubectl("apply", "--server-side", "-f", str(path))
        for path in ("volcano.yaml", "coscheduling.yaml"):
            real.kubectl("apply", "--server-side", "-f", str(ROOT / "deploy" / "helm" / "muster" / "crds" / path))
        real.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        for name, value in CLASSES.items():
            real.api("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        listed = real.api("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
        self.jobs = {
            "job:" + c["spec"]["names"]["kind"]: f"/apis/kubeflow.org/{v['name']}/{c['spec']['names']['plural']}"
            for c in listed
            if c["spec"]["group"] == "kubeflow.org"
            for v in c["spec"]["versions"]
            if v["served"]
        }
        self.view = View(real, self.jobs)
        log = open(real.dir / "operator.log", "wb")
        environment = {**os.environ, "KUBECONFIG": str(real.kubeconfig), "TMPDIR": "/tmp"}
        if self.operator == OLD:
            args = [
                "--kubeConfig",
                str(real.kubeconfig),
                "--kubectl-delivery-image",
                "kubeflow/kubectl-delivery:latest",
                "--gpus-per-node",
                "1",
            ]
        elif self.operator == "mpi-operator":
            real.api("POST", "/api/v1/namespaces", {"metadata": {"name": "mpi-operator"}})
            args = [
                "--kubeConfig",
                str(real.kubeconfig),
                "--kube-api-qps",
                "500",
                "--kube-api-burst",
                "500",
                "--controller-queue-rate-limit",
                "100",
            ]
            args += ["--gang-scheduling", self.gang] if self.gang != "none" else []
        else:
            self.prepare_webhook()
            args = [
                "--metrics-bind-address",
                "0",
                "--health-probe-bind-address",
                "0",
                "--webhook-server-port",
                str(real_kubernetes.free_port()),
            ]
            args += ["--gang-scheduler-name", self.gang] if self.gang != "none" else []
        self.process = subprocess.Popen([str(program), *args], stdout=log, stderr=log, env=environment)
        if self.operator == "training-operator":
            self.hand_over_certificate()

    def log(self):
        return (self.real.dir / "operator.log").read_text(errors="replace")

    def prepare_webhook(self):
        real = self.real
        real.api("POST", "/api/v1/namespaces", {"metadata": {"name": "kubeflow"}})
        real.api(
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {"metadata": {"name": "validator.training-operator.kubeflow.org"}, "webhooks": []},
        )
        real.api(
            "POST", "/api/v1/namespaces/kubeflow/secrets", {"metadata": {"name": "training-operator-webhook-cert"}}
        )

    def hand_over_certificate(self):
        """The operator writes its certificate to a Secret and waits for the kubelet to mount that where it reads it."""
        folder = pathlib.Path("/tmp/k8s-webhook-server/serving-certs")  # a constant of the operator's
        folder.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            data = (
                self.real.api("GET", "/api/v1/namespaces/kubeflow/secrets/training-operator-webhook-cert").get("data")
                or {}
            )
            if "tls.crt" in data:
                for key, value in data.items():
                    (folder / key).write_bytes(base64.b64decode(value))
                return
            time.sleep(0.2)
        raise RuntimeError("the operator wrote no certificate")

    def await_ready(self, probe):
        """Until `probe`, a job of a namespace of its own, is seen to."""
        deadline = time.monotonic() + 180
        namespace = "probe"
        self.real.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        place = self.jobs["job:" + probe["kind"]].replace(
            "kubeflow.org/" + probe["apiVersion"].split("/")[1], f"{probe['apiVersion']}/namespaces/{namespace}"
        )
        self.real.api("POST", place, probe)
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the operator ended: {self.log()[-3000:]}")
            job = self.view.of(namespace).get(("job:" + probe["kind"], probe["metadata"]["name"]), {})
            if (
                job.get("status", {}).get("conditions")
                or job.get("status", {}).get("workerReplicas") is not None
                or (self.operator == OLD and len(self.view.of(namespace)) > 1)
            ):
                return
            time.sleep(0.1)
        raise RuntimeError("the operator saw to nothing: " + self.log()[-3000:])
