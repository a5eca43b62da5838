#!/usr/bin/env python3
"""The portal's sources without a browser: types, what its policy forbids, unit tests, and the sizes of what is shipped."""
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from muster import ROOT  # noqa: E402

WEB = ROOT / "web"
# What the first pages (sign in, home, jobs) fetch, and everything: kB after gzip.
FIRST_SCRIPT, FIRST_STYLE, EDITOR, TERMINAL, CHARTS, TOPOLOGY, ALL, INSIDE = 55, 10, 175, 100, 26, 25, 450, 1000


def run(*command):
    return subprocess.run(command, cwd=WEB, text=True, capture_output=True)


def unit_tests(check):
    done = run("node", "node_modules/vitest/vitest.mjs", "run", "--reporter=json")
    try:
        report = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        check("the unit tests ran", False, done.stdout[-1500:] + done.stderr[-1500:])
        return
    for suite in report["testResults"]:
        for case in suite["assertionResults"]:
            check(case["title"], case["status"] == "passed", "\n".join(case["failureMessages"])[:1500])
        if suite["status"] == "failed" and not suite["assertionResults"]:
            check(suite["name"], False, suite.get("message", ""))


def sizes(check):
    with tempfile.TemporaryDirectory() as folder:
        built = subprocess.run([ROOT / "tools" / "web", folder], text=True, capture_output=True)
        files = pathlib.Path(folder)
        if not (files / "files.txt").exists():
            check.skip("sizes of what is shipped", built.stderr.strip())
            return
        names = (files / "files.txt").read_text().split()
        size = {name: len(gzip.compress((files / name).read_bytes(), 9)) / 1000 for name in names}
        for name in names:
            for suffix in ("gz", "br"):
                check.count((files / f"{name}.{suffix}").exists())
        page = (files / "index.html").read_text()
        first = [name for name in names if f'"/{name}"' in page]
        total = lambda kind: sum(size[name] for name in first if name.endswith(kind))  # noqa: E731
        of = lambda part: sum(kb for name, kb in size.items() if f"/{part}-" in name)  # noqa: E731
        for what, kb, most in [
            ("scripts of the first page", total(".js"), FIRST_SCRIPT),
            ("styles of the first page", total(".css"), FIRST_STYLE),
            ("the editor", of("editor"), EDITOR),
            ("the terminal's document", of("terminal"), TERMINAL),
            ("charts", of("stacked"), CHARTS),
            ("the map", of("topology"), TOPOLOGY),
            ("everything", sum(size.values()), ALL),
        ]:
            check(f"[57] {what}: {kb:.0f} kB of at most {most}", 0 < kb <= most)
        inside = sum((files / f"{name}.{suffix}").stat().st_size for name in names for suffix in ("gz", "br")) / 1000
        check(f"[57] the program grows by {inside:.0f} kB of at most {INSIDE}", 0 < inside <= INSIDE)
        # Names of XML are no addresses; the other one can be no host, and is only compared with.
        known = {"www.w3.org", "origin.invalid"}
        texts = [(files / name).read_text() for name in names if name.endswith((".js", ".css", ".html"))]
        hosts = {host for text in texts for host in re.findall(r"(?:https?|wss?):(?:\\?/){2}([\w.-]+)", text)}
        check("[5] no other host is named", texts and hosts <= known, hosts - known)
        check("the page has no inline script, style or handler", "<style" not in page and "<script>" not in page)


def main():
    if shutil.which("node") is None or not (WEB / "node_modules" / "vitest").exists():
        skip_all("node and web/node_modules are needed (tools/web build/web)")
    check = Checks()
    types = run("node", "node_modules/typescript/bin/tsc", "--noEmit")
    check("types hold", types.returncode == 0, types.stdout[-1500:])
    lint = run("node", "lint.mjs")
    check("no markup, code or style is made from a string", lint.returncode == 0, lint.stderr)
    unit_tests(check)
    sizes(check)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
