#!/usr/bin/env python3
"""OpenPAI's own JavaScript client, unmodified from npm (tools/openpai_sdk), against a real `muster up`."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import ROOT, Muster  # noqa: E402
from pai import free_port  # noqa: E402

SDK = ROOT / ".cache" / "openpai-sdk" / "node_modules"
LAB6 = ROOT / "tests" / "data" / "lab6"
NODES = "\n---\n".join(
    f"""apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status: {{capacity: {{cpu: "4", memory: 8Gi, nvidia.com/gpu: "1", pods: "110"}}}}"""
    for name in ("hostname-carol", "hostname-dan")
)


def main():
    if not shutil.which("node"):
        skip_all("node is not installed")
    if not (SDK / "@microsoft" / "openpai-js-sdk").exists():
        skip_all("OpenPAI's client is not here; tools/openpai_sdk fetches it")
    check = Checks()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="muster-pai-") as folder:
        nodes = pathlib.Path(folder) / "nodes.yaml"
        nodes.write_text(NODES)
        args = ["--pai-rest", f"127.0.0.1:{port}", "--hived-config", str(LAB6 / "hived-config-a.yaml")]
        with Muster(*args, nodes=nodes) as muster:
            password = (muster.data / "admin-password").read_text().strip()
            done = subprocess.run(
                ["node", str(ROOT / "tests/e2e/data/pai_sdk.js"), f"127.0.0.1:{port}/rest-server", password],
                env={**os.environ, "NODE_PATH": str(SDK), "NODE_NO_WARNINGS": "1"},
                capture_output=True,
                text=True,
                timeout=300,
            )
    for line in done.stdout.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        check(told["what"], told["right"], told["seen"])
    check("the client came to its end", done.returncode == 0, done.stderr[-2000:])
    check("it checked as much as it has", check.passed + check.failed > 35, check.passed)
    sys.exit(check.close())


if __name__ == "__main__":
    main()
