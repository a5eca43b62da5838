#!/usr/bin/env python3
"""The MPIJob preemption walk-through: two jobs, one GPU, every command as written there."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from walkthrough import Walk, rows, steps, walkthrough  # noqa: E402

text = walkthrough("mpijob-preemption.md")

NODES = [(f"192.168.0.{n}", f"192.168.0.{n}", 1 if n == 23 else 0, n != 23) for n in (20, 21, 22, 23)]
# The document calls the GPU node by two names.
NAMES = [(r"cn-hangzhou\.192\.168\.0\.23", "192.168.0.23")]

with Walk("mpijob_preemption", NODES) as walk:
    (walk.directory / "pc.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.S).group(1))
    code, out = walk.shell("kubectl create -f pc.yaml")
    walk.check(
        "kubectl create -f pc.yaml", code == 0 and "priorityclass.scheduling.k8s.io/critical created" in out, out
    )

    arena = [(f"arena {command}", output) for command, output in steps(text, "# arena")]
    top, submit_medium, get_medium, details, submit_critical, get_failed, get_critical, details_after = arena
    events = [(f"kubectl {command}", output) for command, output in steps(text, "# kubectl")][0]

    walk.compare_columns(top[0], top[1], walk.shell(top[0])[1])
    walk.compare(submit_medium[0][:40], submit_medium[1], walk.shell(submit_medium[0])[1])
    walk.compare(get_medium[0], get_medium[1], walk.until(get_medium[0], r"STATUS: RUNNING[\s\S]*worker-0"))
    walk.compare(details[0], details[1], walk.shell(details[0])[1], NAMES)

    code, out = walk.shell(submit_critical[0])
    walk.check(submit_critical[0][:40], code == 0 and "mpijob.kubeflow.org/critical created" in out, out)
    walk.compare(get_failed[0], get_failed[1], walk.until(get_failed[0], r"STATUS: FAILED(?![\s\S]*worker-0)"))
    walk.compare(get_critical[0], get_critical[1], walk.until(get_critical[0], r"STATUS: RUNNING[\s\S]*worker-0"))
    # The document's listing was cut short: its cluster line is missing.
    after = walk.shell(details_after[0])[1].split("\nAllocated/Total GPUs In Cluster:")[0]
    walk.compare(details_after[0], details_after[1], after, NAMES)

    got = walk.shell(events[0])[1]
    wanted = [row[1:] for row in rows(events[1])[1:]]
    printed = [row[1:] for row in rows(got)[1:]]
    missing = [row for row in wanted if row not in printed]
    walk.check(events[0], not missing, f"--- missing\n{missing}\n--- printed\n{got}")
    order = [printed.index(row) for row in wanted if row in printed]
    walk.check("the events are in the order of the document", order == sorted(order), got)
walk.finish()
