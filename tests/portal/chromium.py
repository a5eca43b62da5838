"""Chromium on a cluster: starts `PROGRAM.mjs` with Node, passes its checks on, and does to the cluster what it asks for."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
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


def kubectl(muster, arguments):
    """A command as a list of JSON."""
    done = muster.kubectl(*json.loads(arguments), check=False)
    return (done.stdout + done.stderr).strip() or "done"


def applied(muster, text):
    """Objects as a list of JSON."""
    items = {"apiVersion": "v1", "kind": "List", "items": json.loads(text)}
    muster.kubectl("create", "-f", "-", input=json.dumps(items))


def explained(muster, name):
    """What the command says of a job, on one line."""
    said = subprocess.run([binary(), "explain", name], capture_output=True, text=True, env=muster.env())
    return " ".join((said.stdout + said.stderr).split())


def play(script, muster, requests=None, prepare=None):
    """The checks of SCRIPT.mjs on a cluster whose administrator has PASSWORD, those named on the command line or all; what
    it may ask for beside `requests` is what most ask for. `prepare` is called once the cluster is there. The exit status.
    """
    check = Checks()
    with muster:
        if prepare:
            prepare()
        asked = {
            "@kubectl": lambda arguments: kubectl(muster, arguments),
            "@create": lambda text: applied(muster, text),
            "@explain": lambda name: explained(muster, name),
            "@idle": lambda _: muster.wait_idle(60),
            **(requests or {}),
        }
        program = pathlib.Path(script).with_suffix(".mjs")
        drive(check, program, muster.portal.rstrip("/"), sys.argv[1:], PASSWORD, asked)
    return check.close()
