#!/usr/bin/env python3
"""What the portal says about a job before it is submitted comes true: in many random states of a cluster the job asked about is
submitted at once and followed. The seed is printed; `--seed N` and `--states N` choose others."""

import argparse
import concurrent.futures
import json
import pathlib
import random
import statistics
import sys
import time

from load import cpu_s
from visitor import API, PortalCluster, Visitor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402

NODES, GPUS = 4, 4
PATIENCE_S = 20
CLUSTERS = 4


def job(dice, number):
    """A job of one to four tasks, some with a priority that evicts others."""
    tasks = dice.choice([1, 1, 1, 2, 2, 3, 4])
    gpus = dice.choice([0, 1, 1, 2, 2, 3, 4, 4, 6])
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}],
    }
    if dice.random() < 0.45:
        pod["priorityClassName"] = dice.choice(["urgent", "most-urgent"])
    if dice.random() < 0.2:
        pod["nodeSelector"] = {"kubernetes.io/hostname": f"node-{dice.randrange(NODES)}"}
    annotations = {"muster.dev/hollow-duration": "3600s"}
    if dice.random() < 0.5:
        annotations["muster.dev/expected-duration"] = f"{dice.choice([600, 3600, 7200])}s"
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    name = f"state-{number:03}"
    if tasks == 1:
        meta = {"name": name, "namespace": "default", "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod}
    pod["containers"][0]["name"] = "pytorch"
    role = {"replicas": 1, "restartPolicy": "Never", "template": template}
    specs = {"Master": role, "Worker": {**role, "replicas": tasks - 1}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": specs},
    }


class Script:
    """Somebody who asks and submits. Several people ask in turns: one may not ask so often."""

    def __init__(self, muster, people=8):
        self.people = []
        for number in range(people):
            account = f"asker-{number}"
            muster.kubectl("create", "serviceaccount", account)
            binding = ["--clusterrole=cluster-admin", f"--serviceaccount=default:{account}"]
            muster.kubectl("create", "clusterrolebinding", account, *binding)
            self.people.append(Visitor(muster.portal, token=muster.token_of("default", account)))
        self.turn = 0

    def post(self, path, manifest):
        self.turn += 1
        person = self.people[self.turn % len(self.people)]
        return person.json("POST", f"{API}{path}", json.dumps(manifest), headers={"Content-Type": "text/yaml"})

    def get(self, path):
        return self.people[0].json("GET", f"{API}{path}")

    def wait(self, path, good):
        """The first answer that is good, or the last one."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            status, value = self.get(path)
            if status == 200 and good(value) or time.monotonic() > deadline:
                return value
            time.sleep(0.1)


def seats(rows):
    return sorted((row["id"], row["node"], tuple(row["gpus"])) for row in rows if row["node"])


def task_of(job_name, pod):
    """`state-001-worker-0` is the task worker-0; a pod alone is its own."""
    return pod if pod == job_name else pod.removeprefix(job_name + "-")


def started_as_said(script, decision, job_id, name):
    """None, or what was different. Where it goes is not said when others have to leave first: then it starts at all."""
    count = len(decision["placement"]) or (1 if decision["victims"] else 0)
    said = sorted((task_of(name, seat["task"]), seat["node"], tuple(seat["gpus"])) for seat in decision["placement"])
    path = f"/tasks/{job_id.replace('/', '%2F')}"
    rows = script.wait(path, lambda value: len(seats(value["rows"])) >= count)["rows"]
    found = sorted((task_of(name, task), node, gpus) for task, node, gpus in seats(rows))
    good = bool(found) if decision["victims"] and not said else found == said
    return None if good else f"said {said}, found {found}"


def waits_as_said(script, decision, job_id):
    path = f"/jobs/{job_id.replace('/', '%2F')}"
    wanted = decision["wait"]["reason"]

    def told(value):
        return value["row"]["state"] == "WAITING" and value["wait"] and value["wait"]["reason"] == wanted

    detail = script.wait(path, told)
    if told(detail):
        return None
    return (
        f"said {wanted}: {decision['text']}; found {detail['row']['state']} {detail['wait'] and detail['wait']['text']}"
    )


def running(script):
    return {row["id"] for row in script.get("/jobs?state=RUNNING&limit=500")[1]["rows"]}


def evicted_as_said(script, decision, before):
    """Whoever ran before and does not run any more is who was named."""
    said = {victim["id"] for victim in decision["victims"]}
    after = script.wait("/jobs?state=RUNNING&limit=500", lambda value: not said & {row["id"] for row in value["rows"]})
    gone = before - {row["id"] for row in after["rows"]}
    return None if gone == said else f"said {sorted(said)}, gone {sorted(gone)}"


def play(muster, script, dice, states):
    """(how often each verdict, what went wrong, milliseconds of processor time for each question)."""
    seen, wrong, spans = {}, [], []
    for number in range(states):
        manifest = job(dice, number)
        name = manifest["metadata"]["name"]
        muster.wait_idle(60)
        before = running(script)
        begun = cpu_s(muster)
        status, checked = script.post("/check", manifest)
        spans.append((cpu_s(muster) - begun) * 1000)
        decision = checked.get("decision") if status == 200 else None
        if not decision:
            wrong.append(f"{name}: no decision: {status} {checked}")
            continue
        status, made = script.post("/jobs", manifest)
        verdict = decision["verdict"]
        evicts = verdict == "starts" and decision["victims"]
        seen["evicts" if evicts else verdict] = seen.get("evicts" if evicts else verdict, 0) + 1
        if status != 201:
            wrong.append(f"{name}: {verdict}, but submitting answered {status} {made}")
            continue
        trouble = None
        if evicts:
            trouble = evicted_as_said(script, decision, before)
        if verdict == "starts" and not trouble:
            trouble = started_as_said(script, decision, made["id"], name)
        elif verdict in ("waits", "never"):
            trouble = waits_as_said(script, decision, made["id"])
        if trouble:
            wrong.append(f"{name} ({verdict}): {trouble}")
            print(f"  {wrong[-1]}", flush=True)
        thin_out(script, dice)
    return seen, wrong, spans


def thin_out(script, dice):
    """Some go, so that the next state is another one; most of those that wait do."""
    rows = script.get("/jobs?limit=500")[1]["rows"]
    ids = [row["id"] for row in rows if dice.random() < (0.2 if row["state"] == "RUNNING" else 0.7)]
    if ids:
        script.people[0].ask("POST", f"{API}/jobs:act", {"action": "stop", "ids": ids})
        script.wait("/jobs?limit=500", lambda value: not {row["id"] for row in value["rows"]} & set(ids))


def on_a_cluster(seed, states):
    with PortalCluster("--hollow", nodes=NODES, gpus=GPUS) as muster:
        for name, value in (("urgent", 1000), ("most-urgent", 2000)):
            muster.kubectl("create", "priorityclass", name, f"--value={value}")
        return play(muster, Script(muster), random.Random(seed), states)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options.add_argument("--states", type=int, default=200)
    asked = options.parse_args()
    print(f"seed {asked.seed}", flush=True)
    check = Checks()
    seen, wrong, spans = {}, [], []
    # Most of the time is waiting for what happens, so several clusters are played beside each other.
    with concurrent.futures.ThreadPoolExecutor(CLUSTERS) as several:
        parts = [several.submit(on_a_cluster, asked.seed + i, asked.states // CLUSTERS) for i in range(CLUSTERS)]
        for part in parts:
            found, trouble, took = part.result()
            seen = {verdict: seen.get(verdict, 0) + found.get(verdict, 0) for verdict in {*seen, *found}}
            wrong += trouble
            spans += took
    check(f"[42] in {len(spans)} random states it became as it was said: {seen}", not wrong, f"{len(wrong)} did not")
    enough = all(seen.get(verdict, 0) >= asked.states // 40 for verdict in ("starts", "waits", "evicts"))
    check("[42] there was enough of each verdict", enough, seen)
    p95 = statistics.quantiles(spans, n=20)[-1]
    # The server's processor time: others run beside this one. On a quiet machine bench/portal looks at the time that passes.
    check(
        f"[43] a check takes {statistics.median(spans):.1f} ms, 95 in 100 at most {p95:.1f} ms (20)", p95 <= 20, spans
    )
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
