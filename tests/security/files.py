"""Who may read the data folder, and what a pod can do to its control groups and to the machine's process numbers.

    python3 tests/security/files.py [NAME…]      only the checks whose name contains a NAME
"""
import os
import pathlib
import stat
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, output, run, terminated, pod  # noqa: E402
from muster import Muster  # noqa: E402


def wide(data):
    """What others may use of the data folder and what is right below it."""
    places = [data, *(p for p in data.iterdir() if not p.is_symlink()), *(data / "pki").iterdir()]
    return {
        str(p): oct(stat.S_IMODE(p.stat().st_mode)) for p in places if p.stat().st_mode & 0o077 and p.name != "test.log"
    }


@check
def nobody_else_reads_the_data_folder(c):
    equal(wide(c.muster.data), {})
    assert (c.muster.data / "muster.db-wal").exists(), "the journal is what this is about, too"
    c.muster.stop()
    for path in (c.muster.data, c.muster.data / "agent"):
        path.chmod(0o755)
    for path in c.muster.data.glob("muster.db*"):
        path.chmod(0o644)
    (c.muster.data / "muster.log").write_text("of an older muster")
    (c.muster.data / "muster.log").chmod(0o644)
    c.muster.start()
    equal(wide(c.muster.data), {})


@check
def volumes_are_readable_for_a_user_that_is_not_root(c):
    c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}})
    text = output(
        c,
        "reader",
        "cat /m/k; cat /m/sub/deep; cat /etc/hosts >/dev/null && echo hosts; test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token",
        securityContext={"runAsUser": 65534},
        container={"volumeMounts": [{"name": "m", "mountPath": "/m"}]},
        volumes=[
            {
                "name": "m",
                "projected": {
                    "sources": [
                        {"configMap": {"name": "m"}},
                        {"configMap": {"name": "m", "items": [{"key": "k", "path": "sub/deep"}]}},
                    ]
                },
            }
        ],
    )
    equal(text, "vvhosts\ntoken\n")


@check
def a_pod_does_not_leave_its_control_groups(c):
    """Check 17: nothing below /sys can be written, and the memory limit holds after the attempt."""
    attack = """exec 2>/dev/null
for f in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs -o -maxdepth 2 -name tasks); do echo 0 > $f && echo left through $f; done
for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/muster-mine && echo made $d/muster-mine; done
echo 1 > /sys/kernel/mm/ksm/run && echo wrote
mount -o remount,rw /sys/fs/cgroup/memory && echo remounted
echo tried; python3 -c "x = bytearray(200 << 20); print('survived')" """
    c.create(pod("leaver", attack + "; exit 3", container={"resources": {"limits": {"memory": "64Mi"}}}))
    p = c.phase("leaver", "Failed")
    equal((c.logs("leaver"), terminated(p)["reason"]), ("tried\n", "OOMKilled"))


@check
def a_fork_bomb_meets_its_limit(c):
    text = output(
        c,
        "bomb",
        "python3 -c \"import os\nn = 0\nwhile True:\n  try: pid = os.fork()\n  except OSError: print('refused' if 40 < n < 64 else n); break\n  if pid == 0: os.pause() if hasattr(os, 'pause') else __import__('signal').pause()\n  n += 1\"; kill -9 -1 2>/dev/null; true",
    )
    equal(text, "refused\n")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: needs root\n0 passed, 0 failed")
        sys.exit(0)
    run(lambda: Muster("--pod-max-pids", "64", nodes=1))
