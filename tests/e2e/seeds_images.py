#!/usr/bin/env python3
"""The first four documents of docs/seeds.md on real images: an image like Horovod's, one with torch, and T9k's tutorial, made of this
machine's Debian packages, kept in a private registry on loopback and pulled by Muster's containerd under the names of
the documents.

    tests/e2e/seeds_images.py [WORD…]     only the chapters whose title contains a word, and the first and the last
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import images  # noqa: E402
from checks import Checks, skip_all  # noqa: E402
from machine_images import accounts, packages, sshd  # noqa: E402
from muster import kubectls  # noqa: E402
from replay import play  # noqa: E402
from seeds import PAGE, Newcomer, as_built, missing, repository  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
USER, PASSWORD = "mia", "s3cret"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Libraries for pictures and maps that Debian's torch names and does not need to train.
NOT_FOR_TORCH = ("libgl1-mesa-dri", "gdal-data", "proj-data", "iso-codes", "libtorch-test", "python3-hypothesis")
DELIVER = 'cp /bin/kubectl "$TARGET_DIR/kubectl"'


def horovod():
    """As Horovod's own image has it: mpirun by root is allowed by the image."""
    root = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]
    return [packages("openmpi-bin", "openssh-client"), accounts()], {"Env": [PATH, *root], "Cmd": ["bash"]}


def torch():
    python = {"usr/local/bin/python": ("link", "/usr/bin/python3")}
    return [packages("python3-torch", without=NOT_FOR_TORCH), {**accounts(), **python}], {"Env": [PATH]}


def git():
    """git, and what stands for the network: the document's repository."""
    files = {"etc/gitconfig": '[url "file:///srv/"]\n\tinsteadOf = https://code.aliyun.com/\n[safe]\n\tdirectory = *\n'}
    with tempfile.TemporaryDirectory() as folder:
        repository(folder)
        for path in pathlib.Path(folder).rglob("*"):
            name = f"srv/{path.relative_to(folder)}"
            files[name + "/" * path.is_dir()] = None if path.is_dir() else path.read_bytes()
    return [packages("git"), {**accounts(), **files}], {"Env": [PATH]}


def tutorial():
    """T9k's: Open MPI below /usr/local, a program to run, sshd."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "random_walk"
        subprocess.run(["mpicc", "-O1", "-o", str(program), str(HERE / "data" / "random_walk.c")], check=True)
        files = {"usr/local/code/random_walk": (0o755, program.read_bytes())}
    files |= {f"usr/local/bin/{one}": ("link", f"/usr/bin/{one}") for one in ("mpirun", "orted")}
    layers = [packages("openmpi-bin", "openssh-server", "openssh-client"), {**accounts(), **sshd(), **files}]
    return layers, {"Env": [PATH], "Cmd": ["bash"]}


def small():
    return [packages(), accounts()], {"Env": [PATH], "Cmd": ["sh"]}


def delivery():
    """Hands a launcher its kubectl, as the image of that name does."""
    kubectl = {"bin/kubectl": pathlib.Path(kubectls()[0][1]).read_bytes(), "bin/cp": ("link", "busybox")}
    return [{**images.busybox(), **kubectl}], {"Env": ["PATH=/bin"], "Cmd": ["sh", "-c", DELIVER]}


# What the documents and the jobs they make name, by registry.
WANTED = {
    "registry.aliyuncs.com": {"tensorflow-samples/horovod:0.13.11-tf1.10.0-torch0.4.0-py3.5": horovod},
    "registry.cn-beijing.aliyuncs.com": {
        "ai-samples/pytorch-with-tensorboard:1.5.1-cuda10.1-cudnn7-runtime": torch,
    },
    "docker.io": {
        "kubeflow/kubectl-delivery:latest": delivery,
        "git-sync/git-sync:v3.6.9": git,
        "library/alpine:3.10": small,
        "pytorch/pytorch:latest": small,
        "t9kpublic/mpi-tutorial:2021022-2": tutorial,
    },
}


def fill(registry):
    """Every image into the registry, which wants a name and a password; one after the other, for the disk's sake."""
    with images.Pusher() as pusher:
        for wanted in WANTED.values():
            for name, make in wanted.items():
                layers, config = make()
                pusher.push(f"{registry}/{name}", layers, config, user=f"{USER}:{PASSWORD}")


def serve(newcomer, storage):
    """A private registry on the loopback of the newcomer's network: its address."""
    # A port of a network of one's own is free.
    subprocess.run(["htpasswd", "-Bbc", f"{storage}/htpasswd", USER, PASSWORD], check=True, capture_output=True)
    pathlib.Path(storage, "config.yml").write_text(
        "version: 0.1\nlog: {level: warn}\n"
        f"storage: {{filesystem: {{rootdirectory: {storage}/blobs}}}}\nhttp: {{addr: 127.0.0.1:5000}}\n"
        f"auth: {{htpasswd: {{realm: muster, path: {storage}/htpasswd}}}}\n"
    )
    newcomer.shell.run(f"docker-registry serve {storage}/config.yml > {storage}/log 2>&1 & registry=$!")
    listens = "until (: < /dev/tcp/127.0.0.1/5000) 2>/dev/null; do sleep 0.05; done"
    status, out = newcomer.shell.run(f"timeout 20 bash -c '{listens}'")
    assert status == 0, out


def main():
    why = missing() or images.missing("containerd", "ctr", "docker-registry", "busybox", "htpasswd")
    if why:
        skip_all(why)
    check, words = Checks(), sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="muster-registry-") as storage, Newcomer() as newcomer:
        serve(newcomer, storage)
        with images.Registry(pathlib.Path(storage) / "blobs", (USER, PASSWORD)) as outside:
            fill(outside.name)
        file = newcomer.home / "images.yaml"
        login = {"endpoint": "http://127.0.0.1:5000", "username": USER, "password": PASSWORD}
        file.write_text(json.dumps({"registries": [{"name": name, **login} for name in WANTED]}))

        def rewrite(command):
            if command.startswith("make up"):
                command += f" IMAGE_SOURCE=containerd IMAGES={file}"
            if command.startswith("muster up"):
                command += f" --image-source containerd --images {file}"
            # This is for pods on the machine's files; the image brings its own.
            if "/usr/local/code" in command:
                command = "true"
            return as_built(command)

        def wanted(title):
            if title in ("Before", "Afterwards"):
                return True
            return any(word in title for word in words) if words else not title.startswith("OpenPAI")

        play(PAGE.read_text(), newcomer.shell, check, rewrite, wanted)
        newcomer.shell.run("kill $registry; wait $registry")
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
