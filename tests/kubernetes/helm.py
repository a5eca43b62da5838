#!/usr/bin/env python3
"""docs/install.md on a real API server with the real Helm 3 and kustomize 5: its chapters about them are typed as they
stand. Then what the page does not show: the chart is linted, installed with every value, and Muster works with the account
that the chart has made.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from muster import binary  # noqa: E402
from deployed import SERVICE_MONITORS, Deployed  # noqa: E402
from replay import Shell, play  # noqa: E402

check = Checks()
PAGE = ROOT / "docs" / "install.md"
CHART = ROOT / "deploy" / "helm" / "muster"
EVERYTHING = {
    "schedulerNames": ["muster", "volcano"],
    "schedulerConfig": 'actions: "enqueue, allocate"\n',
    "hivedConfig": "physicalCluster: {}\n",
    "gangScheduler": "volcano",
    "without": ["controllers"],
    "serviceMonitor": {"enabled": True},
    "dashboard": True,
    "webhook": {"enabled": True, "caBundle": base64.b64encode(b"x").decode()},
    "answers": {"enabled": True, "caBundle": base64.b64encode(b"x").decode()},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "nodeSelector": {"pool": "system"},
    "imagePullSecrets": [{"name": "s"}],
    "t9kNamespace": False,
}


class Site:
    """A folder with what a clone has, and programs in front of the machine's."""

    def __init__(self, real):
        self.real, self.folder = real, real.dir / "clone"
        for part in ("deploy", "src/kube"):
            shutil.copytree(ROOT / part, self.folder / part, symlinks=True)
        self.environment = {
            "HOME": str(real.dir),
            "MUSTER": binary(),
            "KUBECONFIG": str(real.kubeconfig),
            "PATH": f"{real_kubernetes.BIN}:{os.environ['PATH']}",
        }

    def run(self, *words):
        return subprocess.run(words, cwd=self.folder, env=self.environment, text=True, capture_output=True)

    def helm(self, *words):
        done = self.run("helm", *words)
        check(f"helm {' '.join(words[:2])}", done.returncode == 0, done.stderr)
        return done.stdout


def the_page(site, title):
    """One chapter of the page. Of a release only the chart is made."""
    release = f"{ROOT}/tools/release --out dist --only chart"
    shell = Shell(site.environment, site.folder)
    play(PAGE.read_text(), shell, check, lambda command: command.replace("make release", release), title.__eq__)
    shell.close()


def kinds(site):
    names = json.loads(site.run("kubectl", "get", "crd", "-o", "json").stdout)["items"]
    return {one["metadata"]["name"] for one in names}


def older_kinds(site):
    """Kinds that an older chart has installed, which Helm leaves alone from then on: each has a short name less or more."""
    chart = site.folder / "older"
    shutil.copytree(CHART, chart)
    for path in (chart / "crds").glob("*.yaml"):
        parts = [one for one in yaml.safe_load_all(path.read_text()) if one]
        for one in parts:
            if one["kind"] == "CustomResourceDefinition":
                one["spec"]["names"]["shortNames"] = ["older" + one["spec"]["names"]["plural"]]
        path.write_text(yaml.safe_dump_all(parts))
    return chart


def every_value(site, cluster):
    values = site.folder / "everything.yaml"
    values.write_text(yaml.safe_dump(EVERYTHING))
    lint = site.run("helm", "lint", "--strict", str(CHART), "-f", str(values))
    check("helm lint has nothing to say", lint.returncode == 0 and "0 chart(s) failed" in lint.stdout, lint)
    rendered = [
        one for one in yaml.safe_load_all(site.helm("template", "muster", str(CHART), "-f", str(values))) if one
    ]
    check("helm template renders every part", {"APIService", "ServiceMonitor"} <= {one["kind"] for one in rendered})
    where = ("-n", "muster-system")
    cluster.real.kubectl("delete", "-k", "src/kube/crds", cwd=site.folder)
    site.helm("install", "muster", str(older_kinds(site)), *where, "--create-namespace")
    cluster.add_node("n0")
    # No kubelet would start it; the test does.
    cluster.real.kubectl("-n", "muster-system", "scale", "deploy/muster", "--replicas=0")
    process = cluster.start()
    until(lambda: cluster.real.api("GET", "/api/v1/namespaces/default/serviceaccounts/default", check=False))
    cluster.pod("charted")
    check("Muster binds a pod with the chart's account", until(lambda: cluster.bound("charted")), cluster.log)
    cluster.stop(process)
    cluster.clear()
    site.helm("upgrade", "muster", str(CHART), *where, "-f", str(values))
    container = cluster.real.api("GET", "/apis/apps/v1/namespaces/muster-system/deployments/muster")
    container = container["spec"]["template"]["spec"]["containers"][0]
    check("an upgrade takes the values over", "--scheduler-name=muster,volcano" in container["args"], container["args"])
    queue = lambda: cluster.real.kubectl(
        "get", "crd", "queues.scheduling.volcano.sh", "-o", "json"
    ).stdout  # noqa: E731
    check("and leaves the kinds as they were", "olderqueues" in queue())
    command = next(line for line in PAGE.read_text().splitlines() if "src/kube/crds" in line)
    command = command.removeprefix("$ ")
    refused = site.run("bash", "-c", command.replace("--force-conflicts ", ""))
    check("they are Helm's to change", refused.returncode != 0 and 'conflict with "helm"' in refused.stderr, refused)
    done = site.run("bash", "-c", command)
    check("which the page's command brings up to date", done.returncode == 0 and "olderqueues" not in queue(), done)
    site.helm("rollback", "muster", "1", *where)
    site.helm("uninstall", "muster", *where)
    left = cluster.real.kubectl("-n", "muster-system", "get", "all,configmap,sa,role,rolebinding", "-o", "name").stdout
    left = [one for one in left.split() if one not in ("configmap/kube-root-ca.crt", "serviceaccount/default")]
    gone = lambda: not cluster.real.kubectl(
        "-n", "muster-system", "get", "deploy,svc,role", "-o", "name"
    ).stdout.strip()
    check("nothing of it is left in its namespace", until(gone, 30), left)
    check("but the kinds, and so the jobs", "pytorchjobs.kubeflow.org" in kinds(site))


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    absent = [one for one in ("helm", "kustomize") if not (real_kubernetes.BIN / one).exists()]
    if absent:
        skip_all(f"{' and '.join(absent)} could not be built (tools/kubernetes)")
    with real_kubernetes.RealKubernetes(controllers=True) as real:
        cluster, site = Deployed(real), Site(real)
        cluster.create(SERVICE_MONITORS)
        the_page(site, "kustomize")
        check("kustomize's kinds are gone again", until(lambda: len(kinds(site)) == 1, 60), lambda: kinds(site))
        the_page(site, "Helm")
        check("Helm leaves the kinds", "pytorchjobs.kubeflow.org" in kinds(site), lambda: kinds(site))
        every_value(site, cluster)
        cluster.stop()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
