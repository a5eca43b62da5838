#!/usr/bin/env python3
"""The portal in Chromium on a cluster with many nodes and jobs: actions on 1,234 jobs at once, a list that changes two hundred
times a second, a job of two thousand tasks, nodes that go and come back, permissions, use across a restart. The checks are in
crowd.mjs. `budgets` has 5,000 jobs, and 100,000 when it is named alone."""
import json
import sys
import time

from chromium import free_port, need_browser, play, with_password
from load import Churn, cost_of_portals, cpu_s, seed, sleepers
from visitor import PortalCluster


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


def main():
    need_browser()
    many = 100_000 if sys.argv[1:] == ["budgets"] else 5_000
    # A port of its own, which is the same after a restart whatever runs beside.
    muster = with_password(PortalCluster("--hollow", portal=f"127.0.0.1:{free_port()}", nodes=2, gpus=4))
    churn = Churn(muster)
    requests = {
        "@churn": churn.start,
        "@quiet": churn.stop,
        "@jobs": lambda arguments: sleepers(muster, *map(int, arguments.split()[:2]), arguments.split()[2]),
        "@cpu": lambda _: cpu_s(muster),
        "@restart": lambda _: restarted(muster),
        "@token": lambda arguments: muster.token_of(*arguments.split()),
        "@idle": lambda _: muster.wait_idle(120),
        "@fill": lambda _: filled(muster, many),
        "@portals": lambda words: json.dumps(cost_of_portals(muster, *map(int, words.split()))),
    }
    return play(__file__, muster, requests, lambda: seed(muster, 400, 24))


if __name__ == "__main__":
    sys.exit(main())
