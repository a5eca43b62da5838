#!/usr/bin/env python3
"""Queues as permissions on a real API server: `muster run --queue-access closed` behind the webhook of
deploy/overlays/queue-access, with the rights of its account there.
"""
import base64
import json
import os
import pathlib
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402

check = Checks()
OVERLAYS = ROOT / "deploy" / "overlays"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1"


def start(cluster):
    real, port = cluster.real, real_kubernetes.free_port()
    environment = {
        **os.environ,
        "KUBECONFIG": str(real.kubeconfig),
        "PATH": f"{real_kubernetes.BIN}:{os.environ['PATH']}",
    }
    real.kubectl("apply", "-f", str(OVERLAYS / "queue-access" / "rights.yaml"))
    subprocess.run([OVERLAYS / "webhook" / "certificate", "muster-system", "127.0.0.1"], env=environment, check=True)
    secret = real.api("GET", "/api/v1/namespaces/muster-system/secrets/muster-webhook")["data"]
    for name in ("tls.crt", "tls.key"):
        (real.dir / name).write_bytes(base64.b64decode(secret[name]))
    cluster.start(
        "--without",
        "scheduler",
        "--queue-access",
        "closed",
        "--webhook-listen",
        f"127.0.0.1:{port}",
        "--webhook-certificate",
        str(real.dir / "tls.crt"),
        "--webhook-key",
        str(real.dir / "tls.key"),
    )
    # Nothing routes to Services here, so the server is told the address.
    item = yaml.safe_load((OVERLAYS / "queue-access" / "webhook.yaml").read_text())
    for hook in item["webhooks"]:
        hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}/queues", "caBundle": secret["tls.crt"]}
    cluster.create(item)


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    with real_kubernetes.RealKubernetes() as real:
        cluster = Deployed(real)
        try:
            cluster.install()
            real.api("POST", "/api/v1/namespaces", {"metadata": {"name": "vision"}})
            real.api("POST", "/api/v1/namespaces/vision/serviceaccounts", {"metadata": {"name": "default"}})
            for name, notes in {"gold": {}, "ours": {"muster.dev/allowed-namespaces": "vision"}}.items():
                real.api(
                    "POST",
                    f"{GROUPS}/queues",
                    {
                        "apiVersion": "scheduling.volcano.sh/v1beta1",
                        "kind": "Queue",
                        "metadata": {"name": name, "annotations": notes},
                        "spec": {"weight": 1},
                    },
                )
            real.kubectl(
                "create",
                "clusterrole",
                "writer",
                "--verb=*",
                "--resource=pods,jobs.batch,podgroups.scheduling.volcano.sh",
            )
            real.kubectl("create", "rolebinding", "jane", "-n", "vision", "--clusterrole=writer", "--user=jane")
            start(cluster)
            asks(cluster)
        finally:
            cluster.stop()
    return check.close()


def asks(cluster):
    real = cluster.real

    def tried(body):
        return real.kubectl("create", "-n", "vision", "--as=jane", "-f", "-", input=json.dumps(body), check=False)

    def pod(name, queue):
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": queue}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }

    def group(name, queue):
        return {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": 1, "queue": queue},
        }

    until(lambda: "may not use" in tried(pod("first", "gold")).stderr, 20)
    refused = tried(pod("first", "gold"))
    check(
        "a queue of others is refused with the reason",
        'user "jane" may not use queue "gold" in namespace "vision"' in refused.stderr,
        refused.stderr,
    )
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {
            "template": {
                "metadata": pod("x", "gold")["metadata"],
                "spec": {"restartPolicy": "Never", **pod("x", "")["spec"]},
            }
        },
    }
    check("in a template as well", "may not use" in tried(job).stderr)
    made = tried(group("g", "default"))
    check("the queue default is for everybody", made.returncode == 0, made.stderr)
    moved = real.kubectl(
        "patch",
        "podgroups.scheduling.volcano.sh",
        "g",
        "-n",
        "vision",
        "--as=jane",
        "--type=merge",
        "-p",
        '{"spec":{"queue":"gold"}}',
        check=False,
    )
    check("a group is not moved to it later", "may not use" in moved.stderr, moved.stderr)
    made = tried(pod("allowed", "ours"))
    check("a queue that names the namespace is let pass", made.returncode == 0, made.stderr)
    real.api(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/roles",
        {
            "metadata": {"name": "gold"},
            "rules": [
                {
                    "apiGroups": ["scheduling.volcano.sh"],
                    "resources": ["queues"],
                    "resourceNames": ["gold"],
                    "verbs": ["use"],
                }
            ],
        },
    )
    real.kubectl("create", "rolebinding", "gold", "-n", "vision", "--role=gold", "--user=jane")
    allowed = until(lambda: tried(pod("golden", "gold")).returncode == 0, 20)
    check("who holds the verb use may use it", allowed, lambda: tried(pod("golden", "gold")).stderr)


if __name__ == "__main__":
    sys.exit(main())
