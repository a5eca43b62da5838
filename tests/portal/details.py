#!/usr/bin/env python3
"""What people look at closely: long logs, shells, clones, exit codes, texts that are markup, links that somebody else opens,
the map by keyboard. Real pods; the checks are in details.mjs."""
import base64
import json
import sys

from chromium import need_browser, play, with_password
from visitor import PortalCluster


def kubectl(muster, arguments):
    """Answers in base64: it may have any bytes and line ends."""
    request = json.loads(arguments)
    done = muster.kubectl(*request["words"], input=request.get("input"), check=False)
    return base64.b64encode((done.stdout + done.stderr).encode()).decode() or "="


def main():
    need_browser()
    muster = with_password(PortalCluster(nodes=2, gpus=4))
    requests = {
        "@kubectl": lambda arguments: kubectl(muster, arguments),
        "@token": lambda arguments: muster.token_of(*arguments.split()),
    }
    return play(__file__, muster, requests)


if __name__ == "__main__":
    sys.exit(main())
