"""GPUs that nobody assigned: annotations written by a user, pods bound without the scheduler; with restarts of muster in between.

    python3 tests/security/devices.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, pod, run, until  # noqa: E402
from muster import Muster  # noqa: E402

SHOW = "echo $NVIDIA_VISIBLE_DEVICES"
HOLD = SHOW + "; exec sleep 1000"
INDICES = "muster.dev/gpu-indices"


def gpu_pod(name, count, indices=None, script=HOLD, annotations=None, **spec):
    limits = {"container": {"resources": {"limits": {"nvidia.com/gpu": str(count)}}}} if count else {}
    notes = {**(annotations or {}), **({INDICES: indices} if indices is not None else {})}
    return pod(name, script, metadata={"annotations": notes}, **limits, **spec)


def seen(c, name):
    c.running(name)
    return until(f"{name} says what it sees", lambda: c.logs(name)).strip()


def rejected(c, name):
    p = c.phase(name, "Failed")
    c.wait_event(name, p["status"]["reason"])
    assert p["status"]["message"].startswith("Pod was rejected: "), p["status"]
    return p["status"]["reason"], p["status"]["message"]


def delete(c, *names):
    c.muster.kubectl("delete", "pod", *names, "--force")
    for name in names:
        c.gone(name)


def tried(c, body):
    """Creates what the API may refuse already. True: it is there."""
    return c.muster.kubectl("create", "-f", "-", input=json.dumps(body), check=False).returncode == 0


@check
def an_annotation_grants_no_device(c):
    c.create(gpu_pod("victim", 4, nodeName="node-0"))
    equal(seen(c, "victim"), "0,1,2,3")
    for name, spec in (("grab-bound", {"nodeName": "node-0"}), ("grab-scheduled", {})):
        if tried(c, gpu_pod(name, 0, "0,1,2,3", SHOW, **spec)):
            c.phase(name, "Succeeded")
            equal(c.logs(name), "void\n")
    delete(c, "victim")


@check
def devices_of_another_pod_are_refused(c):
    c.create(gpu_pod("legit", 4, nodeName="node-0"))
    equal(seen(c, "legit"), "0,1,2,3")
    for i, indices in enumerate(("0,1,2,3", None)):
        if tried(c, gpu_pod(f"forged-{i}", 4, indices, nodeName="node-0")):
            equal(
                rejected(c, f"forged-{i}"),
                (
                    "OutOfnvidia.com/gpu",
                    "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 4, used: 4, capacity: 4",
                ),
            )
    delete(c, "legit")


@check
def a_choice_that_cannot_be_is_refused(c):
    if not tried(c, gpu_pod("half", 2, "0,1", nodeName="node-1")):
        return  # the API keeps the annotation for the scheduler; nothing of it arrives here
    equal(seen(c, "half"), "0,1")
    cases = {
        "-1,2": "not naming GPUs of this node, which has 4",
        "../../x,2": "not naming GPUs",
        "2,4": "not naming GPUs",
        "2,2": "not naming GPUs",
        "2": "naming 1 GPUs of a pod that asks for 2",
        "1,2": "GPU 1 being held by another pod",
    }
    for i, (indices, why) in enumerate(cases.items()):
        c.create(gpu_pod(f"odd-{i}", 2, indices, nodeName="node-1"))
        reason, message = rejected(c, f"odd-{i}")
        assert reason == "UnexpectedAdmissionError" and why in message and message.endswith(", which is unexpected"), (
            indices,
            message,
        )
    c.create(gpu_pod("rest", 2, "3,2", nodeName="node-1"))
    equal(seen(c, "rest"), "3,2")
    delete(c, "half", "rest")


@check
def a_share_is_of_one_device_that_has_room(c):
    share = {"muster.dev/gpu-milli": "600"}
    c.create(gpu_pod("share-1", 0, annotations=share, nodeName="node-2"))
    equal(seen(c, "share-1"), "0")
    c.create(gpu_pod("share-2", 0, annotations=share, nodeName="node-2"))
    equal(seen(c, "share-2"), "1")
    c.create(gpu_pod("whole", 3, nodeName="node-2"))
    equal(rejected(c, "whole")[0], "OutOfnvidia.com/gpu")
    delete(c, "share-1", "share-2")


@check
def who_comes_after_a_pod_that_ends_waits_for_it(c):
    slow = gpu_pod(
        "slow", 4, script="trap 'sleep 2; exit 0' TERM; echo ready; while :; do sleep 0.1; done", nodeName="node-2"
    )
    c.create(slow)
    until("slow is ready", lambda: c.muster.kubectl("logs", "slow", check=False).stdout)
    c.muster.kubectl("delete", "pod", "slow", "--wait=false")
    c.create(gpu_pod("next", 4, nodeName="node-2"))
    equal(seen(c, "next"), "0,1,2,3")
    delete(c, "next")


@check
def devices_stay_with_their_pod_when_muster_is_killed(c):
    c.create(gpu_pod("keeps", 3, nodeName="node-0"))
    equal(seen(c, "keeps"), "0,1,2")
    c.muster.kill()
    c.muster.start()
    c.create(gpu_pod("thief", 3, nodeName="node-0"))
    equal(rejected(c, "thief")[0], "OutOfnvidia.com/gpu")
    c.create(gpu_pod("modest", 1, nodeName="node-0"))
    equal(seen(c, "modest"), "3")
    delete(c, "keeps", "modest")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: needs root\n0 passed, 0 failed")
        sys.exit(0)
    run(lambda: Muster(nodes=3, gpus=4))
