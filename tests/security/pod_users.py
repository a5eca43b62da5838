"""Users of a pod's own: root of a pod is nobody on this machine, on its files and in an image. Numbers are those of the acceptance
list that docs/security.md sums up.

    python3 tests/security/pod_users.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, check, equal, host_folder, output, pod, run, terminated, until  # noqa: E402
from images import busybox, missing, write_archive  # noqa: E402
from muster import Muster  # noqa: E402
from other_ways import without_user_namespaces  # noqa: E402

HOST, IMAGE = "muster/host", "docker.io/library/small:1"
MAP = "cat /proc/self/uid_map"


def kinds(c):
    """(word for names, image): pods on the machine's files, and those of an image where containerd is installed."""
    return [("host", HOST)] + ([("image", IMAGE)] if c.images else [])


def of(image, **more):
    return {"image": image, "imagePullPolicy": "IfNotPresent", **more}


def ids(text):
    return [int(word) for word in text.split()]


@check
def check_11_every_pod_has_a_range_of_its_own(c):
    firsts = set()
    for word, image in kinds(c):
        for i in range(2):
            name = f"range-{word}-{i}"
            c.create(pod(name, f"{MAP}; id -u; exec sleep 1000", container=of(image)))
            c.running(name)
            until("it has spoken", lambda: len(c.logs(name).split()) == 4)
            inside, first, count, uid = ids(c.logs(name))
            equal((inside, count, uid), (0, 65536, 0))
            assert first >= 1_000_000, first
            firsts.add(first)
            exec_map = ids(c.muster.kubectl("exec", name, "--", "cat", "/proc/self/uid_map").stdout)
            equal(exec_map, [0, first, 65536])
            users = subprocess.run(["ps", "-eo", "uid"], capture_output=True, text=True).stdout.split()
            assert str(first) in users, (first, users)
    equal(len(firsts), 2 * len(kinds(c)))
    c.muster.kubectl("delete", "pod", "--all", "--now")


@check
def what_is_not_for_all_is_not_for_a_pod(c):
    """Also where no list hides it."""
    folder = pathlib.Path(host_folder("muster-plain-", "/opt"))
    folder.chmod(0o755)
    (folder / "closed").write_text("secret")
    (folder / "closed").chmod(0o600)
    (folder / "open").write_text("open\n")
    (folder / "open").chmod(0o644)
    script = f"cat {folder}/open; cat {folder}/closed 2>/dev/null || echo refused; chown 0 {folder}/closed 2>/dev/null && echo taken; true"
    equal(output(c, "closed", script, container=of(HOST)), "open\nrefused\n")


@check
def check_10_volumes_keep_their_owners(c):
    path = pathlib.Path(host_folder("muster-owned-"))
    path.chmod(0o777)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": "secret\n"}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    c.create(secret, claim)
    volumes = [
        {"name": "s", "secret": {"secretName": "key", "defaultMode": 0o600}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "kept"}},
        {"name": "h", "hostPath": {"path": str(path)}},
        {"name": "e", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory"}},
    ]
    mounts = [{"name": v["name"], "mountPath": "/" + v["name"]} for v in volumes]
    for word, image in kinds(c):
        container = of(image, volumeMounts=mounts)
        script = f"cat /s/k 2>/dev/null || echo refused; touch /c/{word}-$(id -u) /h/{word}-$(id -u) /e/x /m/x; stat -c %u /c/{word}-$(id -u) /e/x /m/x"
        spec = {"container": container, "volumes": volumes}
        equal(output(c, f"{word}-root", script, **spec), "secret\n0\n0\n0\n")
        user = {"runAsUser": 1234, "runAsGroup": 1234}
        equal(output(c, f"{word}-user", script, securityContext=user, **spec), "refused\n1234\n1234\n1234\n")
        grouped = {**user, "fsGroup": 777}
        equal(output(c, f"{word}-group", script, securityContext=grouped, **spec), "secret\n1234\n1234\n1234\n")
        stored = c.muster.data / "agent" / "claims" / "default_kept"
        for place in (stored, path):
            for uid in (0, 1234):
                found = os.lstat(place / f"{word}-{uid}")
                equal((found.st_uid, stat.S_ISREG(found.st_mode)), (uid, True))


@check
def a_pod_may_ask_for_the_machines_users(c):
    whole = [0, 0, 4294967295]
    for name, spec in {
        "asks": {"hostUsers": True},
        "network": {"hostNetwork": True},
        "processes": {"hostPID": True},
        "privileged": {"container": {"securityContext": {"privileged": True}}},
        "administers": {"container": {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}},
    }.items():
        equal(
            ids(output(c, f"machine-{name}", MAP, **{**spec, "container": of(HOST, **spec.get("container", {}))})),
            whole,
        )
    # What baseline lets anybody add is no way to the machine's users.
    usual = {"securityContext": {"capabilities": {"add": ["MKNOD", "SYS_CHROOT"]}}}
    assert ids(output(c, "machine-not", MAP, container=of(HOST, **usual)))[1] >= 1_000_000


@check
def check_22_host_users_false_is_never_the_machines_root(c):
    asked = {"hostUsers": False, "container": of(HOST, securityContext={"privileged": True})}
    assert ids(output(c, "own-privileged", MAP, **asked))[1] >= 1_000_000
    with Muster("--portal", "none", "--pod-users", "host", nodes=1) as other:
        cluster = Cluster(other)
        equal(ids(output(cluster, "plain", MAP)), [0, 0, 4294967295])
        cluster.create(pod("own", "true", hostUsers=False))
        event = cluster.wait_event("own", "FailedCreatePodSandBox")
        equal(
            event[2],
            "Failed to create pod sandbox: hostUsers: false, but pods cannot have users of their own here",
        )
        equal(cluster.get("pod", "own")["status"]["phase"], "Pending")


@check
def a_user_outside_of_the_range_is_refused_with_a_reason(c):
    c.create(pod("far", "true", container=of(HOST), securityContext={"runAsUser": 70000}))
    message = terminated(c.phase("far", "Failed"))["message"]
    equal(
        message,
        "user or group 70000 is none of the pod's own, which are 0 to 65535; hostUsers: true gives it those of the machine",
    )


@check
def check_28_root_of_a_pod_can_do_its_work(c):
    """Listen at low ports, ping, own its places, change users and owners, use its terminal."""
    server = "import socket\nfor p in (22, 80):\n  s = socket.socket(); s.bind(('', p)); s.listen()\nprint('listens')"
    script = f"""python3 -c "{server}"
touch /etc/x /opt/x /usr/local/bin/x /var/lib/x /srv/x /x /root/x /run/x && mkdir -p /data/deep && echo writes
chown 33:33 /tmp && chown 0:0 /tmp && echo chowns
su -s /bin/sh nobody -c 'id -u'
python3 -c "import os; os.setgroups([1,2]); os.setuid(5); print(os.getuid())"
kill -0 1 && echo signals"""
    equal(output(c, "works", script, container=of(HOST)), "listens\nwrites\nchowns\n65534\n5\nsignals\n")


@check
def check_23_without_user_namespaces_the_hidden_stays_hidden(c):
    if os.uname().machine != "x86_64":
        return
    program = without_user_namespaces()
    env = {**os.environ, "MUSTER": str(program)}
    numbers = [1, 2, 3, 4, 5, 6, 7, 9, 16, 17, 18, 19, 20]
    names = [f"check_{n}_" for n in numbers]
    tests = pathlib.Path(__file__).resolve().parent
    done = subprocess.run(
        [sys.executable, tests / "host_pods.py", *names], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and f"{len(numbers) + 1} passed, 0 failed" in done.stdout, done.stdout
    done = subprocess.run(
        [sys.executable, tests / "volumes.py", "a_sub_path_through", "check_8_"],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "3 passed, 0 failed" in done.stdout, done.stdout
    before = os.environ.get("MUSTER")
    os.environ["MUSTER"] = str(program)
    try:
        with Muster("--portal", "none", nodes=1) as other:
            cluster = Cluster(other)
            equal(ids(output(cluster, "plain", MAP)), [0, 0, 4294967295])
            cluster.create(pod("own", "true", hostUsers=False))
            cluster.wait_event("own", "FailedCreatePodSandBox")
            lines = [line for line in other.log().splitlines() if "root in a pod is root of this machine" in line]
            equal(len(lines), 1)
            assert "make a user namespace: No space left on device" in lines[0], lines
    finally:
        os.environ.pop("MUSTER")
        if before is not None:
            os.environ["MUSTER"] = before


@check
def check_21_the_attacks_of_an_editor(c):
    """Checks 1 to 4, 12 and 16 by somebody with the role `edit` alone, on the machine's files and in an image; and 21."""
    c.muster.kubectl("create", "namespace", "vision")
    c.muster.kubectl("create", "rolebinding", "alice", "--clusterrole=edit", "--user=alice", "-n", "vision")

    def create(body):
        return c.muster.kubectl("create", "-n", "vision", "--as=alice", "-f", "-", input=json.dumps(body), check=False)

    data = c.muster.data
    script = f"""exec 2>/dev/null
for f in {data}/pki/ca.key {data}/pki/admin.token {data}/kubeconfig {data}/api.sock; do test -e $f && echo sees $f; done
cat /etc/shadow | grep -v '^[^:]*:[*!]*:' && echo reads passwords
echo x > /proc/sys/kernel/hostname && echo writes sysctl
echo 0 > /sys/fs/cgroup/memory/cgroup.procs && echo leaves its group
echo 0 > /sys/fs/cgroup/cgroup.procs && echo leaves its group
mount -t tmpfs x /tmp && echo mounts
unshare -m true && echo unshares
unshare -U true && echo unshares users
nsenter -t 1 -m true && echo enters
mknod /tmp/d b 8 0 && echo makes a disk
head -c 1 /proc/kcore | grep -q . && echo reads memory
echo done"""
    for word, image in kinds(c):
        body = pod(f"attack-{word}", script, container=of(image))
        made = create(body)
        equal(made.returncode, 0)
        until(
            "it ends",
            lambda: c.muster.kubectl("logs", "-n", "vision", f"attack-{word}", check=False).stdout.endswith("done\n"),
        )
        equal(c.muster.kubectl("logs", "-n", "vision", f"attack-{word}").stdout, "done\n")
    for why, spec in {
        "host users (hostUsers=true)": {"hostUsers": True},
        "host namespaces (hostPID=true)": {"hostPID": True},
        "host namespaces (hostNetwork=true)": {"hostNetwork": True},
        'hostPath volumes (volume "h")': {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]},
        'privileged (container "main" must not set securityContext.privileged=true)': {
            "container": {"securityContext": {"privileged": True}}
        },
        'non-default capabilities (container "main" must not include "SYS_ADMIN" in securityContext.capabilities.add)': {
            "container": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
        },
    }.items():
        refused = create(pod("refused", "true", **spec))
        assert f'violates PodSecurity "baseline:latest": {why}' in refused.stderr, (why, refused.stderr)


def main():
    if os.geteuid() != 0:
        print("SKIPPED: needs root\n0 passed, 0 failed")
        sys.exit(0)
    Cluster.images = not missing("containerd", "ctr", "busybox")
    muster = Muster(*(["--image-source", "containerd"] if Cluster.images else []), nodes=1, gpus=0)
    muster.data.mkdir(exist_ok=True)
    file = muster.data / "images.yaml"
    file.write_text(json.dumps({"images": [{"name": HOST, "host": True}]}))
    muster.args += ["--images", str(file)]
    if Cluster.images:
        (muster.data / "images").mkdir()
        write_archive(muster.data / "images" / "small.tar", IMAGE, [busybox()], {"Cmd": ["sh"], "Env": ["PATH=/bin"]})
    run(lambda: muster)


if __name__ == "__main__":
    main()
