#!/usr/bin/env python3
"""HiveD's cells in the portal: pairs that are bound, room that is lent, and cells that are bad because their node is cordoned or
lost, in the physical tree and in that of each virtual cluster. Real Chromium on a hollow cluster; the checks are in cells.mjs."""

import json
import pathlib
import subprocess
import sys

from chromium import need_browser, play, with_password
from visitor import PortalCluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from muster import binary  # noqa: E402

# Four nodes with four GPUs: two are promised to vision, one to speech in halves, and one is spare.
CELLS = """
physicalCluster:
  cellTypes:
    GPU-PAIR: {childCellType: GPU, childCellNumber: 2}
    GPU-NODE: {childCellType: GPU-PAIR, childCellNumber: 2, isNodeLevel: true}
    GPU-POOL: {childCellType: GPU-NODE, childCellNumber: 4}
  physicalCells:
  - cellType: GPU-POOL
    cellChildren: [{cellAddress: node-0}, {cellAddress: node-1}, {cellAddress: node-2}, {cellAddress: node-3}]
virtualClusters:
  vision:
    virtualCells: [{cellType: GPU-POOL.GPU-NODE, cellNumber: 2}]
  speech:
    virtualCells: [{cellType: GPU-POOL.GPU-NODE.GPU-PAIR, cellNumber: 2}]
"""


def tree(muster):
    """What the command says, on one line."""
    command = [binary(), "hived", "tree", "-o", "json"]
    return json.dumps(json.loads(subprocess.run(command, capture_output=True, text=True, env=muster.env()).stdout))


def main():
    need_browser()
    muster = with_password(PortalCluster("--hollow", nodes=4, gpus=4))
    (muster.data / "cells.yaml").write_text(CELLS)
    muster.args += ["--hived-config", str(muster.data / "cells.yaml")]
    return play(__file__, muster, {"@tree": lambda _: tree(muster)})


if __name__ == "__main__":
    sys.exit(main())
