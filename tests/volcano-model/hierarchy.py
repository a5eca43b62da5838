"""Hierarchical DRF in exact fractions: the tree of queues by their annotations, rebuilt for every question."""
from fractions import Fraction


def place(queue):
    """Names and weights from below the root down to the queue."""
    names = [n for n in queue.get("hierarchy", "").split("/") if n]
    weights = [w for w in queue.get("hierarchy_weights", "").split("/") if w]
    if names[:1] == ["root"]:
        names, weights = names[1:], weights[1:]
    if not names:
        return [queue["name"]], [Fraction(queue.get("weight", 1))]
    return names, [Fraction(w) for w in weights]


class Node:
    def __init__(self, weight):
        self.weight, self.children, self.jobs = weight, {}, []


class Tree:
    """`jobs`: of each its queue, what it holds and all that it wants."""

    def __init__(self, total, jobs):
        self.total, self.root = {k: Fraction(v) for k, v in total.items() if v > 0}, Node(Fraction(1))
        held = {k: sum(Fraction(has.get(k, 0)) for _, has, _ in jobs) for k in self.total}
        self.full = {k for k in held if held[k] >= self.total[k]}
        for queue, has, wants in jobs:
            node = self.root
            for name, weight in zip(*place(queue)):
                node = node.children.setdefault(name, Node(weight))
            node.jobs.append((has, wants))
        self.weigh(self.root)

    def dominant(self, uses):
        return max([uses.get(k, 0) / v for k, v in self.total.items()] or [Fraction(0)])

    def weigh(self, node):
        parts = []
        for has, wants in node.jobs:
            mine = {k: Fraction(has.get(k, 0)) for k in self.total}
            sated = any(mine[k] > 0 and wants.get(k, 0) > 0 and (mine[k] >= wants[k] or k in self.full) for k in mine)
            parts.append((mine, self.dominant(mine), sated))
        for child in node.children.values():
            self.weigh(child)
            parts.append((child.uses, child.share, child.sated))
        node.sated = all(sated for _, _, sated in parts)
        least = min([share for _, share, sated in parts if share and not sated] + [Fraction(1)])
        node.uses = {k: Fraction(0) for k in self.total}
        for uses, share, sated in parts:
            for k in uses:
                node.uses[k] += uses[k] if sated or not share else uses[k] * least / share
        node.share = self.dominant(node.uses)

    def order(self, a, b):
        x = y = self.root
        for m, n in zip(place(a)[0], place(b)[0]):
            if m not in x.children or n not in y.children:
                return 0
            x, y = x.children[m], y.children[n]
            if x.sated != y.sated:
                return 1 if x.sated else -1
            if x.share / x.weight != y.share / y.weight:
                return -1 if x.share / x.weight < y.share / y.weight else 1
        return 0
