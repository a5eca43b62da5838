"""Chromium on a cluster: starts `PROGRAM.mjs` with Node, passes its checks on, and does to the cluster what it asks for."""
import shutil
import socket
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import skip_all  # noqa: E402
from muster import ROOT, binary  # noqa: E402

PASSWORD = "a-password-for-tests"


def need_browser():
    if shutil.which("node") is None or shutil.which("chromium") is None:
        skip_all("node and chromium are needed (apt-get install nodejs chromium)")
    if not (ROOT / "web" / "node_modules" / "playwright-core").exists():
        skip_all("web/node_modules is missing (tools/web build/web)")
    if "--portal " not in subprocess.run([binary(), "up", "--help"], capture_output=True, text=True).stdout:
        skip_all("this muster has no portal")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_password(muster, password=PASSWORD):
    """The first administrator of a cluster that has not started yet has this password."""
    muster.data.mkdir(parents=True, exist_ok=True)
    secret = muster.data / "first-password"
    secret.write_text(password + "\n")
    secret.chmod(0o600)
    muster.args += ["--admin-password-file", str(secret)]
    return muster


def drive(check, program, address, parts=(), password=PASSWORD, requests=None):
    """Runs `program`; its lines are checks, or requests: `@WORD ARGUMENTS` calls requests["@WORD"](arguments), whose
    value is the answer."""
    started = subprocess.Popen(
        ["node", str(program), address, password, str(ROOT), *parts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in started.stdout:
        line = line.rstrip("\n")
        word, _, rest = line.partition(" ")
        if word == "ok":
            check(rest.strip(), True)
        elif word == "FAIL":
            what, _, detail = rest.strip().partition(": ")
            check(what, False, detail)
        elif word == "SKIPPED":
            what, _, why = rest.partition(": ")
            check.skip(what, why)
        elif requests and word in requests:
            answer = requests[word](rest)
            started.stdin.write((str(answer or "done")).replace("\n", " ") + "\n")
            started.stdin.flush()
        else:
            print(line, flush=True)
    check("the browser program ended well", started.wait() == 0, started.returncode)
