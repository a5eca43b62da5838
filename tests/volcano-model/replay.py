"""replay.py FILE…: plays scenario files on the model under several seeds and shows where an expectation is not met."""
import json
import random
import sys

from model import Model

SEEDS = 12
# Where Volcano draws lots or stands still for ever, Muster's answer: those who would go first are asked first and
# those whom a plugin spares last, and room that is free already is left to an allocate that is still to come.
OURS = {"leave_free_room": True, "ordered_victims": True}


def observations(scenario, seeds=SEEDS, options=None, modes=(True, False)):
    """What is seen after each step, for each seed and way of creating pods; None from the step on that does not
    settle."""
    runs = []
    for seed in range(seeds):
        for at_once in modes:
            m = Model(scenario, random.Random(seed), at_once, options)
            m.random_nodes = seed % 3 == 2 and m.plugin("nodeorder") is not None
            run = []
            for step in scenario["steps"]:
                run.append(m.observe() if m.run_step(step) else None)
                if run[-1] is None:
                    break
            runs.append(run)
    return runs


def differences(expect, seen):
    out = []
    for name, want in expect.get("groups", {}).items():
        got = seen["groups"].get(name, {})
        out += [f"{name} {k}: wanted {v}, model {got.get(k)}" for k, v in want.items() if got.get(k) != v]
    if {k: v for k, v in expect.get("evicted", {}).items() if v} != seen["evicted"]:
        out.append(f"evicted: wanted {expect.get('evicted', {})}, model {seen['evicted']}")
    if "evicted_pods" in expect and sorted(expect["evicted_pods"]) != seen["evicted_pods"]:
        out.append(f"evicted pods: wanted {expect['evicted_pods']}, model {seen['evicted_pods']}")
    for name, spots in expect.get("placement", {}).items():
        if {k: v for k, v in spots.items() if v} != seen["placement"].get(name):
            out.append(f"placement of {name}: wanted {spots}, model {seen['placement'].get(name)}")
    return out


def main(files):
    bad = 0
    for path in files:
        scenario = json.load(open(path))
        if (
            any(a.startswith("gang") or a == "shuffle" for a in scenario["config"]["actions"])
            or "configurations" in scenario["config"]
        ):
            continue
        lines = set()
        for run in observations(scenario, options=OURS):
            for number, (step, seen) in enumerate(zip(scenario["steps"], run)):
                found = ["does not settle"] if seen is None else differences(step["expect"], seen)
                lines |= {f"step {number}: {d}" for d in found}
        bad += bool(lines)
        for line in sorted(lines):
            print(f"{path}: {line}")
    print(f"{bad} differ")
    return bad == 0


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
