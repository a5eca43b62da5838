#!/usr/bin/env python3
"""A cluster's data is kept: on a full disk, in a backup, and by the next release.

    tests/e2e/keeping_data.py [full|backup|formats ...]

The full disk is a small file system in memory, mounted for this test (as root), with a real cluster on it.
"""
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, Skipped, until  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()
FOLDERS = ROOT / "tests" / "data" / "folders"
BIG = "x" * 200_000


class SmallDisk:
    """A file system of so many MiB; mounting one takes root."""

    def __init__(self, mib):
        self.mib = mib

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="muster-disk-"))
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={self.mib}m", "muster-test", str(self.path)],
            text=True,
            capture_output=True,
        )
        if done.returncode != 0:
            self.path.rmdir()
            raise Skipped(f"no small disk can be mounted: {done.stderr.strip()}")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.path)], check=True)
        self.path.rmdir()

    def fill(self):
        """Another program takes all the room there is."""
        with open(self.path / "filler", "wb", buffering=0) as file:
            for piece in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(b"f" * piece)
                except OSError:
                    continue

    def free(self):
        (self.path / "filler").unlink()


def configmap(name, text=BIG):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}})


def create(cluster, name, text=BIG):
    return cluster.kubectl("create", "-f", "-", input=configmap(name, text), check=False)


def ready(cluster):
    return cluster.kubectl("get", "--raw", "/readyz", check=False)


def names(cluster, kind="configmaps"):
    return set(cluster.kubectl("get", kind, "-o", "name").stdout.split())


def refusal(answer):
    return (
        answer.returncode != 0
        and "InsufficientStorage" in answer.stderr
        and "no room is left on the disk" in answer.stderr
        and "free some there, or delete objects" in answer.stderr
    )


def another_program_fills_the_disk():
    with SmallDisk(64) as disk, Muster("--hollow", "--portal", "none", nodes=1, data=disk.path / "data") as cluster:
        check("before, it is ready", ready(cluster).stdout == "ok", ready(cluster))
        kept, answer = ["before", "second", "third"], None
        check("and takes writes", all(create(cluster, name).returncode == 0 for name in kept))
        disk.fill()
        for i in range(300):
            answer = create(cluster, f"during-{i}")
            if answer.returncode != 0:
                break
            kept.append(f"during-{i}")
        check("a write is refused with a sentence that says what to do", refusal(answer), answer)
        raw = cluster.kubectl("create", "-v=8", "-f", "-", input=configmap("raw"), check=False)
        check("with status 507", "507" in raw.stderr, raw.stderr[-2000:])
        check("it is not ready and says why", "no room is left" in ready(cluster).stderr, ready(cluster))
        check("it lives", cluster.kubectl("get", "--raw", "/livez").stdout == "ok")
        there = names(cluster)
        check("what was acknowledged is read", {f"configmap/{name}" for name in kept} <= there, there)
        gone = cluster.kubectl("delete", "configmap", "before", check=False)
        check("a deletion goes through", gone.returncode == 0, gone)
        check("and is seen", "configmap/before" not in names(cluster))
        pods = cluster.kubectl("get", "--raw", "/api/v1/pods?limit=1", check=False)
        check("lists answer", pods.returncode == 0, pods)
        cluster.kill()
        cluster.start()
        check("it starts on the full disk", "configmap/before" not in names(cluster))
        check("and still refuses", refusal(create(cluster, "after-a-crash")))
        check("and still deletes", cluster.kubectl("delete", "configmap", "second", check=False).returncode == 0)
        disk.free()
        check("it recovers by itself", until(lambda: ready(cluster).stdout == "ok", timeout=30), ready(cluster))
        check("and takes writes again", create(cluster, "after").returncode == 0)
        cluster.stop()
        cluster.start()
        there = names(cluster)
        wanted = {f"configmap/{name}" for name in [*kept[2:], "after"]}
        check("nothing acknowledged is lost", wanted <= there and "configmap/before" not in there, there)


def the_cluster_fills_the_disk_and_deletions_make_room():
    with SmallDisk(48) as disk, Muster("--hollow", "--portal", "none", nodes=1, data=disk.path / "data") as cluster:
        count, answer = 0, None
        for count in range(1000):
            answer = create(cluster, f"big-{count}", BIG * 3)
            if answer.returncode != 0:
                break
        check(f"after {count} large objects the disk is full", refusal(answer), answer)
        full = (cluster.data / "muster.db").stat().st_size
        gone = cluster.kubectl("delete", "configmap", *[f"big-{i}" for i in range(count)], check=False)
        check("all of them can be deleted", gone.returncode == 0, gone.stderr[-500:])
        check("then it recovers by itself", until(lambda: ready(cluster).stdout == "ok", timeout=60), ready(cluster))
        size = (cluster.data / "muster.db").stat().st_size
        check("the file has given room back to the disk", size < full, f"{size >> 20} of {full >> 20} MiB")
        check("and takes writes again", create(cluster, "after").returncode == 0)


class Counting(threading.Thread):
    """Creates count-0, count-1, …, each once the one before is acknowledged."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.acknowledged, self.stopping = cluster, 0, False

    def run(self):
        while not self.stopping:
            if create(self.cluster, f"count-{self.acknowledged}", "small").returncode == 0:
                self.acknowledged += 1


def a_backup_is_one_moment_of_a_busy_cluster():
    with tempfile.TemporaryDirectory(prefix="muster-backup-") as scratch, Muster(
        "--hollow", "--portal", "none", nodes=2
    ) as cluster:
        scratch = pathlib.Path(scratch)
        file, folder = str(scratch / "cluster.backup"), scratch / "restored"
        cluster.cli("submit", "pytorch", "--name=train", "--gpus=1", "--image=any", "sleep 1000")
        cluster.kubectl("create", "secret", "generic", "key", "--from-literal=k=v")
        writer = Counting(cluster)
        writer.start()
        until(lambda: writer.acknowledged > 5)
        before = writer.acknowledged
        said = cluster.cli("backup", file).stdout
        after = writer.acknowledged + 1
        writer.stopping = True
        writer.join()
        check("it says what it copied", "objects of revision" in said, said)
        check("only its owner may read it", (pathlib.Path(file).stat().st_mode & 0o77) == 0)
        again = cluster.cli("backup", file, check=False)
        check("it replaces no file", again.returncode == 1 and "exists already" in again.stderr, again)
        running = cluster.cli("restore", file, check=False)
        check("a running cluster is not restored over", "a muster already runs" in running.stderr, running)
        listed = cluster.kubectl("get", "--raw", "/api/v1/namespaces/default/configmaps").stdout
        newest = int(json.loads(listed)["metadata"]["resourceVersion"])
        token = cluster.kubectl("create", "token", "default").stdout.strip()
        cluster.stop()
        there = cluster.cli("restore", file, check=False)
        check("nor is one that is stopped", "has a cluster already" in there.stderr, there)
        said = cluster.cli("restore", file, "--data", str(folder)).stdout
        check("it says what to do next", f"muster up --data {folder}" in said, said)
        with Muster("--hollow", "--portal", "none", nodes=2, data=folder) as restored:
            counts = sorted(int(n.split("-")[1]) for n in names(restored) if "/count-" in n)
            check("it holds a beginning of what was written, without a gap", counts == list(range(len(counts))), counts)
            check(
                "what was acknowledged before it is in it", before <= len(counts) <= after, (before, len(counts), after)
            )
            secret = restored.kubectl("get", "secret", "key", "-o", "jsonpath={.data.k}").stdout
            check("with Secrets", secret == "dg==", secret)
            running = until(lambda: "Running" in restored.kubectl("get", "pods").stdout)
            check("jobs run on", running, lambda: restored.kubectl("get", "pods").stdout)
            who = restored.kubectl("--token", token, "auth", "whoami", check=False)
            check("tokens from before are good", "serviceaccount:default:default" in who.stdout, who)
            listed = restored.kubectl("get", "--raw", "/api/v1/namespaces/default/configmaps?limit=1").stdout
            version = int(json.loads(listed)["metadata"]["resourceVersion"])
            check("revisions only grow", version > newest, (version, newest))
            old = restored.kubectl(
                "get", "--raw", f"/api/v1/configmaps?watch=1&resourceVersion={newest}&timeoutSeconds=1", check=False
            )
            check("a watch from before is told to list again", '"code":410' in old.stdout + old.stderr, old)


def what_is_no_backup_is_refused():
    with tempfile.TemporaryDirectory(prefix="muster-backup-") as scratch, Muster(
        "--hollow", "--portal", "none", nodes=1
    ) as cluster:
        scratch = pathlib.Path(scratch)
        file = scratch / "cluster.backup"
        cluster.cli("backup", str(file))

        def refused(name, words):
            answer = cluster.cli("restore", str(scratch / name), "--data", str(scratch / "new"), check=False)
            check(f"{name} is refused", answer.returncode == 1 and words in answer.stderr, answer)
            check(f"and leaves no cluster behind ({name})", not (scratch / "new" / "muster.db").exists())

        (scratch / "text").write_text("no database at all, but long enough to be looked at " * 100)
        refused("text", "is not a complete backup")
        shutil.copy(file, scratch / "cut")
        with open(scratch / "cut", "r+b") as cut:
            cut.truncate(file.stat().st_size // 2)
        refused("cut", "is not a complete backup")
        sqlite3.connect(scratch / "other").execute("CREATE TABLE t(a)").connection.close()
        refused("other", "another kind of file")
        shutil.copy(file, scratch / "newer")
        sqlite3.connect(scratch / "newer").execute("PRAGMA user_version = 9").connection.close()
        refused("newer", "restore it with the newer muster")
        refused("nowhere", "does not exist")
        nobody = cluster.cli("backup", str(scratch / "b"), "--data", str(scratch / "empty"), check=False)
        check("a folder without a cluster has no backup", "there is no cluster" in nobody.stderr, nobody)


def a_folder_of_each_earlier_format_is_opened():
    for archive in sorted(FOLDERS.glob("format-*.tar.xz")):
        with tempfile.TemporaryDirectory(prefix="muster-format-") as scratch:
            folder = pathlib.Path(scratch) / "data"
            folder.mkdir()
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            with Muster("--hollow", "--portal", "none", nodes=2, data=folder) as cluster:
                what = archive.name.removesuffix(".tar.xz")
                secret = cluster.kubectl("-n", "vision", "get", "secret", "wandb", "-o", "jsonpath={.data.key}").stdout
                check(f"{what}: Secrets are there", secret == "bm90LWEtcmVhbC1vbmU=", secret)
                queue = cluster.kubectl("get", "queue", "vision", "-o", "jsonpath={.spec.weight}").stdout
                check(f"{what}: queues are there", queue == "2", queue)
                jobs = cluster.cli("list").stdout
                check(f"{what}: jobs are there", "resnet" in jobs and "waits" in jobs, jobs)
                runs = until(lambda: cluster.kubectl("get", "pods").stdout.count("Running") >= 2)
                check(f"{what}: pods run again", runs, lambda: cluster.kubectl("get", "pods").stdout)
                cluster.kubectl("delete", "pytorchjob", "resnet", "--wait=true")
                wrote = until(lambda: "resnet" not in cluster.kubectl("get", "pods").stdout)
                check(f"{what}: a job can be deleted, and its pods go", wrote)
            with sqlite3.connect(folder / "muster.db") as database:
                version = database.execute("PRAGMA user_version").fetchone()[0]
                modes = database.execute("PRAGMA auto_vacuum").fetchone()[0]
            check(f"{what}: the folder has the new format", (version, modes) == (2, 2), (version, modes))


def going_back_is_refused():
    with tempfile.TemporaryDirectory(prefix="muster-format-") as scratch:
        folder = pathlib.Path(scratch) / "data"
        cluster = Muster("--hollow", "--portal", "none", nodes=1, data=folder)
        with cluster:
            pass
        database = sqlite3.connect(folder / "muster.db")
        database.execute("PRAGMA user_version = 99")
        database.close()
        before = (folder / "muster.db").read_bytes()
        try:
            cluster.start()
            said = "it started"
        except RuntimeError as error:
            said = str(error)
        finally:
            cluster.stop()
        check("a newer folder is refused, and says what to do", "start it with the newer muster" in said, said)
        check("and is left as it was", (folder / "muster.db").read_bytes() == before)


PARTS = {
    "full": [another_program_fills_the_disk, the_cluster_fills_the_disk_and_deletions_make_room],
    "backup": [a_backup_is_one_moment_of_a_busy_cluster, what_is_no_backup_is_refused],
    "formats": [a_folder_of_each_earlier_format_is_opened, going_back_is_refused],
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        for case in PARTS[part]:
            check.case(case)
    sys.exit(check.close())
