#!/usr/bin/env python3
"""The portal as people see it: real Chromium on a real `muster up`. The checks are in browser.mjs, named by what a person
would notice; this program starts the cluster, kills it when a check asks for that, and counts."""
import pathlib
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import ROOT, Muster, binary  # noqa: E402

PASSWORD = "a-password-for-tests"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def drive(check, muster, address, parts):
    """Runs browser.mjs; its lines are checks, or requests to do something to the cluster (@kill, @start)."""
    program = subprocess.Popen(
        ["node", str(pathlib.Path(__file__).with_suffix(".mjs")), address, PASSWORD, str(ROOT), *parts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in program.stdout:
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
        elif word in ("@kill", "@start"):
            muster.kill() if word == "@kill" else muster.start()
            program.stdin.write("done\n")
            program.stdin.flush()
        else:
            print(line, flush=True)
    check("the browser program ended well", program.wait() == 0, program.returncode)


def main():
    if shutil.which("node") is None or shutil.which("chromium") is None:
        skip_all("node and chromium are needed (apt-get install nodejs chromium)")
    if not (ROOT / "web" / "node_modules" / "playwright-core").exists():
        skip_all("web/node_modules is missing (tools/web build/web)")
    if "--portal " not in subprocess.run([binary(), "up", "--help"], capture_output=True, text=True).stdout:
        skip_all("this muster has no portal")
    check = Checks()
    port = free_port()
    muster = Muster("--portal", f"127.0.0.1:{port}", nodes=3, gpus=4)
    muster.data.mkdir(parents=True, exist_ok=True)
    secret = muster.data / "first-password"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o600)
    muster.args += ["--admin-password-file", str(secret)]
    with muster:
        drive(check, muster, f"http://127.0.0.1:{port}", sys.argv[1:])
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
