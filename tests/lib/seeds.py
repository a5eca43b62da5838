"""docs/seeds.md on a newcomer's machine: with a network, a home and a /usr/local of its own, so that `make up` listens where it says
and the page may install programs. Debian's packages are those of this machine."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from muster import ROOT, binary, kubectls
from replay import Shell

PAGE = ROOT / "docs" / "seeds.md"
PROGRAMS = ("mpirun", "mpicc", "git", "yq", "make")

# The training program of the document's repository, which cannot be reached from here: real torch over gloo, in steps that
# every rank takes together. A rank that is gone fails the others.
TRAIN = """
import argparse, time
import torch, torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--backend")
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
dist.init_process_group(args.backend)
torch.set_num_threads(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(args.epochs):
    x = torch.randn(64, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch} of {args.epochs}, {dist.get_world_size()} ranks, loss {loss.item():.3f}", flush=True)
    time.sleep(0.5)
"""


def no_newcomer():
    """Why there can be no fresh machine here; empty: there can."""
    return "" if os.geteuid() == 0 else "it needs root: a network and a /usr/local of its own"


def missing():
    """Why the page cannot be typed here; empty: it can."""
    if no_newcomer():
        return no_newcomer()
    absent = [one for one in PROGRAMS if not shutil.which(one)]
    if not os.path.exists("/usr/sbin/sshd"):
        absent.append("sshd")
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode != 0:
        absent.append("torch")
    return f"{', '.join(absent)} not installed" if absent else ""


def repository(place):
    """The document's repository as a bare clone below `place`, for git's url.….insteadOf."""
    folder = pathlib.Path(place) / "370272561" / "mnist-pytorch.git"
    folder.mkdir(parents=True)
    (folder / "mnist.py").write_text(TRAIN)
    person = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], [*person, "commit", "-qm", "mnist"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


class Newcomer:
    """The shell of somebody with a fresh machine, in the folder of the repository."""

    def __enter__(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="muster-newcomer-"))
        (self.home / "bin").mkdir()
        (self.home / "bin" / "kubectl").symlink_to(kubectls()[0][1])
        enter = self.home / "enter.sh"
        enter.write_text(
            f"""ip link set lo up
mkdir {self.home}/layer && mount -t tmpfs tmpfs {self.home}/layer && mkdir {self.home}/layer/up {self.home}/layer/work
mount -t overlay overlay -o lowerdir=/usr/local,upperdir={self.home}/layer/up,workdir={self.home}/layer/work /usr/local
mkdir -p /usr/local/pai  # a mount below /usr is shown to pods as it is; theirs goes here
exec "$@"
"""
        )
        environment = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "KUBECTL_KUBERC": "false",
        }
        unshare = ["unshare", "--net", "--mount", "--propagation", "private", "bash", "-e", str(enter)]
        self.shell = Shell(environment, ROOT, unshare)
        return self

    def __exit__(self, *_):
        # Not by the shell, which may be what has failed.
        subprocess.run([binary(), "down", "--data", self.home / ".muster"], capture_output=True)
        self.shell.close()
        shutil.rmtree(self.home, ignore_errors=True)


def as_built(command):
    """`make up` without building, with the program under test."""
    command = re.sub(r"^make up\b", f"make -s -o build up MUSTER={binary()}", command)
    command = re.sub(r"^make down\b", f"make -s down MUSTER={binary()}", command)
    return re.sub(r"(\$PWD/|(?<![\w/.]))build/muster\b", binary(), command)
