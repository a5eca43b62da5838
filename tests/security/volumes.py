"""Ways out of a volume: links in subPath, file names that lead elsewhere, links in an image's root, more disk space than allowed.

    python3 tests/security/volumes.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, output, pod, run, terminated, until  # noqa: E402
from muster import Muster  # noqa: E402

SHARED = [{"name": "t", "emptyDir": {}}]


def linking(target):
    """An init container that puts a link into the volume that the main one mounts a part of."""
    return [
        {
            "name": "fill",
            "image": "x",
            "command": ["sh", "-c", f"ln -s {target} /t/link"],
            "volumeMounts": [{"name": "t", "mountPath": "/t"}],
        }
    ]


def refused(c, name):
    p = c.wait(
        name,
        lambda p: p
        and p["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("reason")
        == "CreateContainerConfigError",
        what="refusal of the subPath",
    )
    c.muster.kubectl("delete", "pod", name, "--force")
    return p["status"]["containerStatuses"][0]["state"]["waiting"]["message"]


@check
def a_sub_path_through_a_link_stays_in_its_volume(c):
    for name, target in (
        ("up", "/"),
        ("data", str(c.muster.data)),
        ("dots", "../../../../../../.."),
        ("magic", "/proc/1/root"),
    ):
        c.create(
            pod(
                f"link-{name}",
                "ls -a /u",
                initContainers=linking(target),
                volumes=SHARED,
                container={"volumeMounts": [{"name": "t", "mountPath": "/u", "subPath": "link"}]},
            )
        )
        message = refused(c, f"link-{name}")
        assert message.startswith(
            'failed to prepare subPath for volumeMount "t" of container "main": "link" leads out of'
        ), message
    c.create(
        pod(
            "link-expr",
            "ls -a /u",
            initContainers=linking("/"),
            volumes=SHARED,
            container={
                "env": [{"name": "WAY", "value": "link"}],
                "volumeMounts": [{"name": "t", "mountPath": "/u", "subPathExpr": "$(WAY)/etc"}],
            },
        )
    )
    assert "leads out of" in refused(c, "link-expr")


@check
def a_file_of_the_data_folder_is_not_mounted_by_a_link(c):
    """The database as an ordinary user, by a subPath that is a link to the very file."""
    c.create(
        pod(
            "link-file",
            "cat /u",
            securityContext={"runAsUser": 65534},
            initContainers=linking(str(c.muster.data / "muster.db")),
            volumes=SHARED,
            container={"volumeMounts": [{"name": "t", "mountPath": "/u", "subPath": "link"}]},
        )
    )
    assert "leads out of" in refused(c, "link-file")


@check
def a_link_that_stays_in_its_volume_is_followed(c):
    fill = linking("inside/there")
    fill[0]["command"][2] = "mkdir -p /t/inside/there; echo found > /t/inside/there/f; " + fill[0]["command"][2]
    equal(
        output(
            c,
            "link-inside",
            "cat /u/f",
            initContainers=fill,
            volumes=SHARED,
            container={"volumeMounts": [{"name": "t", "mountPath": "/u", "subPath": "link"}]},
        ),
        "found\n",
    )


@check
def a_missing_sub_path_is_made_inside_also_in_memory(c):
    text = output(
        c,
        "made",
        "touch /u/x /m/y && ls /all/a/b; stat -c %a /all/a /all/a/b",
        securityContext={"runAsUser": 4711},
        volumes=[*SHARED, {"name": "m", "emptyDir": {"medium": "Memory"}}],
        container={
            "volumeMounts": [
                {"name": "t", "mountPath": "/all"},
                {"name": "t", "mountPath": "/u", "subPath": "a/b"},
                {"name": "m", "mountPath": "/m", "subPath": "deep/er"},
            ]
        },
    )
    equal(text, "x\n777\n777\n")


@check
def check_8_a_link_swapped_in_while_pods_start_leads_nowhere(c):
    """A directory and a link to the machine's root change places as fast as they can while pods mount it. (A thousand tries of the
    opening itself: src/agent/beneath_test.cc.)"""
    place = pathlib.Path(tempfile.mkdtemp(prefix="muster-swap-", dir="/var/tmp"))
    (place / "d").mkdir()
    (place / "l").symlink_to("/")
    swapper = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.renameat2(-100, b'{place}/d', -100, b'{place}/l', 2)",
        ]
    )
    try:
        names = [f"swapped-{i}" for i in range(25)]
        c.create(
            *[
                pod(
                    name,
                    f"test ! -e /u{place} || echo ESCAPED",
                    volumes=[{"name": "t", "hostPath": {"path": str(place)}}],
                    container={"volumeMounts": [{"name": "t", "mountPath": "/u", "subPath": "d"}]},
                )
                for name in names
            ]
        )
        outcomes = set()
        for name in names:
            p = c.wait(
                name,
                lambda p: p
                and (
                    p["status"].get("phase") in ("Succeeded", "Failed")
                    or "waiting" in p["status"].get("containerStatuses", [{}])[0].get("state", {})
                ),
            )
            outcomes.add(p["status"]["phase"])
            assert "ESCAPED" not in c.muster.kubectl("logs", name, check=False).stdout, name
        assert "Succeeded" in outcomes, "no pod ever met the directory: this test tests nothing"
        c.muster.kubectl("delete", "pod", *names, "--force")
    finally:
        swapper.kill()
        swapper.wait()
        shutil.rmtree(place)


@check
def names_of_projected_files_stay_in_their_volume(c):
    canary = pathlib.Path(tempfile.mkdtemp(prefix="muster-canary-", dir="/var/tmp")) / "canary"
    canary.write_text("untouched")
    canary.chmod(0o600)
    try:
        up = "../" * 12
        for i, path in enumerate((up + str(canary).lstrip("/"), str(canary), "a/../../b")):
            body = pod(
                f"token-{i}",
                "sleep 1000",
                securityContext={"runAsUser": 65534},
                container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": path}}]}}],
            )
            made = c.muster.kubectl("create", "-f", "-", input=json.dumps(body), check=False)
            if made.returncode != 0:  # the API may say so at once
                assert "Invalid" in made.stderr or "invalid" in made.stderr, made.stderr
                continue
            event = c.wait_event(f"token-{i}", "FailedMount")
            assert "must be relative and may not contain" in event[2], event
            c.muster.kubectl("delete", "pod", f"token-{i}", "--force")
        equal(
            (canary.read_text(), canary.stat().st_mode & 0o777, os.listdir(canary.parent)),
            ("untouched", 0o600, ["canary"]),
        )
    finally:
        shutil.rmtree(canary.parent)


@check
def an_image_root_that_a_container_changed_leads_nowhere_when_it_restarts(c):
    """What a container did to its own /etc and /dev must not direct what is mounted and removed for its next start."""
    target = pathlib.Path(tempfile.mkdtemp(prefix="muster-canary-", dir="/var/tmp"))
    for name in ("hosts", "hostname", "resolv.conf"):
        (target / name).write_text("untouched")
    try:
        script = f"mv /etc /etc-was; ln -s {target} /etc; echo changed; exit 1"
        c.create(
            pod(
                "relinked", container={"image": "registry.example/small:1", "args": [script]}, restartPolicy="OnFailure"
            )
        )
        c.wait(
            "relinked",
            lambda p: p
            and p["status"].get("containerStatuses")
            and p["status"]["containerStatuses"][0]["restartCount"] >= 1,
            what="a restart",
        )
        until(
            "its second attempt ends",
            lambda: "terminated" in c.get("pod", "relinked")["status"]["containerStatuses"][0]["lastState"],
        )
        equal(
            {name: (target / name).read_text() for name in os.listdir(target)},
            {name: "untouched" for name in ("hosts", "hostname", "resolv.conf")},
        )
        c.muster.kubectl("delete", "pod", "relinked", "--force")
    finally:
        shutil.rmtree(target)


@check
def more_on_disk_than_allowed_is_evicted(c):
    write = "dd if=/dev/zero of=/t/big bs=1M count=5 2>/dev/null; echo written; exec sleep 1000"
    mounts = {"volumeMounts": [{"name": "t", "mountPath": "/t"}]}
    c.create(
        pod("big-volume", write, container=mounts, volumes=[{"name": "t", "emptyDir": {"sizeLimit": "1Mi"}}]),
        pod(
            "big-pod",
            write,
            container={**mounts, "resources": {"limits": {"ephemeral-storage": "1Mi"}}},
            volumes=SHARED,
        ),
        pod(
            "big-log",
            "yes | head -c 4000000; exec sleep 1000",
            container={"resources": {"limits": {"ephemeral-storage": "1Mi"}}},
        ),
        pod(
            "small",
            write,
            container={**mounts, "resources": {"limits": {"ephemeral-storage": "100Mi"}}},
            volumes=[{"name": "t", "emptyDir": {"sizeLimit": "50Mi"}}],
        ),
    )
    for name, message in (
        ("big-volume", 'Usage of EmptyDir volume "t" exceeds the limit "1Mi". '),
        ("big-pod", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "),
        ("big-log", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "),
    ):
        p = c.phase(name, "Failed", timeout=60)
        equal((p["status"]["reason"], p["status"]["message"]), ("Evicted", message))
        equal(c.wait_event(name, "Evicted"), ("Warning", "Evicted", message))
        equal(
            terminated(c.wait(name, lambda p: p and "terminated" in p["status"]["containerStatuses"][0]["state"]))[
                "exitCode"
            ],
            137,
        )
        left = c.muster.data / "agent" / "pods" / p["metadata"]["uid"] / "volumes"
        until("what it wrote is removed", lambda: not left.exists())
    equal(c.get("pod", "small")["status"]["phase"], "Running")
    c.muster.kubectl("delete", "pod", "small", "--force")


def make_muster():
    data = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
    small = data / "small"
    (small / "etc").mkdir(parents=True)
    wanted = {"/bin/sh", "/bin/mv", "/bin/ln", "/bin/ls"}
    for program in list(wanted):
        wanted |= {
            word
            for word in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split()
            if word.startswith("/")
        }
    for path in wanted:
        target = small / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    images = data / "images.yaml"
    images.write_text(
        f'images:\n- name: "registry.example/small:*"\n  root: {small}\n  entrypoint: [/bin/sh, -c]\n  env: {{PATH: "/bin:/usr/bin"}}\n'
    )
    muster = Muster("--images", str(images), data=data)
    muster.own_data = True
    return muster


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: volumes need root\n0 passed, 0 failed")
        sys.exit(0)
    run(make_muster)
