#!/usr/bin/env python3
"""Hundreds of hand-written requests, mostly bad ones, to Muster and to a real kube-apiserver 1.37; the answers are compared.

    tests/conformance/by_hand.py [--only TEXT] [--verbose]

The status code, the Warning headers and the body are compared, except for uids, times and versions. Intended
differences are listed in by_hand_accepted.txt (name, may end in * | reason) and count as passed. Closes with `N passed, N
failed`.
"""
import argparse
import difflib
import fnmatch
import http.client
import json
import pathlib
import re
import ssl
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE))
from checks import Checks, skip_all  # noqa: E402
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
from beside import describe, normal  # noqa: E402
from by_hand_requests import REQUESTS  # noqa: E402

NS = "demo"


class Server:
    def __init__(self, kubeconfig, home):
        server = describe(kubeconfig, {"PATH": "/usr/bin:/bin", "HOME": str(home)})
        self.token = server["token"]
        self.address = urllib.parse.urlparse(server["url"]).netloc
        self.connection = None

    def ask(self, method, path, body=None, headers=None):
        """Status, warnings, body; over one connection that is opened again when the server has closed it."""
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        sent = {"Authorization": "Bearer " + self.token, "Accept": "application/json", "User-Agent": "by-hand/1"}
        if data is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        for attempt in (0, 1):
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(
                    self.address, context=ssl._create_unverified_context(), timeout=20
                )
            try:
                try:
                    self.connection.request(
                        method, path.replace("{ns}", NS), data.encode() if data is not None else None, sent
                    )
                except OSError:
                    if attempt == 0:
                        raise
                    # A refused body is not read to its end; the answer may be there all the same.
                answer = self.connection.getresponse()
                text = answer.read().decode(errors="replace")
                # That a kind is stored and nothing else is said by Muster alone.
                warnings = [each for each in answer.headers.get_all("Warning") or [] if "but muster up" not in each]
                return answer.status, sorted(warnings), text
            except (http.client.HTTPException, OSError) as error:
                self.connection.close()
                self.connection = None
                if attempt:
                    return 0, [], f"no answer: {type(error).__name__}"


def canonical(text):
    """JSON with sorted keys; managedFields and what is Muster's own aside."""
    try:
        value = json.loads(text)
    except ValueError:
        return normal(text)
    if isinstance(value, dict):
        if isinstance(value.get("metadata"), dict):
            value["metadata"].pop("managedFields", None)
        if value.get("kind") == "Table":
            for column in value.get("columnDefinitions") or []:
                column.pop("description", None)
    return normal(json.dumps(value, sort_keys=True, indent=1))


def accepted():
    path = HERE / "by_hand_accepted.txt"
    rows = [line.rsplit("|", 1) for line in path.read_text().splitlines() if "|" in line] if path.exists() else []
    return [(name.strip(), reason.strip()) for name, reason in rows]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--verbose", action="store_true", help="also show the differences that are meant")
    options = arguments.parse_args()
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    meant = accepted()
    check, same, meant_count = Checks(), 0, 0
    with real_kubernetes.RealKubernetes() as real, muster_fixture.Muster(
        "--without", "scheduler,controllers,agent", nodes=0
    ) as ours:
        servers = [Server(real.kubeconfig, real.dir), Server(ours.kubeconfig, ours.data)]
        for server in servers:
            server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
            server.ask("POST", "/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "default"}})
        for name, method, path, body, headers in REQUESTS:
            answers = []
            for server in servers:
                code, warnings, text = server.ask(method, path, body, headers)
                answers.append("\n".join([str(code), *warnings, canonical(text)]))
            if answers[0] == answers[1]:
                same += 1
                check.count(True)
                continue
            reason = next(
                (
                    reason
                    for pattern, reason in meant
                    if fnmatch.fnmatchcase(name, re.sub(r"([\[\]])", r"[\1]", pattern))
                ),
                None,
            )
            meant_count += reason is not None
            check.count(reason is not None)
            if options.only in name and (reason is None or options.verbose):
                diff = list(
                    difflib.unified_diff(
                        answers[0].splitlines(), answers[1].splitlines(), "real", "ours", lineterm="", n=0
                    )
                )[2:]
                print(f"--- {name}: {method} {path}" + (f"   (meant: {reason})" if reason else ""))
                print("\n".join(line[:400] for line in diff[:24]))
    print(f"{same} answers are the same, {meant_count} differ as listed in by_hand_accepted.txt")
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
