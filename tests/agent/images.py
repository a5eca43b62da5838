"""Real images, pulled from a registry on loopback and checked against docs/agent.md. Numbers in names are those of the
checks in the specification of real containers.

    python3 tests/agent/images.py [NAME…]      only the checks whose name contains a NAME
"""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, check, equal, host_folder, pod, run, terminated, until  # noqa: E402
from checks import skip_all  # noqa: E402
from images import Cutting, Pusher, Registry, busybox, missing, write_archive  # noqa: E402
from muster import Muster  # noqa: E402

USER, PASSWORD = "mia", "s3cret"
ALICES_GROUPS = "100 1001"
CONFIG = {"Cmd": ["sh", "-c", "echo from the image; cat /etc/greeting"], "Env": ["PATH=/bin", "GREETING=hello"]}


def small(**more):
    return {**busybox(), "etc/greeting": "hello\n", **more}


def image_pod(name, image, script=None, **spec):
    container = {"image": image, **spec.pop("container", {})}
    return pod(name, script, container=container, **spec)


def output(c, name, image, script=None, **spec):
    c.create(image_pod(name, image, script, **spec))
    p = c.phase(name, "Succeeded", "Failed")
    assert terminated(p)["exitCode"] == 0, (terminated(p), c.logs(name))
    return c.logs(name)


def waiting(p, index=0):
    return p["status"].get("containerStatuses", [{}] * (index + 1))[index].get("state", {}).get("waiting", {})


def wait_reason(c, name, *reasons, timeout=40):
    return c.wait(name, lambda p: p and waiting(p).get("reason") in reasons, timeout, f"waiting {reasons}")


def secret(name, auths, namespace=None):
    text = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": text},
    }


def auth(user=USER, password=PASSWORD):
    return {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()}


@check
def check_30_an_image_by_tag_and_by_digest(c):
    name = f"{c.open.name}/small/one:1"
    digest = c.pusher.push(name, [small()], CONFIG)
    equal(output(c, "by-tag", name), "from the image\nhello\n")
    p = c.get("pod", "by-tag")
    status = p["status"]["containerStatuses"][0]
    equal(status["image"], name)
    equal(status["imageID"], f"{c.open.name}/small/one@{digest}")
    by_digest = f"{c.open.name}/small/one@{digest}"
    equal(output(c, "by-digest", by_digest), "from the image\nhello\n")
    # Nothing of this machine is in it; /var holds the service account's token.
    equal(
        output(c, "contents", name, "ls /; ls /etc"),
        "bin\ndev\netc\nhome\nproc\nroot\nsys\ntmp\nvar\ngreeting\ngroup\nhostname\nhosts\npasswd\nresolv.conf\n",
    )
    events = c.events("by-tag")
    assert ("Normal", "Pulling", f'Pulling image "{name}"') in events, events
    pulled = [m for t, r, m in events if r == "Pulled"][0]
    assert re.fullmatch(
        rf'Successfully pulled image "{re.escape(name)}" in [0-9.]+m?s \([0-9.]+m?s including waiting\)\. Image size: \d+ bytes\.',
        pulled,
    ), pulled
    there = [m for t, r, m in c.events("contents") if r == "Pulled"]
    equal(there, [f'Container image "{name}" already present on machine and can be accessed by the pod'])


def layered(count):
    """Layers that add, remove, replace and empty; and the files that are left."""
    layers = [small(**{"d/": None, "d/gone": "x", "d/kept": "0", "o/": None, "o/old": "x", "o/older": "x"})]
    layers.append({"d/.wh.gone": "", "d/kept": "1"})
    layers.append({"o/": None, "o/.wh..wh..opq": "", "o/new": "n"})
    while len(layers) < count:
        layers.append({f"n/{len(layers)}": str(len(layers)), "n/last": str(len(layers))})
    return layers


@check
def check_30_layers_with_whiteouts_and_opaque_folders(c):
    show = "cd /; find d o n -type f 2>/dev/null | while read f; do echo $f $(cat $f); done"
    for count, compress in ((3, "gzip"), (3, "zstd"), (60, "gzip")):
        if compress == "zstd" and not shutil.which("zstd"):
            continue
        name = f"{c.open.name}/layers/{compress}:{count}"
        c.pusher.push(name, layered(count), CONFIG, compress)
        lines = sorted(output(c, f"layers-{compress}-{count}", name, show).splitlines())
        wanted = ["d/kept 1", "o/new n"]
        if count > 3:
            wanted += [f"n/{i} {i}" for i in range(3, count)] + [f"n/last {count - 1}"]
        equal(lines, sorted(wanted))


@check
def check_31_a_private_registry(c):
    image = f"{c.private.name}/closed/one:1"
    c.pusher.push(f"{c.open.name}/closed/one:1", [small(), {"etc/closed": "1"}], CONFIG)
    c.create(image_pod("closed", image, imagePullSecrets=[{"name": "late"}]))
    p = wait_reason(c, "closed", "ErrImagePull")
    message = waiting(p)["message"]
    assert message.startswith("rpc error: code = "), message
    p = wait_reason(c, "closed", "ImagePullBackOff")
    equal(waiting(p)["message"], f'Back-off pulling image "{image}": ErrImagePull: {message}')
    events = c.events("closed")
    assert ("Warning", "Failed", f'Failed to pull image "{image}": {message}') in events, events
    for told in (
        ("Warning", "Failed", "Error: ErrImagePull"),
        ("Warning", "Failed", "Error: ImagePullBackOff"),
        ("Normal", "BackOff", f'Back-off pulling image "{image}"'),
    ):
        assert told in events, (told, events)
    assert any(r == "FailedToRetrieveImagePullSecret" for _, r, _ in events), events
    c.create(secret("late", {c.private.name: auth()}))
    c.phase("closed", "Succeeded")
    pulls = [
        e
        for e in json.loads(
            c.muster.kubectl("get", "events", "--field-selector", "involvedObject.name=closed", "-o", "json").stdout
        )["items"]
        if e["reason"] == "Pulling"
    ]
    equal(sum(e.get("count", 1) for e in pulls), 2)
    first, last = pulls[0]["firstTimestamp"], pulls[-1]["lastTimestamp"]
    seconds = time.mktime(time.strptime(last, "%Y-%m-%dT%H:%M:%SZ")) - time.mktime(
        time.strptime(first, "%Y-%m-%dT%H:%M:%SZ")
    )
    assert 9 <= seconds <= 14, seconds


@check
def check_32_which_secret_is_used(c):
    image = f"{c.private.name}/closed/two:1"
    c.pusher.push(f"{c.open.name}/closed/two:1", [small(), {"etc/closed": "2"}], CONFIG)
    host = c.private.name
    c.create(secret("wrong", {host: auth(password="no")}), secret("right", {f"{host}/closed": auth()}))
    c.create(secret("elsewhere", {f"{host}/other": auth(), "registry.example": auth()}))
    equal(
        output(c, "two-secrets", image, imagePullSecrets=[{"name": "wrong"}, {"name": "right"}]),
        "from the image\nhello\n",
    )
    # It is on the machine now, and not for those who may not have it.
    c.create(image_pod("no-secret", image), image_pod("other-secret", image, imagePullSecrets=[{"name": "elsewhere"}]))
    for name in ("no-secret", "other-secret"):
        wait_reason(c, name, "ErrImagePull", "ImagePullBackOff")
        c.muster.kubectl("delete", "pod", name, "--now")
    before = [r for _, r, _ in c.events("two-secrets")].count("Pulling")
    equal(before, 1)
    equal(output(c, "again", image, imagePullSecrets=[{"name": "right"}]), "from the image\nhello\n")
    equal([r for _, r, _ in c.events("again") if r in ("Pulling", "Pulled")], ["Pulled"])


@check
def check_32_secrets_of_the_service_account(c):
    image = f"{c.private.name}/closed/three:1"
    c.pusher.push(f"{c.open.name}/closed/three:1", [small(), {"etc/closed": "3"}], CONFIG)
    c.create(
        secret("of-account", {c.private.name: auth()}),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "puller"},
            "imagePullSecrets": [{"name": "of-account"}],
        },
    )
    equal(output(c, "by-account", image, serviceAccountName="puller"), "from the image\nhello\n")


@check
def check_33_what_cannot_be_pulled(c):
    absent = f"{c.open.name}/small/absent:1"
    cases = {
        "never": (
            absent,
            "Never",
            "ErrImageNeverPull",
            f'Container image "{absent}" is not present with pull policy of Never',
            "ErrImageNeverPull",
        ),
        "bad-name": ("Bad//name", "IfNotPresent", "InvalidImageName", None, "InspectFailed"),
        "unknown-tag": (absent, "IfNotPresent", "ErrImagePull", None, "Failed"),
        "unknown-host": ("no-such-host.invalid/a/b:1", "IfNotPresent", "ErrImagePull", None, "Failed"),
    }
    for name, (image, policy, *_) in cases.items():
        c.create(image_pod(name, image, container={"imagePullPolicy": policy}))
    for name, (image, policy, reason, message, event) in cases.items():
        p = wait_reason(c, name, reason)
        if message:
            equal(waiting(p)["message"], message)
        c.wait_event(name, event)
    told = c.wait_event("bad-name", "InspectFailed")[2]
    assert told.startswith(
        'Failed to apply default image tag "Bad//name": couldn\'t parse image name "Bad//name": invalid reference format'
    ), told
    for name in cases:
        c.muster.kubectl("delete", "pod", name, "--now", "--wait=false")


@check
def an_openpai_job_whose_image_is_nowhere_ends_with_254(c):
    image = f"{c.open.name}/small/none:1"
    file = c.muster.data / "nowhere.yaml"
    role = {
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
        "commands": ["echo never"],
    }
    job = {
        "protocolVersion": 2,
        "name": "nowhere",
        "type": "job",
        "jobRetryCount": 3,
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": image}],
        "taskRoles": {"train": role},
    }
    file.write_text(json.dumps(job))
    done = c.muster.cli("submit", "pai", str(file), "--wait", "--timeout=90s", check=False)
    listed = json.loads(c.muster.kubectl("get", "frameworks", "-o", "json").stdout)["items"]
    status = listed[0]["status"]
    ended = status["attemptStatus"]["completionStatus"]
    equal((ended["code"], ended["phrase"]), (254, "ContainerImageNotExists"))
    equal(status["retryPolicyStatus"]["totalRetriedCount"], 0)
    assert image in ended["diagnostics"], (ended, done)


@check
def check_33_a_registry_that_goes_in_the_middle_of_a_layer(c):
    """What was fetched by then is kept: the rest is asked for, not the layer once more."""
    c.pusher.push(f"{c.open.name}/large/one:1", [small(), {"large": os.urandom(8 << 20)}], CONFIG)
    with Cutting(c.open) as cutting:
        equal(output(c, "cut-off", f"{cutting.name}/large/one:1"), "from the image\nhello\n")
        equal(len(cutting.cut), 1)
        again = [words for words in cutting.asked if words[0] == cutting.cut[0]]
        assert len(again) >= 2 and len(again[-1]) == 2, cutting.asked  # with a range


@check
def check_33_no_tag_is_latest_and_always_pulled(c):
    name = f"{c.open.name}/small/moves"
    c.pusher.push(name + ":latest", [small(**{"etc/greeting": "old\n"})], CONFIG)
    equal(output(c, "moves-1", name), "from the image\nold\n")
    c.pusher.push(name + ":latest", [small(**{"etc/greeting": "new\n"})], CONFIG)
    equal(output(c, "moves-2", name), "from the image\nnew\n")
    equal(c.get("pod", "moves-2")["status"]["containerStatuses"][0]["image"], name + ":latest")


@check
def check_34_entrypoint_and_command(c):
    """Kubernetes' table: command goes for the entrypoint and drops the image's command, args go for the latter."""
    say = ["/bin/echo", "entry"]
    images = {}
    for entry in (None, say):
        for command in (None, ["/bin/echo", "cmd"] if entry is None else ["cmd"]):
            name = f"{c.open.name}/table/{'e' if entry else 'n'}{'c' if command else 'n'}:1"
            c.pusher.push(name, [small()], {"Entrypoint": entry, "Cmd": command, "Env": ["PATH=/bin"]})
            images[bool(entry), bool(command)] = name
    pods, wanted = [], {}
    for (entry, command), image in images.items():
        for own_command in (None, ["/bin/echo", "own"]):
            for args in (None, ["arg"] if entry or own_command else ["/bin/echo", "arg"]):
                name = f"table-{int(entry)}{int(command)}{int(bool(own_command))}{int(bool(args))}"
                words = list(own_command or (say if entry else []))
                words += args or (
                    [] if own_command else (["cmd"] if entry else ["/bin/echo", "cmd"]) if command else []
                )
                container = {k: v for k, v in (("command", own_command), ("args", args)) if v}
                pods.append(image_pod(name, image, container=container))
                wanted[name] = words
    equal(len(pods), 16)
    c.create(*pods)
    for name, words in wanted.items():
        if not words:
            p = wait_reason(c, name, "CreateContainerConfigError", "CreateContainerError")
            equal(waiting(p)["message"], "no command specified")
            c.muster.kubectl("delete", "pod", name, "--now", "--wait=false")
            continue
        c.phase(name, "Succeeded")
        equal((name, c.logs(name)), (name, " ".join(words[1:]) + "\n"))


@check
def check_34_user_environment_and_folder(c):
    show = "id -u; id -g; id -G; echo $HOME $GREETING; pwd"
    cases = {
        "": ("0", "0", "0", "/root hi"),
        "alice": ("1000", "1001", ALICES_GROUPS, "/home/alice hi"),
        "1000": ("1000", "1001", ALICES_GROUPS, "/home/alice hi"),
        "4242": ("4242", "0", "0", "/ hi"),
        "alice:users": ("1000", "100", "100", "/home/alice hi"),
        "4242:4343": ("4242", "4343", "4343", "/ hi"),
    }
    for number, (user, wanted) in enumerate(cases.items()):
        name = f"{c.open.name}/users/u{number}:1"
        c.pusher.push(name, [small()], {"User": user, "WorkingDir": "/made/here", "Env": ["PATH=/bin", "GREETING=hi"]})
        lines = output(c, f"user-{number}", name, show).splitlines()
        lines[2] = " ".join(sorted(lines[2].split(), key=int))
        equal((user, lines), (user, [*wanted, "/made/here"]))
    name = f"{c.open.name}/users/u1:1"
    lines = output(
        c,
        "user-own",
        name,
        show,
        container={
            "workingDir": "/tmp",
            "securityContext": {"runAsUser": 0},
            "env": [{"name": "GREETING", "value": "ho"}],
        },
    ).splitlines()
    equal(lines, ["0", "0", "0", "/root ho", "/tmp"])
    c.create(image_pod("user-nonroot", name, show, securityContext={"runAsNonRoot": True}))
    p = wait_reason(c, "user-nonroot", "CreateContainerConfigError")
    assert "image has non-numeric user (alice), cannot verify user is non-root" in waiting(p)["message"], waiting(p)
    equal(
        output(c, "user-nonroot-number", f"{c.open.name}/users/u2:1", "id -u", securityContext={"runAsNonRoot": True}),
        "1000\n",
    )
    c.muster.kubectl("delete", "pod", "user-nonroot", "--now")


@check
def check_35_one_pull_for_ten_pods(c):
    name = f"{c.open.name}/small/many:1"
    c.pusher.push(name, [small(), {"big": os.urandom(8 << 20)}], CONFIG)
    before = c.open.requests("/v2/small/many/blobs/")
    c.create(*[image_pod(f"many-{i}", name) for i in range(10)])
    for i in range(10):
        c.phase(f"many-{i}", "Succeeded")
    del before  # the registry's log names no requests at this level; the events do
    texts = [m for i in range(10) for _, r, m in c.events(f"many-{i}") if r == "Pulled"]
    equal(len(texts), 10)
    took = {re.search(r" in ([0-9.]+m?s) \(", t).group(1) for t in texts if "Successfully" in t}
    assert len(took) == 1, took  # those who waited tell of the same pull


@check
def check_35_a_pod_deleted_while_its_image_comes(c):
    """From a registry that never answers."""
    with Silent() as silent:
        name = f"127.0.0.1:{silent.port}/never/comes:1"
        c.create(image_pod("deleted", name))
        c.wait_event("deleted", "Pulling")
        begun = time.monotonic()
        c.muster.kubectl("delete", "pod", "deleted")
        c.gone("deleted")
        took = time.monotonic() - begun
        assert took < 3, took  # two seconds and a kubectl
        equal(output(c, "afterwards", f"{c.open.name}/small/one:1"), "from the image\nhello\n")


class Silent:
    """Takes connections and says nothing."""

    def __enter__(self):
        import socket

        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(16)
        self.port = self.socket.getsockname()[1]
        return self

    def __exit__(self, *_):
        self.socket.close()


@check
def check_38_an_image_cannot_be_changed(c):
    name = f"{c.open.name}/small/one:1"
    text = output(c, "writes", name, "echo spoilt > /etc/greeting; rm /bin/ls; echo x > /new; cat /etc/greeting")
    equal(text, "spoilt\n")
    equal(output(c, "reads", name, "cat /etc/greeting; ls /new 2>/dev/null; echo done"), "hello\ndone\n")


@check
def attacks_from_an_image(c):
    """Checks 1, 2, 12, 13, 16, 17, 20 from inside of an image."""
    name = f"{c.open.name}/small/one:1"
    data = c.muster.data
    script = f"""
exec 2>/dev/null
for f in {data}/pki/ca.key {data}/kubeconfig {data}/api.sock {data}/containerd/containerd.sock; do test -e $f && echo sees $f; done
grep Seccomp: /proc/self/status | cut -f2
echo x > /proc/sys/kernel/hostname && echo writes sysctl
echo x > /sys/fs/cgroup/memory/cgroup.procs && echo leaves its group
ls /dev | grep -E 'sd|vd|nvme|kmsg|fuse'
cat /proc/keys /proc/timer_list | grep . && echo reads proc
/bin/busybox mount -t tmpfs x /tmp && echo mounts
/bin/busybox unshare -m true && echo unshares
/bin/busybox mknod /tmp/d b 8 0 && echo makes a disk
ls /proc/self/fd | sort -n | tail -n +4 | grep -v 3
echo done
"""
    equal(output(c, "attacks", name, script), "2\ndone\n")


@check
def host_images_beside_real_ones(c):
    """By the image file, and by RuntimeClass."""
    text = output(c, "named-host", "muster/host", "test -e /etc/debian_version && echo machine; echo $WITH")
    equal(text, "machine\nhost env\n")
    text = output(c, "class-host", "whatever:1", "test -e /etc/debian_version && echo machine", runtimeClassName="host")
    equal(text, "machine\n")


@check
def a_registry_by_another_name(c):
    """The image file's registries: where it is asked, and as whom."""
    equal(output(c, "renamed", "registry.example/small/one:1"), "from the image\nhello\n")
    equal(output(c, "renamed-closed", "closed.example/closed/one:1"), "from the image\nhello\n")


@check
def the_node_lists_its_images(c):
    name = f"{c.open.name}/small/one:1"

    def listed():
        nodes = json.loads(c.muster.kubectl("get", "nodes", "-o", "json").stdout)["items"]
        return all(any(name in i["names"] and i["sizeBytes"] > 0 for i in n["status"].get("images", [])) for n in nodes)

    until("the image in the nodes' status", listed)


@check
def exec_in_an_image(c):
    name = f"{c.open.name}/users/u1:1"
    c.create(image_pod("shell", name, "sleep 1000"))
    c.running("shell")
    text = c.muster.kubectl("exec", "shell", "--", "sh", "-c", "id -u; echo $HOME; pwd; cat /etc/greeting").stdout
    equal(text, "1000\n/home/alice\n/made/here\nhello\n")
    c.muster.kubectl("delete", "pod", "shell", "--now")


@check
def check_29_muster_is_killed_and_goes_on(c):
    name = f"{c.open.name}/small/one:1"
    c.create(image_pod("survivor", name, "while true; do echo alive; sleep 0.2; done", restartPolicy="Always"))
    p = c.running("survivor")
    pid = int((c.muster.data / "containerd" / "pid").read_text())
    c.muster.kill()
    c.muster.start()
    q = c.running("survivor")
    equal(q["status"]["containerStatuses"][0]["containerID"], p["status"]["containerStatuses"][0]["containerID"])
    equal(q["status"]["containerStatuses"][0]["imageID"], p["status"]["containerStatuses"][0]["imageID"])
    equal(int((c.muster.data / "containerd" / "pid").read_text()), pid)
    c.muster.kubectl("exec", "survivor", "--", "true")


@check
def check_37_containerd_is_killed_and_comes_back(c):
    pid = int((c.muster.data / "containerd" / "pid").read_text())
    os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    until("another containerd", lambda: int((c.muster.data / "containerd" / "pid").read_text()) != pid)
    assert time.monotonic() - begun < 1, time.monotonic() - begun
    name = f"{c.open.name}/small/after:1"
    c.pusher.push(name, [small(**{"etc/greeting": "after\n"})], CONFIG)
    equal(output(c, "after-kill", name), "from the image\nafter\n")
    c.muster.kubectl("exec", "survivor", "--", "true")
    c.muster.kubectl("delete", "pod", "survivor", "--now")


@check
def check_39_archives_without_a_network(c):
    archive = c.muster.data / "more.tar"
    write_archive(archive, "docker.io/library/offline:2", [small(**{"etc/greeting": "offline\n"})], CONFIG)
    c.muster.cli("image", "import", "--data", str(c.muster.data), str(archive))
    equal(output(c, "imported", "offline:2"), "from the image\noffline\n")
    # At start, from the folder of archives.
    equal(output(c, "found", "in-folder:1"), "from the image\nhello\n")


@check
def an_archive_is_imported_right_after_the_start(c):
    """`up --detach` returns before containerd answers; `image import` waits for it, unless there is none to wait for."""
    archive = c.muster.data / "at-once.tar"
    write_archive(archive, "docker.io/library/at-once:1", [small()], CONFIG)
    data = str(c.muster.data / "second")
    refused = c.muster.cli("image", "import", "--data", data, str(archive), check=False)
    assert refused.returncode == 1 and "no containerd runs" in refused.stderr, refused
    c.muster.cli(
        "up", "--detach", "--data", data, "--listen", "127.0.0.1:0", "--nodes", "1", "--image-source", "containerd"
    )
    try:
        said = c.muster.cli("image", "import", "--data", data, str(archive)).stdout
    finally:
        c.muster.cli("down", "--data", data)
    assert "at-once:1" in said, said


@check
def check_36_unused_images_are_removed(c):
    """A disk that is always too full, and a second for which images are kept."""
    file = c.muster.data / "collect.yaml"
    file.write_text(json.dumps({"collection": {"above": 0, "until": 0, "age": "1s"}}))
    with Muster("--image-source", "containerd", "--images", str(file), nodes=1, gpus=0) as muster:
        d = Cluster(muster)

        def listed(name):
            node = json.loads(muster.kubectl("get", "nodes", "-o", "json").stdout)["items"][0]
            return any(name in i["names"] for i in node["status"].get("images", []))

        used, unused = f"{c.open.name}/small/one:1", f"{c.open.name}/small/many:1"
        d.create(image_pod("uses", used, "sleep 1000"))
        d.running("uses")
        equal(output(d, "used-once", unused, "echo done"), "done\n")
        muster.kubectl("delete", "pod", "used-once", "--now")
        until("the unused image listed", lambda: listed(unused))
        time.sleep(1.2)  # as long as it is kept
        c.pusher.push(f"{c.open.name}/small/third:1", [small(**{"etc/greeting": "third\n"})], CONFIG)
        equal(output(d, "third", f"{c.open.name}/small/third:1"), "from the image\nthird\n")
        until("the unused image gone", lambda: not listed(unused), timeout=60)
        assert listed(used)
        muster.kubectl("exec", "uses", "--", "true")
        equal(output(d, "used-again", unused, "echo again"), "again\n")


@check
def check_38_an_existing_containerd(c):
    """Somebody else's images are used, and neither touched nor collected; nor does the daemon end with muster."""
    with Pusher(cri=True) as other:
        archive = c.muster.data / "other.tar"
        write_archive(archive, "docker.io/library/theirs:1", [small(**{"etc/greeting": "theirs\n"})], CONFIG)
        other.ctr("images", "import", str(archive), namespace="k8s.io")
        write_archive(archive, "docker.io/library/spare:1", [small(**{"etc/greeting": "spare\n"})], CONFIG)
        other.ctr("images", "import", str(archive), namespace="k8s.io")
        file = c.muster.data / "collect.yaml"
        file.write_text(json.dumps({"collection": {"above": 0, "until": 0, "age": "0s"}}))
        source = f"unix://{other.folder}/c.sock"
        with Muster("--image-source", source, "--images", str(file), nodes=1, gpus=0) as muster:
            equal(output(Cluster(muster), "theirs", "theirs:1"), "from the image\ntheirs\n")
        left = other.ctr("images", "ls", "-q", namespace="k8s.io").stdout
        assert "library/theirs:1" in left and "library/spare:1" in left, left
        assert other.process.poll() is None


@check
def check_9_what_host_images_are_shown(c):
    text = output(
        c,
        "shown",
        "muster/host",
        f"cat {c.shown}/ro/f; touch {c.shown}/ro/g 2>/dev/null || echo refused; echo w > {c.shown}/rw/g && echo written; "
        f"ls -A {c.hidden}; ls {c.shown}",
    )
    equal(text, "seen\nrefused\nwritten\nro\nrw\n")
    equal((c.shown / "rw" / "g").read_text(), "w\n")


def main():
    why = missing("containerd", "ctr", "docker-registry", "busybox", "htpasswd")
    if why:
        skip_all(why)
    with Registry() as open_registry, Registry(open_registry.storage, (USER, PASSWORD)) as private, Pusher() as pusher:
        Cluster.open, Cluster.private, Cluster.pusher = open_registry, private, pusher
        muster = Muster("--image-source", "containerd", nodes=2, gpus=0)
        muster.data.mkdir(exist_ok=True)
        (muster.data / "images").mkdir()
        write_archive(muster.data / "images" / "one.tar", "docker.io/library/in-folder:1", [small()], CONFIG)
        Cluster.shown = pathlib.Path(host_folder("muster-shown-"))
        Cluster.hidden = pathlib.Path(host_folder("muster-hidden-", "/var/lib"))
        (Cluster.shown / "ro").mkdir()
        (Cluster.shown / "rw").mkdir()
        (Cluster.shown / "ro" / "f").write_text("seen\n")
        (Cluster.hidden / "key").write_text("secret\n")
        file = muster.data / "images.yaml"
        file.write_text(
            json.dumps(
                {
                    "images": [{"name": "muster/host", "host": True}],
                    "host": {
                        "env": {"WITH": "host env"},
                        "show": [f"{Cluster.shown}/ro", f"{Cluster.shown}/rw:rw"],
                        "hide": [str(Cluster.hidden)],
                    },
                    "registries": [
                        {"name": "registry.example", "endpoint": f"http://{open_registry.name}"},
                        {
                            "name": "closed.example",
                            "endpoint": f"http://{private.name}",
                            "username": USER,
                            "password": PASSWORD,
                        },
                    ],
                }
            )
        )
        muster.args += ["--images", str(file)]
        run(lambda: muster)


if __name__ == "__main__":
    main()
