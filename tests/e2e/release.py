#!/usr/bin/env python3
"""What `make release` produces: the same bytes twice; a package that installs, runs a cluster, takes over the data folder of the
previous version and leaves no trace; an image that `muster image import` reads; a complete chart.
"""
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all, until  # noqa: E402
from muster import ROOT, Muster, kubectls  # noqa: E402

check = Checks()


def release(out, *more):
    done = subprocess.run([ROOT / "tools" / "release", "--out", out, *more], capture_output=True, text=True)
    check(f"tools/release {' '.join(more)} works", done.returncode == 0, done.stderr)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(out).iterdir()}


def files_below(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir() or p.is_symlink()}


def manual_pages(folder):
    """One for muster and one for each command of the reference, which tools/check_docs holds to the program."""
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text()
    commands = re.findall(r"^### muster (.+)$", reference, re.M)
    words = {command: [word for word in command.split() if "|" not in word] for command in commands}
    wanted = {f"muster-{'-'.join(words[one])}.1.gz" for one in commands} | {"muster.1.gz"}
    found = {path.name for path in folder.iterdir()}
    check(f"{len(found)} manual pages, one for each command", len(wanted) > 50 and found == wanted, found ^ wanted)
    if not shutil.which("groff"):
        check.skip("manual pages are set without a warning", "groff is missing")
        return
    wrong = {}
    for path in sorted(folder.iterdir()):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"], input=gzip.decompress(path.read_bytes()), capture_output=True
        )
        if done.returncode or done.stderr:
            wrong[path.name] = done.stderr.decode()[:200]
    check("they are set without a warning", not wrong, wrong)


def packages(place, old, new):
    """As dpkg does it, into a root of its own."""
    root = place / "root"
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    before = files_below(root)

    def dpkg(*words):
        done = subprocess.run(
            ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "--log=/dev/null", *words],
            capture_output=True,
            text=True,
        )
        check(f"dpkg {words[0]} {pathlib.Path(words[1]).name}", done.returncode == 0, done.stderr)

    dpkg("--install", str(old))
    program = root / "usr/bin/muster"
    said = subprocess.run([program, "version", "--short"], capture_output=True, text=True)
    check("the installed program runs", said.returncode == 0 and "0.1.0" in said.stdout, said)
    os.environ["MUSTER"] = str(program)
    data = place / "data"
    with Muster("--portal", "none", nodes=1, gpus=2, data=data) as cluster:
        cluster.kubectl("create", "namespace", "kept")
    dpkg("--install", str(new))
    with Muster("--portal", "none", nodes=1, gpus=2, data=data) as cluster:
        seen = cluster.kubectl("get", "namespace", "kept", "-o", "name").stdout.strip()
        check("the version after goes on with the same folder", seen == "namespace/kept", seen)
        job = ("--name=hello", "--gpus=1", "--image=any", "--wait", "echo it works; sleep 1")
        done = cluster.cli("submit", "pytorch", *job, check=False)
        check("and a job runs on it", done.returncode == 0, done.stdout + done.stderr)
    manual_pages(root / "usr/share/man/man1")
    dpkg("--purge", "muster")
    left = {p for p in files_below(root) - before if not p.startswith("var/lib/dpkg/")}
    check("nothing is left after purge", not left, left)


def image(path):
    with tarfile.open(path) as archive:
        read = lambda name: archive.extractfile(name).read()  # noqa: E731
        manifest = json.loads(read("blobs/sha256/" + json.loads(read("index.json"))["manifests"][0]["digest"][7:]))
        for part in [manifest["config"], *manifest["layers"]]:
            content = read("blobs/sha256/" + part["digest"][7:])
            digest = "sha256:" + hashlib.sha256(content).hexdigest()
            check(
                f"{part['mediaType']} is what its digest says",
                digest == part["digest"] and len(content) == part["size"],
            )
        config = json.loads(read("blobs/sha256/" + manifest["config"]["digest"][7:]))["config"]
    said = (ROOT / "deploy" / "Dockerfile").read_text()
    check(
        "it runs as the Dockerfile says", f"USER {config['User']}" in said and json.dumps(config["Cmd"]) in said, config
    )


def image_runs(path):
    """A pod of the image, imported without a registry: the program and its libraries are all that is in it."""
    if os.geteuid() != 0 or not shutil.which("containerd"):
        check.skip("a pod runs in the image", "root and containerd are needed")
        return
    container = {
        "name": "m",
        "image": "docker.io/library/muster:0.1.0",
        "imagePullPolicy": "Never",
        "args": ["version"],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "m"}}
    pod["spec"] = {"restartPolicy": "Never", "containers": [container]}
    with Muster("--portal", "none", "--image-source", "containerd", nodes=1, gpus=0) as cluster:
        done = None

        def imported():
            """Its containerd is ready a moment after the cluster."""
            nonlocal done
            done = cluster.cli("image", "import", str(path), check=False)
            return done.returncode == 0

        check("the image is imported", until(imported, 60, 0.5), lambda: done.stderr)
        cluster.kubectl("create", "-f", "-", input=json.dumps(pod))
        cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/m", "--timeout=60s", check=False)
        said = cluster.kubectl("logs", "m", check=False)
        check("and a pod of it runs muster", "muster: v0.1.0" in said.stdout, said)


def chart(path):
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Chart.yaml", "values.yaml", "templates/deployment.yaml", "crds/kubeflow.yaml", "crds/volcano.yaml"}
    good = wanted <= inside and "crds/Kustomization" not in inside
    check("the chart has its templates and kinds, and no more", good, inside)


def main():
    if not shutil.which("dpkg") or not shutil.which("strip"):
        skip_all("dpkg and strip are needed")
    if not kubectls():
        skip_all("kubectl is needed")
    with tempfile.TemporaryDirectory(prefix="muster-release-") as folder:
        place = pathlib.Path(folder)
        first, second = release(place / "a"), release(place / "b")
        check("twice the same bytes", len(first) == 4 and first == second, [first, second])
        sums = dict(reversed(line.split()) for line in (place / "a" / "SHA256SUMS").read_text().splitlines())
        check("SHA256SUMS is right", sums == {n: d for n, d in first.items() if n != "SHA256SUMS"}, sums)
        release(place / "old", "--version", "0.0.9", "--only", "deb")
        image(place / "a" / "muster-0.1.0-image.tar")
        image_runs(place / "a" / "muster-0.1.0-image.tar")
        chart(place / "a" / "muster-0.1.0.tgz")
        packages(place, place / "old" / "muster_0.0.9_amd64.deb", place / "a" / "muster_0.1.0_amd64.deb")
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
