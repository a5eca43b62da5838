#!/usr/bin/env python3
"""Clusters that start at the same moment on one machine have networks of their own."""
import json
import os
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import Muster  # noqa: E402

TOGETHER = 4


def main():
    if os.geteuid() != 0:
        skip_all("without root pods have no network of their own")
    check, clusters = Checks(), [Muster(nodes=1) for _ in range(TOGETHER)]
    wrong = []

    def start(cluster):
        try:
            cluster.start()
        except RuntimeError as error:
            wrong.append(error)

    threads = [threading.Thread(target=start, args=(cluster,)) for cluster in clusters]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not check("all of them start", not wrong, wrong):
            return check.close()
        networks = [json.loads((cluster.data / "agent" / "network.json").read_text()) for cluster in clusters]
        check("each has a subnet of its own", len({network["base"] for network in networks}) == TOGETHER, networks)
    finally:
        for cluster in clusters:
            cluster.__exit__(None)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
