"""What a killed muster leaves on the machine, and who removes it.

Network namespaces, mounts, control groups, links, rules and processes of pods outlive `kill -9` on purpose: the next
start takes them over. An orderly stop removes them; any muster that starts removes those whose data folder is gone.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, equal, pod, tally, traces, until  # noqa: E402
from checks import Skipped, skip_all  # noqa: E402
from muster import Muster  # noqa: E402


def pids(pattern):
    return [int(p) for p in subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout.split()]


def start(muster, name, script):
    cluster = Cluster(muster)
    cluster.create(
        pod(
            name,
            script,
            container={
                "resources": {"limits": {"memory": "64Mi", "cpu": "100m"}},
                "volumeMounts": [{"name": "m", "mountPath": "/m"}],
            },
            volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}],
        )
    )
    cluster.running(name)
    return json.loads((muster.data / "agent" / "network.json").read_text())


def a_stop_after_a_crash_removes_everything():
    with Muster() as muster:
        network = start(muster, "one", "exec sleep 5551")
        muster.kill()
        assert pids("sleep 5551"), "a pod ends with its agent"
        assert traces(muster, network), "nothing to clean up: this test tests nothing"
        muster.start()
        assert pids("sleep 5551"), "the next start killed the pod"
        muster.stop()
        until("the pod outlives a stop", lambda: not pids("sleep 5551"))
        equal(traces(muster, network), [])


def another_start_removes_what_nobody_owns():
    """Any start does, also that of somebody else's cluster on this machine, which may come first: then there is nothing to see
    here, and it is tried again."""
    for _ in range(4):
        if left_overs_are_removed():
            return
    raise AssertionError("nothing to clean up, four times: this test tests nothing")


def left_overs_are_removed():
    crashed = Muster()
    crashed.start()
    network = start(crashed, "two", "exec sleep 5552")
    crashed.kill()
    for pid in pids(f"agent-shim {crashed.data}"):  # the keeper ends on SIGTERM like any process
        with contextlib.suppress(ProcessLookupError):  # a sandbox that waits ends with its agent by itself
            os.kill(pid, signal.SIGTERM)
    until("the keeper ignores SIGTERM", lambda: not pids(f"agent-shim {crashed.data}"))
    for pid in pids("sleep 5552"):  # the machine is short of memory, say
        os.kill(pid, signal.SIGKILL)
    supervisors = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_supervisor(p, network)]
    for pid in supervisors:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(crashed.data, ignore_errors=True)
    found = traces(crashed, network)
    with Muster():
        until("left-overs stay", lambda: not traces(crashed, network))
        assert not crashed.data.exists(), os.listdir(crashed.data)
    return bool(found)


def is_supervisor(pid, network):
    try:
        return open(f"/proc/{pid}/comm").read() == "muster-pod\n" and has_address(pid, network)
    except OSError:
        return False


def has_address(pid, network):
    base = network["base"]
    prefix = f"{base >> 24}.{base >> 16 & 255}."
    return (
        prefix
        in subprocess.run(["nsenter", "-t", pid, "-n", "ip", "-o", "-4", "addr"], capture_output=True, text=True).stdout
    )


def rules_of_a_bridge_that_is_gone_are_removed():
    if not shutil.which("iptables"):
        raise Skipped("no iptables")
    for words in (
        "-t nat -N MUSTER-SVC-00c0ffee",
        "-t nat -N MUSTER-OUT-00c0ffee",
        "-t filter -N MUSTER-FWD-00c0ffee",
        "-t nat -I PREROUTING -i mstr00c0ffee -j MUSTER-SVC-00c0ffee",
        "-t nat -I POSTROUTING -j MUSTER-OUT-00c0ffee",
        "-t filter -I FORWARD -j MUSTER-FWD-00c0ffee",
        "-t nat -A MUSTER-SVC-00c0ffee -j RETURN",
    ):
        subprocess.run(["iptables", "-w", *words.split()], check=True)
    with Muster() as muster:
        own = json.loads((muster.data / "agent" / "network.json").read_text())["bridge"][4:]
        rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
        assert "00c0ffee" not in rules, rules
        until(
            "the new muster's own rules",
            lambda: own in subprocess.run(["iptables-save"], capture_output=True, text=True).stdout,
        )


def sandboxes_that_wait_end_with_their_agent():
    """Those made ahead, and those whose pods are over."""
    with Muster() as muster:
        network = json.loads((muster.data / "agent" / "network.json").read_text())
        ports = pathlib.Path("/sys/class/net") / network["bridge"] / "brif"
        until("sandboxes are made ahead", lambda: len(os.listdir(ports)) >= 4)
        cluster = Cluster(muster)
        for name in ("short-1", "short-2", "short-3"):
            cluster.create(pod(name, "true"))
        for name in ("short-1", "short-2", "short-3"):
            cluster.phase(name, "Succeeded")
        cluster.create(pod("stays", "exec sleep 5553"))
        cluster.running("stays")
        muster.kill()
        until("those that nobody uses end", lambda: len(os.listdir(ports)) == 1)
        assert pids("sleep 5553"), "a pod ends with its agent"
        muster.start()
        until("they are made again", lambda: len(os.listdir(ports)) >= 4)


def main():
    if os.geteuid() != 0:
        skip_all("without root nothing is left but processes")
    status = tally(
        [
            a_stop_after_a_crash_removes_everything,
            another_start_removes_what_nobody_owns,
            rules_of_a_bridge_that_is_gone_are_removed,
            sandboxes_that_wait_end_with_their_agent,
        ]
    )
    sys.exit(status)


if __name__ == "__main__":
    main()
