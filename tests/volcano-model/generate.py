"""Random scenarios in the format of the vectors, each cut before the first step whose outcome depends on chance."""
import random

from replay import observations

GPU = "nvidia.com/gpu"


def plugin(rng, name, off=(), chance=0.1):
    p = {"name": name}
    for flag in off:
        if rng.random() < chance:
            p[flag] = False
    return p


def config(rng):
    quota = rng.choice(["proportion", "proportion", "capacity", "capacity", "tree", "none"])
    first = [
        plugin(rng, "priority", ["enableJobOrder", "enablePreemptable", "enableJobStarving"]),
        plugin(rng, "gang", ["enablePreemptable", "enableReclaimable", "enableJobStarving", "enableJobOrder"], 0.25),
        {"name": "conformance"},
    ]
    if rng.random() < 0.12:
        first.pop(rng.randrange(len(first)))
    second = [{"name": "predicates"}, {"name": "nodeorder"}]
    if rng.random() < 0.6:
        second.insert(0, plugin(rng, "drf", ["enablePreemptable", "enableJobOrder"], 0.4))
    if rng.random() < 0.6:
        arguments = (
            {} if rng.random() < 0.5 else {"arguments": {"overcommit-factor": rng.choice(["1.0", "1.5", "0.5", "2"])}}
        )
        second.insert(0, {"name": "overcommit", **arguments})
    if quota != "none":
        q = {"name": "capacity" if quota == "tree" else quota}
        if quota == "tree":
            q["enableHierarchy"] = True
            if rng.random() < 0.2:
                q["arguments"] = {"ancestorReclaimLevel": 1}
        (first if rng.random() < 0.5 else second).append(q)
    if rng.random() < 0.3:
        second.append(
            {"name": "binpack"}
            if rng.random() < 0.5
            else {
                "name": "binpack",
                "arguments": {
                    "binpack.resources": GPU,
                    "binpack.resources." + GPU: rng.choice([1, 5]),
                    "binpack.cpu": rng.choice([0, 1, 3]),
                },
            }
        )
        if rng.random() < 0.6:
            second = [p for p in second if p["name"] != "nodeorder"]
    tiers = [first, second]
    if rng.random() < 0.25:
        sla = (
            {"name": "sla"}
            if rng.random() < 0.6
            else {"name": "sla", "arguments": {"sla-waiting-time": rng.choice(["15s", "25s", "1h"])}}
        )
        rng.choice([lambda: tiers.insert(0, [sla]), lambda: tiers[0].append(sla), lambda: tiers[1].append(sla)])()
    if rng.random() < 0.15:
        flat = [p for t in tiers for p in t]
        rng.shuffle(flat)
        cut = rng.randrange(1, len(flat))
        tiers = [flat[:cut], flat[cut:]] if rng.random() < 0.7 else [flat]
    actions = ["enqueue", "allocate", "backfill"]
    if rng.random() < 0.5:
        actions.insert(2, "preempt")
    if quota != "none" and rng.random() < 0.7:
        actions.insert(rng.choice([2, 2, len(actions) - 1, 1]), "reclaim")
    if rng.random() < 0.08:
        actions.remove("enqueue")
    return {"actions": actions, "tiers": tiers}, quota


def amounts(rng, gpus, cpus):
    out = {}
    if gpus and rng.random() < 0.9:
        out[GPU] = str(gpus)
    if not out or rng.random() < 0.4:
        out["cpu"] = str(cpus)
    return out


def queues(rng, quota, gpus, cpus):
    out = [{"name": "root", "reclaimable": False}, {"name": "default"}]
    names = ["q1", "q2", "q3"][: rng.choice([1, 2, 2, 3])]
    parents = {}
    if quota == "tree":
        inner = ["a", "b"][: rng.choice([1, 2])]
        for i in inner:
            q = {"name": i, "parent": "root"}
            if rng.random() < 0.5:
                q["capability"] = amounts(rng, rng.randint(2, gpus), rng.randint(2, cpus))
            if rng.random() < 0.7:
                q["deserved"] = amounts(rng, rng.randint(2, gpus), rng.randint(2, cpus))
            out.append(q)
        parents = {n: rng.choice(inner + ["root"] + inner) for n in names}
    for n in names:
        q = {"name": n}
        if n in parents:
            q["parent"] = parents[n]
        if rng.random() < 0.4:
            q["weight"] = rng.choice([1, 2, 3])
        if rng.random() < 0.3:
            q["capability"] = amounts(rng, rng.randint(1, gpus), rng.randint(2, cpus))
        if quota in ("capacity", "tree") and rng.random() < 0.75:
            q["deserved"] = amounts(rng, rng.randint(1, gpus - 1), rng.randint(2, cpus))
        if rng.random() < 0.15:
            q["guarantee"] = amounts(rng, rng.randint(1, max(1, gpus // 3)), rng.randint(1, max(1, cpus // 4)))
            if quota in ("capacity", "tree") and "deserved" in q:
                for k, v in q["guarantee"].items():
                    q["deserved"][k] = str(max(int(q["deserved"].get(k, 0)), int(v)))
        if rng.random() < 0.12:
            q["priority"] = rng.choice([1, 5])
        if rng.random() < 0.1:
            q["reclaimable"] = False
        if rng.random() < 0.04:
            q["state"] = "Closed"
        out.append(q)
    return out, names


def request(rng):
    r = {}
    if rng.random() < 0.85:
        r["cpu"] = rng.choice(["1", "1", "2", "500m"])
    if rng.random() < 0.4:
        r["memory"] = rng.choice(["1Gi", "2Gi"])
    if rng.random() < 0.8:
        r[GPU] = rng.choice(["1", "1", "1", "2"])
    if rng.random() < 0.06:
        return {}
    return r or {"cpu": "1"}


def group(rng, number, names):
    tasks = [{"role": "w", "replicas": rng.choice([1, 2, 2, 3, 4, 6]), "requests": request(rng)}]
    if rng.random() < 0.25:
        tasks.insert(0, {"role": "m", "replicas": 1, "requests": request(rng)})
    for t in tasks:
        if rng.random() < 0.1:
            t["priority"] = rng.choice([5, 10])
        if rng.random() < 0.08:
            t["preemptable"] = False
        if rng.random() < 0.05:
            t["preemption_policy"] = "Never"
        if rng.random() < 0.06:
            t["node_selector"] = {"zone": rng.choice(["x", "y"])}
    total = sum(t["replicas"] for t in tasks)
    g = {
        "op": "create_group",
        "name": f"g{number}",
        "queue": rng.choice(names + names + ["default"]),
        "min_member": rng.choice([total, total, 1, rng.randint(1, total)]),
        "tasks": tasks,
    }
    if len(tasks) > 1 and rng.random() < 0.6:
        g["min_task_member"] = {"m": 1, "w": rng.randint(1, tasks[1]["replicas"])}
        if rng.random() < 0.7:
            g["min_member"] = max(g["min_member"], sum(g["min_task_member"].values()))
    if rng.random() < 0.5:
        need = {}
        left = g["min_member"]
        for t in tasks:
            n = min(left, t["replicas"])
            left -= n
            for k, v in t["requests"].items():
                unit = {"500m": 0.5, "1Gi": 1, "2Gi": 2}.get(v)
                need[k] = need.get(k, 0) + n * (unit if unit is not None else int(v))
        g["min_resources"] = {
            k: f"{v:g}Gi" if k == "memory" else f"{v:g}" for k, v in need.items() if rng.random() < 0.85
        }
    if rng.random() < 0.45:
        g["priority_class"] = rng.choice(["low", "high", "high"])
    if rng.random() < 0.15:
        g["sla_waiting_time"] = rng.choice(["5s", "15s", "1h"])
    if rng.random() < 0.03:
        g["namespace"] = "kube-system"
    return g


def pressure(seed, rng):
    """Somebody holds all the room, then others come who may take some of it."""
    kind = rng.choice(["preempt", "preempt", "proportion", "capacity", "capacity", "tree", "both"])
    gang = plugin(rng, "gang", ["enablePreemptable", "enableReclaimable", "enableJobStarving"], 0.3)
    victims = [{"name": "priority"}, gang, {"name": "conformance"}]
    rest = [plugin(rng, "drf", ["enablePreemptable", "enableJobOrder"], 0.5), {"name": "predicates"}]
    quota = {
        "preempt": rng.choice(["none", "proportion", "capacity"]),
        "both": rng.choice(["proportion", "capacity"]),
    }.get(kind, kind)
    if quota != "none":
        q = {"name": "capacity", "enableHierarchy": True} if quota == "tree" else {"name": quota}
        (victims if rng.random() < 0.7 else rest).append(q)
    if rng.random() < 0.2:
        rng.shuffle(victims)
    if rng.random() < 0.15:
        victims.remove(gang)
    if rng.random() < 0.2:
        rest.append({"name": "overcommit"})
    middle = {"preempt": ["preempt"], "both": rng.choice([["preempt", "reclaim"], ["reclaim", "preempt"]])}.get(
        kind, ["reclaim"]
    )
    cfg = {"actions": ["enqueue", "allocate"] + middle + ["backfill"], "tiers": [victims, rest]}
    nodes = [
        {
            "name": f"n{i}",
            "allocatable": {
                "cpu": rng.choice(["8", "64"]),
                "memory": "64Gi",
                "pods": rng.choice(["110", "110", "6"]),
                GPU: rng.choice(["4", "6", "8"]),
            },
            "labels": {"zone": "xy"[i]},
        }
        for i in range(rng.choice([1, 1, 1, 2]))
    ]
    gpus = sum(int(n["allocatable"][GPU]) for n in nodes)
    qs = [{"name": "root", "reclaimable": False}, {"name": "default"}]
    names = ["q1", "q2", "q3"][: rng.choice([1, 2] if kind == "preempt" else [2, 2, 3])]
    if quota == "tree":
        qs += [
            {"name": "a", "parent": "root", "deserved": {GPU: str(rng.randint(2, gpus))}},
            {"name": "b", "parent": "root", "deserved": {GPU: str(rng.randint(1, gpus))}},
        ]
        if rng.random() < 0.4:
            qs[2]["capability"] = {GPU: str(rng.randint(2, gpus))}
    for n in names:
        q = {"name": n}
        if quota == "tree":
            q["parent"] = rng.choice(["a", "a", "b", "root"])
        if quota in ("capacity", "tree") and rng.random() < 0.9:
            q["deserved"] = {GPU: str(rng.randint(1, gpus))}
            if rng.random() < 0.25:
                q["deserved"]["cpu"] = str(rng.randint(1, 8))
        if quota == "proportion" and rng.random() < 0.5:
            q["weight"] = rng.choice([1, 2, 3])
        if rng.random() < 0.15:
            q["guarantee"] = {GPU: "1"}
            if "deserved" not in q and quota in ("capacity", "tree"):
                q["deserved"] = {GPU: "1"}
        if rng.random() < 0.2:
            q["capability"] = {GPU: str(rng.randint(max(1, gpus // 2), gpus))}
        if rng.random() < 0.08:
            q["reclaimable"] = False
        if rng.random() < 0.1:
            q["priority"] = rng.choice([1, 5])
        qs.append(q)

    def some(name, n, queue, low):
        n = max(1, n)
        tasks = [
            {
                "role": "w",
                "replicas": n,
                "requests": {"cpu": rng.choice(["500m", "1"]), GPU: rng.choice(["1", "1", "1", "2"])},
            }
        ]
        if n > 1 and rng.random() < 0.15:
            tasks[0]["replicas"] = n - 1
            tasks.append({"role": "m", "replicas": 1, "requests": {"cpu": "1", GPU: "1"}})
        for t in tasks:
            if rng.random() < 0.08:
                t["preemptable"] = False
            if rng.random() < 0.05:
                t["preemption_policy"] = "Never"
            if rng.random() < 0.06:
                t["priority"] = 5
            if rng.random() < 0.04:
                t["requests"] = {}
        g = {
            "op": "create_group",
            "name": name,
            "queue": queue,
            "min_member": rng.choice([1, 1, max(1, n // 2), n]),
            "tasks": tasks,
        }
        if len(tasks) > 1 and rng.random() < 0.5:
            g["min_task_member"] = {"w": 1, "m": 1}
        if rng.random() < 0.3:
            g["min_resources"] = {GPU: str(g["min_member"])}
        cls = rng.choice([None, "low", "low"] if low else [None, "low", "high", "high", "high"])
        if cls:
            g["priority_class"] = cls
        return g

    first = [some("h0", rng.randint(gpus // 2, gpus + 1), names[0], True)]
    if rng.random() < 0.5:
        first.append(some("h1", rng.randint(1, gpus // 2 + 1), rng.choice(names), True))
    steps, alive = [{"at": 0, "do": first, "expect": {}}], [g["name"] for g in first]
    for i in range(rng.choice([2, 3, 4])):
        ops = [
            some(f"g{i}{j}", rng.choice([1, 1, 2, 2, 3, 4]), rng.choice(names[1:] * 3 + names), False)
            for j in range(rng.choice([1, 1, 2]))
        ]
        if rng.random() < 0.3:
            gone = rng.choice(alive)
            alive.remove(gone)
            ops.append({"op": rng.choice(["complete_group", "delete_group"]), "group": gone})
        alive += [o["name"] for o in ops if "name" in o]
        steps.append({"at": 10 * (i + 1), "do": ops, "expect": {}})
        if not alive:
            break
    return {
        "id": f"random-{seed}",
        "title": "random",
        "why": "random",
        "derived_from": ["the model"],
        "strictness": "must",
        "config": cfg,
        "priority_classes": {"low": 10, "high": 1000},
        "nodes": nodes,
        "queues": qs,
        "steps": steps,
    }


def scenario(seed):
    rng = random.Random(seed)
    cfg, quota = config(rng)
    if seed % 2:
        return pressure(seed, rng)
    nodes, gpus, cpus = [], 0, 0
    for i in range(rng.choice([1, 1, 2, 3])):
        g, c = rng.choice([2, 4, 4, 8]), rng.choice([4, 8, 64])
        gpus, cpus = gpus + g, cpus + c
        nodes.append(
            {
                "name": f"n{i}",
                "allocatable": {
                    "cpu": str(c),
                    "memory": "64Gi",
                    "pods": rng.choice(["110", "110", "110", "5"]),
                    GPU: str(g),
                },
                "labels": {"zone": "xy"[i % 2]},
            }
        )
    qs, names = queues(rng, quota, gpus, cpus)
    steps, alive, number, at = [], [], 0, 0
    for _ in range(rng.choice([3, 4, 5, 6])):
        ops = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            roll = rng.random()
            if roll < 0.65 or not alive:
                ops.append(group(rng, number, names))
                alive.append(f"g{number}")
                number += 1
            elif roll < 0.8:
                ops.append({"op": "complete_group", "group": rng.choice(alive)})
            elif roll < 0.87:
                victim = rng.choice(alive)
                alive.remove(victim)
                ops.append({"op": "delete_group", "group": victim})
            elif roll < 0.92:
                ops.append({"op": "set_queue", "queue": rng.choice(names), "state": rng.choice(["Open", "Closed"])})
            elif roll < 0.94:
                ops.append({"op": "set_queue", "queue": rng.choice(names), "reclaimable": rng.random() < 0.5})
            elif (
                roll < 0.95
                and len(nodes) > 1
                and not any(o["op"] == "remove_node" for o in [o for s in steps for o in s["do"]] + ops)
            ):
                ops.append({"op": "remove_node", "node": "n1"})
            elif roll < 0.98 and not any(o["op"] == "add_node" for o in [o for s in steps for o in s["do"]] + ops):
                ops.append(
                    {
                        "op": "add_node",
                        "node": {
                            "name": "extra",
                            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110", GPU: "2"},
                            "labels": {"zone": "y"},
                        },
                    }
                )
        seen, kept = set(), []
        for o in ops:  # A group is completed or deleted once in a step.
            key = o.get("group")
            if key in seen:
                continue
            seen.add(key) if key else None
            kept.append(o)
        gone = {o["group"] for s in steps for o in s["do"] if o["op"] == "delete_group"}
        kept = [o for o in kept if o.get("group") not in gone]
        steps.append({"at": at, "do": kept, "expect": {}})
        at += rng.choice([10, 10, 20])
    return {
        "id": f"random-{seed}",
        "title": "random",
        "why": "random",
        "derived_from": ["the model"],
        "strictness": "must",
        "config": cfg,
        "priority_classes": {"low": 10, "high": 1000},
        "nodes": nodes,
        "queues": qs,
        "steps": steps,
    }


def certain(s, seeds=8, variants=({},)):
    """The scenario with its expectations, as far as they are the same under every seed and every variant of the
    rules."""
    runs = [r for v in variants for r in observations(s, seeds, v)]
    steps = []
    for i, step in enumerate(s["steps"]):
        seen = [r[i] if i < len(r) else None for r in runs]
        if any(x is None for x in seen):
            break
        first = seen[0]
        if any(x["groups"] != first["groups"] or x["evicted"] != first["evicted"] for x in seen):
            break
        expect = {"groups": first["groups"], "evicted": first["evicted"]}
        placement = {g: p for g, p in first["placement"].items() if p and all(x["placement"][g] == p for x in seen)}
        if placement:
            expect["placement"] = placement
        if first["evicted_pods"] and all(x["evicted_pods"] == first["evicted_pods"] for x in seen):
            expect["evicted_pods"] = first["evicted_pods"]
        steps.append({**step, "expect": expect})
    return {**s, "steps": steps} if steps else None
