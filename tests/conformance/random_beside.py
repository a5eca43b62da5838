#!/usr/bin/env python3
"""Random sequences of requests to Muster and to a real kube-apiserver 1.37; the answers and the objects are compared.

    tests/conformance/random_beside.py [--seed N] [--rounds N] [--seconds N] [--kind KIND] [--verbose]

A round is one object and a dozen requests about it. The status code, the warnings and the body with its
managedFields are compared, except for uids, times and versions. The first difference of each sort is made as small as
possible and shown. Intended differences are listed in random_accepted.txt (pattern | reason) and count as passed. The seed
of a round is printed with its difference, and `--seed` with `--rounds 1` runs it again. Closes with `N passed, N
failed`.
"""
import argparse
import difflib
import json
import pathlib
import random
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE))
from checks import Checks, skip_all  # noqa: E402
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
import random_smaller  # noqa: E402
from beside import normal  # noqa: E402
from by_hand import Server  # noqa: E402
from random_objects import KINDS, NAMESPACE, Schemas, path_of  # noqa: E402
from random_requests import Sequences, text_of  # noqa: E402

CRDS = HERE.parents[1] / "src" / "kube" / "crds"


# The same in other words: documents and structs that Go prints, and where its source lies.
SAID_OTHERWISE = [
    (re.compile(pattern), plain)
    for pattern, plain in [
        (r'Invalid value: (\\"\{|\{|map\[)[^\n]*(\}\\"|\}|\]): (?=[^\n{}]*",?\n)', "Invalid value: <document>: "),
        (r"(if it was previously negative\))\\n[^\n]*", r"\1<diff>"),
        (r'scheme \\"[\w./:]+\\"', "scheme <path>"),
    ]
]
# What controllers of a cluster write there, and the embedded server by itself.
OWN_STATUS = ("PodDisruptionBudget", "ResourceQuota")


def canonical(code, warnings, text):
    """What is compared, as lines."""
    try:
        value = json.loads(text)
    except ValueError:
        return [str(code), *warnings, normal(text)]
    if isinstance(value, dict):
        for each in value.get("items") or [value]:
            if (each.get("kind") or value["kind"].removesuffix("List")) in OWN_STATUS:
                each.pop("status", None)
            meta = each.get("metadata")
            if isinstance(meta, dict) and isinstance(meta.get("managedFields"), list):
                for entry in meta["managedFields"]:
                    if entry.get("subresource") == "scale":
                        entry.pop("time", None)  # the real server leaves it out
                meta["managedFields"].sort(
                    key=lambda entry: (
                        entry.get("operation", ""),
                        entry.get("manager", ""),
                        entry.get("subresource", ""),
                        entry.get("apiVersion", ""),
                    )
                )
        causes = (value.get("details") or {}).get("causes") if isinstance(value.get("details"), dict) else None
        if causes:
            # The message says them all again; their order is that of the checks in Go's source.
            value["message"] = re.sub(
                r" is invalid: .*| with \d+ conflicts?: .*", " <causes>", value["message"], flags=re.S
            )
            causes[:] = sorted(
                (cause for number, cause in enumerate(causes) if cause not in causes[:number]), key=json.dumps
            )
    lines = json.dumps(value, sort_keys=True, indent=1)
    lines = re.sub(r'"nodePort": \d+', '"nodePort": <port>', lines)
    for pattern, plain in SAID_OTHERWISE:
        lines = pattern.sub(plain, lines)
    lines = re.sub(r"(precondition|record) \(\d+\)", r"\1 (<rv>)", lines)
    lines = re.sub(r'("remainingItemCount"): \d+', r"\1: <n>", lines)
    lines = re.sub(r'("continue"): "[^"]+"', r'\1: "<token>"', lines)
    return [str(code), *warnings, *normal(lines).splitlines()]


class Beside:
    """The two servers, and what an attempt is about on each of them."""

    def __init__(self, servers):
        self.servers = servers
        self.attempt = 0
        self.asked = 0

    def begin(self, kind):
        self.attempt += 1
        self.kind, self.known = kind, [None, None]
        self.name = f"r-{kind.lower()}-{self.attempt}"

    def fill(self, text, which):
        if text is None:
            return None
        meta = (self.known[which] or {}).get("metadata", {})
        spec = (self.known[which] or {}).get("spec") or {}
        for key, value in (
            ("{id}", str(self.attempt)),
            ("{uid}", meta.get("uid", "")),
            ("{rv}", meta.get("resourceVersion", "")),
            ("{created}", meta.get("creationTimestamp", "")),
            ("{ip}", spec.get("clusterIP") or "" if isinstance(spec, dict) else ""),
        ):
            text = text.replace(key, value)
        return text

    def forget(self, lines):
        """The number of the attempt is no difference between two runs of one sequence."""
        return [re.sub(rf"(r-[a-z]+)-{self.attempt}\b", r"\1", line) for line in lines]

    def send(self, request):
        """Both answers as lines, and then the object on both sides."""
        answers = []
        for which, server in enumerate(self.servers):
            headers = {"Content-Type": request["type"]} if "type" in request else {}
            self.asked += 1
            answers.append(
                self.forget(
                    canonical(
                        *server.ask(
                            request["method"],
                            self.fill(request["path"], which),
                            self.fill(text_of(request), which),
                            headers,
                        )
                    )
                )
            )
        if answers[0] == answers[1] and request["method"] != "GET" and not self.collected(request):
            answers = []
            for which, server in enumerate(self.servers):
                code, warnings, text = server.ask("GET", path_of(self.kind, self.name))
                self.known[which] = json.loads(text) if code == 200 else None
                answers.append(["the object afterwards"] + self.forget(canonical(code, warnings, text)))
        return answers

    @staticmethod
    def collected(request):
        """Foreground and Orphan end in the work of a garbage collector, which the real server here has none of."""
        body = request.get("body")
        return (
            request["method"] == "DELETE"
            and isinstance(body, dict)
            and body.get("propagationPolicy") in ("Foreground", "Orphan")
            and "dryRun" not in body
        )

    def end(self):
        for server in self.servers:
            server.ask("DELETE", path_of(self.kind, self.name), {"gracePeriodSeconds": 0})
            server.ask(
                "PATCH",
                path_of(self.kind, self.name),
                {"metadata": {"finalizers": None}},
                {"Content-Type": "application/merge-patch+json"},
            )

    def replay(self, kind, requests):
        """The first difference of a sequence and the number of its request, or None."""
        self.begin(kind)
        try:
            for number, request in enumerate(requests):
                answers = self.send(request)
                if answers[0] != answers[1]:
                    return number, answers
                if self.collected(request):
                    return None
            return None
        finally:
            self.end()


def sort_of(kind, request, answers):
    """What makes two differences the same sort: what was asked and which lines differ, names and numbers aside."""
    differing = [line for line in difflib.ndiff(answers[0], answers[1]) if line[0] in "+-"]
    plain = [
        re.sub(
            r"\b(?![1-5]\d\d\b)\d+",
            "N",
            re.sub(r'(Invalid value: |Unsupported value: |Duplicate value: )(\\?"[^"]*"|[^:,]+)', r"\1…", line),
        )
        for line in differing
    ]
    return f"{kind} {request['note']}: " + " ".join(re.sub(r"\s+", " ", line) for line in plain[:6])


def placeholders(live):
    """The object with what each server chose for itself replaced by names that `fill` knows."""
    if live is None:
        return None
    text = json.dumps(live)
    meta = live["metadata"]
    text = text.replace(meta["uid"], "{uid}").replace(json.dumps(meta["creationTimestamp"]), '"{created}"')
    text = re.sub(r"\b10\.96\.\d+\.\d+\b", "{ip}", re.sub(r', "nodePort": \d+', "", text))
    value = json.loads(text)
    value["metadata"]["name"] = re.sub(r"-\d+$", "-{id}", value["metadata"]["name"])
    return value


def accepted():
    rows = [line.rsplit("|", 1) for line in (HERE / "random_accepted.txt").read_text().splitlines() if "|" in line]
    return [(re.compile(pattern.strip()), reason.strip()) for pattern, reason in rows]


def one_round(beside, schemas, seed, kinds):
    rng = random.Random(seed)
    kind = rng.choice(kinds)
    sequences = Sequences(rng, schemas)
    beside.begin(kind)
    sent = []
    try:
        for _ in range(12):
            request = sequences.next(kind, placeholders(beside.known[0]))
            sent.append(request)
            answers = beside.send(request)
            if answers[0] != answers[1]:
                return kind, sent, answers
            if beside.collected(request):
                break
        return kind, sent, None
    finally:
        beside.end()


def report(seed, kind, sequence, answers, note):
    print(f"--- {kind}, seed {seed}{note}")
    for request in sequence:
        body = text_of(request)
        print(
            f"  {request['method']} {request['path']} {request.get('type', '')}"
            + (f"\n      {body[:1500]}" if body else "")
        )
    diff = list(difflib.unified_diff(answers[0], answers[1], "real", "ours", lineterm="", n=1))[2:]
    print("\n".join("    " + line[:600] for line in diff[:30]), flush=True)


def prepare(real, ours):
    real.kubectl("apply", "--server-side", "-f", str(CRDS / "kubeflow.yaml"), "-f", str(CRDS / "volcano.yaml"))
    real.kubectl(
        "wait",
        "--for=condition=established",
        "crd/pytorchjobs.kubeflow.org",
        "crd/podgroups.scheduling.volcano.sh",
        "--timeout=60s",
    )
    servers = [Server(real.kubeconfig, real.dir), Server(ours.kubeconfig, ours.data)]
    for server in servers:
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        server.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})

    def fetch(path):
        deadline = time.monotonic() + 60
        while True:
            code, _, text = servers[0].ask("GET", path)
            if code == 200:
                return json.loads(text)
            if time.monotonic() > deadline:
                raise RuntimeError(f"GET {path}: {code} {text[:300]}")
            time.sleep(0.2)

    return servers, Schemas(fetch)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=25)
    arguments.add_argument("--seconds", type=float, default=300, help="no new round after so many")
    arguments.add_argument("--kind", default="")
    arguments.add_argument("--verbose", action="store_true", help="also show the differences that are meant")
    options = arguments.parse_args()
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    meant, seen = accepted(), set()
    kinds = [options.kind] if options.kind else sorted(KINDS)
    check, same, meant_count = Checks(), 0, 0
    # Nodes of the embedded cluster start without the taint of a node that is not ready yet.
    with real_kubernetes.RealKubernetes(
        apiserver_args=["--disable-admission-plugins", "TaintNodesByCondition"]
    ) as real, muster_fixture.Muster("--without", "scheduler,controllers,agent", nodes=0) as ours:
        servers, schemas = prepare(real, ours)
        beside = Beside(servers)
        deadline = time.monotonic() + options.seconds
        for seed in range(options.seed, options.seed + options.rounds):
            if time.monotonic() > deadline:
                break
            kind, sent, answers = one_round(beside, schemas, seed, kinds)
            if answers is None:
                same += 1
                check.count(True)
                continue
            sort = sort_of(kind, sent[-1], answers)
            reason = next((reason for pattern, reason in meant if pattern.search(sort)), None)
            meant_count += reason is not None
            check.count(reason is not None)
            if sort in seen or (reason and not options.verbose):
                continue
            seen.add(sort)
            sequence, answers = random_smaller.smaller(
                lambda requests: beside.replay(kind, requests),
                lambda request, lines: sort_of(kind, request, lines),
                sent,
                answers,
            )
            report(seed, kind, sequence, answers, f"   (meant: {reason})" if reason else f"\n  sort: {sort[:400]}")
    print(
        f"seeds {options.seed} to {seed}, {beside.asked} requests: {same} rounds are the same, {meant_count} differ as listed in random_accepted.txt"
    )
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
