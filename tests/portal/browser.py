#!/usr/bin/env python3
"""The portal as people see it: real Chromium on a real `muster up`. The checks are in browser.mjs, named by what a person
would notice; this program starts the cluster, kills it when a check asks for that, and counts the results."""
import json
import pathlib
import re
import shutil
import sys

from chromium import drive, free_port, need_browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import ROOT, Muster  # noqa: E402


def other_pages(muster):
    """The same cluster, started anew with other pages."""
    folder = muster.data / "other-pages"
    shutil.copytree(ROOT / "build" / "web", folder)
    with open(folder / "index.html", "a") as page:
        page.write("<!-- other -->\n")
    muster.kill()
    muster.args += ["--portal-dir", str(folder)]
    muster.start()


def strictly(muster, text):
    """What kubectl says of a manifest, which it wants to be read strictly."""
    done = muster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text, check=False)
    return " ".join((done.stdout + done.stderr).split())


def main():
    need_browser()
    check = Checks()
    port = free_port()
    with Muster("--portal", f"127.0.0.1:{port}", nodes=3, gpus=4) as muster:
        printed = re.search(r"user admin, password (\S+)", muster.log()).group(1)
        requests = {
            "@kill": lambda _: muster.kill(),
            "@start": lambda _: muster.start(),
            "@other": lambda _: other_pages(muster),
            "@kubectl": lambda text: strictly(muster, json.loads(text)),
        }
        program = pathlib.Path(__file__).with_suffix(".mjs")
        drive(check, program, f"http://127.0.0.1:{port}", sys.argv[1:], printed, requests)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
