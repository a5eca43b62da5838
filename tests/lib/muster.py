"""A `muster up` of its own for one test: temporary data, free port, clean end.

    with Muster(nodes=3, gpus=4) as muster:
        muster.kubectl("get", "nodes")
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def binary():
    return os.environ.get("MUSTER", str(ROOT / "build" / "muster"))


def kubectls():
    """Every kubectl of the machine that tests can use, newest first, as (version, path)."""
    found = []
    real = ROOT / ".cache" / "kubernetes" / "kubectl"
    if real.exists():
        found.append(("1.37", str(real)))
    for minor in range(33, 26, -1):
        path = f"/usr/lib/google-cloud-sdk/bin/kubectl.1.{minor}"
        if os.path.exists(path):
            found.append((f"1.{minor}", path))
    old = ROOT / ".cache" / "kubectl-1.20" / "usr" / "bin" / "kubectl"
    if old.exists():
        found.append(("1.20", str(old)))
    if not found and shutil.which("kubectl"):
        found.append(("", shutil.which("kubectl")))
    return found


class Muster:
    def __init__(self, *args, nodes=3, gpus=4, data=None):
        self.own_data = data is None
        self.data = pathlib.Path(data or tempfile.mkdtemp(prefix="muster-test-"))
        self.args = [
            "up",
            "--data",
            str(self.data),
            "--listen",
            "127.0.0.1:0",
            "--nodes",
            str(nodes),
            "--gpus",
            str(gpus),
            *args,
        ]
        self.kubeconfig = self.data / "kubeconfig"
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(f"--- last lines of {self.data}/test.log\n" + "\n".join(self.log().splitlines()[-40:]))
        self.stop()
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)

    def log(self):
        try:
            return (self.data / "test.log").read_text(errors="replace")
        except OSError:
            return ""

    def start(self, timeout=30):
        self.data.mkdir(parents=True, exist_ok=True)
        log = open(self.data / "test.log", "ab")
        begin = log.tell()
        self.process = subprocess.Popen([binary(), *self.args], stdout=log, stderr=log)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"muster up ended with {self.process.returncode}:\n{self.log()[-3000:]}")
            if self.kubeconfig.exists() and b"ready" in (self.data / "test.log").read_bytes()[begin:]:
                return
            time.sleep(0.02)
        raise RuntimeError(f"muster up did not become ready:\n{self.log()[-3000:]}")

    def kill(self):
        """kill -9, as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def env(self):
        return {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(self.data),
            "MUSTER_HOME": str(self.data),
            "KUBECTL_KUBERC": "false",
        }

    def run(self, *args, check=True, **kwargs):
        done = subprocess.run(args, text=True, capture_output=True, env=self.env(), **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(args)} exited {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *args, check=True, kubectl=None, **kwargs):
        return self.run(kubectl or kubectls()[0][1], *args, check=check, **kwargs)

    def wait_idle(self, timeout=60):
        """Returns once scheduler and controllers have nothing to do, several looks in a row: what has not happened by
        then does not happen until something changes."""
        deadline = time.monotonic() + timeout
        quiet = 0
        while True:
            answer = self.kubectl("get", "--raw", "/debug/idle", check=False)
            quiet = quiet + 1 if answer.returncode == 0 else 0
            if quiet == 3:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"still busy after {timeout} s: {answer.stderr or answer.stdout}")
            time.sleep(0.1)

    def cli(self, *args, check=True, **kwargs):
        return self.run(binary(), *args, check=check, **kwargs)
