"""A second, slow and small model of Volcano's cycle, written from Volcano's documents and behaviour, not from Muster's code.

One Model holds a cluster in the terms of the scenario files (tests/vectors). cycle() is one session: enqueue,
allocate, backfill, preempt and reclaim with the plugins priority, gang, conformance, drf (flat and as a tree),
predicates, proportion, capacity (flat and as a tree), overcommit, sla and binpack. What Volcano leaves to chance
(ties between nodes, orders of maps) is drawn from `rng`, so a result that is the same for many seeds depends on no
tie.
"""
import functools
import math
import re

from hierarchy import Tree

ALLOCATED = {"Allocated", "Running"}
INF = math.inf
TOLERANCE = 0.1


def quantity(text):
    text = str(text)
    m = re.fullmatch(r"([0-9.]+)(m|k|M|G|T|Ki|Mi|Gi|Ti)?", text)
    scale = {
        None: 1,
        "m": 1e-3,
        "k": 1e3,
        "M": 1e6,
        "G": 1e9,
        "T": 1e12,
        "Ki": 2**10,
        "Mi": 2**20,
        "Gi": 2**30,
        "Ti": 2**40,
    }
    return float(m[1]) * scale[m[2]]


def resources(mapping):
    return {k: quantity(v) * (1000 if k == "cpu" else 1) for k, v in (mapping or {}).items()}


def duration(text):
    total, units = 0.0, {"h": 3600, "m": 60, "s": 1, "ms": 1e-3}
    for number, unit in re.findall(r"([0-9.]+)(ms|h|m|s)", text):
        total += float(number) * units[unit]
    return total


def add(a, b):
    out = dict(a)
    for k, v in b.items():
        out[k] = out.get(k, 0) + v
    return out


def sub(a, b):
    out = dict(a)
    for k, v in b.items():
        out[k] = out.get(k, 0) - v
    return out


def beyond(a, b):
    """What of a is more than b, dimension by dimension."""
    return {k: max(v - b.get(k, 0), 0) for k, v in a.items()}


def fits(request, room):
    return all(v <= room.get(k, 0) + TOLERANCE for k, v in request.items())


def quota_names(request):
    return [k for k, v in request.items() if k != "pods" and v > TOLERANCE]


def within(used, limit, request):
    """Quota: used <= limit in the dimensions that are asked for; pods do not count."""
    return all(used.get(k, 0) <= limit.get(k, 0) + TOLERANCE for k in quota_names(request))


def all_within(a, b):
    """In every dimension; here the pods do count."""
    return all(v <= b.get(k, 0) + TOLERANCE for k, v in a.items())


def is_empty(r):
    return not quota_names(r)


class Pod:
    def __init__(self, group, name, role, task, uid, created):
        self.group, self.name, self.role, self.uid, self.created = group, name, role, uid, created
        self.requests = add(resources(task.get("requests")), {"pods": 1})
        self.best_effort = is_empty(self.requests)
        self.priority = task.get("priority", 0)
        self.preemptable = task.get("preemptable", True)
        self.never = task.get("preemption_policy") == "Never"
        self.selector = task.get("node_selector", {})
        self.status, self.node, self.nominated = "Pending", None, None
        parts = name.split("-")
        self.index = int(parts[-1]) if len(parts) >= 3 and parts[-1].isdigit() else 0


class Group:
    def __init__(self, op, created, priority):
        self.op, self.created, self.priority = op, created, priority
        self.name, self.ns = op["name"], op.get("namespace", "default")
        self.queue, self.min = op.get("queue", "default"), op.get("min_member", 1)
        self.roles = op.get("min_task_member", {})
        self.min_resources = resources(op["min_resources"]) if op.get("min_resources") is not None else None
        self.wait = duration(op["sla_waiting_time"]) if op.get("sla_waiting_time") else None
        self.critical = self.ns == "kube-system" or op.get("priority_class") in (
            "system-cluster-critical",
            "system-node-critical",
        )
        self.pods, self.phase, self.completed = [], "Pending", False
        self.total = sum(t.get("replicas", 1) for t in op["tasks"])

    def count(self, *statuses):
        return sum(p.status in statuses for p in self.pods)

    def waiting_best_effort(self):
        return sum(p.status == "Pending" and p.best_effort for p in self.pods)

    def ready_number(self):
        return self.count("Allocated", "Running", "Succeeded")

    def enough(self):
        return self.ready_number() + self.waiting_best_effort() >= self.min

    def roles_met(self, statuses, best_effort_too=True):
        if self.min < sum(self.roles.values()):
            return True
        for role, n in self.roles.items():
            have = sum(
                p.role == role
                and (p.status in statuses or (best_effort_too and p.status == "Pending" and p.best_effort))
                for p in self.pods
            )
            if have < n:
                return False
        return True

    def allocated(self):
        total = {}
        for p in self.pods:
            if p.status in ALLOCATED:
                total = add(total, p.requests)
        return total

    def may_go_on(self):
        """After a member found no node: can the rest still make the group?"""
        if self.min == len(self.pods):
            return False
        failed = {p.role for p in self.pods if p.uid in self.failed}
        if self.min < sum(self.roles.values()) or not self.roles:
            left = sum(p.status == "Pending" and p.role not in failed for p in self.pods)
            return (
                self.ready_number() + self.count("Pipelined") + left >= self.min if self.options["count_left"] else True
            )
        for role in failed:
            have = sum(p.role == role and p.status in ALLOCATED | {"Pipelined", "Succeeded"} for p in self.pods)
            if have < self.roles.get(role, 0):
                return False
        return True


class Node:
    def __init__(self, spec):
        self.name, self.labels = spec["name"], spec.get("labels", {})
        self.total = resources(spec["allocatable"])
        self.used, self.releasing, self.pipelined = {}, {}, {}

    def idle(self):
        return sub(self.total, self.used)

    def future(self):
        return sub(add(self.idle(), self.releasing), self.pipelined)


class Model:
    def __init__(self, scenario, rng, pods_at_once, options=None):
        self.rng, self.at_once, self.now = rng, pods_at_once, 0.0
        self.options = {
            "live_branch_share": False,
            "pods_in_share": True,
            "count_left": True,
            "elastic_of_unknown": True,
            "leave_free_room": False,
            "ordered_victims": False,
        }
        self.options.update(options or {})
        self.actions = scenario["config"]["actions"]
        self.tiers = scenario["config"]["tiers"]
        self.classes = scenario.get("priority_classes", {})
        self.nodes = {n["name"]: Node(n) for n in scenario["nodes"]}
        self.queues = {}
        for i, q in enumerate(scenario["queues"]):
            q = dict(q, created=i)
            q["cap"] = resources(q["capability"]) if q.get("capability") else None
            q["gua"], q["des"] = resources(q.get("guarantee")), resources(q.get("deserved"))
            self.queues[q["name"]] = q
        self.groups, self.clock, self.uids = {}, 0, 0
        self.evicted, self.evicted_pods = {}, set()
        self.random_nodes = False

    # ---- the world -------------------------------------------------------------------------------------------------

    def tick(self):
        self.clock += 1
        return self.clock

    def apply(self, op):
        kind = op["op"]
        if kind == "create_group":
            g = Group(op, self.tick(), self.classes.get(op.get("priority_class"), 0))
            g.options, g.at = self.options, self.now
            self.groups[g.name] = g
            if self.at_once:
                self.make_pods(g)
        elif kind == "complete_group":
            g = self.groups[op["group"]]
            g.completed = True
            for p in g.pods:
                if p.status == "Running":
                    p.status = "Succeeded"
            g.pods = [p for p in g.pods if p.status == "Succeeded"]
        elif kind == "delete_group":
            del self.groups[op["group"]]
        elif kind == "add_node":
            self.nodes[op["node"]["name"]] = Node(op["node"])
        elif kind == "remove_node":
            del self.nodes[op["node"]]
            for g in self.groups.values():
                for p in g.pods:
                    if p.status == "Running" and p.node == op["node"]:
                        self.renew(p)
        elif kind == "set_queue":
            q = self.queues[op["queue"]]
            q.update({k: op[k] for k in ("state", "reclaimable") if k in op})

    def make_pods(self, g):
        for task in g.op["tasks"]:
            for i in range(task.get("replicas", 1)):
                self.uids += 1
                g.pods.append(Pod(g, f"{g.name}-{task['role']}-{i}", task["role"], task, self.uids, self.tick()))

    def renew(self, p):
        self.uids += 1
        p.status, p.node, p.nominated, p.uid, p.created = "Pending", None, None, self.uids, self.tick()

    def settle(self, most=120):
        quiet = 0
        for _ in range(most):
            quiet = 0 if self.cycle() else quiet + 1
            if quiet == 2:
                return True
        return False

    def run_step(self, step):
        self.now = float(step["at"]) + 0.5
        self.evicted, self.evicted_pods = {}, set()
        for op in step["do"]:
            self.apply(op)
        return self.settle()

    def observe(self):
        groups, placement = {}, {}
        for g in self.groups.values():
            running, done = g.count("Running"), g.count("Succeeded")
            pending = g.count("Pending") if g.pods or g.completed else g.total
            state = (
                "completed"
                if running == 0 and pending == 0
                else "waiting"
                if running == 0
                else "running"
                if running + done >= g.min
                else "degraded"
            )
            groups[g.name] = {"state": state, "running": running, "pending": pending, "phase": g.phase}
            spots = {}
            for p in g.pods:
                if p.status == "Running":
                    spots[p.node] = spots.get(p.node, 0) + 1
            placement[g.name] = spots
        out = {"groups": groups, "placement": placement, "evicted_pods": sorted(self.evicted_pods)}
        out["evicted"] = {k: v for k, v in self.evicted.items() if v}
        return out

    # ---- a session -------------------------------------------------------------------------------------------------

    def cycle(self):
        before = self.fingerprint()
        self.open()
        for i, action in enumerate(self.actions):
            self.allocate_follows = "allocate" in self.actions[i + 1 :]
            getattr(self, "do_" + action)()
        self.close()
        return self.fingerprint() != before

    def fingerprint(self):
        return [
            (g.name, g.phase, [(p.uid, p.status, p.node, p.nominated) for p in g.pods]) for g in self.groups.values()
        ]

    def plugin(self, name):
        for tier in self.tiers:
            for p in tier:
                if p["name"] == name:
                    return p
        return None

    def enabled(self, flag):
        """Tiers of the plugins whose flag is on."""
        return [[p["name"] for p in tier if p.get(flag, True)] for tier in self.tiers]

    def open(self):
        self.jobs = [g for g in self.groups.values() if g.queue in self.queues]
        self.total = {}
        for n in self.nodes.values():
            self.total = add(self.total, n.total)
            n.used, n.releasing, n.pipelined = {}, {}, {}
        self.jalloc = {g.name: g.allocated() for g in self.jobs}
        for g in self.groups.values():
            g.failed = set()
            for p in g.pods:
                if p.status == "Running":
                    n = self.nodes[p.node]
                    n.used = add(n.used, p.requests)
        self.evictions, self.nominations, self.tree_now = [], {}, None
        self.hierarchy = bool(self.plugin("capacity") and self.plugin("capacity").get("enableHierarchy"))
        self.open_queues()
        self.open_overcommit()

    def close(self):
        gang = self.plugin("gang") is not None
        for g in self.jobs:
            unschedulable = gang and not g.enough()
            scheduled = g.count("Running", "Succeeded", "Releasing")
            if g.count("Running") and unschedulable:
                g.phase = "Unknown"
            elif scheduled >= g.min:
                g.phase = "Completed" if g.count("Succeeded") == scheduled else "Running"
            elif g.phase != "Inqueue":
                g.phase = "Pending"
        for g in self.jobs:
            for p in g.pods:
                if p.status == "Allocated" and p.uid in self.bound:
                    p.status = "Running"
                elif p.status in ("Allocated", "Pipelined"):
                    p.status, p.node = "Pending", None
                if p.uid in self.nominations and p.status == "Pending":
                    p.nominated = self.nominations[p.uid]
        for p in self.evictions:
            self.evicted[p.group.name] = self.evicted.get(p.group.name, 0) + 1
            self.evicted_pods.add(p.name)
            self.renew(p)
        if not self.at_once:
            for g in self.jobs:
                if g.phase != "Pending" and not g.pods and not g.completed:
                    self.make_pods(g)

    # ---- statements ------------------------------------------------------------------------------------------------

    def count_in(self, p, sign):
        move = add if sign > 0 else sub
        g, self.tree_now = p.group, None
        self.jalloc[g.name] = move(self.jalloc[g.name], p.requests)
        for q in self.chain(g.queue):
            if q in self.qalloc:
                self.qalloc[q] = move(self.qalloc[q], p.requests)

    def chain(self, queue):
        return [queue] + (self.ancestors[queue] if self.hierarchy and self.tree_ok else [])

    def place(self, stmt, p, node):
        p.status, p.node = "Allocated", node.name
        node.used = add(node.used, p.requests)
        self.count_in(p, 1)
        stmt.append(("allocate", p, node))

    def pipeline(self, stmt, p, node, evicted):
        p.status, p.node = "Pipelined", node.name
        node.pipelined = add(node.pipelined, p.requests)
        self.count_in(p, 1)
        stmt.append(("pipeline", p, node, evicted))

    def evict(self, stmt, p):
        node = self.nodes[p.node]
        p.status = "Releasing"
        node.releasing = add(node.releasing, p.requests)
        self.count_in(p, -1)
        stmt.append(("evict", p, node))

    def discard(self, stmt):
        for op in reversed(stmt):
            p, node = op[1], op[2]
            if op[0] == "allocate":
                node.used = sub(node.used, p.requests)
                p.status, p.node = "Pending", None
                self.count_in(p, -1)
            elif op[0] == "pipeline":
                node.pipelined = sub(node.pipelined, p.requests)
                p.status, p.node = "Pending", None
                self.count_in(p, -1)
            else:
                node.releasing = sub(node.releasing, p.requests)
                p.status = "Running"
                self.count_in(p, 1)

    def holds(self, stmt):
        """Volcano keeps room that is free already from an allocate that comes later in the cycle, for ever; see OURS
        in replay.py."""
        return not (self.options["leave_free_room"] and self.allocate_follows) or any(op[0] == "evict" for op in stmt)

    def commit(self, stmt):
        for op in stmt:
            if op[0] == "allocate":
                self.bound.add(op[1].uid)
            elif op[0] == "evict":
                self.evictions.append(op[1])
            elif op[0] == "pipeline" and op[3]:
                self.nominations[op[1].uid] = op[2].name

    # ---- orders ----------------------------------------------------------------------------------------------------

    def first(self, things, compare):
        best = min(things, key=functools.cmp_to_key(compare))
        things.remove(best)
        return best

    def job_order(self, a, b):
        return self.plugins_job_order(a, b) or (-1 if (a.created, a.name) < (b.created, b.name) else 1)

    def plugins_job_order(self, a, b):
        for tier in self.enabled("enableJobOrder"):
            for name in tier:
                c = 0
                if name == "priority":
                    c = b.priority - a.priority
                elif name == "gang":
                    c = int(a.enough()) - int(b.enough())
                elif name == "drf":
                    x, y = self.dominant(self.jalloc[a.name]), self.dominant(self.jalloc[b.name])
                    c = -1 if x < y else 1 if x > y else 0
                elif name == "sla":
                    x, y = self.deadline(a), self.deadline(b)
                    c = -1 if x < y else 1 if x > y else 0
                if c:
                    return c
        return 0

    def dominant(self, allocated):
        return max(
            [allocated.get(k, 0) / v if v else float(allocated.get(k, 0) > 0) for k, v in self.total.items()] or [0]
        )

    def waiting_time(self, g):
        if g.wait is not None:
            return g.wait
        text = (self.plugin("sla").get("arguments") or {}).get("sla-waiting-time")
        return duration(text) if text else None

    def deadline(self, g):
        wait = self.waiting_time(g)
        return INF if wait is None else g.at + g.created * 1e-6 + wait

    def overdue(self, g):
        wait = self.waiting_time(g)
        return wait is not None and self.now - g.at >= wait

    def task_order(self, a, b):
        for tier in self.enabled("enableTaskOrder"):
            if "priority" in tier and a.priority != b.priority:
                return b.priority - a.priority
        return -1 if (a.index, a.created, a.uid) < (b.index, b.created, b.uid) else 1

    def queue_order(self, a, b):
        for tier in self.enabled("enableQueueOrder"):
            for name in tier:
                c = 0
                if name == "drf" and self.plugin("drf").get("enableHierarchy"):
                    self.tree_now = self.tree_now or self.drf_tree()
                    c = self.tree_now.order(self.queues[a], self.queues[b])
                elif name in ("proportion", "capacity"):
                    c = self.queues[b].get("priority", 0) - self.queues[a].get("priority", 0)
                    if not c:
                        c = self.share_order(name, a, b)
                if c:
                    return c
        return -1 if self.queues[a]["created"] < self.queues[b]["created"] else 1

    def drf_tree(self, taken=(), given=()):
        """Of hierarchical DRF, with the pods `taken` as if they were placed and those `given` as if they were gone."""
        jobs = []
        for g in self.jobs:
            has, wants = self.jalloc[g.name], {}
            for p in g.pods:
                has = add(has, p.requests) if p in taken else sub(has, p.requests) if p in given else has
                wants = wants if p.status == "Succeeded" else add(wants, p.requests)
            if not g.completed:
                jobs.append((self.queues[g.queue], has, wants))
        return Tree(self.total, jobs)

    def share_order(self, name, a, b):
        if name == "capacity" and self.hierarchy:
            if not self.tree_ok:
                return 0
            x, y = self.branches(a, b)
            if not self.options["live_branch_share"]:
                fx = self.share(x) if x == a else self.opening_share[x]
                fy = self.share(y) if y == b else self.opening_share[y]
            else:
                fx, fy = self.share(x), self.share(y)
            a, b = x, y
        else:
            fx, fy = self.share(a), self.share(b)
        if fx != fy:
            return -1 if fx < fy else 1
        if name == "capacity":
            return int(is_empty(self.deserved[a])) - int(is_empty(self.deserved[b]))
        return 0

    def branches(self, a, b):
        x, y = [a] + self.ancestors[a], [b] + self.ancestors[b]
        common = next(q for q in x if q in y)
        ix, iy = x.index(common), y.index(common)
        return x[ix - 1] if ix else x[0], y[iy - 1] if iy else y[0]

    def share(self, q):
        deserved, allocated = self.deserved[q], self.qalloc[q]
        if self.plugin("capacity") and is_empty(deserved):
            return 1.0
        shares = [
            allocated.get(k, 0) / v
            for k, v in deserved.items()
            if v > TOLERANCE and (k != "pods" or self.options["pods_in_share"])
        ]
        return max(shares or [0.0])

    # ---- proportion and capacity -----------------------------------------------------------------------------------

    def open_queues(self):
        self.bound = set()
        self.qalloc, self.qrequest, self.inqueue, self.elastic = {}, {}, {}, {}
        self.deserved, self.real, self.tree_ok = {}, {}, True
        self.tree()
        names = list(self.queues) if self.hierarchy else list(dict.fromkeys(g.queue for g in self.jobs))
        for q in names:
            self.qalloc[q], self.qrequest[q], self.inqueue[q], self.elastic[q] = {}, {}, {}, {}
        for g in self.jobs:
            if self.hierarchy and self.tree_ok and any(g.queue == c.get("parent") for c in self.queues.values()):
                self.tree_ok = False
        for g in self.jobs:
            allocated = g.allocated()
            waiting = {}
            for p in g.pods:
                if p.status == "Pending":
                    waiting = add(waiting, p.requests)
            inqueue = {}
            if g.min_resources is not None and (
                g.phase == "Inqueue" or (g.phase == "Running" and g.count("Running", "Succeeded") >= g.min)
            ):
                inqueue = beyond(g.min_resources, allocated)
            elastic = beyond(allocated, g.min_resources or {})
            if g.min_resources is None and not self.options["elastic_of_unknown"]:
                elastic = {}
            for q in [g.queue] + (self.ancestors[g.queue] if self.hierarchy and self.tree_ok else []):
                self.qalloc[q] = add(self.qalloc[q], allocated)
                self.qrequest[q] = add(add(self.qrequest[q], allocated), waiting)
                self.inqueue[q] = add(self.inqueue[q], inqueue)
                self.elastic[q] = add(self.elastic[q], elastic)
        if self.hierarchy:
            if self.tree_ok:
                self.open_tree()
            return
        guarantees = {}
        for q in self.queues.values():
            guarantees = add(guarantees, q["gua"])
        for name in names:
            q = self.queues[name]
            real = add(beyond(self.total, guarantees), q["gua"])
            if q["cap"]:
                real = {
                    k: min(v, q["cap"][k])
                    if q["cap"].get(k, 0) > 0 or (k in q["cap"] and k not in ("cpu", "memory"))
                    else v
                    for k, v in real.items()
                }
            self.real[name] = real
        if self.plugin("proportion"):
            self.water_filling(names)
        elif self.plugin("capacity"):
            for name in names:
                q = self.queues[name]
                d = {k: min(v, self.real[name].get(k, INF)) for k, v in q["des"].items()}
                self.deserved[name] = {k: max(d.get(k, 0), q["gua"].get(k, 0)) for k in {*d, *q["gua"]}}

    def water_filling(self, names):
        self.deserved = {q: {} for q in names}
        remaining, met = dict(self.total), set()
        while True:
            weights = sum(self.queues[q].get("weight", 1) for q in names if q not in met)
            if not weights:
                return
            old, given, back = dict(remaining), {}, {}
            for q in names:
                if q in met:
                    continue
                had = dict(self.deserved[q])
                d = add(had, {k: v * self.queues[q].get("weight", 1) / weights for k, v in remaining.items()})
                d = {k: min(v, self.real[q].get(k, INF), self.qrequest[q].get(k, 0)) for k, v in d.items()}
                for k, v in self.queues[q]["gua"].items():
                    d[k] = max(d.get(k, 0), v)
                self.deserved[q] = d
                if all_within(self.qrequest[q], d) or all(abs(d.get(k, 0) - had.get(k, 0)) < 1e-9 for k in {*d, *had}):
                    met.add(q)
                given, back = add(given, beyond(d, had)), add(back, beyond(had, d))
            remaining = add(sub(remaining, given), back)
            remaining = {k: max(v, 0) for k, v in remaining.items()}
            if is_empty(remaining) or all(abs(remaining.get(k, 0) - old.get(k, 0)) < 1e-9 for k in {*remaining, *old}):
                return

    def tree(self):
        self.ancestors = {}
        for name in self.queues:
            chain, at = [], name
            while at != "root":
                at = self.queues[at].get("parent") or "root"
                chain.append(at)
                if at not in self.queues or len(chain) > 9:
                    break
            self.ancestors[name] = chain

    def open_tree(self):
        root = self.queues["root"]
        dims = {*self.total, "cpu", "memory"}
        cap = {"root": dict(root["cap"]) if root["cap"] else {k: INF for k in dims}}
        self.real["root"] = dict(cap["root"])
        self.deserved = {
            name: {k: max(q["des"].get(k, 0), q["gua"].get(k, 0)) for k in {*q["des"], *q["gua"]}}
            for name, q in self.queues.items()
        }

        def visit(parent):
            children = [n for n, q in self.queues.items() if n != "root" and (q.get("parent") or "root") == parent]
            guarantees, deserved = {}, {}
            for c in children:
                guarantees, deserved = add(guarantees, self.queues[c]["gua"]), add(deserved, self.deserved[c])
                own = self.queues[c]["cap"] or {}
                cap[c] = {**cap[parent], **{k: v for k, v in own.items()}}
            if parent == "root":
                self.deserved["root"] = deserved
            for c in children:
                real = add(beyond(self.real[parent], guarantees), self.queues[c]["gua"])
                self.real[c] = {k: min(v, cap[c].get(k, INF)) for k, v in real.items()}
                visit(c)

        visit("root")
        self.opening_share = {q: self.share(q) for q in self.queues}

    def is_open(self, q):
        return self.queues[q].get("state", "Open") == "Open"

    def allocatable(self, q, p):
        for tier in self.enabled("enabledAllocatable"):
            for name in tier:
                if name in ("proportion", "capacity"):
                    if not self.is_open(q) or not self.tree_ok:
                        return False
                    limit = self.deserved if name == "proportion" else self.real
                    for level in self.chain(q):
                        if not within(add(self.qalloc[level], p.requests), limit[level], p.requests):
                            return False
        return True

    def overused(self, q):
        for tier in self.enabled("enabledOverused"):
            if "proportion" in tier and all(
                v <= self.qalloc[q].get(k, 0) + TOLERANCE for k, v in self.deserved[q].items()
            ):
                return True
        return False

    def preemptive(self, q, p):
        for tier in self.enabled("enablePreemptive"):
            for name in tier:
                if name == "proportion":
                    if not self.is_open(q) or not within(add(self.qalloc[q], p.requests), self.deserved[q], p.requests):
                        return False
                if name == "capacity":
                    if not self.is_open(q) or not self.tree_ok:
                        return False
                    after = add(self.qalloc[q], p.requests)
                    if not within(after, self.real[q], p.requests):
                        return False
                    if not any(after[k] <= self.deserved[q].get(k, 0) + TOLERANCE for k in quota_names(p.requests)):
                        level = int((self.plugin("capacity").get("arguments") or {}).get("ancestorReclaimLevel", 0))
                        uppers = [u for u in (self.ancestors[q][:level] if self.hierarchy else []) if u != "root"]
                        if not any(
                            add(self.qalloc[u], p.requests)[k] <= self.deserved[u].get(k, 0) + TOLERANCE
                            for u in uppers
                            for k in quota_names(p.requests)
                        ):
                            return False
        return True

    # ---- votes -----------------------------------------------------------------------------------------------------

    def open_overcommit(self):
        plugin = self.plugin("overcommit")
        if not plugin:
            return
        factor = float((plugin.get("arguments") or {}).get("overcommit-factor", 1.2))
        factor = 1.2 if factor < 1 else factor
        used = {}
        for n in self.nodes.values():
            used = add(used, n.used)
        self.over_idle = sub({k: v * factor for k, v in self.total.items()}, used)
        self.over_inqueue = {}
        for g in self.jobs:
            if g.min_resources is not None and (
                g.phase == "Inqueue" or (g.phase == "Running" and g.count("Running", "Succeeded") >= g.min)
            ):
                self.over_inqueue = add(self.over_inqueue, beyond(g.min_resources, g.allocated()))

    def vote(self, flag, ask):
        for tier in self.enabled(flag):
            permitted = False
            for name in tier:
                answer = ask(name)
                if answer < 0:
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    def enqueueable(self, g):
        def ask(name):
            if name in ("proportion", "capacity"):
                if not self.is_open(g.queue) or not self.tree_ok:
                    return -1
                for q in self.chain(g.queue):
                    need = sub(add(add(g.min_resources, self.qalloc[q]), self.inqueue[q]), self.elastic[q])
                    if not within(need, self.real[q], g.min_resources):
                        return -1
                return 1
            if name == "overcommit":
                return 1 if within(add(self.over_inqueue, g.min_resources), self.over_idle, g.min_resources) else -1
            if name == "sla":
                return 1 if self.overdue(g) else 0
            return 0

        return self.vote("enableJobEnqueued", ask)

    def pipelined(self, g):
        def ask(name):
            if name == "gang":
                total = g.ready_number() + g.count("Pipelined") + g.waiting_best_effort()
                return 1 if total >= g.min and g.roles_met(ALLOCATED | {"Pipelined", "Succeeded"}) else -1
            if name == "sla":
                return 1 if self.overdue(g) else 0
            return 0

        return self.vote("enableJobPipelined", ask)

    def ready(self, g):
        for tier in self.enabled("enableJobReady"):
            if "gang" in tier and not (g.enough() and g.roles_met(ALLOCATED | {"Succeeded"})):
                return False
        return True

    def valid(self, g):
        if self.plugin("gang") is None:
            return True
        if g.min >= sum(g.roles.values()):
            for role, n in g.roles.items():
                if sum(p.role == role for p in g.pods) < n:
                    return False
        return len(g.pods) >= g.min

    def starving(self, g):
        for tier in self.enabled("enableJobStarving"):
            found = False
            for name in tier:
                if name == "priority":
                    found = True
                    if g.ready_number() + g.count("Pipelined") >= len(g.pods):
                        return False
                if name == "gang":
                    found = True
                    if g.ready_number() + g.count("Pipelined") >= g.min:
                        return False
            if found:
                return True
        return False

    # ---- nodes -----------------------------------------------------------------------------------------------------

    def node_ok(self, p, n):
        if not any("predicates" in tier for tier in self.enabled("enablePredicate")):
            return True
        return all(n.labels.get(k) == v for k, v in p.selector.items())

    def score(self, p, n):
        plugin = self.plugin("binpack")
        if not plugin or not plugin.get("enableNodeOrder", True):
            return 0.0
        a = plugin.get("arguments") or {}
        weights = {"cpu": float(a.get("binpack.cpu", 1)), "memory": float(a.get("binpack.memory", 1))}
        for r in [r.strip() for r in str(a.get("binpack.resources", "")).split(",") if r.strip()]:
            w = float(a.get("binpack.resources." + r, 1))
            weights[r] = 1 if w < 0 else w
        weights = {k: 1 if v < 0 else v for k, v in weights.items()}
        total = weight = 0.0
        for k in quota_names(p.requests):
            w = weights.get(k)
            if w is None or not n.total.get(k):
                continue
            used = n.used.get(k, 0) + p.requests[k]
            total += w * used / n.total[k] if used <= n.total[k] else 0
            weight += w
        return total / weight * 100 * float(a.get("binpack.weight", 1)) if weight else 0.0

    def best(self, p, nodes):
        nodes = list(nodes)
        self.rng.shuffle(nodes)
        if self.random_nodes:
            return nodes
        return sorted(nodes, key=lambda n: -round(self.score(p, n), 6))

    # ---- actions ---------------------------------------------------------------------------------------------------

    def do_enqueue(self):
        queues = list(dict.fromkeys(g.queue for g in self.jobs))
        waiting = {q: [g for g in self.jobs if g.queue == q and g.phase == "Pending"] for q in queues}
        while queues:
            q = self.first(queues, self.queue_order)
            if not waiting[q]:
                continue
            g = self.first(waiting[q], self.job_order)
            if g.min_resources is None or self.enqueueable(g):
                g.phase = "Inqueue"
                if g.min_resources is not None:
                    if self.plugin("overcommit"):
                        self.over_inqueue = add(self.over_inqueue, g.min_resources)
                    for level in self.chain(q):
                        if level in self.inqueue:
                            self.inqueue[level] = add(self.inqueue[level], g.min_resources)
            queues.append(q)

    def do_allocate(self):
        jobs = {}
        for g in self.jobs:
            if g.phase == "Pending":
                if "enqueue" in self.actions:
                    continue
                g.phase = "Inqueue"
            if self.valid(g):
                jobs.setdefault(g.queue, []).append(g)
        queues, tasks = list(jobs), {}
        while queues:
            q = self.first(queues, self.queue_order)
            if self.overused(q) or not jobs[q]:
                continue
            g = self.first(jobs[q], self.job_order)
            if g.name not in tasks:
                tasks[g.name] = [p for p in g.pods if p.status == "Pending" and not p.best_effort]
            if tasks[g.name]:
                self.allocate_some(q, g, tasks[g.name], jobs[q])
            queues.append(q)

    def allocate_some(self, q, g, tasks, jobs):
        stmt = []
        while tasks:
            p = self.first(tasks, self.task_order)
            if not self.allocatable(q, p):
                continue
            if any(o.uid in g.failed and o.role == p.role for o in g.pods):
                continue
            candidates = [n for n in self.nodes.values() if fits(p.requests, n.future()) and self.node_ok(p, n)]
            if not candidates:
                g.failed.add(p.uid)
                if g.may_go_on():
                    continue
                break
            idle = [n for n in candidates if fits(p.requests, n.idle())]
            named = [n for n in idle if n.name == p.nominated]
            node = (named or self.best(p, idle or candidates))[0]
            if node in idle:
                self.place(stmt, p, node)
            else:
                self.pipeline(stmt, p, node, False)
            if self.ready(g) and tasks:
                jobs.append(g)
                break
        if self.ready(g):
            self.commit(stmt)
        elif not self.pipelined(g):
            self.discard(stmt)

    def do_backfill(self):
        groups = [g for g in self.jobs if g.phase != "Pending" and self.valid(g)]
        queues = list(dict.fromkeys(g.queue for g in groups))
        todo = []
        while queues:
            q = self.first(queues, self.queue_order)
            mine = [g for g in groups if g.queue == q]
            while mine:
                g = self.first(mine, self.job_order)
                pods = [p for p in g.pods if p.status in ("Pending", "Pipelined") and p.best_effort]
                while pods:
                    todo.append(self.first(pods, self.task_order))
        for p in todo:
            if p.status == "Pipelined":
                self.discard([("pipeline", p, self.nodes[p.node], False)])
            nodes = [
                n
                for n in self.nodes.values()
                if self.node_ok(p, n) and n.idle().get("pods", 0) - n.pipelined.get("pods", 0) >= 1
            ]
            if not nodes:
                continue
            self.place([], p, self.best(p, nodes)[0])
            if self.ready(p.group):
                for o in p.group.pods:
                    if o.status == "Allocated":
                        self.bound.add(o.uid)

    # ---- victims ---------------------------------------------------------------------------------------------------

    def victim_order(self, reclaimer):
        def compare(a, b):
            if a.group is b.group:
                return -self.task_order(a, b)
            if a.group.queue == b.group.queue:
                return -(self.plugins_job_order(a.group, b.group) or self.task_order(a, b))
            if self.hierarchy and self.tree_ok:
                mine = self.ancestors[reclaimer.group.queue]
                near = [
                    len(mine) - mine.index(next(q for q in self.ancestors[v.group.queue] if q in mine)) for v in (a, b)
                ]
                if near[0] != near[1]:
                    return near[1] - near[0]
            return -self.queue_order(a.group.queue, b.group.queue)

        return functools.cmp_to_key(compare)

    def named_victims(self, flag, kind, p, candidates):
        victims = None
        for tier in self.enabled(flag):
            if self.options["ordered_victims"]:
                candidates = self.spared_last(tier, kind, p, sorted(candidates, key=self.victim_order(p)))
            for name in tier:
                answer = self.opinion(kind, name, p, candidates)
                if answer is None:
                    continue
                if not answer:
                    victims = None
                    break
                # Nobody in common is nobody yet: the next to be asked starts anew.
                victims = answer if victims is None else [v for v in victims if v in answer] or None
            if victims is not None:
                return victims
        return []

    def spared_last(self, tier, kind, p, candidates):
        likely = candidates
        for name in ("priority", "conformance", "gang"):
            if name in tier:
                answer = self.opinion(kind, name, p, likely)
                likely = likely if answer is None else answer
        return (
            likely + [v for v in candidates if v not in likely]
            if set(map(id, likely)) != set(map(id, candidates))
            else candidates
        )

    def opinion(self, kind, name, p, candidates):
        if name == "gang":
            left, out = {}, []
            for v in candidates:
                g = v.group
                left.setdefault(g.name, g.ready_number())
                if left[g.name] > g.min:
                    left[g.name] -= 1
                    out.append(v)
            return out
        if name == "conformance":
            return [v for v in candidates if not v.group.critical]
        if kind == "preempt" and name == "priority":
            return [
                v
                for v in candidates
                if (v.priority < p.priority if v.group is p.group else v.group.priority < p.group.priority)
            ]
        if kind == "preempt" and name == "drf":
            mine = self.dominant(add(self.jalloc[p.group.name], p.requests))
            left, out = {}, []
            for v in candidates:
                left[v.group.name] = sub(left.get(v.group.name, self.jalloc[v.group.name]), v.requests)
                if mine <= self.dominant(left[v.group.name]) + 1e-6:
                    out.append(v)
            return out
        if kind == "reclaim" and name == "drf" and self.plugin("drf").get("enableHierarchy"):
            mine = self.queues[p.group.queue]
            return [v for v in candidates if self.drf_tree([p], [v]).order(mine, self.queues[v.group.queue]) < 0]
        if kind == "reclaim" and name == "proportion":
            left, out = {}, []
            for v in candidates:
                q = v.group.queue
                have = left.setdefault(q, dict(self.qalloc[q]))
                if not all_within(have, self.deserved[q]):
                    left[q] = sub(have, v.requests)
                    out.append(v)
            return out
        if kind == "reclaim" and name == "capacity":
            if not self.tree_ok:
                return []
            left, out = {}, []
            for v in sorted(candidates, key=self.victim_order(p)):
                q = v.group.queue
                if not set(quota_names(v.requests)) & set(quota_names(p.requests)):
                    continue
                have = left.setdefault(q, dict(self.qalloc[q]))
                after = sub(have, v.requests)
                if not all_within(self.queues[q]["gua"], after):
                    continue
                names = set(quota_names(v.requests)) & set(quota_names(self.deserved[q]))
                if not names or any(have[k] > self.deserved[q][k] + TOLERANCE for k in names):
                    left[q] = after
                    out.append(v)
            return out
        return None

    def do_preempt(self):
        groups = [g for g in self.jobs if g.phase != "Pending" and self.valid(g)]
        starving = [g for g in groups if self.starving(g)]
        queues = list(dict.fromkeys(g.queue for g in groups))
        self.rng.shuffle(queues)
        tasks = {g.name: [p for p in g.pods if p.status == "Pending"] for g in starving}
        for q in queues:
            mine = [g for g in starving if g.queue == q]
            while mine:
                g = self.first(mine, self.job_order)
                stmt, assigned = [], False
                while self.starving(g) and tasks[g.name]:
                    p = self.first(tasks[g.name], self.task_order)
                    assigned = self.preempt_for(stmt, p, lambda v: v.group.queue == g.queue and v.group is not g)
                if not self.pipelined(g) or not self.holds(stmt):
                    self.discard(stmt)
                    continue
                self.commit(stmt)
                if assigned:
                    mine.append(g)
            order = list(starving)
            self.rng.shuffle(order)
            for g in order:
                own = [p for p in g.pods if p.status == "Pending"]
                while own:
                    p, stmt = self.first(own, self.task_order), []
                    if not self.preempt_for(stmt, p, lambda v: v.group is g):
                        break
                    if not self.holds(stmt):
                        self.discard(stmt)
                        break
                    self.commit(stmt)

    def preempt_for(self, stmt, p, chosen):
        if p.never:
            return False
        for n in self.best(p, [n for n in self.nodes.values() if self.node_ok(p, n)]):
            candidates = [
                v
                for g in self.jobs
                for v in g.pods
                if v.status == "Running"
                and v.node == n.name
                and v.preemptable
                and (v.best_effort or not p.best_effort)
                and chosen(v)
            ]
            self.rng.shuffle(candidates)
            victims = self.named_victims("enablePreemptable", "preempt", p, candidates)
            room = n.future()
            for v in victims:
                room = add(room, v.requests)
            if not fits(p.requests, room):
                continue
            victims.sort(key=self.victim_order(p))
            evicted, here = False, []
            for v in victims:
                if self.allocatable(p.group.queue, p) and fits(p.requests, n.future()):
                    break
                self.evict(here, v)
                evicted = True
            if self.allocatable(p.group.queue, p) and fits(p.requests, n.future()) and not self.in_vain(p, here):
                stmt += here
                self.pipeline(stmt, p, n, evicted)
                return True
            self.discard(here)
        return False

    def in_vain(self, p, evictions):
        """Who evicted before and lost the room does not evict those who would come before it and have the room back."""
        comes_first = (
            lambda v: (self.task_order(v, p) if v.group is p.group else self.job_order(v.group, p.group)) < 0
        )  # noqa: E731
        return p.nominated is not None and any(comes_first(op[1]) for op in evictions)

    def do_reclaim(self):
        groups = [g for g in self.jobs if g.phase != "Pending" and self.valid(g)]
        queues = list(dict.fromkeys(g.queue for g in groups))
        starving = {q: [g for g in groups if g.queue == q and self.starving(g)] for q in queues}
        while queues:
            q = self.first(queues, self.queue_order)
            if self.overused(q):
                continue
            while starving[q]:
                g = self.first(starving[q], self.job_order)
                tasks, stmt = [p for p in g.pods if p.status == "Pending"], []
                while tasks and self.starving(g):
                    p = self.first(tasks, self.task_order)
                    if not p.never and self.preemptive(q, p):
                        self.reclaim_for(stmt, q, p)
                if self.pipelined(g) and self.holds(stmt):
                    self.commit(stmt)
                else:
                    self.discard(stmt)

    def reclaim_for(self, stmt, q, p):
        nodes = [n for n in self.nodes.values() if self.node_ok(p, n)]
        self.rng.shuffle(nodes)
        for n in nodes:
            candidates = [
                v
                for g in self.jobs
                for v in g.pods
                if v.status == "Running"
                and v.node == n.name
                and v.preemptable
                and g.queue != q
                and self.queues[g.queue].get("reclaimable", True)
            ]
            if not candidates:
                continue
            self.rng.shuffle(candidates)
            victims = self.named_victims("enableReclaimable", "reclaim", p, candidates)
            room = n.future()
            for v in victims:
                room = add(room, v.requests)
            if not fits(p.requests, room):
                continue
            victims.sort(key=self.victim_order(p))
            evicted = False
            for v in victims:
                if fits(p.requests, n.future()):
                    break
                self.evict(stmt, v)
                evicted = True
            if fits(p.requests, n.future()):
                self.pipeline(stmt, p, n, evicted)
                return True
        return False
