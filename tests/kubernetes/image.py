#!/usr/bin/env python3
"""deploy/Dockerfile without docker: its sources exist, its packages are known, and the file system that its last
stage copies runs muster as the user it names, with nothing else in it.

The image itself is not built here. The commands of the stage that gathers the files are run as they stand, with the
binary of this build.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import muster as muster_fixture  # noqa: E402
from checks import Checks  # noqa: E402

check = Checks()


def stages():
    """Per stage: its name and its instructions as (word, rest)."""
    found = []
    for line in (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            found.append((rest.split(" AS ")[-1], []))
        elif word and not word.startswith("#"):
            found[-1][1].append((word, rest))
    return found


def packages():
    if not shutil.which("apt-cache"):
        check.skip("the packages of the build stage are known to apt", "no apt here")
        return
    text = (ROOT / "tools" / "packages").read_text()
    wanted = re.search(r"^build=\((.*?)\)", text, re.S | re.M)[1].split()
    wanted += [
        word
        for _, steps in stages()
        for w, rest in steps
        if w == "RUN" and "apt-get install" in rest
        for word in rest.split("--no-install-recommends")[1].split()
    ]
    unknown = [
        name for name in wanted if subprocess.run(["apt-cache", "show", name], capture_output=True).returncode != 0
    ]
    check(f"{len(wanted)} packages of the build stage are known to apt", not unknown, unknown)


def main():
    build, files, last = stages()
    sources = [ROOT / rest.split()[0] for word, rest in build[1] if word == "COPY"]
    check("what the build stage copies exists", sources and all(path.exists() for path in sources), sources)
    said = dict(last[1])
    check("the last stage has no user name to look up", re.fullmatch(r"\d+:\d+", said["USER"]), said)
    known = subprocess.run([muster_fixture.binary(), "run", "--help"], text=True, capture_output=True).stdout
    check(
        "it starts with flags that exist",
        all(flag in known for flag in re.findall(r"--[a-z-]+", said["CMD"])),
        said["CMD"],
    )
    packages()
    if os.geteuid() != 0:
        check.skip("muster starts in the image", "a file system of one's own needs root")
        return check.close()
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        for word, rest in files[1]:
            command = rest.replace("/src/build/muster", muster_fixture.binary()).replace("/root-fs", folder)
            done = subprocess.run(["sh", "-e", "-c", command], text=True, capture_output=True)
            check(f"{word} {rest[:60]}…", done.returncode == 0, done.stderr)
        pathlib.Path(folder).chmod(0o755)
        entry = re.search(r'"(.*?)"', said["ENTRYPOINT"])[1]
        (pathlib.Path(folder) / "proc").mkdir()  # which every container has
        begin = f"mount -t proc proc {folder}/proc && exec chroot --userspec={said['USER']} {folder} {entry} \"$@\""
        # A sanitizer's report goes to where its caller looks, and that file is not in there: here it is printed.
        env = {name: value for name, value in os.environ.items() if not name.endswith("SAN_OPTIONS")}
        inside = lambda *words: subprocess.run(
            ["unshare", "--mount", "sh", "-c", begin, "sh", *words], text=True, capture_output=True, env=env
        )  # noqa: E731
        check("muster starts in it as that user", (started := inside("version")).returncode == 0, started.stderr)
        check(
            "and finds all it needs to be an operator",
            (helped := inside("run", "--help")).returncode == 0 and helped.stdout == known,
            helped.stderr,
        )
        there = {str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file()}
        check(
            "and there is no shell",
            not [path for path in there if re.search(r"bin/(sh|bash|dash|busybox)$", path)],
            there,
        )
        check("but the roots of the web's certificates", "etc/ssl/certs/ca-certificates.crt" in there, there)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
