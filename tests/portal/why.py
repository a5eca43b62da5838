#!/usr/bin/env python3
"""Why a job waits, on its page: the numbers are those that `muster explain` prints, and each cause opens its nodes. Real Chromium
on a hollow cluster of four nodes with four GPUs; the checks are in why.mjs. Waits for cells are in cells.mjs."""

import sys

from chromium import need_browser, play, with_password
from visitor import PortalCluster

if __name__ == "__main__":
    need_browser()
    sys.exit(play(__file__, with_password(PortalCluster("--hollow", nodes=4, gpus=4))))
