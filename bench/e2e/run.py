#!/usr/bin/env python3
"""Gangs through a whole embedded cluster: API server, scheduler, controllers and hollow nodes in one process.

    bench/e2e/run.py [--nodes 1000] [--shapes 10000x1,500x20,20x500,1x10000]

Each shape gets a fresh cluster. The clock runs from the first create to the last binding that a watcher reads; the load and
the watcher are one process beside the cluster, on the same machine.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import muster as fixture  # noqa: E402

COLUMNS = [("shape", "shape"), ("pods/s", "pods_per_s"), ("create s", "create_s"), ("last bind s", "last_bind_s"),
           ("create-to-bind p50 ms", "create_to_bind_p50_ms"), ("p99 ms", "create_to_bind_p99_ms"),
           ("partial gangs", "partial_gangs"), ("CPU s of muster", "cpu_s"), ("MiB", "mib")]


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024)
    return 0


def measure(options, shape):
    gangs, size = (int(part) for part in shape.split("x"))
    with fixture.Muster("--hollow", nodes=options.nodes, gpus=16) as muster:
        before = cpu_s(muster.process.pid)
        done = subprocess.run([options.load, "--kubeconfig", str(muster.kubeconfig), "--gangs", str(gangs), "--size", str(size)],
                              text=True, capture_output=True, timeout=600)
        sys.stderr.write(done.stderr)
        if not done.stdout.strip():
            sys.exit(f"bench/e2e: {shape}: the load gave no result")
        result = json.loads(done.stdout.strip().splitlines()[-1])
        result["shape"] = shape
        result["cpu_s"] = round(cpu_s(muster.process.pid) - before, 2)
        result["mib"] = rss_mib(muster.process.pid)
        return result


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--load", default=str(ROOT / "build" / "bench" / "e2e" / "e2e_load"))
    arguments.add_argument("--nodes", type=int, default=1000)
    arguments.add_argument("--shapes", default="10000x1,500x20,20x500,1x10000")
    options = arguments.parse_args()
    rows = []
    for shape in options.shapes.split(","):
        print(f"{shape} ...", file=sys.stderr, flush=True)
        rows.append(measure(options, shape))
    print("| " + " | ".join(name for name, _ in COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(str(row.get(key, "-")) for _, key in COLUMNS) + " |")


if __name__ == "__main__":
    main()
