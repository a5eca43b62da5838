#!/usr/bin/env python3
"""run.py VECTORS [SEED [COUNT]]: random scenarios from the model through the program; every step must be exactly the
model's.

A difference is printed with the file, which is kept; the rest is removed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import generate


def main(vectors, seed=1, count=400):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hived-model-")) / "hived"
    generate.main(seed, count, str(folder))
    done = subprocess.run([vectors, str(folder)], capture_output=True, text=True, check=False)
    print("\n".join(done.stdout.splitlines()[-12:]))
    steps = re.search(r"hived steps: (\d+) exact, (\d+) equivalent", done.stdout)
    good = done.returncode == 0 and steps is not None and int(steps[1]) > 10 * count and int(steps[2]) == 0
    if good:
        shutil.rmtree(folder.parent)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *(int(a) for a in sys.argv[2:4])))
