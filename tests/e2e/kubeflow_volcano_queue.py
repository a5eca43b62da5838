#!/usr/bin/env python3
"""Kubeflow PyTorchJobs under a Volcano queue: priority order and passing a blocked job, with the real kubectl on real
processes.

Two experiments. A queue holds 8 GPUs; a job takes 6 of them.
1. One job runs; a default-priority and then a high-priority job wait; the high one runs first.
2. One job runs; an equal one waits; a job that needs a single GPU runs at once beside the first.
The states are those `kubectl get pytorchjob -w` and `kubectl get podgroup -owide -w` print.
"""
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster, kubectls  # noqa: E402

PRIORITY = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high-priority}
value: 1000000
globalDefault: false
"""
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: test}
spec:
  weight: 1
  reclaimable: false
  capability: {nvidia.com/gpu: 8}
"""


def job(priority=True, workers=True, seconds=4):
    pod = f"""
      template:
        spec:
          containers:
          - name: pytorch
            image: pytorch/pytorch:latest
            command: [sh, -c, "echo rank $RANK of $WORLD_SIZE; sleep {seconds}"]
            resources:
              requests: {{cpu: 10m}}
              limits: {{cpu: 100m, nvidia.com/gpu: 1}}
"""
    text = (
        """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {generateName: job-}
spec:
  runPolicy:
    cleanPodPolicy: None
    schedulingPolicy:
      queue: test
"""
        + ("      priorityClass: high-priority\n" if priority else "")
        + """
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
"""
        + pod
    )
    if workers:
        text += (
            """
    Worker:
      replicas: 5
      restartPolicy: Never
"""
            + pod
        )
    return text


class Watch:
    """kubectl get … -w in the background, already listening when this returns; every row by the object's name."""

    def __init__(self, muster, *args):
        self.rows, self.lines = {}, []
        self.listening = threading.Event()
        self.process = subprocess.Popen(
            [kubectls()[0][1], "get", *args, "-w", "--no-headers", "-v=6"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=muster.env(),
        )
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.read_requests, daemon=True).start()
        if not self.listening.wait(60):
            raise RuntimeError(f"kubectl get {' '.join(args)} -w did not begin to watch within a minute")

    def read_requests(self):
        """kubectl tells its requests when they are answered; what is made after the watch's answer is in the watch."""
        for line in self.process.stderr:
            if "watch=true" in line:
                self.listening.set()

    def read(self):
        for line in self.process.stdout:
            cells = line.split()
            self.lines.append(line.rstrip())
            if cells:
                self.rows.setdefault(cells[0], []).append(cells[1:])

    def states(self, name, known):
        """The distinct states of an object in order; a first row without one is blank."""
        out = []
        for cells in self.rows.get(name, []):
            state = cells[0] if cells and cells[0] in known else ""
            if not out or out[-1] != state:
                out.append(state)
        return out

    def wait(self, name, known, state, timeout=20):
        """Until kubectl has printed the state."""
        deadline = time.monotonic() + timeout
        while state not in self.states(name, known) and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()


JOB_STATES = {"Created", "Running", "Succeeded", "Failed", "Restarting", "Suspended"}
GROUP_STATES = {"Pending", "Inqueue", "Running", "Unknown", "Completed"}
check = Checks()


def create(muster, text):
    return muster.kubectl("create", "-f", "-", "-o", "name", input=text).stdout.strip().split("/")[1]


def wait_state(muster, name, state, timeout=60):
    muster.kubectl("wait", f"pytorchjob/{name}", f"--for=condition={state}", f"--timeout={timeout}s")


def started(muster, name):
    pod = muster.kubectl("get", "pod", f"{name}-master-0", "-o", "jsonpath={.status.startTime}")
    return pod.stdout


def main():
    with Muster(nodes=3, gpus=4) as muster:
        done = muster.kubectl("apply", "-f", "-", input=PRIORITY)
        check("priority class", done.stdout == "priorityclass.scheduling.k8s.io/high-priority created\n", done.stdout)
        done = muster.kubectl("apply", "-f", "-", input=QUEUE)
        check("queue", done.stdout == "queue.scheduling.volcano.sh/test created\n", done.stdout)
        jobs, groups = Watch(muster, "pytorchjob"), Watch(muster, "podgroups.scheduling.volcano.sh", "-owide")

        # Experiment 1: the high-priority job overtakes the default one, evicting nobody.
        first = create(muster, job(seconds=8))
        wait_state(muster, first, "Running")
        low = create(muster, job(priority=False))
        muster.wait_idle()
        high = create(muster, job())
        for name in (first, high, low):
            wait_state(muster, name, "Succeeded", 90)
        for name in (first, high, low):
            jobs.wait(name, JOB_STATES, "Succeeded")
            states = jobs.states(name, JOB_STATES)
            check(f"states of {name}", states == ["", "Created", "Running", "Succeeded"], jobs.lines)
            seen = groups.states(name, GROUP_STATES)
            first_states = [state for state in seen if state][:2]
            check(
                f"group states of {name}",
                first_states == ["Inqueue", "Running"] and "Pending" not in seen,
                groups.lines,
            )
        check(
            "high priority runs before default",
            started(muster, high) < started(muster, low),
            (started(muster, high), started(muster, low)),
        )
        check(
            "the queue column shows",
            any(cells and cells[-1] == "test" for cells in groups.rows.get(first, [])),
            groups.lines,
        )
        check("nobody was evicted", "Preempted" not in muster.kubectl("get", "events").stdout)

        # Experiment 2: a job that fits passes one that does not.
        big = create(muster, job(seconds=8))
        wait_state(muster, big, "Running")
        blocked = create(muster, job())
        muster.wait_idle()
        small = create(muster, job(workers=False, seconds=2))
        wait_state(muster, small, "Running", 30)
        state = muster.kubectl("get", "pytorchjob", blocked, "-o", "jsonpath={.status.conditions[-1:].type}").stdout
        check("the small job runs while the large one waits", state == "Created", state)
        for name in (small, big, blocked):
            wait_state(muster, name, "Succeeded", 90)
        check("the small job started first", started(muster, small) < started(muster, blocked))
        master = muster.kubectl("logs", f"{big}-master-0").stdout
        check("the program ran with its rank", master == "rank 0 of 6\n", master)
        jobs.stop()
        groups.stop()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
