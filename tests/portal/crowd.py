#!/usr/bin/env python3
"""The portal in Chromium on a cluster with many nodes and jobs: actions on all matching jobs, a list that changes two
hundred times a second, a job of two thousand tasks, nodes that go and come back, permissions, use across a restart. The checks
are in crowd.mjs. Only when named, because they take minutes: `stops` (1,235 jobs) and `map` (10,000 nodes with 8 GPUs).
`budgets` has 5,000 jobs, and 100,000 when named."""
import json
import pathlib
import sys
import time

from chromium import PASSWORD, drive, free_port, need_browser, with_password
from load import Churn, cordon, cost_of_portals, cpu_s, seed, sleepers
from visitor import PortalCluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402

MAP_NODES = 10_000


def restarted(muster):
    """Seconds for which it was away."""
    begun = time.monotonic()
    muster.kill()
    muster.start()
    return f"{time.monotonic() - begun:.1f}"


def filled(muster, jobs):
    """So many jobs more, nearly all of which wait."""
    seed(muster, jobs, 0, seconds="36000")
    muster.wait_idle(600)
    return jobs


def kubectl(muster, arguments):
    done = muster.kubectl(*json.loads(arguments), check=False)
    return (done.stdout + done.stderr).strip() or "done"


def main():
    need_browser()
    check = Checks()
    only_map = sys.argv[1:] == ["map"]
    many = 100_000 if sys.argv[1:] == ["budgets"] else 5_000
    # A port of its own, which is the same after a restart whatever runs beside.
    with with_password(PortalCluster("--hollow", portal=f"127.0.0.1:{free_port()}", nodes=2, gpus=4)) as muster:
        seed(muster, 200 if only_map else 400, MAP_NODES if only_map else 24)
        churn = Churn(muster)
        requests = {
            "@kubectl": lambda arguments: kubectl(muster, arguments),
            "@churn": churn.start,
            "@cordon": lambda arguments: cordon(muster, arguments),
            "@quiet": churn.stop,
            "@jobs": lambda arguments: sleepers(muster, *map(int, arguments.split()[:2]), arguments.split()[2]),
            "@cpu": lambda _: cpu_s(muster),
            "@restart": lambda _: restarted(muster),
            "@token": lambda arguments: muster.token_of(*arguments.split()),
            "@idle": lambda _: muster.wait_idle(120),
            "@fill": lambda _: filled(muster, many),
            "@portals": lambda words: json.dumps(cost_of_portals(muster, *map(int, words.split()))),
        }
        parts = sys.argv[1:] if sys.argv[1:] else ["jobs", "rights", "many", "nodes", "usage", "budgets"]
        program = pathlib.Path(__file__).with_suffix(".mjs")
        drive(check, program, muster.portal.rstrip("/"), parts, PASSWORD, requests)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
