#!/usr/bin/env python3
"""A course on OpenPAI with HiveD, played in the portal from signing in to the result: the cluster that OpenPAI's installer
makes of the course's files, real pods, the course's own job files (tests/data/lab6). The training program and `sleep` are
stand-ins that take seconds. The checks are in lab.mjs."""
import pathlib
import subprocess
import sys

from chromium import drive, free_port, need_browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster, binary  # noqa: E402
from pai import course_folder, course_image  # noqa: E402


def installation(folder):
    """The files that the course writes for the installer."""
    files = folder / "deploy"
    files.mkdir()
    (files / "master.csv").write_text("hostname-bob,10.0.1.2\n")
    (files / "worker.csv").write_text("hostname-carol,10.0.1.3\nhostname-dan,10.0.1.4\n")
    (files / "config.yaml").write_text("user: openpai\npassword: paiopen\nbranch_name: v1.2.0\n")
    return files


def main():
    need_browser()
    check = Checks()
    folder = course_folder()
    images = course_image(folder, training_s=10, sleep_s=10)
    port = free_port()
    muster = Muster(
        *("--portal", f"127.0.0.1:{port}", "--pai-rest", f"127.0.0.1:{free_port()}"),
        *("--pai-layout", str(installation(folder)), "--images", str(images)),
    )
    for flag in ("--nodes", "--gpus"):  # the files say it
        del muster.args[muster.args.index(flag) : muster.args.index(flag) + 2]
    with muster:

        def ask(arguments):
            """A command of muster, its output on one line."""
            done = subprocess.run([binary(), *arguments.split()], capture_output=True, text=True, env=muster.env())
            return done.stdout + done.stderr

        program = pathlib.Path(__file__).with_suffix(".mjs")
        address = f"http://127.0.0.1:{port}"
        drive(check, program, address, sys.argv[1:], "admin-password", {"@muster": ask})
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
