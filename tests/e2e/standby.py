#!/usr/bin/env python3
"""A standby of `muster run` whose API server gets another certificate authority.

It is ready while it can reach the server; once it cannot, it is not ready and says why. It keeps waiting while its
kubeconfig is the old one, and exits when that is renewed: after the restart by a supervisor it reads the new one and is ready.
"""
import json
import pathlib
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster, binary  # noqa: E402

check = Checks()
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "muster", "namespace": "kube-system"},
    "spec": {
        "holderIdentity": "another",
        "leaseDurationSeconds": 3600,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    },
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Standby:
    def __init__(self, folder):
        self.kubeconfig, self.port, self.process = folder / "standby.kubeconfig", free_port(), None

    def give(self, kubeconfig):
        """The kubeconfig without the socket on this machine, which needs no certificate."""
        config = yaml.safe_load(kubeconfig.read_text())
        config["clusters"][0]["cluster"].pop("extensions", None)
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def start(self):
        self.process = subprocess.Popen(
            [
                *(binary(), "run", "--leader-elect", "--namespace", "kube-system"),
                *("--kubeconfig", str(self.kubeconfig), "--metrics", f"127.0.0.1:{self.port}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def readyz(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.read().decode()
        except OSError:
            return ""

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


def main():
    with Muster("--hollow", "--listen", f"127.0.0.1:{free_port()}", nodes=1) as muster:
        standby = Standby(muster.data)
        muster.kubectl("create", "-f", "-", input=json.dumps(LEASE))
        standby.give(muster.kubeconfig)
        standby.start()
        try:
            check("a standby within reach is ready", until(lambda: standby.readyz() == "ok"), standby.readyz())
            old = muster.kubeconfig.read_text()
            muster.stop()
            for file in (muster.data / "pki").glob("ca.*"):
                file.unlink()
            muster.start()
            check("the server has another authority", muster.kubeconfig.read_text() != old)
            silent = lambda: "the API server has not answered for" in standby.readyz()  # noqa: E731
            check("a standby that does not trust it is not ready and says so", until(silent, 60), standby.readyz())
            check("and goes on waiting", standby.process.poll() is None and silent(), standby.readyz())
            standby.give(muster.kubeconfig)
            check("it ends when its kubeconfig is renewed", until(lambda: standby.process.poll() == 1, 60))
            standby.start()
            check("the next start reads it and is ready", until(lambda: standby.readyz() == "ok"), standby.readyz())
        finally:
            standby.stop()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
