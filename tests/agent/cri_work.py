#!/usr/bin/env python3
"""Check 40 of the acceptance list that docs/security.md sums up: workloads, registries and image settings with `--runtime
cri`. The checks are those of images.py and mpi.py, run on containerd and runc.

    python3 tests/agent/cri_work.py [NAME…]      only the checks whose name contains a NAME
"""
import importlib.util
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import agent_checks  # noqa: E402
import machine_images  # noqa: E402
from agent_checks import Cluster, check, equal, pod, run  # noqa: E402
from checks import Skipped, skip_all  # noqa: E402
from images import Pusher, Registry, missing, write_archive  # noqa: E402
from muster import Muster  # noqa: E402
from work_checks import ddp, loader, mpijob  # noqa: E402

MPI, MACHINE = "docker.io/library/mpi:1", "docker.io/library/machine:1"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def load_image_checks():
    """Those of images.py that are asked of a container runtime as well."""
    at = importlib.util.spec_from_file_location("image_checks", HERE / "images.py")
    module = importlib.util.module_from_spec(at)
    at.loader.exec_module(module)
    version = subprocess.run(["containerd", "--version"], capture_output=True, text=True, check=False).stdout
    if " 1.6." in version:  # leaves out what the image's /etc/group says of its user
        module.ALICES_GROUPS = "1001"
    asked = ("check_31", "check_33", "check_34")
    agent_checks.checks[:] = [one for one in agent_checks.checks if one.__name__.startswith(asked)]
    return module


image_checks = load_image_checks()


@check
def check_25_an_mpijob_with_sshd(c):
    mpijob(c, {"image": MPI, "imagePullPolicy": "IfNotPresent"})


def on_machines_python(name, command, env, metadata=None):
    """An image with nothing but places, where the machine's programs are mounted: torch is gigabytes."""
    paths = ["/usr", "/etc/alternatives"]
    return pod(
        name,
        metadata=metadata or {},
        volumes=[{"name": f"v{i}", "hostPath": {"path": path}} for i, path in enumerate(paths)],
        container={
            "image": MACHINE,
            "imagePullPolicy": "IfNotPresent",
            "command": command,
            "env": env,
            "volumeMounts": [{"name": f"v{i}", "mountPath": path, "readOnly": True} for i, path in enumerate(paths)],
        },
    )


def need_torch():
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode != 0:
        raise Skipped("python3-torch is not installed")


@check
def check_26_torch_trains_on_two_pods(c):
    need_torch()
    ddp(c, on_machines_python)


@check
def check_26_workers_share_two_gibibytes(c):
    need_torch()
    loader(c, on_machines_python)


@check
def check_27_a_host_image_is_a_process_of_ours_whatever_the_runtime(c):
    """So that the environment muster was started in is in it."""
    text = f"{c.tools}/tool"
    c.create(pod("environment", text, runtimeClassName="host"))
    c.phase("environment", "Succeeded", "Failed")
    equal(c.logs("environment"), "from roots home\n")


def main():
    why = missing("containerd", "ctr", "runc", "busybox", "docker-registry", "htpasswd", "mpirun", "sshd")
    if not why and not os.path.exists("/usr/lib/cni/bridge"):
        why = "containernetworking-plugins not installed"
    if why:
        skip_all(why)
    Cluster.tools = pathlib.Path("/root/muster-test-environment-%d/bin" % os.getpid())
    Cluster.tools.mkdir(parents=True)
    (Cluster.tools / "tool").write_text("#!/bin/sh\necho from roots home\n")
    (Cluster.tools / "tool").chmod(0o755)
    os.environ["PATH"] = f"{Cluster.tools}:{os.environ['PATH']}"
    try:
        private = (image_checks.USER, image_checks.PASSWORD)
        with Registry() as open_registry, Registry(open_registry.storage, private) as closed, Pusher() as pusher:
            Cluster.open, Cluster.private, Cluster.pusher = open_registry, closed, pusher
            muster = Muster("--runtime", "cri", nodes=2, gpus=0)
            archives = muster.data / "images"
            archives.mkdir(parents=True)
            root = ["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]
            layers = [
                machine_images.packages("openmpi-bin", "openssh-server", "openssh-client"),
                # As the images of the MPI operator have it: nobody is there to be asked about a key.
                {
                    **machine_images.accounts(),
                    **machine_images.sshd(),
                    "etc/ssh/ssh_config": "StrictHostKeyChecking no\n",
                },
            ]
            write_archive(archives / "mpi.tar", MPI, layers, {"Env": [PATH, *root]})
            places = {"usr/": None, "etc/": None, "etc/alternatives/": None, "tmp/": None, "root/": None}
            links = {name: ("link", f"usr/{name}") for name in ("bin", "sbin", "lib", "lib64")}
            write_archive(archives / "machine.tar", MACHINE, [{**places, **links}], {"Env": [PATH]})
            run(lambda: muster)
    finally:
        subprocess.run(["rm", "-rf", str(Cluster.tools.parent)], check=False)


if __name__ == "__main__":
    main()
