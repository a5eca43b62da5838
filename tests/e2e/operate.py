#!/usr/bin/env python3
"""The commands of docs/operate.md, run as they stand, in their order, with real kubectl on a cluster of its own.

A line `$ ! command` must be refused, any other must succeed; where the page shows output, it is compared (`--update` writes
it). Then what the page says about the certificate, permissions and metrics is checked again from outside.
"""
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
from replay import LOOKS, same, typed  # noqa: E402
import muster as lib  # noqa: E402

check = Checks()


PAGE = ROOT / "docs" / "operate.md"
# What belongs to this machine: addresses and folders.
HERE = [
    (r"\b\d+\.\d+\.\d+\.\d+\b(:\d+)?", "<address>"),
    (r"\d+ objects( of revision \d+)?", "<number> objects"),
    (r"/tmp/muster-operate-\w+", "~"),
    (r"\$MUSTER_HOME\b|[\w/.~-]*/home\b", "<home>"),
]


def steps():
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.S)
    return [step for block in blocks for step in typed(block)]


def agrees(wanted, printed):
    for pattern, word in HERE:
        wanted, printed = re.sub(pattern, word, wanted), re.sub(pattern, word, printed)
    return same(wanted, printed)


def write(printed):
    """The page with what its commands printed; a cut ("…") stays."""

    def block(found):
        out = []
        for command, wanted in typed(found.group(1)):
            seen = next(printed)
            for pattern, word in HERE[2:]:
                seen = re.sub(pattern, word.replace("<home>", "$MUSTER_HOME"), seen)
            out += ["$ " + command, *([wanted] if "…" in wanted.splitlines() else [seen] if seen else [])]
        return "```console\n" + "\n".join(out) + "\n```"

    printed = iter(printed)
    PAGE.write_text(re.sub(r"```console\n(.*?)\n```", block, PAGE.read_text(), flags=re.S))


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
            printed = []
            for command, wanted in steps():
                refused = command.startswith("! ")

                def run():
                    words = ["bash", "-c", "umask 022; " + command.removeprefix("! ")]  # noqa: B023
                    return subprocess.run(words, env=env, cwd=folder, text=True, capture_output=True, timeout=120)

                done = run()
                # What is told a moment later than it happens is looked for again.
                deadline = time.monotonic() + 20
                while wanted and not agrees(wanted, done.stdout + done.stderr) and LOOKS.search(command):
                    if time.monotonic() > deadline or "--update" in sys.argv:
                        break
                    time.sleep(0.3)
                    done = run()
                text = "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())
                printed.append(text.strip("\n"))
                check(command, (done.returncode != 0) == refused, done.stdout[-500:] + done.stderr[-500:])
                if "--update" not in sys.argv:
                    check("  and prints what the page shows", agrees(wanted, text), f"wanted\n{wanted}\nseen\n{text}")
                if refused:
                    check("  and says why", "forbidden" in done.stderr or "Unauthorized" in done.stderr, done.stderr)
                if re.match(r"kubectl --kubeconfig (\S+) config set-credentials", command):
                    wide = [p.name for p in pathlib.Path(folder).glob("*.kubeconfig") if p.stat().st_mode & 0o077]
                    check("  nobody else can read a colleague's kubeconfig", not wide, wide)
                if command.startswith("muster up"):
                    down = "muster down --data" if "--data" in command else "muster down\n"
                    check("  how to stop it is said of this cluster", down in done.stdout, done.stdout)
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
            if "--update" in sys.argv:
                write(printed)
        finally:
            subprocess.run([programs / "muster", "down"], env=env, capture_output=True)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
