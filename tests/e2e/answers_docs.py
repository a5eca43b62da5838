#!/usr/bin/env python3
"""docs/answers.md: every command, as printed there and in its order, on a cluster of its own. The output must match the page, except
for numbers and times. `--update` writes the output into the page.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster, binary, kubectls  # noqa: E402

PAGE = ROOT / "docs" / "answers.md"
# Numbers, times and ages; the width of columns goes with them.
# A time of another day than today is printed with its day: near midnight that is every other one.
DAY = re.compile(r"\d{4}-\d\d-\d\d (?=\d\d:\d\d)")
NUMBER = re.compile(r"\d+(\.\d+)?")
AGE = re.compile(r"(?<![\w.-])(#[smhdy])+(?![\w.-])")
CUT = "…"


def blocks(text):
    """Every console block as [line, …], with where it stands."""
    for found in re.finditer(r"```console\n(.*?)```", text, re.S):
        yield found.start(1), found.group(1)


def steps(block):
    """(command, output lines); a comment behind a command is not part of it."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((re.sub(r"\s{2,}# .*$", "", line[2:]), line, []))
        elif found:
            found[-1][2].append(line)
    return found


def shape(line):
    line = AGE.sub("<age>", NUMBER.sub("#", DAY.sub("", line)))
    return re.sub(r"\s+", " ", line).strip()


def agrees(wanted, seen):
    """Line by line; a line with nothing but … stands for any number of lines."""
    wanted, seen = [shape(line) for line in wanted], [shape(line) for line in seen]
    if CUT not in wanted:
        return wanted == seen
    at = wanted.index(CUT)
    head, tail = wanted[:at], wanted[at + 1 :]
    return seen[: len(head)] == head and (not tail or seen[-len(tail) :] == tail)


def main():
    check = Checks()
    update = "--update" in sys.argv
    text = PAGE.read_text()
    with Muster("--hollow", "--portal", "none", nodes=2, gpus=4) as muster:
        env = muster.env()
        tools = muster.data / "bin"
        tools.mkdir()
        (tools / "muster").symlink_to(binary())
        (tools / "kubectl").symlink_to(kubectls()[0][1])
        env["PATH"] = f"{tools}:{env['PATH']}"
        env["COLUMNS"] = "120"

        def run(command):
            done = subprocess.run(
                ["bash", "-c", command], cwd=ROOT, env=env, text=True, capture_output=True, timeout=120
            )
            return [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]

        replaced = []
        for where, block in blocks(text):
            lines = []
            for command, printed, wanted in steps(block):
                if command.startswith("muster up"):
                    lines += [printed, *wanted]
                    continue
                seen = run(command)
                if not update:
                    # What is told a moment later than it happens is looked for again.
                    until(lambda: agrees(wanted, seen) or seen.__setitem__(slice(None), run(command)), 15, 1)
                    check(command, agrees(wanted, seen), "wanted\n" + "\n".join(wanted) + "\nseen\n" + "\n".join(seen))
                elif CUT in wanted:
                    seen = seen[: wanted.index(CUT)] + [CUT]
                lines += [printed, *seen]
            replaced.append((where, block, "\n".join(lines) + "\n"))
        if update:
            for where, block, fresh in reversed(replaced):
                text = text[:where] + fresh + text[where + len(block) :]
            PAGE.write_text(text)
            return 0
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
