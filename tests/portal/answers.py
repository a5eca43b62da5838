#!/usr/bin/env python3
"""Forecasts in the portal: expected starts and how accurate they were, reservations on the timeline, the nodes behind a cause,
what-if and the preview of a drain, simulations. Real Chromium on a hollow cluster; the checks are in answers.mjs."""

import json
import pathlib
import subprocess
import sys

from chromium import need_browser, play, with_password
from visitor import PortalCluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from muster import ROOT, binary  # noqa: E402


def simulate(_):
    """What the command says of the example, on one line."""
    example = ROOT / "examples" / "sim"
    command = [binary(), "sim", "--trace", str(example / "jobs.csv"), "--nodes", "4x8"]
    command += ["--policy", str(example / "policies.yaml"), "--json", "-"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.dumps(json.loads(said))


def untouched(muster):
    """Everything that a question must leave alone."""
    muster.wait_idle()
    kinds = "pods,jobs,pytorchjobs,podgroups,queues,nodes,events,configmaps,secrets"
    listed = json.loads(muster.kubectl("get", kinds, "-A", "-o", "json").stdout)["items"]
    objects = sorted((one["kind"], one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for one in listed)
    revision = json.loads(muster.kubectl("get", "--raw", "/api/v1/pods").stdout)["metadata"]["resourceVersion"]
    return json.dumps([len(objects), hash(str(objects)), revision])


def main():
    need_browser()
    muster = with_password(PortalCluster("--hollow", nodes=4, gpus=4))
    return play(__file__, muster, {"@all": lambda _: untouched(muster), "@sim": simulate})


if __name__ == "__main__":
    sys.exit(main())
