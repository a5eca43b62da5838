"""compare.py FILE…: compares the model with recorded scenarios exactly. Prints every difference."""

import json
import os
import sys

from model import Insane
from scenario import Scenario, same


def main(paths):
    bad = 0
    for path in paths:
        with open(path, encoding="utf-8") as f:
            file = json.load(f)
        if "steps" not in file or "expectConfigError" in file:
            continue
        run = Scenario(os.path.dirname(path))
        run.load(file, file["config"])
        for i, step in enumerate(file["steps"]):
            try:
                got = run.step(file, step)
            except Insane as why:
                got = {"insane": str(why)}
            difference = same(step["expect"], got)
            if difference:
                bad += 1
                print(f"{os.path.basename(path)} step {i} {step['op']} {step.get('pod', '')}: {difference[:400]}")
                break
    print(f"{len(paths)} files, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
