#!/usr/bin/env python3
"""The API server's numbers, with a real kube-apiserver + etcd beside it when tools/kubernetes has built one.

    bench/apiserver/run.py [--load build/bench/apiserver/apiserver_load] [--creates 2000] [--pods 10000]
                           [--watchers 1000] [--changes 100] [--no-real]

0 leaves a part out: --creates 0 --pods 0 measures watches alone.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import muster as fixture  # noqa: E402
import real_kubernetes  # noqa: E402


def fsync_rate(folder):
    """fdatasync of a 4 KiB append, one after the other."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        count, begun = 0, time.monotonic()
        while time.monotonic() - begun < 1:
            os.write(file.fileno(), b"x" * 4096)
            os.fdatasync(file.fileno())
            count += 1
        return round(count / (time.monotonic() - begun))


def rss_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0


def load(options, kubeconfig):
    done = subprocess.run([options.load, "--kubeconfig", str(kubeconfig), "--creates", str(options.creates), "--pods", str(options.pods),
                           "--watchers", str(options.watchers), "--changes", str(options.changes)],
                          text=True, capture_output=True, timeout=900)
    sys.stderr.write(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(options):
    with fixture.Muster("--without", "scheduler,controllers,agent") as muster:
        result = {"fsyncs_per_s": fsync_rate(muster.data)}
        first = muster.log()
        result["first_ready_s"] = float(first.split(" s)")[0].split()[-1])
        time.sleep(1)
        result["idle_mib"] = rss_mib(muster.process.pid)
        muster.stop()
        begun = time.monotonic()
        muster.start()
        result["restart_ready_s"] = round(time.monotonic() - begun, 2)
        result.update(load(options, muster.kubeconfig))
        result["loaded_mib"] = rss_mib(muster.process.pid)
        return result


def real(options):
    begun = time.monotonic()
    with real_kubernetes.RealKubernetes() as kubernetes:
        result = {"first_ready_s": round(time.monotonic() - begun, 2)}
        time.sleep(2)
        pids = [process.pid for process in kubernetes.processes.values()]
        result["idle_mib"] = round(sum(rss_mib(pid) for pid in pids), 1)
        result.update(load(options, kubernetes.kubeconfig))
        result["loaded_mib"] = round(sum(rss_mib(pid) for pid in pids), 1)
        return result


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--load", default=str(ROOT / "build" / "bench" / "apiserver" / "apiserver_load"))
    arguments.add_argument("--creates", type=int, default=2000)
    arguments.add_argument("--pods", type=int, default=10000)
    arguments.add_argument("--watchers", type=int, default=1000)
    arguments.add_argument("--changes", type=int, default=100)
    arguments.add_argument("--no-real", action="store_true")
    options = arguments.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    columns = [("muster", ours(options))]
    if not options.no_real and real_kubernetes.available():
        columns.append(("kube-apiserver+etcd", real(options)))
    names = []
    for _, result in columns:
        names += [name for name in result if name not in names]
    print(f"{'':24}" + "".join(f"{name:>22}" for name, _ in columns))
    for name in names:
        print(f"{name:24}" + "".join(f"{str(result.get(name, '-')):>22}" for _, result in columns))


if __name__ == "__main__":
    main()
