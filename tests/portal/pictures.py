#!/usr/bin/env python3
"""Pictures for docs/portal.md: a hollow cluster of 48 nodes with a day's work on it, in Chromium.
usage: tests/portal/pictures.py FOLDER [all]; with `all` every page in both themes, at 1440 and 390 px. Not a check: it fails only when a page cannot be shown."""
import datetime
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from chromium import PASSWORD, free_port  # noqa: E402
from visitor import Visitor  # noqa: E402
from muster import ROOT, Muster  # noqa: E402

NAMES = "llama-7b-sft vit-h-ft bert-xl-mlm qwen-14b-dpo clip-sweep lora-sweep resnet50-ddp whisper-ft tokenize-c4 eval-mmlu".split()
USERS = ["admin", "alice", "carol", "dan", "erin"]
QUEUES = ["research", "production", "teaching"]


def node(i):
    rack, place = divmod(i, 8)
    labels = {
        "rack": f"r{rack + 1:02}",
        "muster.dev/gpu-model": "A100-80G" if rack < 4 else "H100-80G",
        "kubernetes.io/hostname": f"r{rack + 1:02}-n{place + 1:02}",
    }
    room = {"cpu": "128", "memory": "1024Gi", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": labels["kubernetes.io/hostname"], "labels": labels},
        "status": {"capacity": room, "allocatable": room},
    }


def job(name, user, queue, tasks, seconds, ago_s, code=0):
    """A PyTorchJob of `tasks` = (how many, GPUs of each), all or none, that is said to run for that long. It says so itself."""
    count, gpus = tasks
    submitted = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago_s)
    notes = {
        "muster.dev/hollow-duration": f"{seconds}s",
        "muster.dev/hollow-exit-code": str(code),
        "muster.dev/expected-duration": f"{seconds}s",
    }
    limits = {"nvidia.com/gpu": str(gpus), "cpu": str(8 * gpus), "memory": f"{64 * gpus}Gi"}
    container = {"name": "pytorch", "image": "pytorch/pytorch:2.4", "resources": {"limits": limits}}
    template = {"metadata": {"annotations": notes}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    roles = {"Master": {"replicas": 1, "template": template}}
    if count > 1:
        roles["Worker"] = {"replicas": count - 1, "template": template}
    tags = {"muster.dev/tags": "paper"} if "llama" in name else {}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": name,
            "namespace": "default" if user == "admin" else user,
            "labels": {"user": user},
            "annotations": {"muster.dev/submitted-at": submitted.strftime("%Y-%m-%dT%H:%M:%SZ"), **tags},
        },
        "spec": {
            "runPolicy": {"backoffLimit": 0, "schedulingPolicy": {"queue": queue}},
            "pytorchReplicaSpecs": roles,
        },
    }


def queue(name, weight, gpus):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight, "guarantee": {"resource": {"nvidia.com/gpu": str(gpus)}}},
    }


def work(dice):
    """Jobs as people submit them: small ones that have ended, large ones that run, some that wait. Two lists: those of the
    second come when the first have their places."""

    def some(numbers, tasks, seconds, codes=(0,)):
        return [
            job(
                f"{dice.choice(NAMES)}-{i}",
                dice.choice(USERS),
                dice.choice(QUEUES),
                (dice.choice(tasks[0]), dice.choice(tasks[1])),
                dice.choice(seconds),
                dice.randrange(120, 7 * 3600),
                dice.choice(codes),
            )
            for i in numbers
        ]

    ended = some(range(40), ([1], [1, 2, 4, 8]), [1], [0] * 9 + [1, 137])
    running = some(range(100, 115), ([1, 2, 4], [8]), [5400, 9000, 14400, 21600, 43200])
    running += some(range(120, 134), ([1], [1, 2, 4]), [3600, 7200, 10800])
    waiting = some(range(200, 205), ([8], [8]), [7200])
    return ended + running, waiting + some(range(206, 209), ([2, 4], [8]), [3600])


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    port = free_port()
    muster = Muster("--hollow", "--portal", f"127.0.0.1:{port}")
    muster.data.mkdir(parents=True, exist_ok=True)
    (muster.data / "nodes.yaml").write_text("\n---\n".join(json.dumps(node(i)) for i in range(48)))
    (muster.data / "first-password").write_text(PASSWORD + "\n")
    (muster.data / "first-password").chmod(0o600)
    muster.args[muster.args.index("--nodes") + 1] = str(muster.data / "nodes.yaml")
    del muster.args[muster.args.index("--gpus") : muster.args.index("--gpus") + 2]
    muster.args += ["--admin-password-file", str(muster.data / "first-password")]
    with muster:
        # Somebody looks from the start: what is removed while nobody does is known from its record alone.
        Visitor(f"http://127.0.0.1:{port}").sign_in(user="admin", password=PASSWORD)
        for user in USERS[1:]:
            muster.kubectl("create", "namespace", user)
        queues = [queue("research", 3, 160), queue("production", 2, 128), queue("teaching", 1, 48)]
        for items in (queues, *work(random.Random(7))):
            items = {"apiVersion": "v1", "kind": "List", "items": items}
            muster.kubectl("create", "-f", "-", input=json.dumps(items))
            muster.wait_idle()
            time.sleep(3)  # what takes a second ends
        muster.kubectl("cordon", "r06-n08")
        program = [shutil.which("node"), str(pathlib.Path(__file__).with_suffix(".mjs"))]
        return subprocess.run(
            [*program, f"http://127.0.0.1:{port}", PASSWORD, str(ROOT), str(folder), *sys.argv[2:]]
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
