#!/usr/bin/env python3
"""The portal as people see it: real Chromium on a real `muster up`. The checks are in browser.mjs, named by what a person
would notice; this program starts the cluster, kills it when a check asks for that, and counts the results."""
import pathlib
import shutil
import sys

from chromium import drive, free_port, need_browser, with_password

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


def main():
    need_browser()
    check = Checks()
    port = free_port()
    with with_password(Muster("--portal", f"127.0.0.1:{port}", nodes=3, gpus=4)) as muster:
        requests = {
            "@kill": lambda _: muster.kill(),
            "@start": lambda _: muster.start(),
            "@other": lambda _: other_pages(muster),
        }
        program = pathlib.Path(__file__).with_suffix(".mjs")
        drive(check, program, f"http://127.0.0.1:{port}", sys.argv[1:], requests=requests)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
