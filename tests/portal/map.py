#!/usr/bin/env python3
"""The map of 10,000 nodes with 8 GPUs in Chromium: what it weighs and takes, and whether each point of it is who is there. The
checks are in map.mjs."""
import sys

from chromium import need_browser, play, with_password
from load import cordon, seed
from visitor import PortalCluster

NODES, JOBS = 10_000, 8_000


def main():
    need_browser()
    muster = with_password(PortalCluster("--hollow", nodes=2, gpus=4))
    requests = {
        "@cordon": lambda arguments: cordon(muster, arguments),
        "@idle": lambda _: muster.wait_idle(120),
    }
    return play(__file__, muster, requests, lambda: seed(muster, JOBS, NODES, seconds="36000"))


if __name__ == "__main__":
    sys.exit(main())
