"""bench/agent as one table: the bare system calls, the runtime alone, and pods through the API of a `muster up`.

    MUSTER=build/muster python3 bench/agent/run.py
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "lib"))
from muster import Muster, binary  # noqa: E402

bench = str(pathlib.Path(binary()).resolve().parent / "bench" / "agent_bench")
for args in (["bare", "200"], ["runtime", "200", "1"], ["runtime", "500", "4"]):
    subprocess.run([bench, *args], check=True)
for args in (["1"], ["100", "1"], ["100"], ["1000"]):
    with Muster(nodes=12) as muster:
        subprocess.run([bench, "api", *args], check=True, env={**os.environ, "KUBECONFIG": str(muster.kubeconfig)})
