"""Streams that are open when a right is taken away: shells, logs, watches and forwarded ports end with it.

    python3 tests/security/standing.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, pod, run, until  # noqa: E402
from muster import Muster, kubectls  # noqa: E402

NAMESPACE = "vision"


def editor(c, name):
    """The kubeconfig of a new account with `edit` in the namespace."""
    k = c.muster.kubectl
    k("create", "serviceaccount", name, "-n", NAMESPACE)
    k("create", "rolebinding", name, "-n", NAMESPACE, "--clusterrole=edit", f"--serviceaccount={NAMESPACE}:{name}")
    token = k("create", "token", name, "-n", NAMESPACE).stdout.strip()
    config = json.loads(k("config", "view", "--raw", "-o", "json").stdout)
    config["users"][0]["user"] = {"token": token}
    path = c.muster.data.parent / f"{name}.kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Stream:
    """A kubectl that follows something. `begun` is true once it has said something."""

    def __init__(self, c, kubeconfig, *args):
        env = {**c.muster.env(), "KUBECONFIG": str(kubeconfig)}
        self.process = subprocess.Popen(
            [kubectls()[0][1], *args],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said = b""

    def begun(self):
        self.said += self.process.stdout.read() or b""
        return bool(self.said)

    def over(self):
        return self.process.poll() is not None

    def close(self):
        self.process.kill()
        self.process.wait()


def streams(c, kubeconfig, port):
    n = ("-n", NAMESPACE)
    return {
        "shell": Stream(
            c, kubeconfig, "exec", *n, "-i", "box", "--", "sh", "-c", "while :; do echo on; sleep 0.2; done"
        ),
        "attach": Stream(c, kubeconfig, "attach", *n, "box"),
        "log": Stream(c, kubeconfig, "logs", *n, "-f", "box"),
        "watch": Stream(c, kubeconfig, "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods?watch=true"),
        "port": Stream(c, kubeconfig, "port-forward", *n, "box", f"{port}:8000"),
    }


def box(c):
    """A pod that says something and listens, in the namespace."""
    k = c.muster.kubectl
    if k("get", "namespace", NAMESPACE, check=False).returncode == 0:
        return
    k("create", "namespace", NAMESPACE)
    script = "while :; do echo line; sleep 0.2; done & exec python3 -m http.server 8000"
    k("create", "-n", NAMESPACE, "-f", "-", input=json.dumps(pod("box", script)))
    k("wait", "-n", NAMESPACE, "pod/box", "--for=condition=Ready", "--timeout=60s")


def end_with(c, name, take_away):
    box(c)
    kubeconfig = editor(c, name)
    port = free_port()
    admin = Stream(c, c.muster.kubeconfig, "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods?watch=true")
    theirs = streams(c, kubeconfig, port)
    try:
        for what, stream in theirs.items():
            until(f"the {what} has begun", stream.begun)
        until("the administrator's watch has begun", admin.begun)
        with socket.create_connection(("127.0.0.1", port)) as forwarded:
            forwarded.sendall(b"GET / HTTP/1.0\r\n")
            take_away()
            begun = time.monotonic()
            for what, stream in theirs.items():
                if what == "port":
                    # kubectl itself stays and reports; what is forwarded ends.
                    forwarded.settimeout(20)
                    assert forwarded.recv(1) == b"", "the forwarded connection is open"
                else:
                    until(f"the {what} is over", stream.over, 20)
            assert time.monotonic() - begun < 20
        assert not admin.over(), "a stream of somebody else has ended"
    finally:
        for stream in (admin, *theirs.values()):
            stream.close()


@check
def streams_end_when_the_right_is_taken(c):
    end_with(c, "ann", lambda: c.muster.kubectl("delete", "rolebinding", "ann", "-n", NAMESPACE))


@check
def streams_end_when_the_account_is_deleted(c):
    end_with(c, "bert", lambda: c.muster.kubectl("delete", "serviceaccount", "bert", "-n", NAMESPACE))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: needs root\n0 passed, 0 failed")
        sys.exit(0)
    run(lambda: Muster(nodes=1))
