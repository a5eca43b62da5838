#!/usr/bin/env python3
"""What people look at closely: long logs, shells, clones, exit codes, texts that are markup, links that somebody else opens,
the map by keyboard. Real pods; the checks are in details.mjs."""
import base64
import json
import pathlib
import sys

from chromium import drive, need_browser, with_password
from visitor import PortalCluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402


def kubectl(muster, arguments):
    """Answers in base64: it may have any bytes and line ends."""
    request = json.loads(arguments)
    done = muster.kubectl(*request["words"], input=request.get("input"), check=False)
    return base64.b64encode((done.stdout + done.stderr).encode()).decode() or "="


def main():
    need_browser()
    check = Checks()
    with with_password(PortalCluster(nodes=2, gpus=4)) as muster:
        requests = {
            "@kubectl": lambda arguments: kubectl(muster, arguments),
            "@token": lambda arguments: muster.token_of(*arguments.split()),
        }
        program = pathlib.Path(__file__).with_suffix(".mjs")
        drive(check, program, muster.portal.rstrip("/"), sys.argv[1:], requests=requests)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
