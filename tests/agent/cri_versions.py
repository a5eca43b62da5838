#!/usr/bin/env python3
"""Check 44 of the acceptance list in docs/security.md: all of cri.py under versions of containerd other than the
machine's own, which tools/packages unpacks to .cache/containerd-VERSION. Each comes first in PATH in its turn.

    python3 tests/agent/cri_versions.py [NAME…]      only the checks of cri.py whose name contains a NAME
"""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from checks import Checks, skip_all  # noqa: E402
from images import missing  # noqa: E402
from muster import ROOT  # noqa: E402

# What differs between versions; the machine's own version is asked all of cri.py.
ASKED = ["a_pod_is", "check_1", "check_28", "check_41", "killed", "check_43", "volumes", "restarts", "policies"]


def check_44_the_same_suite(folder, words):
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    version = subprocess.run([f"{folder}/containerd", "--version"], capture_output=True, text=True).stdout
    print(version.strip(), flush=True)
    done = subprocess.run([sys.executable, str(HERE / "cri.py"), *words], env=env, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    ran = len(re.findall(r"^ok ", done.stdout, re.M))
    assert ran >= len(words), done.stdout


def main():
    why = missing("containerd", "ctr", "runc", "busybox")
    if not why and not os.path.exists("/usr/lib/cni/bridge"):
        why = "containernetworking-plugins not installed"
    folders = sorted(ROOT.glob(".cache/containerd-*/usr/bin"))
    if not why and not folders:
        why = "no other containerd in .cache (tools/packages test)"
    if why:
        skip_all(why)
    counted = Checks()
    for folder in folders:
        counted.case(check_44_the_same_suite, folder, sys.argv[1:] or ASKED)
    return counted.close()


if __name__ == "__main__":
    sys.exit(main())
