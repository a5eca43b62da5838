"""GPUs described by files of the Container Device Interface, given to pods of all three kinds: on this machine's files, from an image,
and under a container runtime. No GPU is needed: the descriptions name /dev/null and files of this test.

    python3 tests/agent/described_devices.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, check, equal, host_folder, pod, run, terminated, until  # noqa: E402
from checks import skip_all  # noqa: E402
from images import busybox, missing, write_archive  # noqa: E402
from muster import Muster  # noqa: E402

IMAGE = "docker.io/library/small:1"
KINDS = {"host": {"runtimeClassName": "host"}, "image": {}, "cri": {"runtimeClassName": "cri"}}
LOOK = "ls /dev | grep nvidia; ls /dev/nvidia-caps 2>/dev/null; echo $NVIDIA_VISIBLE_DEVICES,$VENDOR; echo $LD_LIBRARY_PATH; cat /vendor/lib/libcuda.so.1 /vendor/lib/libcuda.so 2>/dev/null; echo looked"


def description(folder):
    """Two GPUs, as nvidia-ctk writes them: a library of a version, and hooks that make its other names."""
    library = folder / "lib" / "libcuda.so.580.65.06"
    library.parent.mkdir()
    library.write_text("driver\n")
    (folder / "lib" / "libcuda.so.1").symlink_to(library.name)
    hook = {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook"}
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {
                "name": str(i),
                "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{i}", "hostPath": "/dev/null"}]},
            }
            for i in range(2)
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void", "VENDOR=said"],
            "deviceNodes": [
                {"path": "/dev/nvidiactl", "hostPath": "/dev/null"},
                {"path": "/dev/nvidia-caps/nvidia-cap1", "hostPath": "/dev/zero"},
            ],
            "mounts": [{"hostPath": str(library), "containerPath": f"/vendor/lib/{library.name}", "options": ["ro"]}],
            "hooks": [
                {**hook, "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/vendor/lib"]},
                {
                    **hook,
                    "args": ["nvidia-cdi-hook", "create-symlinks", "--link", "libcuda.so.1::/vendor/lib/libcuda.so"],
                },
                {**hook, "args": ["nvidia-cdi-hook", "chmod", "--mode", "755", "--path", "/dev/dri"]},
            ],
        },
    }


def gpu_pod(name, kind, script, gpus):
    limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return pod(name, script, container={"image": IMAGE, "imagePullPolicy": "IfNotPresent", **limits}, **KINDS[kind])


def finished(c, name):
    p = c.phase(name, "Succeeded", "Failed")
    equal((terminated(p)["exitCode"], c.logs(name))[0], 0)
    return c.logs(name)


@check
def a_node_has_the_gpus_that_are_described(c):
    node = c.get("node", "node-0")
    equal(node["status"]["capacity"]["nvidia.com/gpu"], "2")
    assert "muster.dev/gpu-simulated" not in node["metadata"]["labels"], node["metadata"]["labels"]


@check
def check_26_a_pod_has_the_files_of_its_gpus_alone(c):
    for kind in KINDS:
        held = f"held-{kind}"
        c.create(gpu_pod(held, kind, LOOK + "; exec sleep 1000", 1))
        c.running(held)
        c.create(gpu_pod(f"other-{kind}", kind, LOOK, 1), gpu_pod(f"none-{kind}", kind, LOOK, 0))
        wanted = "nvidia-caps\nnvidia{0}\nnvidiactl\nnvidia-cap1\n{0},said\n/vendor/lib\ndriver\ndriver\nlooked\n"
        until("that it has looked", lambda: c.logs(held).endswith("looked\n"))
        equal((kind, c.logs(held)), (kind, wanted.format(0)))
        equal(finished(c, f"other-{kind}"), wanted.format(1))
        equal(finished(c, f"none-{kind}"), "void,\n\nlooked\n")
        c.muster.kubectl("delete", "pod", held, "--now")


@check
def both_gpus_and_one_line_of_what_was_left_out(c):
    for kind in KINDS:
        script = "ls /dev | grep -E 'nvidia[0-9]'; echo x > /dev/nvidia1 && head -c 1 /dev/nvidia-caps/nvidia-cap1 | wc -c; echo w 2>/dev/null > /vendor/lib/libcuda.so.1 || echo read-only"
        c.create(gpu_pod(f"both-{kind}", kind, script, 2))
        equal(finished(c, f"both-{kind}"), "nvidia0\nnvidia1\n1\nread-only\n")
    lines = [line for line in c.muster.log().splitlines() if "chmod" in line]
    equal(len(lines), 1)
    assert "is not run" in lines[0], lines
    equal((c.folder / "lib" / "libcuda.so.580.65.06").read_text(), "driver\n")


@check
def a_description_that_names_nothing_holds_the_pod_up_with_a_reason(c):
    file = c.folder / "cdi" / "gpu.json"
    kept = file.read_text()
    for kind in KINDS:
        file.write_text(kept.replace("/dev/zero", "/dev/no-such-device"))
        c.create(gpu_pod(f"waits-{kind}", kind, "true", 1))
        _, _, message = c.wait_event(f"waits-{kind}", "Failed")
        assert '"/dev/no-such-device", which does not exist' in message, message
        file.write_text(kept)
        c.phase(f"waits-{kind}", "Succeeded")


def main():
    why = missing("containerd", "ctr", "runc", "busybox")
    if not why and not os.path.exists("/usr/lib/cni/bridge"):
        why = "containernetworking-plugins not installed"
    if not why and os.path.exists("/dev/nvidiactl"):
        why = "this machine has GPUs of its own"
    if why:
        skip_all(why)
    folder = pathlib.Path(host_folder("muster-cdi-"))
    folder.chmod(0o755)
    (folder / "cdi").mkdir()
    (folder / "cdi" / "gpu.json").write_text(json.dumps(description(folder)))
    muster = Muster("--image-source", "containerd", "--cdi-spec-dirs", str(folder / "cdi"), nodes=1)
    at = muster.args.index("--gpus")
    del muster.args[at : at + 2]
    (muster.data / "images").mkdir(parents=True)
    files = {**busybox(), "bin/head": ("link", "busybox"), "bin/wc": ("link", "busybox")}
    write_archive(muster.data / "images" / "small.tar", IMAGE, [files], {"Env": ["PATH=/bin"]})
    Cluster.folder = folder
    run(lambda: muster)


if __name__ == "__main__":
    main()
