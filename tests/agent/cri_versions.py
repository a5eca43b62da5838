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
ASKED = [
    "a_pod_is",
    "check_1",
    "check_22",
    "check_28",
    "check_41",
    "killed",
    "check_43",
    "volumes",
    "restarts",
    "policies",
]


# And what differs with a newer runc beside it.
ASKED_OF_RUNC = ["a_pod_is", "check_1", "check_22", "check_41", "volumes", "restarts"]


def check_44_the_same_suite(folders, words):
    env = {**os.environ, "PATH": ":".join([*map(str, folders), os.environ["PATH"]])}
    for program in ("containerd", "runc"):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, env=env).stdout
        print(said.splitlines()[0], flush=True)
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
        counted.case(check_44_the_same_suite, [folder], sys.argv[1:] or ASKED)
    newest = [folder for folder in folders if "containerd-2" in str(folder)]
    runc = sorted(ROOT.glob(".cache/runc-*/bin"))
    if newest and runc:
        counted.case(check_44_the_same_suite, [*newest, *runc], sys.argv[1:] or ASKED_OF_RUNC)
    else:
        counted.skip("check_44_the_same_suite", "no newer runc in .cache (tools/packages test)")
    return counted.close()


if __name__ == "__main__":
    sys.exit(main())
