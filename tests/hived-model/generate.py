"""generate.py SEED COUNT FOLDER [kind]: random scenarios whose expected results the model fills in.

Kinds: traffic (gangs, priorities, preemption, suggestions), crowd (the same in a full cluster), health (nodes fail
and recover), storm (mostly failures), recovery (restarts in any order), reconfiguration (restarts with another file), all
(mixed).
"""

from __future__ import annotations

import copy
import json
import os
import random
import sys

from model import Insane, Model
from scenario import Scenario

# Per kind, the weights of: new gang, schedule, bound pod deleted, waiting pod deleted, node fails or heals, restart.
KINDS = {
    "traffic": (20, 50, 24, 6, 0, 0),
    "crowd": (25, 60, 8, 3, 0, 0),
    "health": (18, 44, 18, 4, 16, 0),
    "storm": (10, 30, 10, 2, 48, 0),
    "recovery": (20, 46, 20, 4, 0, 10),
    "reconfiguration": (20, 46, 20, 4, 0, 10),
    "all": (20, 42, 16, 4, 12, 6),
}
OPERATIONS = ("gang", "schedule", "delete", "give_up", "node", "restart")


def cluster(rng):
    """Chains of one or two leaf types; the shape of a node and of racks differs by chain."""
    types, physical = {}, []
    for c in range(rng.choice((1, 1, 2, 2, 3))):
        leaf = rng.choice(("K80", "V100")) if c else "K80"
        name, fan = leaf, []
        for i in range(rng.choice((0, 1, 1, 2))):
            fan.append(rng.choice((2, 2, 3)))
            types[f"C{c}-L{i}"] = {"childCellType": name, "childCellNumber": fan[-1]}
            name = f"C{c}-L{i}"
        number = rng.choice((1, 2, 2, 3))
        node = f"C{c}-NODE"
        types[node] = {"childCellType": name, "childCellNumber": number, "isNodeLevel": True}
        top, width = node, 1
        for i in range(rng.choice((0, 1, 1, 2))):
            number = rng.choice((2, 2, 3, 4)) if width < 4 else 2
            width *= number
            types[f"C{c}-RACK{i}"] = {"childCellType": top, "childCellNumber": number}
            top = f"C{c}-RACK{i}"
        tops = rng.randint(1, max(1, 5 // width) + 1)
        for t in range(tops):
            physical.append((c, top, t))
    cells, n = [], [0]

    def build(c, type_, first):
        spec = {"cellType": type_} if first else {}
        if types[type_].get("isNodeLevel"):
            spec["cellAddress"] = f"n{n[0]}"
            n[0] += 1
            if rng.random() < 0.2 and types[type_]["childCellType"] not in types:
                indices = rng.sample(range(8), types[type_]["childCellNumber"])
                spec["cellChildren"] = [{"cellAddress": i} for i in indices]
            return spec
        spec["cellChildren"] = [
            build(c, types[type_]["childCellType"], False) for _ in range(types[type_]["childCellNumber"])
        ]
        return spec

    for c, top, _ in physical:
        cells.append(build(c, top, True))
    return types, cells


def promises(rng, types, cells):
    """Virtual clusters that fit, carved from the top; some cells are pinned."""
    clusters = {f"vc{i}": {"virtualCells": []} for i in range(rng.choice((1, 2, 2, 3)))}
    names = list(clusters)
    pins = 0
    for chain in dict.fromkeys(cell["cellType"] for cell in cells):
        tops = [cell for cell in cells if cell["cellType"] == chain]
        left = len(tops)
        pinned_at: dict = {}
        if rng.random() < 0.3:
            cell, type_ = rng.choice(tops), chain
            while types[type_]["childCellType"] in types and cell.get("cellChildren") and rng.random() < 0.6:
                cell, type_ = rng.choice(cell["cellChildren"]), types[type_]["childCellType"]
            cell["pinnedCellId"] = f"pin{pins}"
            clusters[rng.choice(names)].setdefault("pinnedCells", []).append({"pinnedCellId": f"pin{pins}"})
            pins += 1
            pinned_at[type_] = 1
        type_, path = chain, [chain]
        while True:
            left -= pinned_at.get(type_, 0)
            below = sum(pinned_at.values()) - pinned_at.get(type_, 0) if type_ == chain else 0
            room = left - (1 if below else 0)
            for name in names:
                if room > 0 and rng.random() < 0.6:
                    number = rng.randint(1, room)
                    clusters[name]["virtualCells"].append({"cellType": ".".join(path), "cellNumber": number})
                    room -= number
                    left -= number
            if type_ not in types:
                break
            left *= types[type_]["childCellNumber"]
            type_ = types[type_]["childCellType"]
            path.append(type_)
            if left <= 0:
                break
    return clusters


def config(rng):
    while True:
        types, cells = cluster(rng)
        out = {
            "physicalCluster": {"cellTypes": types, "physicalCells": cells},
            "virtualClusters": promises(rng, types, cells),
        }
        if fits(out):
            return out


def fits(conf):
    """The safety rule of a configuration, from the top level down."""
    try:
        model = Model.__new__(Model)
        model.__dict__.update(types={}, chains={}, vcs={}, groups={}, nodes={}, node_leaves={}, tops=[], pins={})
        Model.build_cells(model, conf)
    except (KeyError, Insane):
        return False
    for chain in model.chains.values():
        available = len(chain.full[chain.top])
        for l in range(chain.top, 0, -1):
            available -= chain.all_vc_free[l]
            if available < 0:
                return False
            available *= len(chain.full[l][0].children)
    return True


def changed(rng, conf):
    """Another file for the same cluster: promises moved, nodes gone, types renamed."""
    for _ in range(20):
        out = copy.deepcopy(conf)
        what = rng.choice(("promises", "vc", "node", "shrink", "same"))
        cells, types = out["physicalCluster"]["physicalCells"], out["physicalCluster"]["cellTypes"]
        if what == "promises":
            for cell in cells:
                strip(cell)
            out["virtualClusters"] = promises(rng, types, cells)
        elif what == "vc" and len(out["virtualClusters"]) > 1:
            del out["virtualClusters"][rng.choice(list(out["virtualClusters"]))]
        elif what == "node" and len(cells) > 1:
            cells.pop(rng.randrange(len(cells)))
        elif what == "shrink":
            for vc in out["virtualClusters"].values():
                for entry in vc["virtualCells"]:
                    entry["cellNumber"] = max(0, entry["cellNumber"] - rng.randint(0, 1))
        if fits(out):
            return out
    return conf


def strip(cell):
    cell.pop("pinnedCellId", None)
    for child in cell.get("cellChildren") or []:
        strip(child)


class Trace:
    def __init__(self, rng, kind, folder):
        self.rng, self.kind = rng, kind
        conf = config(rng)
        self.file = {
            "name": "",
            "config": conf,
            "chainOrder": "descending",
            "initialNodes": "allHealthy",
            "tags": [kind],
            "steps": [],
        }
        self.run = Scenario(folder)
        self.run.load(self.file, conf)
        self.conf = conf
        self.waiting: dict = {}
        self.pod = self.group = 0
        self.groups: dict = {}

    def add(self, step):
        """False: the original would not survive it; the trace ends before."""
        try:
            expect = self.run.step(self.file, step)
        except Insane:
            return False
        self.file["steps"].append({**step, "expect": expect})
        self.last = expect
        return True

    def new_group(self):
        rng = self.rng
        vc = rng.choice(list(self.conf["virtualClusters"]))
        members = [{"podNumber": rng.choice((1, 1, 1, 2, 3)), "leafCellNumber": rng.choice((1, 1, 2, 2, 3, 4))}]
        if rng.random() < 0.15:
            members.append({"podNumber": 1, "leafCellNumber": rng.choice((1, 2, 4))})
        spec = {"virtualCluster": vc, "priority": rng.choice((-1, -1, 0, 0, 1, 5, 100)), "leafCellNumber": 0}
        if rng.random() < 0.6:
            spec["leafCellType"] = rng.choice(("K80", "K80", "V100"))
        pins = [p["pinnedCellId"] for p in self.conf["virtualClusters"][vc].get("pinnedCells", [])]
        if pins and rng.random() < 0.4:
            spec["pinnedCellId"] = rng.choice(pins)
        if rng.random() < 0.3:
            spec["lazyPreemptionEnable"] = True
        if rng.random() < 0.3:
            spec["ignoreK8sSuggestedNodes"] = False
        self.group += 1
        spec["affinityGroup"] = {"name": f"g{self.group}", "members": members}
        for m in members:
            for _ in range(m["podNumber"]):
                self.pod += 1
                self.waiting[f"p{self.pod}"] = {**spec, "leafCellNumber": m["leafCellNumber"]}

    def nodes(self):
        return list(self.run.model.nodes)

    def suggested(self):
        if self.rng.random() < 0.8:
            return "all"
        nodes = self.nodes()
        return {"allExcept": sorted(self.rng.sample(nodes, self.rng.randint(1, max(1, len(nodes) // 2))))}

    def schedule(self, pod, phase):
        step = {
            "op": "schedule",
            "pod": pod,
            "phase": phase,
            "suggestedNodes": self.suggested(),
            "spec": self.waiting[pod],
        }
        if not self.add(step):
            return False
        if "bind" in self.last:
            del self.waiting[pod]
        elif "error" in self.last:
            del self.waiting[pod]
        return True

    def step(self):
        rng, bound = self.rng, self.run.order
        what = rng.choices(OPERATIONS, KINDS[self.kind])[0]
        if what == "gang" or not self.waiting and not bound:
            self.new_group()
        elif what == "schedule" and self.waiting:
            return self.schedule(rng.choice(list(self.waiting)), rng.choice(("Filtering", "Preempting")))
        elif what == "delete" and bound:
            groups = self.run.model.groups.values()
            victims = [
                s[0] for g in groups if g.state == "BeingPreempted" for slots in g.slots.values() for s in slots if s
            ]
            return self.add({"op": "deleteAllocated", "pod": rng.choice(victims or bound)})
        elif what == "give_up" and self.waiting:
            pod = rng.choice(list(self.waiting))
            del self.waiting[pod]
            return self.add({"op": "deleteUnallocated", "pod": pod})
        elif what == "node":
            return self.add({"op": rng.choice(("setNodeBad", "setNodeHealthy")), "node": rng.choice(self.nodes())})
        elif what == "restart":
            return self.restart()
        return True

    def restart(self):
        rng = self.rng
        step = {"op": "restart", "initialNodes": "allHealthy", "chainOrder": "descending"}
        if rng.random() < 0.7:
            step["replay"] = rng.sample(self.run.order, len(self.run.order))
        if self.kind != "recovery" and rng.random() < 0.7:
            self.conf = changed(rng, self.conf)
        step["config"] = self.conf
        if rng.random() < 0.3:
            step["initialNodes"] = "allBad"
            if not self.add(step):
                return False
            nodes = self.nodes()
            for node in rng.sample(nodes, rng.randint(len(nodes) // 2, len(nodes))):
                if not self.add({"op": "setNodeHealthy", "node": node}):
                    return False
            return True
        return self.add(step)

    def make(self, length):
        for _ in range(length):
            if not self.step():
                return self.file  # the model is broken where the original would be
            if self.rng.random() < 0.15:
                self.add({"op": "inspect"})
        self.add({"op": "inspect"})
        return self.file


def main(seed, count, folder, kind="mixed"):
    os.makedirs(folder, exist_ok=True)
    for i in range(count):
        rng = random.Random(f"{seed}-{i}")
        chosen = rng.choice(list(KINDS)) if kind == "mixed" else kind
        file = Trace(rng, chosen, folder).make(rng.randint(15, 60))
        file["name"] = f"{chosen}-{seed}-{i}"
        with open(os.path.join(folder, file["name"] + ".json"), "w", encoding="utf-8") as f:
            json.dump(file, f)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], *sys.argv[4:5])
