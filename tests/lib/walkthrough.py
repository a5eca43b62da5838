"""The walk-throughs that Muster must reproduce: their commands, verbatim, and what they print.

A walk-through is a document with commands after a prompt and the output below each. Times, generated suffixes
and column widths are not compared; everything else is, cell by cell.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from checks import Checks
from muster import ROOT, Muster, binary, kubectls

NODE = """apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{kubernetes.io/hostname: "{name}"{role}}}
spec: {taint}
status:
  addresses:
  - {{type: InternalIP, address: {ip}}}
  - {{type: Hostname, address: "{name}"}}
  capacity: {{cpu: "16", memory: 64Gi, pods: "110", ephemeral-storage: 100Gi{gpus}}}
  allocatable: {{cpu: "16", memory: 64Gi, pods: "110", ephemeral-storage: 100Gi{gpus}}}
  conditions:
  - {{type: Ready, status: "True", reason: KubeletReady, message: kubelet is posting ready status}}
"""


def walkthrough(name):
    """The text of a document of tests/data/walkthroughs."""
    return (ROOT / "tests" / "data" / "walkthroughs" / name).read_text()


def node_file(directory, nodes):
    """nodes: (name, ip, gpus, is_master)."""
    path = pathlib.Path(directory) / "nodes.yaml"
    path.write_text(
        "---\n".join(
            NODE.format(
                name=name,
                ip=ip,
                taint="{taints: [{key: node-role.kubernetes.io/master, effect: NoSchedule}]}" if master else "{}",
                role=', node-role.kubernetes.io/master: ""' if master else "",
                gpus=f', nvidia.com/gpu: "{gpus}"' if gpus else "",
            )
            for name, ip, gpus, master in nodes
        )
    )
    return path


def steps(text, prompt):
    """Every (command, output) of the document; a command goes on after a backslash at the end of a line."""
    found, lines = [], text.splitlines()
    i = 0
    while i < len(lines):
        line = lines[i].lstrip("\t")
        if not line.startswith(prompt):
            i += 1
            continue
        command = line[len(prompt) :].strip()
        i += 1
        while command.endswith("\\"):
            command = command[:-1].rstrip() + " " + lines[i].strip()
            i += 1
        output = []
        while i < len(lines) and not lines[i].startswith("```") and not lines[i].lstrip("\t").startswith(prompt):
            # An indented block ends where the text is no longer indented.
            if not prompt.startswith("#") and lines[i] and not lines[i].startswith("\t"):
                break
            output.append(lines[i].lstrip("\t"))
            i += 1
        found.append((command, "\n".join(output).strip("\n")))
    return found


DURATION = re.compile(r"(?<![\w.-])(\d+[smhdy])+(?![\w-]|\.\w)")


def cells(line, replace=()):
    line = DURATION.sub("<time>", line)
    line = re.sub(r"-launcher-[a-z0-9]{5}\b", "-launcher-<suffix>", line)
    for pattern, by in replace:
        line = re.sub(pattern, by, line)
    return [cell for cell in re.split(r"\s{2,}", line.strip()) if cell]


def rows(text, replace=()):
    return [row for row in (cells(line, replace) for line in text.splitlines()) if row]


def by_columns(text, replace=()):
    """A table as a list of {heading: cell}, and the lines that follow it."""
    table, rest = [], []
    heading = None
    for row in rows(text, replace):
        if heading is None:
            heading = row
        elif len(row) == len(heading) and not row[0].startswith("---") and not rest:
            table.append(dict(zip(heading, row)))
        else:
            rest.append(row)
    return heading, table, rest


class Walk:
    """Runs the commands of one walk-through on a cluster of its own and counts what agrees."""

    def __init__(self, name, nodes, extra=(), layers=None):
        """layers: files that the cluster's machine shall have, below /usr or /opt, as {"/usr/local/bin/x": content}."""
        self.name, self.check = name, Checks()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="muster-walk-"))
        bin_dir = self.directory / "bin"
        bin_dir.mkdir()
        (bin_dir / "arena").symlink_to(binary())
        kubectl = kubectls()
        if kubectl:
            (bin_dir / "kubectl").symlink_to(kubectl[0][1])
        self.nodes = node_file(self.directory, nodes)
        if layers:
            os.environ["MUSTER"] = str(self.layered(binary(), layers))
        self.muster = Muster(*extra, nodes=str(self.nodes), gpus=0, data=self.directory / "data")

    def layered(self, program, layers):
        """A program that runs `program` in a mount namespace of its own, with the files laid over the machine's.

        Pods are processes on this machine's file system, so what a container image would bring is laid over it;
        the machine itself stays as it is."""
        script = self.directory / "muster"
        lines = ["#!/bin/bash", "set -e", 'if [ "$1" != up ]; then exec %s "$@"; fi' % program]
        inner = [f"mkdir -p {self.directory}/layer", f"mount -t tmpfs tmpfs {self.directory}/layer"]
        for number, folder in enumerate(sorted({os.path.dirname(path) for path in layers})):
            upper = f"{self.directory}/layer/{number}"
            inner.append(f"mkdir -p {upper}/up {upper}/work")
            for path, content in layers.items():
                if os.path.dirname(path) != folder:
                    continue
                source = self.directory / f"layer-{os.path.basename(path)}"
                source.write_text(content)
                inner.append(f"install -m 755 {source} {upper}/up/{os.path.basename(path)}")
            inner.append(
                f"mount -t overlay overlay -o lowerdir={folder},upperdir={upper}/up,workdir={upper}/work {folder}"
            )
        inner.append(f'exec {program} "$@"')
        setup = self.directory / "setup.sh"
        setup.write_text("set -e\n" + "\n".join(inner) + "\n")
        lines.append(f'exec unshare --mount --propagation private bash {setup} "$@"')
        script.write_text("\n".join(lines) + "\n")
        script.chmod(0o755)
        return script

    def __enter__(self):
        self.muster.__enter__()
        return self

    def __exit__(self, *what):
        self.muster.__exit__(*what)
        shutil.rmtree(self.directory, ignore_errors=True)

    def shell(self, command, timeout=60):
        env = self.muster.env()
        env["PATH"] = f"{self.directory / 'bin'}:{env['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command + " 2>&1"],
            text=True,
            capture_output=True,
            env=env,
            cwd=self.directory,
            timeout=timeout,
        )
        return done.returncode, done.stdout

    def until(self, command, pattern, timeout=90):
        """Runs the command until its output matches: the cluster needs its time, and that is what is awaited."""
        deadline = time.monotonic() + timeout
        while True:
            _, out = self.shell(command)
            if re.search(pattern, out, re.M) or time.monotonic() > deadline:
                return out
            time.sleep(0.2)

    def compare(self, what, want, got, replace=()):
        left, right = rows(want, replace), rows(got, replace)
        self.check(what, left == right, f"--- wanted\n{want}\n--- printed\n{got}")

    def compare_columns(self, what, want, got, replace=()):
        """The wanted columns must be there with the wanted cells; more columns may be."""
        heading, table, rest = by_columns(want, replace)
        got_heading, got_table, got_rest = by_columns(got, replace)
        same = (
            got_heading is not None
            and set(heading) <= set(got_heading)
            and len(table) == len(got_table)
            and rest == got_rest
        )
        same = same and all(row.items() <= other.items() for row, other in zip(table, got_table))
        self.check(what, same, f"--- wanted\n{want}\n--- printed\n{got}")

    def finish(self):
        sys.exit(self.check.close())
