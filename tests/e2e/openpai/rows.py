"""Rows of the tables in docs/openpai.md and docs/openpai-rest.md: what OpenPAI does, what we do, why they differ, and
the check that saw it. A row without a check cannot be written."""
import dataclasses
import json
import pathlib
import re
from typing import Callable

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]


@dataclasses.dataclass
class Row:
    what: str
    openpai: str
    check: "Callable | str"  # a function of the world; or "suite: name", a check of another suite
    seen: str = ""  # what the function sees, in a few words
    here: str = "same"
    why: str = ""
    who: str = ""  # of a route

    def cells(self):
        seen = self.check if isinstance(self.check, str) else self.seen
        first = [self.what] + ([self.who] if self.who else [])
        return [*first, self.openpai, self.here, self.why, seen]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells()) + " |" for row in rows]


def exists(named):
    """Whether another suite has the check: "e2e.pai_jobs: text", or "pai_test: Suite.Name"."""
    suite, _, name = named.partition(": ")
    if suite.startswith(("e2e.", "agent.")):
        return name in (ROOT / "tests" / suite.replace(".", "/")).with_suffix(".py").read_text()
    group, _, test = name.partition(".")
    wanted = re.compile(rf"TEST(_F)?\(\s*{group},\s*{test}\)")
    room = ROOT / "src" / suite.removesuffix("_test")
    return any(wanted.search(file.read_text()) for file in room.rglob("*_test.cc"))


def merged(base, more):
    """`more` over `base`; None takes a member away."""
    out = dict(base)
    for key, value in more.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        else:
            out[key] = value
    return out


ROLE = {
    "dockerImage": "image",
    "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": 1},
    "commands": ["echo hello"],
}
JOB = {
    "protocolVersion": 2,
    "name": "dry",
    "type": "job",
    "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "any"}],
    "taskRoles": {"train": ROLE},
}


def job(name="dry", role=None, **more):
    return merged(JOB, {"name": name, "taskRoles": {"train": role or {}}, **more})


class Made:
    """What a job became: its Framework, as a dry run shows it."""

    def __init__(self, framework):
        self.framework = framework
        self.notes = framework["metadata"]["annotations"]
        self.roles = framework["spec"]["taskRoles"]
        self.role = self.roles[0]
        self.pod = self.role["task"]["pod"]
        self.app = self.pod["spec"]["containers"][0]
        self.runtime = json.loads(self.notes["muster.dev/pai-runtime"])
        self.commands = self.runtime["roles"][0]["commands"]
        self.cells = yaml.safe_load(
            self.pod["metadata"]["annotations"]["hivedscheduler.microsoft.com/pod-scheduling-spec"]
        )
        self.env = {each["name"]: each.get("value") for each in self.app["env"]}
        self.config = self.notes["config"]


class World:
    """A cluster with the course's two virtual clusters, and its people."""

    def __init__(self, muster, guest, admin, alice, bob):
        self.muster, self.guest, self.admin, self.alice, self.bob = muster, guest, admin, alice, bob

    def submit(self, one, who=None, query=""):
        text = one if isinstance(one, str) else yaml.safe_dump(one, sort_keys=False)
        return (who or self.alice)("POST", "/jobs" + query, text, Content_Type="text/yaml")

    def made(self, one, who=None):
        status, answer = self.submit(one, who, "?dryRun=All")
        assert status == 200, (status, answer)
        return Made(answer["framework"])

    def refused(self, one, status, code, text, who=None):
        """With this status, code and text, or a part of the text where it is long."""
        seen = self.submit(one, who)
        assert seen[0] == status and seen[1]["code"] == code and text in seen[1]["message"], seen
        return True
