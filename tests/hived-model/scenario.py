"""Runs a scenario file (the format of the acceptance vectors) through the model: either compares the results, or fills in the
expectations."""

from __future__ import annotations

import json
import os

import yaml

from model import Model, UserError, read_spec


class Scenario:
    def __init__(self, folder):
        self.folder = folder
        self.pods: dict = {}
        self.order: list = []

    def load(self, owner, config):
        if isinstance(config, str):
            with open(os.path.join(self.folder, config), encoding="utf-8") as f:
                config = yaml.safe_load(f)
        self.model = Model(config, owner.get("chainOrder", "descending") == "descending")
        nodes = owner.get("initialNodes", "allHealthy")
        for node in list(self.model.nodes) if nodes == "allHealthy" else nodes if isinstance(nodes, list) else []:
            self.model.set_node(node, True)

    def suggested(self, value):
        if value in (None, "all"):
            return None
        if isinstance(value, list):
            return set(value)
        return {n for n in self.model.nodes if n not in value["allExcept"]}

    def step(self, file, s):
        """What the step leads to, as an `expect`; every alternative under anyOf."""
        op = s["op"]
        if op == "schedule":
            return self.schedule(s)
        if op == "deleteAllocated":
            pod = self.pods[s["pod"]]
            self.model.delete_allocated(s["pod"], pod["spec"])
            pod["bind"] = None
            self.order.remove(s["pod"])
        elif op == "deleteUnallocated":
            if self.pods.get(s["pod"], {}).get("spec"):
                self.model.delete_unallocated(s["pod"], self.pods[s["pod"]]["spec"])
        elif op in ("setNodeBad", "setNodeHealthy"):
            self.model.set_node(s["node"], op == "setNodeHealthy")
        elif op == "restart":
            self.load(s, s.get("config", file["config"]))
            replay = s.get("replay", list(self.order))
            for name in replay:
                pod = self.pods[name]
                if pod.get("bind"):
                    self.model.add_allocated(name, pod["spec"], pod["bind"])
            self.order = [p for p in replay if self.pods[p].get("bind")]
        elif op == "inspect":
            return {"state": self.model.state()}
        return {"ok": True}

    def schedule(self, s):
        name = s["pod"]
        pod = self.pods.setdefault(name, {"spec": None, "bind": None})
        if "annotation" in s:
            text = s["annotation"]
            for old, new in (("gpuType", "leafCellType"), ("gpuNumber", "leafCellNumber")):
                text = text.replace(old, new)
            pod["raw"] = yaml.safe_load(text)
        elif "spec" in s:
            pod["raw"] = s["spec"]
        try:
            spec = read_spec(pod["raw"], s.get("namespace", "test"), name)
            pod["spec"] = spec
            kind, value = self.model.schedule(
                name, spec, s.get("phase", "Filtering"), self.suggested(s.get("suggestedNodes"))
            )
        except UserError as error:
            text = str(error)
            label = "" if text.startswith("Pod annotation") else f"[{name}({s.get('namespace', 'test')}/{name})]: "
            return {"error": {"kind": "user", "message": label + text}}
        if kind == "bind":
            if s.get("commit", True):
                pod["bind"] = value
                if name in self.order:
                    self.order.remove(name)
                self.order.append(name)
                self.model.add_allocated(name, spec, value)
            return {"bind": value}
        if kind == "preempt":
            options = [{"preempt": {"victims": sorted(pods)}} for pods in value.values()]
            return options[0] if len(options) == 1 else {"anyOf": options}
        return {"wait": {"reason": value} if value else {}}


def differs(want, got, where=""):
    if isinstance(want, dict) and isinstance(got, dict):
        for key in want:
            if key not in got:
                return f"{where}.{key} is absent, wanted {want[key]}"
            found = differs(want[key], got[key], f"{where}.{key}")
            if found:
                return found
        return ""
    if want != got:
        return f"{where}: {json.dumps(got)}, wanted {json.dumps(want)}"
    return ""


def same(want, got):
    """Whether the model's answer is what the file says ("" or the difference)."""
    options = want["anyOf"] if "anyOf" in want else [want]
    answers = got["anyOf"] if "anyOf" in got else [got]
    first = ""
    for option in options:
        kind = next(k for k in option if k != "partial")
        for answer in answers:
            if kind not in answer:
                first = first or f"{json.dumps(answer)[:300]}, wanted {json.dumps(option)[:300]}"
                continue
            if kind in ("ok", "error"):
                return ""
            if kind == "wait":
                reason = option["wait"].get("reason", "")
                mine = answer["wait"].get("reason", "")
                if reason == mine or reason.startswith("Mapping") and mine.startswith("Mapping"):
                    return ""
                first = first or f"{mine}, wanted {reason}"
                continue
            difference = differs(option[kind], answer[kind])
            if not difference and kind == "state" and not (option.get("partial") or want.get("partial")):
                difference = differs(
                    answer[kind], {k: option[kind].get(k, answer[kind][k]) for k in answer[kind]}, "(reverse)"
                )
            if not difference:
                return ""
            first = first or difference
    return first
