"""Many hollow nodes and pods: time until all pods run, memory and CPU time of muster, and its cost at rest.

    MUSTER=build/muster python3 bench/agent/hollow.py [NODES PODS]      default 10000 100000
"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "lib"))
from muster import Muster, binary  # noqa: E402

nodes, pods = (int(word) for word in (sys.argv[1:] or ["10000", "100000"]))
bench = str(pathlib.Path(binary()).resolve().parent / "bench" / "agent_bench")


def memory_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


begun = time.monotonic()
muster = Muster("--hollow", nodes=nodes, gpus=8)
with muster:
    pid = muster.process.pid
    print(
        f"{nodes} nodes: ready after {time.monotonic() - begun:.1f} s, {memory_mib(pid)} MiB, {cpu_s(pid):.1f} s of processor time",
        flush=True,
    )
    begun, before = time.monotonic(), cpu_s(pid)
    subprocess.run([bench, "hollow", str(pods)], check=True, env={**os.environ, "KUBECONFIG": str(muster.kubeconfig)})
    print(
        f"{pods} pods: running after {time.monotonic() - begun:.1f} s, {memory_mib(pid)} MiB, {cpu_s(pid) - before:.1f} s of processor time",
        flush=True,
    )
    before = cpu_s(pid)
    time.sleep(20)
    print(f"at rest: {(cpu_s(pid) - before) / 20 * 100:.1f} % of one processor", flush=True)
