#!/usr/bin/env python3
"""The PyTorchJob preemption walk-through: twelve GPUs, a job that holds them all, and one that needs one of them."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import skip_all  # noqa: E402
from walkthrough import Walk, rows, steps, walkthrough  # noqa: E402

text = walkthrough("pytorchjob-preemption.md")
if os.geteuid() != 0:
    skip_all("it needs root: the training repository is laid over the network's in a mount namespace")

NODES = [(f"cn-huhehaote.172.16.0.{n}", f"172.16.0.{n}", 0 if n < 208 else 4, n < 208) for n in range(205, 211)]
# Which of the three equal nodes an instance gets is not part of the story.
PLACES = [(r"172\.16\.0\.(208|209|210)", "172.16.0.<gpu node>")]

# A stand-in for the training program of the repository, which cannot be reached from here: ranks meet over TCP and
# live as long as all of them do, as a collective does.
TRAIN = """
import argparse, os, select, socket, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--backend")
parser.add_argument("--epochs", type=int)
parser.parse_args()
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
print("rank", rank, "of", size, flush=True)
if size == 1:
    time.sleep(600)
elif rank == 0:
    server = socket.create_server(("", address[1]))
    peers = [server.accept()[0] for _ in range(size - 1)]
    print("all ranks are here", flush=True)
    select.select(peers, [], [], 600)
    sys.exit("a rank is gone")
else:
    for _ in range(600):
        try:
            peer = socket.create_connection(address, 1)
            break
        except OSError:
            time.sleep(0.1)
    peer.settimeout(600)
    sys.exit("rank 0 is gone" if not peer.recv(1) else 0)
"""

# Not below /tmp, which is a pod's own.
with tempfile.TemporaryDirectory(prefix="muster-mnist-", dir="/srv") as place:
    os.chmod(place, 0o755)
    repository = pathlib.Path(place) / "370272561" / "mnist-pytorch.git"
    repository.mkdir(parents=True)
    (repository / "mnist.py").write_text(TRAIN)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "mnist"],
    ):
        subprocess.run(["git", *words], cwd=repository, check=True)
    layers = {
        "/usr/local/bin/git": "#!/bin/sh\nGIT_CONFIG_GLOBAL=/usr/local/bin/gitconfig exec /usr/bin/git "
        f'-c url.file://{place}/.insteadOf=https://code.aliyun.com/ "$@"\n',
        # The repository lies on this machine, where it belongs to nobody that a pod knows.
        "/usr/local/bin/gitconfig": "[safe]\n\tdirectory = *\n",
        "/usr/local/bin/python": '#!/bin/sh\nexec /usr/bin/python3 "$@"\n',
        # The workers' init container waits for the master with the nslookup of its own image.
        "/usr/local/bin/nslookup": '#!/bin/sh\nexec getent hosts "$1"\n',
    }

    with Walk("pytorchjob_preemption", NODES, layers=layers) as walk:
        (
            manifest,
            create,
            top,
            submit_medium,
            get_medium,
            top_full,
            submit_critical,
            get_critical,
            get_failed,
            events,
        ) = steps(text, "➜")
        (walk.directory / "priorityClass.yaml").write_text(manifest[1] + "\n")
        walk.compare(create[0], create[1], walk.shell(create[0])[1])
        walk.compare(top[0], top[1], walk.shell(top[0])[1])
        walk.compare(submit_medium[0][:70], submit_medium[1], walk.shell(submit_medium[0])[1])
        walk.compare(get_medium[0], get_medium[1], walk.until(get_medium[0], r"STATUS: RUNNING[\s\S]*worker-1"), PLACES)
        # The ranks have met before the job loses one of them.
        walk.until("arena logs pytorch-priority-medium", "all ranks are here", 30)
        walk.compare(f"{top_full[0]} (all taken)", top_full[1], walk.shell(top_full[0])[1])
        walk.compare(submit_critical[0][:70], submit_critical[1], walk.shell(submit_critical[0])[1])
        wanted = get_critical[1].removeprefix(
            "arena get pytorch-priority-critical\n"
        )  # the document echoes the command
        walk.compare(get_critical[0], wanted, walk.until(get_critical[0], "STATUS: RUNNING"), PLACES)
        got = walk.until(get_failed[0], r"STATUS: FAILED[\s\S]*FAILED[\s\S]*FAILED")
        walk.compare(get_failed[0], get_failed[1], got, PLACES)
        # The document shows the events as a picture; its text says what they tell.
        got = walk.shell(events[0])[1]
        told = [row[4] for row in rows(got)[1:] if len(row) > 4 and row[2] == "Preempted"]
        walk.check(
            events[0],
            any(
                "by default/pytorch-priority-critical-master-0 on node cn-huhehaote.172.16.0." in line for line in told
            ),
            got,
        )
walk.finish()
