#!/usr/bin/env python3
"""deploy/ on a real API server: every manifest of kustomize and its overlays is accepted; the webhook validates and fills in defaults;
`muster run` works with the account of a pod; pods move between schedulers. The chart and docs/migrate.md have tests of
their own, helm.py and migrate.py.
"""
import base64
import json
import os
import pathlib
import re
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import SERVICE_MONITORS, Deployed  # noqa: E402
from pages import INDENTED_COMMAND  # noqa: E402

check = Checks()


def dry_run(cluster, what, manifests):
    """Each by itself, so that one that is refused is named."""
    wrong = []
    for item in manifests:
        # A namespace of a dry run does not exist for the next one.
        done = cluster.real.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "-f",
            "-",
            input=json.dumps(item),
            check=False,
        )
        if done.returncode != 0:
            wrong.append(f"{item['kind']}/{item['metadata']['name']}: {done.stderr.strip()}")
    check(f"{what}: {len(manifests)} manifests accepted", manifests and not wrong, wrong)


def manifests(cluster):
    cluster.create(SERVICE_MONITORS)
    until(lambda: cluster.real.api("GET", "/apis/monitoring.coreos.com/v1/servicemonitors"))
    for folder in (
        "kustomize",
        "overlays/monitoring",
        "overlays/webhook",
        "overlays/queue-access",
        "overlays/answers",
        "migrate/beside",
        "migrate/volcano",
        "migrate/jobs",
    ):
        built = cluster.real.kubectl("kustomize", str(ROOT / "deploy" / folder), check=False)
        check(f"kustomize builds deploy/{folder}", built.returncode == 0, built.stderr)
        dry_run(cluster, f"deploy/{folder}", [m for m in yaml.safe_load_all(built.stdout) if m])


def arguments_are_known(cluster):
    """Every flag that deploy/ passes is one that `muster run` has."""
    known = subprocess.run([muster_fixture.binary(), "run", "--help"], text=True, capture_output=True).stdout
    texts = [p.read_text() for p in (ROOT / "deploy").rglob("*.yaml")]
    used = {flag for text in texts for flag in re.findall(r"--[a-z][a-z-]+", text)} - {
        "--server-side",
        "--from-literal",
    }
    check(
        "deploy/ passes only flags that exist",
        used and all(flag in known for flag in used),
        [flag for flag in used if flag not in known],
    )
    run = lambda *flags: subprocess.run(
        [muster_fixture.binary(), "run", "--kubeconfig", str(cluster.real.kubeconfig), *flags],
        text=True,
        capture_output=True,
        timeout=20,
    )  # noqa: E731
    for flags in (["--without=controler"], ["--scheduler-name="], ["--scheduler-name", " , "]):
        refused = run(*flags)
        check(
            f"{' '.join(flags)} is refused",
            refused.returncode == 2 and flags[0].split("=")[0] in refused.stderr,
            refused,
        )


def nobody_leads(cluster):
    """No right to make the lease: nobody will ever lead, and the log says why."""
    api, place = cluster.real.api, "/apis/rbac.authorization.k8s.io/v1/namespaces/muster-system/roles/muster-leader"
    role = api("GET", place)
    api("PATCH", place, {"rules": [rule for rule in role["rules"] if "create" not in rule["verbs"]]})
    process = cluster.start("--leader-elect")
    check(
        "a lease that cannot be made is complained of",
        until(lambda: "lease not created name=muster-system/muster" in cluster.log(), 20),
        lambda: cluster.log()[-500:],
    )
    api("PATCH", place, {"rules": role["rules"]})
    check(
        "and made once it can be",
        until(
            lambda: api("GET", "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster", check=False), 20
        ),
        lambda: cluster.log()[-500:],
    )
    cluster.stop(process)


JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "hooked"},
    "spec": {
        "runPolicy": {"schedulingPolicy": {"queue": "a"}},
        "pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [{"name": "pytorch", "image": "x"}]}}}},
    },
}


def webhook(cluster):
    real, port = cluster.real, real_kubernetes.free_port()
    script = ROOT / "deploy" / "overlays" / "webhook" / "certificate"
    environment = {
        **os.environ,
        "KUBECONFIG": str(real.kubeconfig),
        "PATH": f"{real_kubernetes.BIN}:{os.environ['PATH']}",
    }
    for item in yaml.safe_load_all((ROOT / "deploy" / "overlays" / "webhook" / "webhook.yaml").read_text()):
        # Nothing routes to Services here, so the server is told the address; and a webhook that does not answer must
        # show.
        for hook in item["webhooks"]:
            hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"}
            hook["failurePolicy"] = "Fail"
        cluster.create(item)

    def certificate():
        done = subprocess.run([script, "muster-system", "127.0.0.1"], env=environment, text=True, capture_output=True)
        check("a certificate is there", done.returncode == 0, done.stderr)
        return real.api("GET", "/api/v1/namespaces/muster-system/secrets/muster-webhook")["data"]

    def mount(secret):
        for name in ("tls.crt", "tls.key"):
            (real.dir / name).write_bytes(base64.b64decode(secret[name]))

    first = certificate()
    check("one that fits is kept, for it is shown already", certificate() == first)
    mount(first)
    cluster.start(
        "--without",
        "scheduler,controllers",
        "--webhook-listen",
        f"127.0.0.1:{port}",
        "--webhook-certificate",
        str(real.dir / "tls.crt"),
        "--webhook-key",
        str(real.dir / "tls.key"),
    )
    jobs = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
    create = lambda: real.api("POST", jobs, JOB)  # noqa: E731
    check("a good job is accepted", until(create), lambda: cluster.log()[-500:])
    spec = real.api("GET", f"{jobs}/hooked")["spec"]["pytorchReplicaSpecs"]["Master"]
    check("with its defaults filled in", spec.get("replicas") == 1 and spec.get("restartPolicy"), spec)
    bad = json.loads(json.dumps(JOB))
    bad["metadata"]["name"] = "bad"
    bad["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["name"] = "other"
    refused = real.kubectl("create", "-f", "-", input=json.dumps(bad), check=False)
    check(
        "a wrong one is refused with the reason",
        refused.returncode != 0 and "at least one container with name pytorch" in refused.stderr,
        refused.stderr,
    )
    real.api("DELETE", "/api/v1/namespaces/muster-system/secrets/muster-webhook")
    mount(certificate())
    real.kubectl("delete", "pytorchjob", "hooked")
    check("a new certificate is taken over", until(create, 20), lambda: cluster.log()[-500:])
    (real.dir / "tls.crt").write_text("broken")
    check(
        "a broken one is not",
        until(lambda: "keeps the certificate it had" in cluster.log(), 20),
        lambda: cluster.log()[-500:],
    )
    moved = real.kubectl(
        "patch",
        "pytorchjob",
        "hooked",
        "--type=merge",
        "-p",
        '{"spec":{"runPolicy":{"schedulingPolicy":{"queue":"b"}}}}',
        check=False,
    )
    check("its queue cannot be changed", moved.returncode != 0 and "immutable" in moved.stderr, moved.stderr)
    real.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "muster")
    real.kubectl("delete", "pytorchjob", "hooked")
    cluster.stop()


def in_cluster(cluster):
    """The account of a pod: its files where the kubelet would put them, in a mount namespace of the test's own."""
    if os.geteuid() != 0:
        check.skip("the account of a pod", "a mount namespace needs root")
        return
    real, folder = cluster.real, cluster.real.dir / "account"
    folder.mkdir()
    (folder / "token").write_text(real.kubectl("-n", "muster-system", "create", "token", "muster").stdout.strip())
    (folder / "ca.crt").write_text((real.dir / "certs" / "apiserver.crt").read_text())
    (folder / "namespace").write_text("muster-system")
    place = "/run/secrets/kubernetes.io/serviceaccount"
    script = f"mount -t tmpfs none /run && mkdir -p {place} && mount --bind {folder} {place} && exec {muster_fixture.binary()} run --scheduler-name muster"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(real.port),
    }
    log = open(real.dir / "muster.log", "ab")
    process = subprocess.Popen(["unshare", "-m", "bash", "-c", script], env=environment, stdout=log, stderr=log)
    cluster.started.append(process)
    cluster.pod("inside")
    check(
        "muster run works with a pod's account", until(lambda: cluster.bound("inside")), lambda: cluster.log()[-1500:]
    )
    cluster.stop()
    cluster.clear()


def migrate(cluster):
    """Pods of another scheduler's name are taken over as they are, and given back."""
    first = cluster.start("--without", "controllers", "--scheduler-name", "muster")
    cluster.pod("moved", scheduler="muster")
    cluster.pod("not-yet", scheduler="volcano")
    check("one queue moves, the other stays", until(lambda: cluster.bound("moved")) and not cluster.bound("not-yet"))
    cluster.stop(first)
    second = cluster.start("--without", "controllers", "--scheduler-name", "muster,volcano")
    check(
        "Volcano's pods are taken over as they are",
        until(lambda: cluster.bound("not-yet")),
        lambda: cluster.log()[-1000:],
    )
    cluster.stop(second)
    third = cluster.start("--without", "controllers", "--scheduler-name", "muster")
    cluster.await_start()
    cluster.pod("back", scheduler="volcano")
    cluster.pod("ours", scheduler="muster")
    check("and given back", until(lambda: cluster.bound("ours")) and not cluster.bound("back"))
    cluster.stop(third)
    cluster.clear()


def pages(cluster):
    """Every command that docs/kubernetes.md shows, and docs/answers.md for a real Kubernetes, is run as it stands, in its
    order. Helm's are the chart's test."""
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.real.kubeconfig),
        "PATH": f"{real_kubernetes.BIN}:{os.environ['PATH']}",
    }
    for name in ("kubernetes.md", "answers.md"):
        text = (ROOT / "docs" / name).read_text()
        commands = INDENTED_COMMAND.findall(text)
        commands += re.findall(r"`(kubectl apply [^`]*src/kube/crds)`", text)
        check(f"docs/{name} shows commands", len(commands) > 2, commands)
        for command in commands:
            for when in ("", " once more") if " apply " in command else ("",):
                done = subprocess.run(
                    ["bash", "-c", command], env=environment, cwd=ROOT, text=True, capture_output=True
                )
                check(f"docs/{name}: {command[:90]}{when}", done.returncode == 0, done.stderr)


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    with real_kubernetes.RealKubernetes(groups=True) as real:
        cluster = Deployed(real)
        check("the manifests of deploy/ are accepted", (applied := cluster.install()).returncode == 0, applied.stderr)
        cluster.add_node("n0")
        manifests(cluster)
        arguments_are_known(cluster)
        nobody_leads(cluster)
        webhook(cluster)
        in_cluster(cluster)
        migrate(cluster)
        pages(cluster)
        if check.failed:
            print(cluster.log()[-3000:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
