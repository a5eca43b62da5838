#!/usr/bin/env python3
"""The commands of docs/operate.md, run as they stand, in their order, with real kubectl on a cluster of its own.

A line `$ ! command` must be refused, any other must succeed. After them: what the page says of the certificate, of who
may do what and of metrics is asked once more, from the outside.
"""
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
import muster as lib  # noqa: E402

check = Checks()


def commands():
    page = (ROOT / "docs" / "operate.md").read_text()
    return [
        line[2:]
        for block in re.findall(r"```console\n(.*?)```", page, re.S)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def certificate_names(home):
    """Whether the server's certificate is valid for this machine's name, by the cluster's own CA."""
    import base64
    import yaml

    config = yaml.safe_load((home / "kubeconfig").read_text())["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(config["certificate-authority-data"]).decode())
    port = int(config["server"].rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with context.wrap_socket(plain, server_hostname=socket.gethostname()) as secure:
            return secure.getpeercert()["subjectAltName"]


def served_metrics(kubectl, env):
    """The names on /metrics, as the admin of the cluster sees them."""
    done = subprocess.run([kubectl, "get", "--raw", "/metrics"], env=env, text=True, capture_output=True, timeout=60)
    return {line.split()[2] for line in done.stdout.splitlines() if line.startswith("# TYPE ")}


def main():
    with tempfile.TemporaryDirectory(prefix="muster-operate-") as folder:
        home, programs = pathlib.Path(folder) / "home", pathlib.Path(folder) / "bin"
        programs.mkdir()
        (programs / "muster").symlink_to(pathlib.Path(lib.binary()).resolve())
        (programs / "kubectl").symlink_to(lib.kubectls()[0][1])
        env = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "MUSTER_HOME": str(home),
            "KUBECONFIG": str(home / "kubeconfig"),
        }
        try:
            for command in commands():
                refused = command.startswith("! ")
                done = subprocess.run(
                    ["bash", "-c", "umask 022; " + command.removeprefix("! ")],
                    env=env,
                    cwd=folder,
                    text=True,
                    capture_output=True,
                    timeout=120,
                )
                check(command, (done.returncode != 0) == refused, done.stdout[-500:] + done.stderr[-500:])
                if refused:
                    check("  and says why", "forbidden" in done.stderr or "Unauthorized" in done.stderr, done.stderr)
                if re.match(r"kubectl --kubeconfig (\S+) config set-credentials", command):
                    wide = [p.name for p in pathlib.Path(folder).glob("*.kubeconfig") if p.stat().st_mode & 0o077]
                    check("  nobody else can read a colleague's kubeconfig", not wide, wide)
                if command.startswith("muster up"):
                    names = certificate_names(home)
                    check("  the certificate names this machine", ("DNS", socket.gethostname()) in names, names)
                    served = served_metrics(programs / "kubectl", env)
                    page = (ROOT / "docs" / "metrics.md").read_text()
                    documented = set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram)", page, re.M))
                    check(
                        "  docs/metrics.md lists exactly what /metrics serves",
                        served == documented,
                        served ^ documented,
                    )
        finally:
            subprocess.run([programs / "muster", "down"], env=env, capture_output=True)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
