"""What a killed muster leaves on the machine, and who removes it.

Network namespaces, mounts, control groups, links, rules and processes of pods outlive `kill -9` on purpose: the next start
goes on with them. A stop in order removes them; a start of any muster removes those whose data folder is gone.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, equal, pod, traces  # noqa: E402
from muster import Muster  # noqa: E402


def pids(pattern):
    return [int(p) for p in subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True).stdout.split()]


def wait(what, condition, timeout=30):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def start(muster, name, script):
    cluster = Cluster(muster)
    cluster.create(pod(name, script, container={"resources": {"limits": {"memory": "64Mi", "cpu": "100m"}}, "volumeMounts": [{"name": "m", "mountPath": "/m"}]},
                       volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}]))
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
        wait("the pod outlives a stop", lambda: not pids("sleep 5551"))
        equal(traces(muster, network), [])


def another_start_removes_what_nobody_owns():
    crashed = Muster()
    crashed.start()
    network = start(crashed, "two", "exec sleep 5552")
    crashed.kill()
    for pid in pids(f"agent-shim {crashed.data}"):
        os.kill(pid, signal.SIGTERM)  # the keeper ends on SIGTERM like any process
    wait("the keeper ignores SIGTERM", lambda: not pids(f"agent-shim {crashed.data}"))
    for pid in pids("sleep 5552"):  # the machine is short of memory, say
        os.kill(pid, signal.SIGKILL)
    supervisors = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_supervisor(p, network)]
    for pid in supervisors:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(crashed.data, ignore_errors=True)
    assert traces(crashed, network), "nothing to clean up: this test tests nothing"
    with Muster():
        wait("left-overs stay", lambda: not traces(crashed, network))
        assert not crashed.data.exists(), os.listdir(crashed.data)


def is_supervisor(pid, network):
    try:
        return open(f"/proc/{pid}/comm").read() == "muster-pod\n" and has_address(pid, network)
    except OSError:
        return False


def has_address(pid, network):
    base = network["base"]
    prefix = f"{base >> 24}.{base >> 16 & 255}."
    return prefix in subprocess.run(["nsenter", "-t", pid, "-n", "ip", "-o", "-4", "addr"], capture_output=True, text=True).stdout


def main():
    if os.geteuid() != 0:
        print("SKIPPED: without root nothing is left but processes\n0 passed, 0 failed")
        return
    passed = failed = 0
    for one in (a_stop_after_a_crash_removes_everything, another_start_removes_what_nobody_owns):
        try:
            one()
            passed += 1
            print(f"ok    {one.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001
            failed += 1
            import traceback
            print(f"FAIL  {one.__name__}: {error}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
