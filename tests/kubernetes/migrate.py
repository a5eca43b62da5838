#!/usr/bin/env python3
"""docs/migrate.md, typed on a real API server with the real Volcano beside it: Helm installs Volcano's own chart, Volcano's scheduler and
controllers run as its Deployments say, and so does Muster. Nodes have no kubelet; the test reports bound pods as running.
"""
import json
import os
import pathlib
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402
from replay import Shell, play  # noqa: E402

check = Checks()
VOLCANO = ROOT / ".cache" / "volcano"
PAGE = ROOT / "docs" / "migrate.md"


class Machines:
    """What kubelets would do: programs of Deployments run as often as their replicas say, at most once; bound pods run, and
    those that are deleted go."""

    def __init__(self, cluster):
        self.cluster, self.real, self.running, self.over = cluster, cluster.real, {}, threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def wanted(self):
        """{name: command} of the Deployments that have replicas."""
        real, found = self.real, {}
        common = ["--kubeconfig", str(real.kubeconfig), "--leader-elect=false", "--listen-address=127.0.0.1:0"]
        for namespace, name in (("volcano-system", "volcano-scheduler"), ("volcano-system", "volcano-controllers")):
            deployment = real.api("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", check=False)
            if deployment and deployment["spec"]["replicas"]:
                program = VOLCANO / ("scheduler" if "scheduler" in name else "controller-manager")
                more = [] if "scheduler" in name else ["--controllers=job-controller,queue-controller,pg-controller"]
                found[name] = (str(program), *common, *more)
        deployment = real.api("GET", "/apis/apps/v1/namespaces/muster-system/deployments/muster", check=False)
        if deployment and deployment["spec"]["replicas"]:
            names = real.api("GET", "/api/v1/namespaces/muster-system/configmaps/muster")["data"]["scheduler-names"]
            arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]
            mine = [one for one in arguments if not one.startswith(("--metrics", "--leader-elect"))]
            found["muster"] = tuple(one.replace("$(SCHEDULER_NAMES)", names) for one in mine)
        return found

    def settle(self):
        """Until what runs is what is deployed."""
        wanted = self.wanted()
        for name, (command, process) in list(self.running.items()):
            if wanted.get(name) != command:
                process.terminate()
                process.wait(30)
                del self.running[name]
        for name, command in wanted.items():
            if name not in self.running:
                if name == "muster":
                    process = self.cluster.start(*command)
                else:
                    log = open(self.real.dir / f"{name}.log", "ab")
                    process = subprocess.Popen(command, stdout=log, stderr=log)
                self.running[name] = (command, process)

    def work(self):
        while not self.over.wait(0.3):
            for pod in self.cluster.pods(ns="vision"):
                if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                    self.cluster.set_phase(pod, "Running", ns="vision")
                if pod["metadata"].get("deletionTimestamp"):
                    self.cluster.remove_pod(pod["metadata"]["name"], ns="vision")

    def close(self):
        self.over.set()
        self.thread.join()
        for _, process in self.running.values():
            process.terminate()
            process.wait(30)


def kinds_of_volcano(cluster):
    """As they are stored, without what the server adds."""
    items = json.loads(cluster.real.kubectl("get", "crd", "-o", "json").stdout)["items"]
    return {one["metadata"]["name"]: one["spec"] for one in items if one["spec"]["group"].endswith("volcano.sh")}


def prepare(cluster, environment):
    """A cluster that has Volcano, installed with Helm, and people who use it."""
    words = ["helm", "install", "volcano", str(VOLCANO / "chart"), "-n", "volcano-system", "--create-namespace"]
    words += ["--no-hooks", "--set", "custom.admission_enable=false"]  # nothing runs the admission's pods here
    done = subprocess.run(words, env=environment, text=True, capture_output=True)
    check("Helm installs Volcano", done.returncode == 0, done.stderr)
    cluster.real.kubectl("create", "namespace", "kubeflow")
    cluster.real.kubectl("create", "priorityclass", "critical", "--value=1000")  # also a name of deploy/kustomize
    cluster.real.kubectl("-n", "kubeflow", "create", "deployment", "training-operator", "--image=x")
    cluster.real.kubectl("apply", "--server-side", "-f", str(ROOT / "src" / "kube" / "crds" / "kubeflow.yaml"))
    for node in ("n0", "n1"):
        cluster.add_node(node)


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    if not (VOLCANO / "chart").exists() or not (real_kubernetes.BIN / "helm").exists():
        skip_all("Volcano or Helm could not be built (tools/kubernetes)")
    with real_kubernetes.RealKubernetes(controllers=True) as real:
        cluster = Deployed(real)
        environment = {
            **os.environ,
            "HOME": str(real.dir),
            "KUBECONFIG": str(real.kubeconfig),
            "PATH": f"{real_kubernetes.BIN}:{os.environ['PATH']}",
        }
        prepare(cluster, environment)
        machines = Machines(cluster)
        try:
            machines.settle()
            ready = lambda: real.kubectl("get", "queue", "default", check=False).returncode == 0  # noqa: E731
            check("Volcano works", until(ready, 60), lambda: (real.dir / "volcano-scheduler.log").read_text()[-1000:])
            before = kinds_of_volcano(cluster)
            shell = Shell(environment, real.dir)
            shell.run(f"ln -s {ROOT}/deploy deploy; ln -s {ROOT}/src src")

            def as_typed(command):
                machines.settle()
                return command

            play(PAGE.read_text(), shell, check, as_typed, patience=120)
            shell.close()
            check("Volcano's kinds are untouched", before and kinds_of_volcano(cluster) == before)
            theirs = real.api("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/critical")
            check("the site's own priority is untouched", theirs["value"] == 1000, theirs)
            mine = machines.running["muster"][0]
            check("Muster is beside Volcano again", mine == ("--scheduler-name=muster", "--without=controllers"), mine)
        finally:
            machines.close()
        if check.failed:
            print(cluster.log()[-3000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
