"""bench/agent as one table: the bare system calls, the runtime alone, and pods through the API of a `muster up`; beside each
the processor time it took.

    MUSTER=build/muster python3 bench/agent/run.py [PODS...]      default 1 100:1 100 1000; N:W: at most W at a time
"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "lib"))
from cost import Cost, Group  # noqa: E402
from muster import Muster, binary  # noqa: E402

SETTLE_S = 2  # the kernel removes network namespaces behind our back

bench = str(pathlib.Path(binary()).resolve().parent / "bench" / "agent_bench")
rows = sys.argv[1:] or ["1", "100:1", "100", "1000"]
group = Group()
if not sys.argv[1:]:
    for args in (["bare", "200"], ["bare-veth", "200"], ["runtime", "200", "1"], ["runtime", "500", "4"]):
        with Cost(group) as cost:
            subprocess.run([bench, *args], check=True)
            time.sleep(SETTLE_S)
        cost.used["client"] = 0  # all of it is the row's own
        print(cost.row(int(args[1])), flush=True)
for row in rows:
    with Muster(nodes=12) as muster:
        env = {**os.environ, "KUBECONFIG": str(muster.kubeconfig)}
        with Cost(group, muster.process.pid) as cost:
            subprocess.run([bench, "api", *row.split(":")], check=True, env=env)
            time.sleep(SETTLE_S)
        print(cost.row(int(row.split(":")[0])), flush=True)
