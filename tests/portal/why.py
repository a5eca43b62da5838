#!/usr/bin/env python3
"""Why a job waits, on its page: the numbers are those that `muster explain` prints, and each cause opens its nodes. Real Chromium
on a hollow cluster of four nodes with four GPUs; the checks are in why.mjs. Waits for cells are in lab.mjs."""

import pathlib
import subprocess
import sys

from answers import applied
from chromium import PASSWORD, drive, need_browser, with_password
from crowd import kubectl
from visitor import PortalCluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import binary  # noqa: E402


def explained(muster, name):
    """What the command says of a job, on one line."""
    said = subprocess.run([binary(), "explain", name], capture_output=True, text=True, env=muster.env())
    return " ".join((said.stdout + said.stderr).split())


def main():
    need_browser()
    check = Checks()
    with with_password(PortalCluster("--hollow", nodes=4, gpus=4)) as muster:
        requests = {
            "@kubectl": lambda arguments: kubectl(muster, arguments),
            "@create": lambda text: applied(muster, text),
            "@explain": lambda name: explained(muster, name),
            "@idle": lambda _: muster.wait_idle(60),
        }
        program = pathlib.Path(__file__).with_suffix(".mjs")
        drive(check, program, muster.portal.rstrip("/"), sys.argv[1:], PASSWORD, requests)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
