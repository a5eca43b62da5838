"""HiveD's specified behaviour in the plainest way: lists that are searched, nothing indexed, nothing clever.

It knows nothing of the program. Where the specification lists a defect and what to do instead, it does that. Where it
says that the original crashes or its books no longer add up, `Insane` is raised: no answer is expected there. Loops whose
order is free run in the order of the configuration.
"""

from __future__ import annotations

import json
from typing import Optional

FREE, OPPORTUNISTIC = -2, -1


class Insane(Exception):
    """The original would crash or continue with broken books."""


class UserError(Exception):
    """The pod can never be scheduled as it is written."""


class Type:
    def __init__(self, name, child, number, node):
        self.name, self.child, self.number, self.node = name, child, number, node
        self.level = child.level + 1 if child else 1
        self.leaf_type = child.leaf_type if child else name
        self.leaf_count = child.leaf_count * number if child else 1
        self.at_or_above_node = node or bool(child and child.at_or_above_node)
        self.multi_node = bool(child and child.at_or_above_node)


class Cell:
    def __init__(self, type_, chain, address, parent):
        self.type, self.chain, self.address, self.parent = type_, chain, address, parent
        self.level = type_.level
        self.children: list = []
        self.priority = FREE
        self.state = "Free"
        self.healthy = True
        self.used: dict = {}

    def leaves(self):
        if self.level == 1:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]

    def count(self, priority, delta):
        cell = self
        while cell is not None:
            cell.used[priority] = cell.used.get(priority, 0) + delta
            if cell.used[priority] == 0:
                del cell.used[priority]
            cell = cell.parent

    def set_priority(self, priority):
        old, self.priority = self.priority, priority
        if self.parent is None:
            return
        if priority > self.parent.priority:
            self.parent.set_priority(priority)
        elif old == self.parent.priority and priority < old:
            self.parent.set_priority(max(c.priority for c in self.parent.children))

    def __repr__(self):
        return f"{self.type.name}@{self.address}"


class Physical(Cell):
    def __init__(self, *args):
        super().__init__(*args)
        self.nodes: list = []
        self.index = -1
        self.using = self.reserving = None
        self.virtual: Optional[Virtual] = None
        self.split = self.pinned = False
        self.allocated_virtual = None  # how a leaf was taken decides how it is given back
        self.opportunistic_vc = None

    def set_state(self, state):
        self.state = state
        if self.virtual is not None:
            self.virtual.state = state
        if self.parent is not None and (state == "Used" or all(c.state == state for c in self.parent.children)):
            self.parent.set_state(state)

    def is_free(self):
        cell = self
        while True:
            if cell.virtual is not None or cell.split:
                return False
            if cell.parent is None or cell.parent.split:
                return True
            cell = cell.parent


class Virtual(Cell):
    def __init__(self, type_, chain, address, parent, vc):
        super().__init__(type_, chain, address, parent)
        self.vc = vc
        self.root = parent.root if parent else self
        self.physical: Optional[Physical] = None


def bind(p, v):
    p.virtual, v.physical, v.healthy = v, p, p.healthy


def unbind(p):
    v = p.virtual
    p.virtual, v.physical, v.healthy, v.state = None, None, True, "Free"


def swap_remove(items, x):
    """The rule of all lists: the last element fills the hole."""
    if x not in items:
        raise Insane(f"{x} is not in the list")
    i = items.index(x)
    items[i] = items[-1]
    items.pop()


class Chain:
    def __init__(self, name, type_):
        self.name, self.type, self.top = name, type_, type_.level
        levels = range(self.top + 1)
        self.full = [[] for _ in levels]
        self.free = [[] for _ in levels]
        self.bad_free = [[] for _ in levels]
        self.total_left = [0 for _ in levels]
        self.all_vc_free = [0 for _ in levels]
        self.doomed_count = [0 for _ in levels]
        self.vcs = []
        self.view = None

    def types(self):
        t = self.type
        while t is not None:
            yield t
            t = t.child


class VC:
    def __init__(self, name):
        self.name = name
        self.free = {}  # chain name -> per level
        self.preassigned = {}  # chain name -> per level: roots that are not pinned
        self.full = {}  # chain name -> per level: all cells that are not pinned
        self.doomed = {}  # chain name -> per level
        self.view = {}
        self.pinned = {}  # id -> (root, per level cells, view)
        self.opportunistic = []

    def chain(self, chain):
        if chain.name not in self.free:
            for table in (self.preassigned, self.full, self.doomed):
                table[chain.name] = [[] for _ in range(chain.top + 1)]
            self.free[chain.name] = [0] * (chain.top + 1)
            chain.vcs.append(self)


def make_view(full):
    top = len(full) - 1
    level = next((l for l in range(1, top + 1) if full[l] and full[l][0].type.at_or_above_node), top)
    view = []
    for l in range(level, 0, -1):
        for cell in full[l]:
            above = cell
            while not above.type.at_or_above_node and above.parent is not None:
                above = above.parent
            if above not in view:
                view.append(cell)
    return view


class Group:
    def __init__(self, spec, state):
        self.name, self.vc, self.priority = spec["group"], spec["vc"], spec["priority"]
        self.lazy, self.ignore, self.state = spec["lazy"], spec["ignore"], state
        self.slots: dict = {}
        for number, leaves in spec["members"]:
            self.slots.setdefault(leaves, []).extend([None] * number)
        self.physical: dict = {}
        self.virtual: Optional[dict] = None
        self.preempting_pods: list = []
        self.preemptor = None


def shape(spec, make):
    out: dict = {}
    for number, leaves in spec["members"]:
        out.setdefault(leaves, []).extend(make(leaves) for _ in range(number))
    return {k: out[k] for k in sorted(out)}


class Model:
    def __init__(self, config, descending=True):
        self.types: dict = {}
        self.chains: dict = {}
        self.vcs: dict = {}
        self.groups: dict = {}
        self.nodes: dict = {}  # name -> healthy
        self.node_leaves: dict = {}
        self.tops: list = []
        self.pins: dict = {}
        self.build_cells(config)
        for chain in self.chains.values():
            chain.view = make_view(chain.full)
        order = sorted(self.chains, reverse=True) if descending else list(self.chains)
        self.leaf_types: dict = {}
        for chain in self.chains.values():
            self.leaf_types.setdefault(chain.type.leaf_type, [])
        for name in order:
            self.leaf_types[self.chains[name].type.leaf_type].append(self.chains[name])
        for vc in self.vcs.values():
            for root, physical in vc.pin_list:
                self.allocate_preassigned(physical, vc, False)
                bind(physical, root)
                physical.pinned = True
        for chain in self.chains.values():
            for top in chain.full[chain.top]:
                for node in top.nodes:
                    self.set_node(node, False)

    # ---- configuration

    def build_cells(self, config):
        cluster = config.get("physicalCluster") or {}
        self._specs = cluster.get("cellTypes") or {}
        for name in self._specs:
            self._type(name)
        for i, spec in enumerate(cluster.get("physicalCells") or []):
            type_ = self.types[spec["cellType"]]
            chain = self.chains.setdefault(type_.name, None) or Chain(type_.name, type_)
            self.chains[type_.name] = chain
            top = self._physical(spec, type_, "", i, None, chain, None)
            self.tops.append(top)
            chain.free[chain.top].append(top)
        for chain in self.chains.values():
            chain.total_left[chain.top] = len(chain.full[chain.top])
            for l in range(chain.top, 1, -1):
                chain.total_left[l - 1] = chain.total_left[l] * len(chain.full[l][0].children)
            for leaf in chain.full[1]:
                self.node_leaves.setdefault(leaf.nodes[0], []).append(leaf)
        for name, spec in (config.get("virtualClusters") or {}).items():
            self._vc(name, spec or {})

    def _type(self, name):
        if name not in self.types:
            spec = self._specs.get(name)
            child = self._type(spec["childCellType"]) if spec else None
            number = spec["childCellNumber"] if spec else 0
            self.types[name] = Type(name, child, number, bool(spec and spec.get("isNodeLevel")))
        return self.types[name]

    def _physical(self, spec, type_, prefix, default, parent, chain, node):
        given = spec.get("cellAddress")
        address = prefix + str(default if given in (None, "") else given)
        cell = Physical(type_, chain, address, parent)
        chain.full[cell.level].append(cell)
        if spec.get("pinnedCellId"):
            self.pins[spec["pinnedCellId"]] = cell
        if type_.at_or_above_node and not type_.multi_node:
            node = address.split("/")[-1]
            self.nodes.setdefault(node, True)
        if type_.child is None:
            cell.index = int(address.split("/")[-1])
            cell.nodes = [node]
            return cell
        if type_.node:
            default = 0
        children = spec.get("cellChildren") or [{}] * type_.number
        for k, child in enumerate(children):
            cell.children.append(
                self._physical(child or {}, type_.child, address + "/", default * type_.number + k, cell, chain, node)
            )
        cell.nodes = [node] if node is not None else [n for c in cell.children for n in c.nodes]
        return cell

    def _virtual(self, type_, chain, address, parent, vc, full):
        cell = Virtual(type_, chain, address, parent, vc)
        full[cell.level].append(cell)
        if type_.child is not None:
            last = 0 if parent is None else int(address.split("/")[-1])
            for k in range(type_.number):
                cell.children.append(
                    self._virtual(type_.child, chain, f"{address}/{last * type_.number + k}", cell, vc, full)
                )
        return cell

    def _vc(self, name, spec):
        vc = self.vcs[name] = VC(name)
        vc.pin_list = []
        n = 0
        for entry in spec.get("virtualCells") or []:
            path = entry["cellType"].split(".")
            chain, type_ = self.chains[path[0]], self.types[path[-1]]
            vc.chain(chain)
            for _ in range(entry["cellNumber"]):
                root = self._virtual(type_, chain, f"{name}/{n}", None, vc, vc.full[chain.name])
                vc.preassigned[chain.name][type_.level].append(root)
                vc.free[chain.name][type_.level] += 1
                chain.all_vc_free[type_.level] += 1
                n += 1
        for entry in spec.get("pinnedCells") or []:
            physical = self.pins[entry["pinnedCellId"]]
            chain = physical.chain
            vc.chain(chain)
            full = [[] for _ in range(physical.level + 1)]
            root = self._virtual(physical.type, chain, f"{name}/{n}", None, vc, full)
            n += 1
            vc.free[chain.name][physical.level] += 1
            chain.all_vc_free[physical.level] += 1
            vc.pinned[entry["pinnedCellId"]] = (root, full, make_view(full))
            vc.pin_list.append((root, physical))
        for chain_name, full in vc.full.items():
            vc.view[chain_name] = make_view(full)

    # ---- health

    def set_node(self, node, healthy):
        if self.nodes.get(node, healthy) == healthy:
            return
        self.nodes[node] = healthy
        for leaf in self.node_leaves[node]:
            (self.set_healthy if healthy else self.set_bad)(leaf)

    def set_bad(self, c):
        if not c.healthy:
            return
        c.healthy = False
        if c.virtual is not None:
            c.virtual.healthy = False
        if c.parent is not None:
            self.set_bad(c.parent)
        chain, l = c.chain, c.level
        if c.is_free():
            chain.bad_free[l].append(c)
            if chain.all_vc_free[l] > chain.total_left[l] - len(chain.bad_free[l]):
                self.bind_doomed(chain, l)
        elif c.virtual is None and not c.split:
            self.bind_bad(c)

    def bind_bad(self, c):
        if c.parent.virtual is None:
            raise Insane("parent of an allocated bad cell is not bound")
        child = next((v for v in c.parent.virtual.children if v.physical is None), None)
        if child is None:
            raise Insane("no virtual child left for a bad cell")
        bind(c, child)

    def set_healthy(self, c):
        if c.healthy:
            return
        c.healthy = True
        if c.virtual is not None:
            c.virtual.healthy = True
        chain, l = c.chain, c.level
        if c.is_free():
            swap_remove(chain.bad_free[l], c)
            self.unbind_doomed(chain, l)
        elif c.virtual is not None and not c.pinned:
            v = c.virtual
            doomed = v.parent is None and c in v.vc.doomed[chain.name][l]
            if c.priority < 0:
                unbind(c)
                if v.parent is None:
                    if not doomed:
                        raise Insane("a healed cell is bound to a root, yet neither used nor doomed")
                    swap_remove(v.vc.doomed[chain.name][l], c)
                    chain.doomed_count[l] -= 1
                    self.release_preassigned(c, v.vc, True)
            elif doomed:
                swap_remove(v.vc.doomed[chain.name][l], c)  # in use: an ordinary allocation from now on
                chain.doomed_count[l] -= 1
        if c.parent is not None and all(s.healthy for s in c.parent.children):
            self.set_healthy(c.parent)

    def bind_doomed(self, chain, l):
        for vc in chain.vcs:
            while chain.bad_free[l] and vc.free[chain.name][l] > chain.total_left[l] - len(chain.bad_free[l]):
                cell = chain.bad_free[l][0]
                if (
                    cell.type.multi_node
                    and self.opens_promised(cell)
                    and not all(self.opens_promised(c) for c in chain.bad_free[l])
                ):
                    raise Insane("a doomed cell that is usable in part opens a larger one that is promised")
                root = next((v for v in vc.preassigned[chain.name][l] if v.physical is None), None)
                if root is None:
                    raise Insane("no unbound preassigned cell to doom")
                bind(cell, root)
                vc.doomed[chain.name][l].append(cell)
                chain.doomed_count[l] += 1
                self.allocate_preassigned(cell, vc, True)

    @staticmethod
    def opens_promised(cell):
        above, chain = cell.parent, cell.chain
        while above is not None and not above.split:
            if chain.total_left[above.level] <= chain.all_vc_free[above.level]:
                return True
            above = above.parent
        return False

    def unbind_doomed(self, chain, l):
        for vc in chain.vcs:
            doomed = vc.doomed[chain.name][l]
            while doomed and vc.free[chain.name][l] < chain.total_left[l] - len(chain.bad_free[l]):
                cell = doomed[0]
                if cell.virtual.priority >= 0:
                    raise Insane("a doomed cell in use would be unbound")
                unbind(cell)
                swap_remove(doomed, cell)
                chain.doomed_count[l] -= 1
                self.release_preassigned(cell, vc, True)

    # ---- cells taken and given back

    def allocate_preassigned(self, c, vc, doomed):
        chain, level = c.chain, c.level
        vc.free[chain.name][level] -= 1
        chain.all_vc_free[level] -= 1
        chain.total_left[level] -= 1
        cell, top = c, level
        while True:
            above, l = cell.parent, cell.level
            go_on = above is not None and not above.split
            if go_on:
                chain.free[l].extend(above.children)
                above.split = True
            swap_remove(chain.free[l], cell)
            top = l
            if not go_on:
                break
            cell = above
        safe = True
        above = c
        for l in range(level + 1, top + 1):
            above = above.parent
            chain.total_left[l] -= 1
            safe = safe and chain.total_left[l] >= chain.all_vc_free[l]
            if not above.healthy:
                swap_remove(chain.bad_free[l], above)
            else:
                self.bind_doomed(chain, l)
        if not c.healthy:
            self.mark_bad(c)
            if not doomed:
                self.unbind_doomed(chain, level)
        else:
            self.bind_doomed(chain, level)
        inside = c.children
        for l in range(level - 1, 0, -1):
            chain.total_left[l] -= len(inside)
            safe = safe and chain.total_left[l] >= chain.all_vc_free[l]
            if not doomed:
                self.bind_doomed(chain, l)
            inside = [x for y in inside for x in y.children]
        return safe

    def mark_bad(self, c):
        if c in c.chain.bad_free[c.level]:
            swap_remove(c.chain.bad_free[c.level], c)
        if c.virtual is None:
            # A pinned cell is bound after it is allocated; all is healthy then.
            self.bind_bad(c)
        for child in c.children:
            if not child.healthy:
                self.mark_bad(child)

    def release_preassigned(self, c, vc, doomed):
        chain, level = c.chain, c.level
        vc.free[chain.name][level] += 1
        chain.all_vc_free[level] += 1
        chain.total_left[level] += 1
        cell = c
        while True:
            above, l = cell.parent, cell.level
            if above is None or any(s is not cell and s not in chain.free[l] for s in above.children):
                chain.free[l].append(cell)
                break
            for s in above.children:
                if s is not cell:
                    swap_remove(chain.free[l], s)
            above.split = False
            cell = above
        top = cell.level
        above = c
        for l in range(level + 1, top + 1):
            above = above.parent
            chain.total_left[l] += 1
            if not above.healthy:
                chain.bad_free[l].append(above)
            else:
                self.unbind_doomed(chain, l)
        if not c.healthy:
            self.unmark_bad(c)
            if not doomed:
                self.bind_doomed(chain, level)
        else:
            self.unbind_doomed(chain, level)
        inside = c.children
        for l in range(level - 1, 0, -1):
            chain.total_left[l] += len(inside)
            if not doomed:
                self.unbind_doomed(chain, l)
            inside = [x for y in inside for x in y.children]

    def unmark_bad(self, c):
        c.chain.bad_free[c.level].append(c)
        if c.virtual is not None:
            unbind(c)
        for child in c.children:
            if not child.healthy:
                self.unmark_bad(child)

    def allocate_leaf(self, p, v, priority, vc):
        p.allocated_virtual = v
        if v is None:
            p.set_priority(OPPORTUNISTIC)
            p.count(OPPORTUNISTIC, 1)
            p.opportunistic_vc = vc
            self.ghost(vc).opportunistic.append(p)
            return True
        v.set_priority(priority)
        v.count(priority, 1)
        p.set_priority(priority)
        p.count(priority, 1)
        newly = v.root.physical is None
        if p.virtual is None:
            a, b = p, v
            while b is not None and b.physical is None:
                bind(a, b)
                a, b = a.parent, b.parent
            if b is not None and b.physical is not a:
                raise Insane("parent cells are bound to others")
        if p.virtual is not v:
            raise Insane("the leaf is bound to another virtual cell")
        return self.allocate_preassigned(v.root.physical, v.vc, False) if newly else True

    def release_leaf(self, p):
        v = p.allocated_virtual
        if v is not None:
            v.count(v.priority, -1)
            v.set_priority(FREE)
            q = v.root.physical
            if p.healthy:
                self.unbind_path(p)
            if not q.pinned and v.root.priority < 0 and q not in v.vc.doomed[q.chain.name][q.level]:
                self.release_preassigned(q, v.vc, False)
        else:
            swap_remove(self.ghost(p.opportunistic_vc).opportunistic, p)
            p.opportunistic_vc = None
        p.allocated_virtual = None
        p.count(p.priority, -1)
        p.set_priority(FREE)

    def unbind_path(self, p):
        while not p.pinned:
            v = p.virtual
            if v is None:
                raise Insane("a bound cell below an unbound one")
            unbind(p)
            if v.parent is None or any(s.physical is not None for s in v.parent.children):
                return
            p = p.parent
            if p is None:
                raise Insane("a root without a physical cell")

    def ghost(self, name):
        if name not in self.vcs:
            self.vcs[name] = VC(name)
            self.vcs[name].ghost = True
        return self.vcs[name]

    # ---- one pod

    def schedule(self, pod, spec, phase, suggested):
        """("bind", bind info) | ("preempt", {node: [pods]}) | ("wait", reason); raises UserError."""
        self.suggested = None if spec["ignore"] else suggested
        group = self.groups.get(spec["group"])
        if group is not None and group.state == "Preempting":
            if phase == "Preempting" and self.has_bad_or_unsuggested(group, suggested):
                self.cancel(group)
                group = None
            else:
                if spec["leaves"] not in group.slots:
                    raise UserError(
                        f"Requesting more pods than the configured number for {spec['leaves']} leaf cells (0 pods) in affinity group {group.name}"
                    )
                victims, _ = self.victims(group.physical)
                if pod not in group.preempting_pods:
                    group.preempting_pods.append(pod)
                if victims:
                    return self.by_node(victims)
                return "bind", self.bind_info(group.physical, group.virtual, spec["leaves"], 0, group)
        if group is not None:
            free = [i for i, slot in enumerate(group.slots.get(spec["leaves"], [])) if slot is None]
            if not free:
                number = len(group.slots.get(spec["leaves"], []))
                raise UserError(
                    f"Requesting more pods than the configured number for {spec['leaves']} leaf cells ({number} pods) in affinity group {group.name}"
                )
            if group.state == "BeingPreempted" and any(
                leaf is not None and leaf.reserving
                for pods in group.physical.values()
                for leaves in pods
                for leaf in leaves
            ):
                return "wait", None
            return "bind", self.bind_info(group.physical, group.virtual, spec["leaves"], free[0], group)
        placement, reason = self.plan(spec)
        if placement is None:
            return "wait", reason
        physical, virtual = placement
        victims, preemptors = self.victims(physical)
        if phase == "Preempting" or not victims:
            for preemptor in preemptors:
                self.cancel(self.groups[preemptor])
        answer = (
            self.by_node(victims) if victims else ("bind", self.bind_info(physical, virtual, spec["leaves"], 0, None))
        )
        if phase == "Preempting" and victims:
            self.create_preempting(spec, physical, virtual, pod)
        return answer

    def has_bad_or_unsuggested(self, group, suggested):
        for leaf in self.leaves_of(group.physical):
            if not leaf.healthy or (not group.ignore and suggested is not None and leaf.nodes[0] not in suggested):
                return True
        return False

    @staticmethod
    def leaves_of(placement):
        return [leaf for k in sorted(placement) for pod in placement[k] for leaf in pod if leaf is not None]

    def victims(self, physical):
        victims, preemptors = [], []
        for leaf in self.leaves_of(physical):
            if leaf.state in ("Used", "Reserving") and leaf.using not in victims:
                victims.append(leaf.using)
            if leaf.state in ("Reserved", "Reserving") and leaf.reserving not in preemptors:
                preemptors.append(leaf.reserving)
        return victims, preemptors

    def by_node(self, victims):
        nodes: dict = {}
        for name in victims:
            for slots in self.groups[name].slots.values():
                for slot in slots:
                    if slot is not None:
                        nodes.setdefault(slot[1]["node"], []).append(slot[0])
        return "preempt", nodes

    def bind_info(self, physical, virtual, leaves, slot, group):
        info = []
        for k in sorted(physical):
            pods = []
            for i, pod in enumerate(physical[k]):
                if any(leaf is None for leaf in pod):
                    pods.append(self.from_sibling(group, k, i))
                    continue
                types = [virtual[k][i][j].root.type.name if virtual else "" for j in range(k)]
                pods.append(
                    {"node": pod[0].nodes[0], "leafCells": [c.index for c in pod], "preassignedCellTypes": types}
                )
            info.append({"leafCellNumber": k, "pods": pods})
        own = next(m for m in info if m["leafCellNumber"] == leaves)["pods"][slot]
        first = physical[leaves][slot][0]
        if first is not None:
            chain = first.chain.name
        else:
            chain = next(s[1]["cellChain"] for slots in group.slots.values() for s in slots if s)
        return {"node": own["node"], "leafCells": own["leafCells"], "cellChain": chain, "group": info}

    @staticmethod
    def from_sibling(group, leaves, slot):
        for slots in group.slots.values():
            for s in slots:
                if s is not None:
                    return next(m for m in s[1]["group"] if m["leafCellNumber"] == leaves)["pods"][slot]
        raise Insane("no sibling to learn a removed cell from")

    def plan(self, spec):
        vc = self.vcs.get(spec["vc"])
        if vc is None or hasattr(vc, "ghost"):
            raise UserError(f"VC {spec['vc']} does not exists!")
        if spec["pinned"]:
            if spec["pinned"] not in vc.pinned:
                raise UserError(f"VC {spec['vc']} does not have pinned cell {spec['pinned']}")
            if spec["priority"] < 0:
                raise UserError(f"opportunistic pod not supported to use pinned cell {spec['pinned']}")
            root, _, view = vc.pinned[spec["pinned"]]
            return self.attempt(spec, view, False, root.chain)
        types = [spec["type"]] if spec["type"] else list(self.leaf_types)
        if spec["type"] and spec["type"] not in self.leaf_types:
            raise UserError(f"Pod requesting leaf cell type {spec['type']} which the whole cluster does not have")
        reason, tried = "", False
        for leaf_type in types:
            for chain in self.leaf_types[leaf_type]:
                if spec["priority"] < 0:
                    placement, why = self.attempt(spec, chain.view, True, chain)
                elif vc.view.get(chain.name):
                    placement, why = self.attempt(spec, vc.view[chain.name], False, chain)
                else:
                    continue
                tried = True
                if placement is not None:
                    return placement, ""
                reason = why
        if not tried and spec["type"]:
            raise UserError(f"Pod requesting leaf cell type {spec['type']} which VC {spec['vc']} does not have")
        return None, reason or f"insufficient capacity when scheduling in VC {spec['vc']}"

    def attempt(self, spec, view, physical, chain):
        placed, reason = self.search(spec, view, physical, OPPORTUNISTIC, chain)
        if placed is None and spec["priority"] >= 0:
            placed, reason = self.search(spec, view, physical, spec["priority"], chain)
        if placed is None:
            return None, reason
        if physical:
            return (placed, None), ""
        mapped = self.map(spec, placed, chain)
        if mapped is None:
            words = "bad node" if spec["ignore"] else "bad or non-suggested node"
            leaves: dict = {}
            for leaf in self.leaves_of(placed):
                leaves.setdefault(leaf.root.address, []).append(leaf.address)
            text = json.dumps(leaves, sort_keys=True, separators=(",", ":"))
            return (
                None,
                f"Mapping the virtual placement would need to use at least one {words} (virtual placement : {text})",
            )
        return (mapped, placed), ""

    # ---- placement on a view

    def search(self, spec, view, physical, priority, chain):
        where = "physical cluster" if physical else f"VC {spec['vc']}"

        def of(cell):
            return cell if physical else cell.physical

        def healthy(cell):
            return of(cell) is None or of(cell).healthy

        def suggested(cell):
            return of(cell) is None or self.is_suggested(of(cell).nodes[0])

        def free(cell):
            return cell.type.leaf_count - sum(n for p, n in cell.used.items() if p >= priority)

        def key(cell):
            if physical:
                same = cell.used.get(priority, 0)
                higher = sum(n for p, n in cell.used.items() if p > priority)
            else:
                same, higher = sum(cell.used.values()), 0
            return (not healthy(cell), not suggested(cell), -same, higher)

        view.sort(key=key)
        pods = sorted(leaves for number, leaves in spec["members"] for _ in range(number))
        chosen, e, taken = [], 0, 0
        for leaves in pods:
            while e < len(view) and free(view[e]) - taken < leaves:
                e, taken = e + 1, 0
            if e == len(view):
                return None, f"insufficient capacity when scheduling in {where}"
            for ok, word in ((healthy(view[e]), "bad"), (suggested(view[e]), "non-suggested")):
                if not ok:
                    return (
                        None,
                        f"have to use at least one {word} node {of(view[e]).address} when scheduling in {where}",
                    )
            chosen.append(view[e])
            taken += leaves
        candidates: dict = {}
        out: dict = {}
        for leaves, entry in zip(pods, chosen):
            if entry not in candidates:
                all_leaves = entry.leaves()
                candidates[entry] = [x for x in all_leaves if x.priority == FREE] + [
                    x for x in all_leaves if FREE < x.priority < priority
                ]
            picked = self.pick(candidates[entry], leaves, chain)
            if picked is None:
                return None, f"insufficient capacity when scheduling in {where}"
            candidates[entry] = [x for x in candidates[entry] if x not in picked]
            out.setdefault(leaves, []).append(picked)
        return out, ""

    def is_suggested(self, node):
        return self.suggested is None or node in self.suggested

    @staticmethod
    def lca(a, b):
        while a is not None and b is not None and a is not b:
            if a.level < b.level:
                a = a.parent
            elif b.level < a.level:
                b = b.parent
            else:
                a, b = a.parent, b.parent
        return a if a is b else None

    def pick(self, cells, k, chain):
        optimal = min(t.level for t in chain.types() if t.leaf_count >= k)
        best = [None, chain.top + 1]

        def go(start, picked, ancestor):
            if len(picked) == k:
                if ancestor.level < best[1]:
                    best[0], best[1] = list(picked), ancestor.level
                return best[1] == optimal
            for i in range(start, len(cells)):
                above = cells[i] if ancestor is None else self.lca(ancestor, cells[i])
                if above is None or above.level > best[1]:
                    continue
                picked.append(cells[i])
                if go(i + 1, picked, above):
                    return True
                picked.pop()
            return False

        go(0, [], None)
        return best[0]

    # ---- virtual to physical

    def map(self, spec, placed, chain):
        remembered = []
        for leaf in self.leaves_of(placed):
            p = leaf.physical
            if p is not None and p.state == "Used" and self.groups[p.using].lazy:
                group = self.groups[p.using]
                if group.virtual is None:
                    continue
                remembered.append((group, group.virtual))
                self.lazy_preempt(group, spec["group"])
        mapped = self.map_virtual(placed, chain)
        if mapped is None:
            for group, virtual in remembered:
                self.revert_lazy(group, virtual)
        return mapped

    def map_virtual(self, placed, chain):
        vertices: dict = {}  # virtual cell -> children requests, in order
        preassigned, groups = [], []
        for leaf in self.leaves_of(placed):
            if leaf.physical is not None:
                continue
            path, top = [leaf], leaf
            while top.parent is not None and top.parent.physical is None and top.parent not in vertices:
                top = top.parent
                path.append(top)
            for cell in path:
                vertices[cell] = []
            if top.parent is None:
                preassigned.append(top)
            elif top.parent.physical is not None:
                found = next((g for g in groups if g[0] is top.parent), None)
                if found is None:
                    found = (top.parent, [])
                    groups.append(found)
                found[1].append(top)
            else:
                vertices[top.parent].append(top)
            for below, above in zip(path, path[1:]):
                vertices[above].append(below)
        result: dict = {}
        free = [list(level) for level in chain.free]
        need = list(chain.all_vc_free)
        self.open_too_much = False
        for cell in preassigned:
            if self.open_too_much:
                raise Insane("the gang's next cell may be one that was promised")
            level = cell.level
            while level <= chain.top and not free[level]:
                level += 1
            if level > chain.top:
                raise Insane("VC Safety Broken")
            if not self.buddy(cell, level, free, vertices, result) and not self.relaxed(
                cell, chain, free, need, vertices, result
            ):
                return None
            need[cell.level] -= 1
        for parent, requests in groups:
            if not self.map_siblings(requests, parent.physical.children, vertices, result):
                return None
        return {k: [[v.physical or result[v] for v in pod] for pod in pods] for k, pods in placed.items()}

    def usable(self, candidates, needed):
        out = [
            c
            for c in candidates
            if c.virtual is None
            and not (len(c.nodes) == 1 and not c.healthy)
            and any(self.is_suggested(n) for n in c.nodes)
        ]
        return sorted(out, key=lambda c: c.used.get(OPPORTUNISTIC, 0)) if len(out) >= needed else []

    def map_siblings(self, requests, candidates, vertices, result):
        usable = self.usable(candidates, len(requests))
        if not usable:
            return False
        picked = []

        def go(j):
            if j == len(requests):
                return True
            for c in usable:
                if c in picked:
                    continue
                if c.level == 1:
                    result[requests[j]] = c
                elif not self.map_siblings(vertices[requests[j]], c.children, vertices, result):
                    continue
                picked.append(c)
                if go(j + 1):
                    return True
                picked.pop()
            return False

        if not go(0):
            return False
        self.last = picked[0]
        for request, c in zip(requests, picked):  # what was tried later may have written over it
            if c.level == 1:
                result[request] = c
            else:
                self.map_siblings(vertices[request], c.children, vertices, result)
        self.last = picked[0]
        return True

    def buddy(self, cell, level, free, vertices, result):
        if level == cell.level:
            if not self.map_siblings([cell], free[level], vertices, result):
                return False
            swap_remove(free[level], self.last)
            return True
        for c in self.usable(free[level], 1):
            free[level - 1].extend(c.children)
            if self.buddy(cell, level - 1, free, vertices, result):
                swap_remove(free[level], c)
                return True
            free[level - 1].clear()
        return False

    def relaxed(self, cell, chain, free, need, vertices, result):
        want = cell.level
        splittable = [0] * (chain.top + 2)
        met = False
        for l in range(chain.top, want, -1):
            splittable[l] = len(free[l]) - need[l]
            if met:
                splittable[l] += splittable[l + 1] * len(chain.full[l + 1][0].children)
            met = met or bool(free[l])
            if splittable[l] < 0:
                raise Insane("VC Safety Broken")
        for l in range(want + 1, chain.top + 1):
            expanded = []
            for _ in range(min(len(free[l]), splittable[l])):
                expanded.append(free[l][0])
                swap_remove(free[l], free[l][0])
            if not expanded:
                continue
            inside = len(expanded)
            for between in range(l - 1, want, -1):
                inside *= len(chain.full[between + 1][0].children)
                if splittable[between] <= 0:
                    raise Insane("what is split was promised at a level between")
                self.open_too_much = self.open_too_much or inside > splittable[between]
            for _ in range(l - want):
                expanded = [x for y in expanded for x in y.children]
            free[want][:0] = expanded
            if self.map_siblings([cell], free[want], vertices, result):
                swap_remove(free[want], self.last)
                return True
        return False

    # ---- groups

    def create_preempting(self, spec, physical, virtual, pod):
        group = Group(spec, "Preempting")
        group.physical, group.virtual = physical, virtual
        group.preempting_pods = [pod]
        self.groups[group.name] = group
        for k in sorted(physical):
            for i, leaves in enumerate(physical[k]):
                for j, leaf in enumerate(leaves):
                    used = leaf.state == "Used"
                    if used:
                        self.release_leaf(leaf)
                        self.groups[leaf.using].state = "BeingPreempted"
                    self.allocate_leaf(leaf, virtual[k][i][j] if virtual else None, group.priority, group.vc)
                    leaf.reserving = group.name
                    leaf.set_state("Reserving" if used else "Reserved")

    def cancel(self, group):
        for leaf in self.leaves_of(group.physical):
            self.release_leaf(leaf)
            leaf.reserving = None
            if leaf.state == "Reserving":
                leaf.set_state("Used")
                victim = self.groups[leaf.using]
                virtual = None
                if victim.virtual is not None:
                    for k, pods in victim.physical.items():
                        for i, leaves in enumerate(pods):
                            if leaf in leaves:
                                virtual = victim.virtual[k][i][leaves.index(leaf)]
                self.allocate_leaf(leaf, virtual, victim.priority, victim.vc)
            else:
                leaf.set_state("Free")
        del self.groups[group.name]

    def lazy_preempt(self, group, preemptor):
        if group.virtual is not None:
            for k in sorted(group.virtual):
                for i, leaves in enumerate(group.virtual[k]):
                    for j, v in enumerate(leaves):
                        leaf = group.physical[k][i][j]
                        if v is None or leaf is None:
                            continue
                        if leaf.state != "Used":
                            raise Insane("a reserved leaf would be downgraded")
                        self.release_leaf(leaf)
                        self.allocate_leaf(leaf, None, OPPORTUNISTIC, group.vc)
        group.virtual = None
        group.preemptor = preemptor

    def revert_lazy(self, group, virtual):
        group.virtual, group.preemptor = virtual, None
        for k in sorted(virtual):
            for i, leaves in enumerate(virtual[k]):
                for j, v in enumerate(leaves):
                    leaf = group.physical[k][i][j]
                    if v is not None and leaf is not None:
                        self.release_leaf(leaf)
                        self.allocate_leaf(leaf, v, group.priority, group.vc)

    def slot(self, info, leaves):
        for m in info["group"]:
            if m["leafCellNumber"] == leaves:
                for i, pod in enumerate(m["pods"]):
                    if pod["node"] == info["node"] and info["leafCells"][0] in pod["leafCells"]:
                        return i
        return None

    def add_allocated(self, pod, spec, info):
        slot = self.slot(info, spec["leaves"])
        group = self.groups.get(spec["group"])
        if slot is None:
            return
        if group is None:
            group = self.create_allocated(spec, info)
        elif group.state == "Preempting":
            for leaf in self.leaves_of(group.physical):
                leaf.reserving, leaf.using = None, group.name
                leaf.set_state("Used")
            group.state, group.preempting_pods = "Allocated", []
        if spec["leaves"] in group.slots and slot < len(group.slots[spec["leaves"]]):
            group.slots[spec["leaves"]][slot] = (pod, info, spec["leaves"])

    def find_leaf(self, node, index, chain_name):
        chains = [c for c in self.chains.values() if c.name == chain_name] + [
            c for c in self.chains.values() if c.name != chain_name
        ]
        for chain in chains:
            for leaf in chain.full[1]:
                if leaf.nodes[0] == node and leaf.index == index:
                    return leaf
        return None

    def create_allocated(self, spec, info):
        group = Group(spec, "Allocated")
        self.groups[group.name] = group
        group.physical = shape(spec, lambda n: [None] * n)
        group.virtual = shape(spec, lambda n: [None] * n)
        downgrade = False
        for m in info["group"]:
            k = m["leafCellNumber"]
            for i, pod in enumerate(m["pods"]):
                for j, index in enumerate(pod["leafCells"]):
                    leaf = self.find_leaf(pod["node"], index, info["cellChain"])
                    if leaf is None:
                        continue
                    if leaf.using or leaf.reserving:
                        raise Insane("the leaf is in use already")
                    v = None
                    types = pod["preassignedCellTypes"]
                    if not types:
                        downgrade = True
                    elif group.virtual is None or downgrade:
                        pass
                    elif types[j] == "":
                        group.virtual = None
                    else:
                        v = self.find_virtual(spec, leaf, types[j])
                        downgrade = downgrade or v is None
                    if v is not None and v.vc.name != spec["vc"]:
                        raise Insane("the virtual leaf belongs to another VC")
                    if v is not None and leaf.is_free() and v.root.priority > FREE:
                        for x in v.root.leaves():
                            if x.physical is not None and x.physical.state == "Used":
                                other = self.groups[x.physical.using]
                                if other.virtual is not None:
                                    self.lazy_preempt(other, group.name)
                    group.physical[k][i][j] = leaf
                    if group.virtual is not None:
                        group.virtual[k][i][j] = v
                    if v is not None and v.priority != FREE:
                        raise Insane("the virtual leaf is in use already")
                    if not self.allocate_leaf(leaf, v, spec["priority"], group.vc):
                        downgrade = True
                    leaf.using = group.name
                    leaf.set_state("Used")
        if downgrade:
            self.lazy_preempt(group, group.name)
        return group

    def find_virtual(self, spec, leaf, type_name):
        level = next((t.level for t in leaf.chain.types() if t.name == type_name), None)
        vc = self.vcs.get(spec["vc"])
        if level is None or vc is None or hasattr(vc, "ghost"):
            return None
        if spec["pinned"]:
            if spec["pinned"] not in vc.pinned or level >= len(vc.pinned[spec["pinned"]][1]):
                return None
            roots = vc.pinned[spec["pinned"]][1][level]
        elif vc.view.get(leaf.chain.name):
            roots = vc.preassigned[leaf.chain.name][level]
        else:
            return None
        found = self.inverse(leaf, roots, level, spec["priority"])
        lost = [c for c in roots if c.priority == FREE and c.physical is not None and not c.physical.pinned]
        if leaf.healthy and lost and (found is None or found.priority != FREE):
            raise Insane(
                "the promise was counted as lost with a cell that nobody uses, while the pod runs on a healthy one"
            )
        return found

    def inverse(self, p, roots, level, priority):
        if p.virtual is not None:
            return p.virtual
        if p.level == level:
            return self.choose(roots, priority)
        if p.parent is None:
            return None
        above = self.inverse(p.parent, roots, level, priority)
        return None if above is None else self.choose(above.children, priority)

    @staticmethod
    def choose(cells, priority):
        lowest = None
        for c in cells:
            if c.priority == FREE:
                if c.physical is None:
                    return c
                continue
            if c.priority < priority and (lowest is None or c.priority < lowest.priority):
                lowest = c
        return lowest

    def delete_allocated(self, pod, spec):
        group = self.groups.get(spec["group"])
        if group is None:
            return
        for slots in group.slots.values():
            for i, s in enumerate(slots):
                if s is not None and s[0] == pod:
                    slots[i] = None
        if any(s for slots in group.slots.values() for s in slots):
            return
        for leaf in self.leaves_of(group.physical):
            leaf.using = None
            if leaf.state == "Used":
                self.release_leaf(leaf)
                leaf.set_state("Free")
            else:
                leaf.set_state("Reserved")
        del self.groups[group.name]

    def delete_unallocated(self, pod, spec):
        group = self.groups.get(spec["group"])
        if group is None or group.state != "Preempting":
            return
        group.preempting_pods = [p for p in group.preempting_pods if p != pod]
        if not group.preempting_pods:
            self.cancel(group)

    # ---- what a scenario sees

    def state(self):
        groups = {}
        for name, g in self.groups.items():
            physical: dict = {}
            virtual: dict = {}
            missing = False
            for k, pods in g.physical.items():
                for i, leaves in enumerate(pods):
                    for j, leaf in enumerate(leaves):
                        if leaf is None:
                            missing = True
                            continue
                        physical.setdefault(leaf.nodes[0], []).append(leaf.index)
                        if g.virtual is not None and g.virtual[k][i][j] is not None:
                            v = g.virtual[k][i][j]
                            virtual.setdefault(v.root.address, []).append(v.address)
            groups[name] = {
                "vc": g.vc,
                "priority": g.priority,
                "state": g.state,
                "lazyPreempted": g.preemptor is not None,
                "physicalPlacement": {n: sorted(x) for n, x in physical.items()},
                "virtualPlacement": None if g.virtual is None else {n: sorted(x) for n, x in virtual.items()},
                "allocatedPods": sorted(s[0] for slots in g.slots.values() for s in slots if s),
                "preemptingPods": sorted(g.preempting_pods),
            }
            if g.preemptor is not None:
                groups[name]["preemptor"] = g.preemptor
            if missing:
                groups[name]["hasMissingCells"] = True
        physical_cells, virtual_cells = {}, {}
        for chain in self.chains.values():
            for level in chain.full:
                for c in level:
                    out = self._cell(c)
                    if c.virtual is not None:
                        out.update(vc=c.virtual.vc.name, virtualCell=c.virtual.address)
                    elif c.opportunistic_vc is not None:
                        out["vc"] = c.opportunistic_vc
                    if out:
                        physical_cells[f"{c.type.name}@{c.address}"] = out
        for vc in self.vcs.values():
            tables = list(vc.full.values()) + [full for _, full, _ in vc.pinned.values()]
            for c in (c for full in tables for level in full for c in level):
                out = self._cell(c)
                if c.physical is not None:
                    out["physicalCell"] = c.physical.address
                if out:
                    virtual_cells[c.address] = out
        opportunistic = {
            vc.name: sorted(p.address + "-opp" for p in vc.opportunistic)
            for vc in self.vcs.values()
            if vc.opportunistic
        }
        counters, free = {}, {}
        for chain in self.chains.values():
            levels = range(1, chain.top + 1)
            if chain.vcs:
                counters[chain.name] = {
                    str(l): [chain.total_left[l], chain.all_vc_free[l], len(chain.bad_free[l]), chain.doomed_count[l]]
                    for l in levels
                }
            free[chain.name] = {str(l): sorted(c.address for c in chain.free[l]) for l in levels if chain.free[l]}
        return {
            "groups": groups,
            "physicalCells": physical_cells,
            "virtualCells": virtual_cells,
            "opportunisticCells": opportunistic,
            "internal": {"cellCounters": counters, "freeCells": free},
        }

    @staticmethod
    def _cell(c):
        out = {}
        if c.priority != FREE:
            out["priority"] = c.priority
        if c.state != "Free":
            out["state"] = c.state
        if not c.healthy:
            out["healthiness"] = "Bad"
        return out


def read_spec(spec, namespace, pod):
    """The defaults of pod-scheduling-spec, and its checks in order."""

    def wrong(what):
        return UserError(f"Pod annotation hivedscheduler.microsoft.com/pod-scheduling-spec: {what}")

    if not spec:
        raise wrong("Annotation does not exist or is empty")
    group = spec.get("affinityGroup")
    leaves = spec.get("leafCellNumber", 0)
    out = {
        "vc": spec.get("virtualCluster", ""),
        "priority": spec.get("priority", 0),
        "pinned": spec.get("pinnedCellId", ""),
        "type": spec.get("leafCellType", ""),
        "leaves": leaves,
        "lazy": spec.get("lazyPreemptionEnable", False),
        "ignore": spec.get("ignoreK8sSuggestedNodes", True),
        "group": group.get("name", "") if group else f"{namespace}/{pod}",
        "members": [(m.get("podNumber", 0), m.get("leafCellNumber", 0)) for m in group.get("members") or []]
        if group
        else [(1, leaves)],
    }
    if not out["vc"]:
        raise wrong("VirtualCluster is empty")
    if out["priority"] < -1:
        raise wrong("Priority is less than -1")
    if out["priority"] > 1000:
        raise wrong("Priority is greater than 1000")
    if leaves <= 0:
        raise wrong("LeafCellNumber is non-positive")
    if not out["group"]:
        raise wrong("AffinityGroup.Name is empty")
    for number, member_leaves in out["members"]:
        if number <= 0:
            raise wrong("AffinityGroup.Members has non-positive PodNumber")
        if member_leaves <= 0:
            raise wrong("AffinityGroup.Members has non-positive LeafCellNumber")
    if all(leaves != member_leaves for _, member_leaves in out["members"]):
        raise wrong("AffinityGroup.Members does not contains current Pod")
    return out
