#!/usr/bin/env python3
"""Pictures for docs/portal.md: a hollow cluster of 48 nodes with the work of a day on it, seen in Chromium.
usage: tests/portal/pictures.py FOLDER. Not a check: it fails only when a page cannot be shown."""
import json
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from browser import PASSWORD, free_port  # noqa: E402
from muster import ROOT, Muster  # noqa: E402

NAMES = "llama-7b-sft vit-h-ft bert-xl-mlm qwen-14b-dpo clip-sweep lora-sweep resnet50-ddp whisper-ft tokenize-c4 eval-mmlu".split()
USERS = ["alice", "carol", "dan", "erin"]


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


def job(name, user, workers, gpus, seconds, code=0):
    """A batch Job of that many pods, each of which is said to run for that long."""
    annotations = {"muster.dev/hollow-duration": f"{seconds}s", "muster.dev/hollow-exit-code": str(code)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": user},
        "spec": {
            "parallelism": workers,
            "completions": workers,
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {"name": "main", "image": "pytorch", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
                    ],
                },
            },
        },
    }


def work(dice):
    """Jobs as people submit them: many small ones that have ended, large ones that run, some that wait."""
    jobs = [
        job(
            f"{dice.choice(NAMES)}-{i}",
            dice.choice(USERS),
            1,
            dice.choice([1, 2, 4, 8]),
            1,
            dice.choice([0] * 9 + [1, 137]),
        )
        for i in range(60)
    ]
    jobs += [
        job(f"{dice.choice(NAMES)}-{i}", dice.choice(USERS), dice.choice([1, 2, 4, 8]), 8, 86400)
        for i in range(100, 116)
    ]
    jobs += [
        job(f"{dice.choice(NAMES)}-{i}", dice.choice(USERS), 1, dice.choice([1, 2, 4]), 86400) for i in range(120, 134)
    ]
    return jobs + [job(f"{dice.choice(NAMES)}-{i}", dice.choice(USERS), 8, 8, 86400) for i in range(200, 206)]


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
        for user in USERS:
            muster.kubectl("create", "namespace", user)
        items = {"apiVersion": "v1", "kind": "List", "items": work(random.Random(7))}
        muster.kubectl("create", "-f", "-", input=json.dumps(items))
        muster.wait_idle()
        program = [shutil.which("node"), str(pathlib.Path(__file__).with_suffix(".mjs"))]
        return subprocess.run([*program, f"http://127.0.0.1:{port}", PASSWORD, str(ROOT), str(folder)]).returncode


if __name__ == "__main__":
    sys.exit(main())
