"""compare.py VECTORS-BINARY FIRST COUNT: random scenarios whose outcome is certain, played by Muster's engine.

A difference is reported only if it persists under many more draws and under every reading (VARIANTS) of the places where
Volcano's own text and code allow more than one.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from generate import certain, scenario
from replay import OURS

VARIANTS = (OURS, {}, {"elastic_of_unknown": False}, {"count_left": False})


def play(binary, scenarios):
    """Seeds of the scenarios that differ, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        for seed, s in scenarios.items():
            (pathlib.Path(folder) / f"{seed:07}.json").write_text(json.dumps(s))
        out = subprocess.run([binary, folder], capture_output=True, text=True).stdout.replace(folder + "/", "")
    return {int(m) for m in re.findall(r"^(\d+)\.json: ", out, re.M)}, out


def main(binary, first, count):
    scenarios = {seed: certain(scenario(seed), 4) for seed in range(first, first + count)}
    scenarios = {k: v for k, v in scenarios.items() if v}
    doubtful, _ = play(binary, scenarios)
    sure = {seed: certain(scenario(seed), 24, VARIANTS) for seed in doubtful}
    differ, out = play(binary, {k: v for k, v in sure.items() if v}) if doubtful else (set(), "")
    print(out, end="")
    print(
        f"{len(scenarios)} scenarios, {sum(len(s['steps']) for s in scenarios.values())} steps, {len(doubtful)} doubtful, {len(differ)} differ: {sorted(differ)}"
    )
    return not differ


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
