"""Without root pods still run, in the machine's own network, and muster says in one line what is missing."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
import muster as fixture  # noqa: E402
from agent_checks import Cluster, equal, pod, terminated  # noqa: E402

NOBODY = 65534


class Unprivileged(fixture.Muster):
    """The same, started as another user."""

    def start(self, timeout=30):
        popen = fixture.subprocess.Popen
        fixture.subprocess.Popen = lambda *args, **options: popen(
            *args, user=NOBODY, group=NOBODY, extra_groups=[], env={**os.environ, "HOME": str(self.data)}, **options
        )
        try:
            super().start(timeout)
        finally:
            fixture.subprocess.Popen = popen


def main():
    if os.geteuid() != 0:
        skip_all("needs root to become somebody else")
    data = pathlib.Path(tempfile.mkdtemp(prefix="muster-nobody-"))
    os.chown(data, NOBODY, NOBODY)
    program = data / "muster"  # the build folder may not be open to everybody
    shutil.copy(fixture.binary(), program)
    os.environ["MUSTER"] = str(program)
    try:
        with Unprivileged(data=data) as muster:
            c = Cluster(muster)
            c.create(pod("plain", "echo $HOSTNAME; id -u; exit 4"), pod("served", "exec sleep 1000"))
            equal(terminated(c.phase("plain", "Failed"))["exitCode"], 4)
            equal(c.logs("plain"), f"plain\n{NOBODY}\n")
            c.running("served")
            equal(muster.kubectl("exec", "served", "--", "id", "-u").stdout, f"{NOBODY}\n")
            lines = [line for line in muster.log().splitlines() if "pods share this machine's network" in line]
            equal(len(lines), 1)
            assert "not root" in lines[0], lines
            muster.kubectl("delete", "pod", "served", "--now")
        counted = Checks()
        counted("pods_run_without_root", True)
        counted.close()
    finally:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    main()
