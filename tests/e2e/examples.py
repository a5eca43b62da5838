#!/usr/bin/env python3
"""Every example runs and prints what its first lines say. The head of a file is a session behind `# `; it is typed from the folder of the
repository on a cluster as `make up` leaves it, or on the one that it starts itself.

    tests/e2e/examples.py [WORD…]             only files with a word in their name
    tests/e2e/examples.py --update [WORD…]    writes what was printed into the files
"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import ROOT  # noqa: E402
from replay import fill, play  # noqa: E402
from seeds import Newcomer, as_built, no_newcomer  # noqa: E402

EXAMPLES = ROOT / "examples"
NEEDS = {"mpi.yaml": "mpirun", "t9k-mpi.yaml": "mpirun", "images.yaml": "busybox", "torch.yaml": "torch"}
# Typed by tests of their own, or used by a file beside them.
ELSEWHERE = {"answers", "sim"}
USED_BY_OTHERS = {"hived/pods.yaml"}


def installed(name):
    """A program, or torch for the machine's own Python."""
    if name == "torch":
        return subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0
    return shutil.which(name)


def head(path):
    """(session, rest): the session as a page would show it."""
    lines = path.read_text().splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith("# $ ")), len(lines))
    last = first
    while last < len(lines) and lines[last].startswith("#"):
        last += 1
    return [line[2:] if line.startswith("# ") else line[1:] for line in lines[first:last]], lines[:first], lines[last:]


def page(session):
    return "## Example\n\n```console\n" + "".join(session) + "```\n"


def rewrite(command):
    if command.startswith("muster up"):
        command = "muster down; rm -rf ~/.muster; " + command
    return as_built(command)


def main():
    why = no_newcomer()
    if why:
        skip_all(why)
    check, update = Checks(), "--update" in sys.argv
    words = [one for one in sys.argv[1:] if not one.startswith("--")]
    with Newcomer() as newcomer:
        shell = newcomer.shell
        start = "muster up --nodes 3 --gpus 4 --detach"
        shell.run(as_built("ln -s $PWD/build/muster ~/bin/muster; export KUBECONFIG=~/.muster/kubeconfig"))
        own = True  # the cluster that runs was made by an example
        for path in sorted(EXAMPLES.rglob("*.yaml")):
            name = path.relative_to(EXAMPLES).as_posix()
            if (
                name.split("/")[0] in ELSEWHERE
                or name in USED_BY_OTHERS
                or (words and not any(w in name for w in words))
            ):
                continue
            if path.name in NEEDS and not installed(NEEDS[path.name]):
                check.skip(name, f"{NEEDS[path.name]} is not installed")
                continue
            session, before, rest = head(path)
            if not check(f"{name} says how to run it", len(session) > 1):
                continue
            starts = any(line.startswith("$ muster up") for line in session)
            if own and not starts:
                status, out = shell.run(rewrite(start))
                check("a cluster starts", status == 0, out)
            own = starts
            if update:
                text = fill(page(session), shell, rewrite)
                lines = re.search(r"```console\n(.*)```", text, re.S).group(1).splitlines()
                path.write_text(
                    "".join(before) + "".join(f"# {line}".rstrip() + "\n" for line in lines) + "".join(rest)
                )
            else:
                play(page(session), shell, check, rewrite, patience=60)
            if not own:
                used = {one for line in session for one in re.findall(r"-f (examples/\S+)", line)}
                shell.run("; ".join([":", *(f"kubectl delete --ignore-not-found -f {one}" for one in sorted(used))]))
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
