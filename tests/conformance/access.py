#!/usr/bin/env python3
"""Who may do what, asked of Muster and of a real kube-apiserver 1.37: RBAC, impersonation, Pod Security, LimitRanges.

    tests/conformance/access.py [--seed N] [--rounds N] [--only TEXT]

Hand-written cases come first, then random ones. The status code, the warnings and the body are compared, except for
uids, times and versions. The seed of a random round is printed with its difference. Closes with `N passed, N failed`.
"""
import argparse
import difflib
import json
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE))
from checks import Checks, skip_all  # noqa: E402
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
from access_cases import by_hand, random_cases, set_up  # noqa: E402
from beside import normal  # noqa: E402
from by_hand import Server  # noqa: E402


def canonical(code, warnings, text):
    try:
        value = json.loads(text)
    except ValueError:
        return [str(code), *warnings, normal(text)]
    if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
        value["metadata"].pop("managedFields", None)
    # Lists of what is wrong are in the order of Go's maps, which is none.
    if code == 422:
        value["details"]["causes"].sort(key=json.dumps)
    if code in (403, 422):
        value["message"] = sorted(re.split(r"[][ ,]+", value["message"]))
    return [str(code), *warnings, *normal(json.dumps(value, sort_keys=True, indent=1)).splitlines()]


class Pair:
    """Both servers, asked the same."""

    def __init__(self, servers, check, only):
        self.servers, self.check, self.only = servers, check, only

    def prepare(self, method, path, body=None):
        for server in self.servers:
            code, _, text = server.ask(method, path, body)
            if code not in (200, 201, 409):
                raise RuntimeError(f"{method} {path}: {code} {text}")

    def compare(self, name, method, path, body=None, headers=None, change=lambda text: text):
        """`change` is made to both bodies before they are compared."""
        if self.only not in name:
            return
        answers = []
        for server in self.servers:
            code, warnings, text = server.ask(method, path, body, headers)
            answers.append(canonical(code, warnings, change(text)))
        same = answers[0] == answers[1]
        self.check.count(same)
        if same:
            return
        print(f"--- {name}: {method} {path} {headers or ''}\n    {json.dumps(body)[:1500]}")
        diff = list(difflib.unified_diff(*answers, "real", "ours", lineterm="", n=0))[2:]
        print("\n".join(line[:600] for line in diff[:16]), flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=150)
    arguments.add_argument("--only", default="")
    options = arguments.parse_args()
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    check = Checks()
    with real_kubernetes.RealKubernetes() as real, muster_fixture.Muster(
        "--without", "scheduler,controllers,agent", "--pod-security", "privileged", nodes=0
    ) as ours:
        pair = Pair([Server(real.kubeconfig, real.dir), Server(ours.kubeconfig, ours.data)], check, options.only)
        set_up(pair)
        by_hand(pair)
        for seed in range(options.seed, options.seed + options.rounds):
            random_cases(pair, random.Random(seed), seed)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
