#!/usr/bin/env python3
"""The command line on a real cluster: what the commands do, not only what they print.

One cluster of two nodes with two GPUs each; jobs are real processes. Every section creates and removes its own jobs.
"""
import http.client
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import socket
import stat
import subprocess
import struct
import sys
import tempfile
import time
import fcntl
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster, binary  # noqa: E402


check = Checks()


class Cli:
    """The program under one name on one cluster."""

    def __init__(self, muster, name="muster"):
        self.muster = muster
        self.path = pathlib.Path(muster.data) / "bin" / name
        self.path.parent.mkdir(exist_ok=True)
        if not self.path.exists():
            self.path.symlink_to(binary())

    def __call__(self, *words, env=None, **kwargs):
        done = subprocess.run(
            [str(self.path), *words],
            env={**self.muster.env(), **(env or {})},
            capture_output=True,
            text=True,
            timeout=120,
            **kwargs,
        )
        return done.returncode, done.stdout, done.stderr

    def start(self, *words):
        return subprocess.Popen(
            [str(self.path), *words], env=self.muster.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def status(self, job):
        code, out, _ = self("get", job, "-o", "json")
        return json.loads(out)["status"] if code == 0 else "none"

    def until(self, job, *states, timeout=90):
        deadline = time.monotonic() + timeout
        state = ""
        while time.monotonic() < deadline:
            state = self.status(job)
            if state in states:
                return True
            time.sleep(0.1)
        print(f"     {job} is {state}, not {states}\n{self('explain', job)[1]}")
        return False

    def terminal(self, *words, columns=80, env=None):
        """Output as a terminal of that width gets it."""
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [str(self.path), *words],
            env={**self.muster.env(), "TERM": "xterm", **(env or {})},
            stdout=side,
            stderr=side,
            stdin=subprocess.DEVNULL,
        )
        os.close(side)
        text = b""
        while True:
            ready, _, _ = select.select([main], [], [], 30)
            try:
                piece = os.read(main, 65536) if ready else b""
            except OSError:
                piece = b""
            if not piece:
                break
            text += piece
        process.wait()
        os.close(main)
        return text.decode().replace("\r\n", "\n")


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text)


def errors(cli, muster):
    """What can be wrong around the command, in the user's words."""
    with tempfile.TemporaryDirectory() as empty:
        nowhere = {"KUBECONFIG": "", "HOME": empty, "MUSTER_HOME": empty}
        code, _, err = cli("list", env=nowhere)
        check("no cluster: says how to get one", code == 1 and "no cluster" in err and "muster up" in err, err)
        config = pathlib.Path(empty) / "config"
        text = pathlib.Path(muster.kubeconfig).read_text()
        config.write_text(re.sub(r"server: .*", "server: https://127.0.0.1:1", text).replace("api.sock", "no.sock"))
        code, _, err = cli("list", env={"KUBECONFIG": str(config)})
        check(
            "a server that is down: names it and the file",
            code == 1 and "cannot be reached" in err and "https://127.0.0.1:1" in err and str(config) in err,
            err,
        )
        config.write_text(
            re.sub(r"client-(certificate|key)-data: .*\n *", "", re.sub(r"token: .*", "token: expired", text))
        )
        code, _, err = cli("list", env={"KUBECONFIG": str(config)})
        check("credentials that are refused: says so", code == 1 and "credentials" in err and "expired" in err, err)
        both = pathlib.Path(empty) / "empty"
        both.write_text("apiVersion: v1\nkind: Config\n")
        code, out, err = cli("list", env={"KUBECONFIG": f"{both}:{muster.kubeconfig}"})
        check("$KUBECONFIG may list several files", code == 0 and out.startswith("NAME"), out + err)
    code, _, err = cli("get", "nobody")
    check("unknown job", code == 1 and "not found training job nobody" in err and "muster submit" in err, err)
    code, _, err = cli("get", "x", "-T", "nope")
    check("unknown type names the known ones", code == 1 and "muster only supports" in err and "mpi(MPI)" in err, err)
    code, _, err = cli("submit", "pytorch", "--name=x", "--image=x", "--priority=nope", "true")
    check("unknown priority class", code == 1 and "priority nope doesn't exist" in err, err)
    code, _, err = cli("submit", "pytorch", "--name=x", "--image=x", "--queue=nope", "true")
    check("unknown queue", code == 1 and "queue nope doesn't exist" in err, err)
    for typo, meant in ((["lst"], "list"), (["submit", "pytroch"], "pytorch"), (["list", "--stauts", "x"], "--status")):
        code, _, err = cli(*typo)
        check(f"{' '.join(typo)}: suggests {meant}", code == 1 and meant in err, err)
    code, _, err = cli("submit", "rayjob", "--name=x", "--image=x", "true")
    check("a type without a controller is refused plainly", code == 1 and "operator" in err, err)


def submit_and_wait(cli):
    code, out, err = cli(
        "submit", "pytorch", "--name=good", "--image=x", "--gpus=1", "--wait", "echo hello; echo again"
    )
    check("submit --wait follows a job to its end", code == 0 and "is SUCCEEDED" in err, err)
    check("hints name the program as it was called", "`muster get good --type pytorchjob`" in err, err)
    code, out, err = cli("submit", "pytorch", "--name=bad", "--image=x", "--wait", "exit 7")
    check("submit --wait: a job that fails exits 3", code == 3 and "is FAILED" in err, f"{code}\n{err}")
    code, out, err = cli(
        "submit", "pytorch", "--name=huge", "--image=x", "--gpus=64", "--wait=running", "--timeout=2s", "true"
    )
    check(
        "submit --wait --timeout exits 4 and told why it waited",
        code == 4 and "waits:" in err and "still" in err,
        f"{code}\n{err}",
    )
    code, out, _ = cli("explain", "huge")
    check("explain gives numbers", "64 GPUs" in out and re.search(r"\d", out.split("Waiting:")[-1]), out)
    code, out, err = cli("logs", "good")
    check("logs", out == "hello\nagain\n", out + err)
    code, out, err = cli("logs", "good", "-t", "1")
    check("logs -t 1", out == "again\n", out + err)
    code, out, err = cli("logs", "good", "--timestamps", "--since", "1h")
    check("logs --timestamps --since", re.match(r"\d{4}-\d\d-\d\dT\S+ hello\n", out), out + err)
    code, out, err = cli("logs", "huge")
    check("logs of a job that waits point to explain", code == 1 and "muster explain huge" in err, err)
    code, out, err = cli("delete", "huge", "nobody", "bad")
    check(
        "delete goes on after a name that is not there",
        code == 0
        and "huge has been deleted" in err
        and "'nobody' does not exist" in err
        and "bad has been deleted" in err,
        err,
    )
    cli("delete", "good")


def instances(cli):
    cli(
        "submit",
        "pytorch",
        "--name=duo",
        "--image=x",
        "--gpus=1",
        "--workers=2",
        "for i in 1 2 3; do echo line $i of $HOSTNAME; done; until [ -e /tmp/muster-cli-go ]; do sleep 0.1; done; echo end",
    )
    check("two instances run", cli.until("duo", "RUNNING"))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and cli("logs", "duo", "-i", "duo-worker-0")[1].count("line") < 3:
        time.sleep(0.1)
    code, out, err = cli("logs", "duo", "--instance", "duo-worker-0", "-t", "1")
    check("logs --instance", "line 3" in out, out + err)
    code, out, err = cli("logs", "duo", "-i", "nobody")
    check("logs of an unknown instance names the known ones", code == 1 and "duo-master-0, duo-worker-0" in err, err)
    follow = cli.start("logs", "-f", "duo")
    code, out, err = cli("attach", "duo", "--", "sh", "-c", "echo inside $HOSTNAME; exit 5")
    check("attach runs a command and exits as it did", code == 5 and "inside" in out, f"{code}\n{out}{err}")
    code, out, err = cli("attach", "duo", "-i", "duo-worker-0", input="echo typed\nexit 0\n")
    check("attach reads its input", code == 0 and "typed" in out, f"{code}\n{out}{err}")
    code, out, _ = cli("top", "job", "duo")
    check("top job", "duo-master-0" in out and "Allocated/Requested GPUs of Job: 2/2" in out, out)
    code, out, _ = cli("top", "node", "-d")
    check("top node -d lists the instances", "duo-master-0" in out and "2/4 (50%)" in out, out)
    code, out, _ = cli("get", "duo", "-e")
    check("get -e", "[Scheduled]" in out and "pod/duo-master-0" in out, out)
    code, out, _ = cli("get", "duo", "-o", "wide")
    check("get -o wide", re.search(r"duo-master-0 +Running +\d+s +true +1 ", out), out)
    code, out, _ = cli("list", "-A")
    check("list -A", "NAMESPACE" in out and re.search(r"default +duo +RUNNING", out), out)
    code, out, _ = cli("list", "-q", "-T", "py")
    check("list -q -T py", out == "duo\n", out)
    watch = cli.start("get", "duo", "--watch")
    check("get --watch begins with the state", watch.stdout.readline() == "STATUS: RUNNING\n")
    for instance in ("duo-worker-0", "duo-master-0"):
        cli("attach", "duo", "-i", instance, "--", "touch", "/tmp/muster-cli-go")
    out, _ = watch.communicate(timeout=60)
    check("get --watch ends with the job", watch.returncode == 0 and "STATUS: SUCCEEDED" in out, out)
    out, _ = follow.communicate(timeout=60)
    check("logs -f ends with the instance", follow.returncode == 0 and out.endswith("end\n"), out)
    code, out, err = cli("attach", "duo")
    check("attach to a finished instance is refused", code == 1 and "completed instance" in err, err)


def prune(cli):
    cli("submit", "pytorch", "--name=stays", "--image=x", "sleep 300")
    cli.until("stays", "RUNNING")
    code, out, _ = cli("prune", "-s", "0s", "--dry-run")
    code, out, err = cli("prune", "-s", "0s")
    check(
        "prune deletes finished jobs only",
        code == 0 and "Delete pytorchjob duo" in out and "stays" not in out,
        out + err,
    )
    code, out, _ = cli("list", "-q")
    check("what runs is still there", out == "stays\n", out)
    code, out, _ = cli("prune", "-s", "0s")
    check("prune with nothing to do", out == "No job need to be deleted\n", out)
    cli("delete", "stays")


def code_and_files(cli):
    with tempfile.TemporaryDirectory(prefix="muster-code-", dir="/srv" if os.geteuid() == 0 else None) as place:
        os.chmod(place, 0o755)
        fetch_code(cli, pathlib.Path(place))


def fetch_code(cli, work):
    """`work` is where pods see it: the data folder and /tmp of this machine are not."""
    repository = work / "hello.git"
    subprocess.run(
        f"""git init -q -b main {repository} && cd {repository} && echo 'print("from git", 6*7)' > run.py && git add . &&
        git -c user.name=x -c user.email=x@x commit -q -m one""",
        shell=True,
        check=True,
    )
    code, _, err = cli(
        "submit",
        "pytorch",
        "--name=git",
        "--image=x",
        "--sync-mode=git",
        f"--sync-source={repository}",
        "--wait",
        "python3 /root/code/hello/run.py",
    )
    check(
        "--sync-mode git fetches the code",
        code == 0 and cli("logs", "git")[1] == "from git 42\n",
        err + cli("logs", "git")[1],
    )
    if shutil.which("rsync"):
        (work / "tree").mkdir()
        (work / "tree" / "run.sh").write_text("echo from rsync\n")
        code, _, err = cli(
            "submit",
            "pytorch",
            "--name=rsync",
            "--image=x",
            "--sync-mode=rsync",
            f"--sync-source={work}/tree",
            "--wait",
            "sh /root/code/tree/run.sh",
        )
        check(
            "--sync-mode rsync fetches the code",
            code == 0 and "from rsync" in cli("logs", "rsync")[1],
            err + cli("logs", "rsync")[1],
        )
    else:
        check.skip("--sync-mode rsync fetches the code", "rsync is not installed")
    (work / "settings.ini").write_text("rate=3\n")
    code, _, err = cli(
        "submit",
        "pytorch",
        "--name=files",
        "--image=x",
        f"--config-file={work}/settings.ini:/etc/trainer/settings.ini",
        "--wait",
        "cat /etc/trainer/settings.ini",
    )
    check("--config-file", code == 0 and cli("logs", "files")[1] == "rate=3\n", err + cli("logs", "files")[1])
    code, out, _ = cli("submit", "pytorch", "--name=dry", "--image=x", "--dry-run", "true")
    check("--dry-run creates nothing", code == 0 and "kind: PyTorchJob" in out and cli.status("dry") == "none", out)
    cli("delete", "git", "rsync", "files")


def suspend(cli):
    for kind, name in (("pytorch", "nap"), ("mpi", "nap-mpi"), ("volcanojob", "nap-vj")):
        words = ["--task-images=x", "--task-gpus=1"] if kind == "volcanojob" else ["--image=x", "--gpus=1"]
        cli("submit", kind, f"--name={name}", *words, "sleep 300")
        running = cli.until(name, "RUNNING")
        code, _, err = cli("suspend", name)
        check(
            f"suspend takes a {kind} job off the cluster", running and code == 0 and cli.until(name, "SUSPENDED"), err
        )
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline and "0/4" not in cli("top", "node")[1]:
            time.sleep(0.2)
        check("its GPUs are free", "0/4 (0%)" in cli("top", "node")[1], cli("top", "node", "-d")[1])
        check(
            "explain says how to resume it", f"muster resume {name}" in cli("explain", name)[1], cli("explain", name)[1]
        )
        code, _, err = cli("resume", name)
        check(f"resume brings a {kind} job back", code == 0 and cli.until(name, "RUNNING"), err)
        cli("delete", name)


def preemption(cli):
    for name, value in (("critical", "1100000"), ("medium", "1000000")):
        cli("priority", "create", name, f"--value={value}")
    cli("submit", "pytorch", "--name=fails", "--priority=medium", "--image=x", "--gpus=2", "sleep 300")
    cli(
        "submit",
        "pytorch",
        "--name=comes-back",
        "--priority=medium",
        "--image=x",
        "--gpus=2",
        "--on-preempt=requeue",
        "sleep 300",
    )
    both = cli.until("fails", "RUNNING") and cli.until("comes-back", "RUNNING")
    cli(
        "submit",
        "pytorch",
        "--name=boss",
        "--priority=critical",
        "--image=x",
        "--gpus=2",
        "--workers=2",
        "--gang",
        "sleep 300",
    )
    check("a critical gang takes all GPUs", both and cli.until("boss", "RUNNING"))
    check("a preempted job fails", cli.until("fails", "FAILED"))
    check(
        "one with --on-preempt=requeue waits",
        cli.until("comes-back", "PENDING", "QUEUING"),
        cli("get", "comes-back")[1],
    )
    check("explain tells of the preemption", "Preempted" in cli("explain", "fails")[1], cli("explain", "fails")[1])
    cli("delete", "boss")
    check("and comes back", cli.until("comes-back", "RUNNING"))
    cli("delete", "fails", "comes-back")


def queues(cli):
    code, out, err = cli("queue", "create", "night", "--weight=2", "--capability=nvidia.com/gpu=1")
    check("queue create", code == 0 and "night created" in out, out + err)
    cli("submit", "pytorch", "--name=first", "--image=x", "--gpus=1", "--queue=night", "sleep 300")
    check("a job of the queue runs", cli.until("first", "RUNNING"))
    cli("submit", "pytorch", "--name=second", "--image=x", "--gpus=1", "--queue=night", "sleep 300")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and "night" not in cli("explain", "second")[1]:
        time.sleep(0.2)
    code, out, _ = cli("explain", "second")
    check("explain names the queue and its limit", "Queue night" in out and "at most 1" in out, out)
    code, out, _ = cli("queue", "list")
    check("queue list", re.search(r"night +\S+ +2 +Open", out), out)
    code, out, _ = cli("list", "--queue", "night", "-q")
    check("list --queue", sorted(out.split()) == ["first", "second"], out)
    cli("queue", "set", "night", "--capability=nvidia.com/gpu=2")
    check("queue set lets the second start", cli.until("second", "RUNNING"))
    cli("queue", "close", "night")
    code, out, _ = cli("queue", "get", "night")
    check("queue close", re.search(r"State: +Clos", out), out)
    cli("queue", "open", "night")
    cli("delete", "first", "second")
    code, out, err = cli("queue", "delete", "night")
    check("queue delete", code == 0, out + err)


POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  containers: [{{name: c, image: x, command: [sleep, "300"], resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]
"""


def plain_pods(cli):
    for name in ("holds-a", "holds-b", "waits"):
        cli.muster.kubectl("create", "-f", "-", input=POD.format(name=name, gpus=2))
        cli.muster.kubectl(
            "wait",
            f"pod/{name}",
            "--for=condition=PodScheduled" + ("=false" if name == "waits" else ""),
            "--timeout=60s",
        )
    cli.muster.kubectl("wait", "pod/holds-a", "pod/holds-b", "--for=condition=Ready", "--timeout=60s")
    code, out, err = cli("explain", "waits")
    check(
        "explain tells why a pod without a job waits",
        code == 0 and "waits has waited" in out and "2 Insufficient nvidia.com/gpu" in out,
        out + err,
    )
    check("and who holds its GPUs", re.search(r"GPUs are held by:\n( +pod/holds-[ab] +2 GPUs.*\n){2}", out), out)
    code, out, err = cli("explain", "pod/holds-a")
    check("explain pod/NAME", code == 0 and "holds-a runs for" in out, out + err)
    code, out, err = cli("explain", "nobody")
    check(
        "explain of what is not there names both kinds",
        code == 1 and "neither a training job nor a pod nobody" in err,
        err,
    )
    cli.muster.kubectl("delete", "pod", "holds-a", "holds-b", "waits", "--grace-period=1")


def kinds(cli):
    code, _, err = cli(
        "submit",
        "tf",
        "--name=tf",
        "--image=x",
        "--workers=2",
        "--ps=1",
        "--clean-task-policy=All",
        "--wait",
        'echo $TF_CONFIG; [ "${TF_CONFIG#*ps}" = "$TF_CONFIG" ] || case "$TF_CONFIG" in *\'"type":"ps"\'*) sleep 300;; esac',
    )
    check("submit tf runs workers and a parameter server", code == 0, err)
    code, _, err = cli(
        "submit",
        "horovod",
        "--name=hvd",
        "--image=x",
        "--workers=2",
        "--wait",
        "mpirun --allow-run-as-root -np 2 hostname" if os.geteuid() == 0 else "mpirun -np 2 hostname",
    )
    check(
        "submit horovod runs under mpirun",
        code == 0 and {"hvd-worker-0", "hvd-worker-1"} <= set(cli("logs", "hvd")[1].splitlines()),
        err + cli("logs", "hvd")[1],
    )
    code, _, err = cli(
        "submit",
        "volcanojob",
        "--name=vj",
        "--task-images=x,y",
        "--task-replicas=2",
        "--min-available=4",
        "--wait",
        "echo task",
    )
    check("submit volcanojob runs its tasks", code == 0, err)
    code, out, _ = cli("get", "vj")
    check("its instances are shown", out.count("SUCCEEDED  VOLCANOJOB") == 4, out)
    cli("delete", "tf", "hvd", "vj")
    code, _, err = cli("submit", "volcanojob", "--name=vj2", "--task-images=x", "--wait", "exit 3")
    check("a volcanojob whose task fails has failed", code == 3, f"{code}\n{err}")
    cli("delete", "vj2")


PAI = """
protocolVersion: 2
name: Pai_Hello
type: job
jobRetryCount: 0
parameters: {word: hello}
prerequisites: [{name: image, type: dockerimage, uri: any}]
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 1}
    commands:
    - echo <% $parameters.word %> $PAI_CURRENT_TASK_ROLE_NAME $PAI_TASK_INDEX of $PAI_TASK_ROLE_TASK_COUNT_worker
    - test -n "$PAI_HOST_IP_worker_1" -a -n "$PAI_PORT_LIST_worker_0_http"
extras: {hivedScheduler: {jobPriorityClass: prod}}
"""


def pai(cli, muster):
    file = muster.data / "job.yaml"
    file.write_text(PAI)
    code, _, err = cli("submit", "pai", str(file), "--wait")
    framework = hashlib.md5(f"{json.loads(cli('whoami')[1])['Name']}~Pai_Hello".encode()).hexdigest()
    out = cli("logs", "Pai_Hello", "-i", f"{framework}-worker-1")[1]
    check(
        "a job of OpenPAI's protocol runs, with its variables", code == 0 and out == "hello worker 1 of 2\n", err + out
    )
    check("its priority is OpenPAI's word", "PRIORITY: prod" in cli("get", "Pai_Hello")[1], cli("get", "Pai_Hello")[1])
    code, _, err = cli("submit", "pai", str(file))
    check("a second job of the name is refused", code == 1 and "~Pai_Hello already exists." in err, err)
    cli("delete", "Pai_Hello")
    file.write_text(PAI.replace("test -n", "false; test -n"))
    code, _, err = cli("submit", "pai", str(file), "--wait")
    check("the first command that fails ends the task and the job", code == 3, f"{code}\n{err}")
    cli("delete", "Pai_Hello")
    file.write_text(PAI.replace("dockerImage: image", "dockerImage: nothing"))
    code, _, err = cli("submit", "pai", str(file))
    check(
        "what is wrong is said in the protocol's words",
        code == 1 and "Prerequisite nothing does not exist." in err,
        err,
    )
    # Six GPUs of the cluster's four.
    file.write_text(PAI.replace("instances: 2", "instances: 3").replace("gpu: 1", "gpu: 2"))
    cli("submit", "pai", str(file))
    waits = until(lambda: re.search(r"^Pai_Hello +6 ", cli("when", "Pai_Hello")[1], re.M), 20)
    check("when knows it by its name and what it asks for", waits, lambda: "".join(cli("when")[1:]))
    out = cli("when", framework)[1]
    check("and by that of its Framework", "Pai_Hello" in out, out)
    cli("delete", "Pai_Hello")


def others(cli, muster):
    code, out, _ = cli("whoami")
    who = json.loads(out)
    check("whoami", who["Name"] and len(who["Id"]) == 32 and who["IsAdminUser"] is False, out)
    code, out, _ = cli("version", "--short")
    check("version", re.fullmatch(r"muster: v\d+\.\d+\.\d+\n", out), out)
    muster.kubectl(
        "apply",
        "-f",
        "-",
        input="""
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], hostPath: {path: /tmp}, claimRef: {namespace: default, name: pictures}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: pictures, annotations: {description: faces, owner: vision}}
spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: pv, resources: {requests: {storage: 1Gi}}}
""",
    )
    muster.kubectl(
        "patch",
        "pvc",
        "pictures",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"phase":"Bound"}}',
        check=False,
    )
    code, out, _ = cli("data", "list")
    check("data list", re.search(r"pictures +ReadWriteMany +faces +vision", out), out)
    code, _, err = cli("submit", "pytorch", "--name=board", "--image=x", "--tensorboard", "--logdir=/logs", "sleep 300")
    check("submit --tensorboard", code == 0 and cli.until("board", "RUNNING"), err)
    deadline = time.monotonic() + 30
    wanted = (
        r"available on:\nhttp://\S+\n$"
        if shutil.which("tensorboard")
        else r"available on:\nhttp://\S+\nIt does not run yet: .*tensorboard"
    )
    while time.monotonic() < deadline and not re.search(wanted, cli("get", "board")[1]):
        time.sleep(0.2)
    out = cli("get", "board")[1]
    check("get tells where the tensorboard is, or why there is none", re.search(wanted, out), out)
    cli("delete", "board")


def terminals(cli):
    name = "a-job-with-a-rather-long-name-for-a-table-1234567"
    cli("submit", "pytorch", f"--name={name}", "--image=x", "--workers=2", "sleep 300")
    cli.until(name, "RUNNING")
    for columns in (80, 120):
        for words in (["list"], ["list", "-A"], ["get", name], ["top", "node"], ["top", "job"]):
            text = plain(cli.terminal(*words, columns=columns))
            rows = [line for line in text.splitlines() if not line.startswith("---")]
            widest = max(len(line) for line in rows)
            check(f"{' '.join(words[:2])[:20]} fits {columns} columns", widest <= columns, text)
    colour = cli.terminal("list")
    check("colours on a terminal", "\x1b[32mRUNNING\x1b[0m" in colour, repr(colour))
    check("NO_COLOR", "\x1b[3" not in cli.terminal("list", env={"NO_COLOR": "1"}))
    check("no colours and whole names on a pipe", "\x1b" not in cli("list")[1] and name in cli("list")[1])
    arena = Cli(cli.muster, "arena")
    code, out, err = arena("submit", "pytorch", "--name=as-arena", "--image=x", "true")
    check("called as arena it says arena", "`arena get as-arena --type pytorchjob`" in err, err)
    cli("delete", name, "as-arena")


def shells(cli, muster):
    cli("submit", "pytorch", "--name=complete-me", "--image=x", "sleep 300")
    env = {**muster.env(), "PATH": f"{cli.path.parent}:{os.environ['PATH']}"}
    if shutil.which("bash"):
        script = """source <(muster completion bash)
            try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _muster_complete; echo "${COMPREPLY[*]}"; }
            try muster sub; try muster get comp; try muster submit py; try muster list --sta; try muster list --status = RUN"""
        out = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True).stdout
        check(
            "bash completes commands, job names, types, flags and values",
            out.splitlines() == ["submit", "complete-me", "pytorchjob", "--status=", "RUNNING"],
            out,
        )
    if shutil.which("fish"):
        script = "muster completion fish | source; complete -C 'muster get comp'; complete -C 'muster sub'"
        out = subprocess.run(["fish", "-c", script], env=env, capture_output=True, text=True).stdout
        check("fish completes job names and commands", out.splitlines() == ["complete-me", "submit"], out)
    else:
        check.skip("fish completes job names and commands", "fish is not installed")
    if shutil.which("zsh"):
        script = """autoload -U compinit; compinit -u -D; source <(muster completion zsh)
            compadd() { shift; print -l -- "$@" }; _files() { print files }
            words=(muster get comp); CURRENT=3; _muster_complete"""
        out = subprocess.run(["zsh", "-f", "-c", script], env=env, capture_output=True, text=True)
        check("zsh completes job names", "complete-me" in out.stdout.split(), out.stdout + out.stderr)
    else:
        check.skip("zsh completes job names", "zsh is not installed")
    cli("delete", "complete-me")
    page = muster.data / "muster.1"
    page.write_text(cli("man")[1])
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True)
        check(
            "the manual page renders without a warning",
            done.returncode == 0 and not done.stderr and "EXIT STATUS" in re.sub(r".\x08", "", plain(done.stdout)),
            done.stderr + done.stdout[-300:],
        )


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def ask(path, token, targets):
    connection = UnixConnection(path)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request("POST", "/muster/v1/reads", json.dumps(targets), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def beside(cli, muster):
    """The API on a Unix socket, and several reads in one request."""
    path = muster.data / "api.sock"
    check("only the owner may open the socket", stat.S_IMODE(path.stat().st_mode) == 0o600, oct(path.stat().st_mode))
    token = (muster.data / "pki" / "admin.token").read_text().strip()
    code, answers = ask(
        path,
        token,
        [
            "/api/v1/nodes?fields=metadata(name)",
            "/api/v1/namespaces/default/pods/nobody",
            "/apis/no.such.group/v1/things",
            "/api/v1/pods?watch=true",
        ],
    )
    check(
        "each read is answered by itself",
        code == 200 and [a["status"] for a in answers] == [200, 404, 404, 400],
        answers,
    )
    check(
        "a list with fields has these alone",
        code == 200
        and [list(i) for i in answers[0]["body"]["items"]] == [["metadata"], ["metadata"]]
        and answers[0]["fields"],
        answers,
    )
    check("without a credential nothing is read", ask(path, "", ["/api/v1/nodes"])[0] == 401)
    muster.kubectl("create", "serviceaccount", "nosy")
    weak = muster.kubectl("create", "token", "nosy").stdout.strip()
    code, answers = ask(path, weak, ["/api/v1/secrets", "/version"])
    check("rights are those of each read", code == 200 and [a["status"] for a in answers] == [403, 404], answers)
    muster.kubectl("delete", "serviceaccount", "nosy")
    # The address leads nowhere: only the socket can have answered. Then the other way round.
    text = muster.kubeconfig.read_text()
    only_socket, only_address = muster.data / "only-socket", muster.data / "only-address"
    only_socket.write_text(re.sub(r"server: https://\S+", "server: https://127.0.0.1:1", text))
    only_address.write_text(text.replace("api.sock", "no.sock"))
    code, out, error = cli("top", "node", "--config", str(only_socket))
    check("commands take the socket", code == 0 and "node-1" in out, out + error)
    code, out, error = cli("top", "node", "--config", str(only_address))
    check("and the address where there is none", code == 0 and "node-1" in out, out + error)
    # A fleet of pods: what was remembered of an object must not outlive a change.
    muster.kubectl("create", "configmap", "changing", "--from-literal=a=1")
    first = ask(path, token, ["/api/v1/namespaces/default/configmaps?fields=metadata(name),data"])[1][0]["body"][
        "items"
    ]
    muster.kubectl("patch", "configmap", "changing", "-p", '{"data":{"a":"2"}}')
    second = ask(path, token, ["/api/v1/namespaces/default/configmaps?fields=metadata(name),data"])[1][0]["body"][
        "items"
    ]
    value = lambda items: [i["data"]["a"] for i in items if i["metadata"]["name"] == "changing"]
    check("a changed object is read anew", value(first) == ["1"] and value(second) == ["2"], (first, second))
    muster.kubectl("delete", "configmap", "changing")


with Muster(nodes=2, gpus=2) as muster:
    cli = Cli(muster)
    sections = {
        "errors": lambda: errors(cli, muster),
        "beside": lambda: beside(cli, muster),
        "submit": lambda: submit_and_wait(cli),
        "instances": lambda: instances(cli),
        "prune": lambda: prune(cli),
        "code": lambda: code_and_files(cli),
        "suspend": lambda: suspend(cli),
        "preemption": lambda: preemption(cli),
        "queues": lambda: queues(cli),
        "pods": lambda: plain_pods(cli),
        "kinds": lambda: kinds(cli),
        "pai": lambda: pai(cli, muster),
        "others": lambda: others(cli, muster),
        "terminals": lambda: terminals(cli),
        "shells": lambda: shells(cli, muster),
    }
    for section in sys.argv[1:] or sections:
        begin = time.monotonic()
        sections[section]()
        print(f"     {section}: {time.monotonic() - begin:.1f} s", flush=True)
    left = cli("list", "-A", "-q")[1]
    check("nothing is left", not left, left)
sys.exit(check.close())
