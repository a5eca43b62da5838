#!/usr/bin/env python3
"""docs/seeds.md: every command, as printed there, on pods that run on this machine's files.

    tests/e2e/seeds_host.py [WORD…]     only the chapters whose title contains a word, and the first and the last
"""
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, skip_all  # noqa: E402
from replay import play  # noqa: E402
from seeds import PAGE, Newcomer, as_built, missing, repository  # noqa: E402


def main():
    why = missing()
    if why:
        skip_all(why)
    check, words = Checks(), sys.argv[1:]
    # Pods see it: not below /tmp, which is their own.
    with tempfile.TemporaryDirectory(prefix="muster-mnist-", dir="/srv") as place, Newcomer() as newcomer:
        os.chmod(place, 0o755)
        repository(place)
        # What stands for the network: the document's repository is in a folder of this machine.
        images = newcomer.home / "images.yaml"
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        # It belongs to nobody that a pod knows, which git asks about.
        config = pathlib.Path(place) / "gitconfig"
        config.write_text(f'[url "file://{place}/"]\n\tinsteadOf = https://code.aliyun.com/\n[safe]\n\tdirectory = *\n')
        env |= {"GIT_CONFIG_GLOBAL": str(config)}
        images.write_text(json.dumps({"host": {"env": env}}))
        # And for a package: python-is-python3 is this link.
        newcomer.shell.run("ln -s /usr/bin/python3 /usr/local/bin/python")

        def rewrite(command):
            if command.startswith("make up"):
                command += f" IMAGES={images}"
            if command.startswith("muster up") and "--images" not in command:
                command += f" --images {images}"
            return as_built(command)

        wanted = (lambda title: title in ("Before", "Afterwards") or any(w in title for w in words)) if words else None
        play(PAGE.read_text(), newcomer.shell, check, rewrite, wanted)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
