#!/usr/bin/env python3
"""Runs the checks with real kubectls against Muster and against a real kube-apiserver 1.37 and compares the answers.

    tests/conformance/beside.py [--kubectl 1.37,1.32,1.20] [--only TEXT] [--verbose]

Prints one table (check, client, real, ours) and closes with `N passed, N failed`. Intended differences are
listed in accepted.txt (check | client | reason) and count as passed.
"""
import argparse
import difflib
import json
import pathlib
import re
import shlex
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from checks import Checks, skip_all  # noqa: E402
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
from beside_checks import CHECKS  # noqa: E402

NS = "demo"


def normal(text):
    """What may differ: uids, times, versions, ages, generated names, addresses."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>", text)
    text = re.sub(r'(resourceVersion"?: ?"?)\d+', r"\1<rv>", text)
    # Before the ages: five random letters may look like one.
    text = re.sub(r"\bgen-\w{5}\b", "gen-<id>", text)
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-<id>", text)
    text = re.sub(r"\b(\d+[ydhm])?\d+[smhd]\b", "<age>", text)
    text = re.sub(r"\b10\.96\.\d+\.\d+\b", "<ip>", text)
    text = re.sub(r"(/tmp/)[\w./-]+", r"\1<path>", text)
    text = re.sub(r"[ \t]+", " ", text)
    return text.strip()


def raw(server, line):
    """A request by hand: status code and body."""
    method, path, *body = line.split(" ", 2)
    request = urllib.request.Request(
        server["url"] + path.replace(" ", "%20"),
        method=method,
        data=body[0].encode() if body else None,
        headers={"Authorization": "Bearer " + server["token"], "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def run(server, kubectl, line):
    line = line.format(data=HERE / "data", ns=NS)
    if line.startswith("json "):
        code, body = raw(server, line[5:])
        try:
            body = json.dumps(json.loads(body), sort_keys=True)
        except ValueError:
            pass
        return f"{code}\n{body}"
    if line.startswith("sh "):  # a shell in which k is kubectl in the test's namespace
        try:
            done = subprocess.run(
                ["bash", "-c", f'k() {{ "$KUBECTL" -n {NS} "$@"; }}\n' + line[3:]],
                text=True,
                capture_output=True,
                timeout=90,
                env={**server["env"], "KUBECTL": kubectl},
            )
        except subprocess.TimeoutExpired:
            return "timed out after 90 s"
        return f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    words = shlex.split(line)
    if words[0] != "get" or "--raw" not in words:
        words = ["-n", NS, *words] if "-n" not in words and "-A" not in words else words
    try:
        done = subprocess.run([kubectl, *words], text=True, capture_output=True, timeout=60, env=server["env"])
    except subprocess.TimeoutExpired:
        return "timed out after 60 s"
    return f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"


def describe(kubeconfig, environment):
    config = subprocess.run(
        [muster_fixture.kubectls()[0][1], "config", "view", "--raw", "-o", "json"],
        text=True,
        capture_output=True,
        env={**environment, "KUBECONFIG": str(kubeconfig)},
        check=True,
    )
    view = json.loads(config.stdout)
    return {
        "url": view["clusters"][0]["cluster"]["server"],
        "token": view["users"][0]["user"].get("token", ""),
        "env": {
            **environment,
            "KUBECONFIG": str(kubeconfig),
            "KUBECTL_KUBERC": "false",
            "KUBE_EDITOR": "sed -i s/edit-me/edited/",
        },
    }


def accepted():
    path = HERE / "accepted.txt"
    rows = [line.split("|") for line in path.read_text().splitlines() if "|" in line] if path.exists() else []
    return {(row[0].strip(), row[1].strip()): row[2].strip() for row in rows}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kubectl", default="1.37,1.32,1.20")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--verbose", action="store_true")
    options = arguments.parse_args()
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    clients = [(version, path) for version, path in muster_fixture.kubectls() if version in options.kubectl.split(",")]
    meant = accepted()
    check = Checks()
    table, details = [], []
    for version, path in clients:
        with real_kubernetes.RealKubernetes(controllers=True, groups=True) as real, muster_fixture.Muster(
            "--without", "scheduler,controllers,agent", nodes=0
        ) as ours:
            servers = [
                describe(real.kubeconfig, {"PATH": "/usr/bin:/bin", "HOME": str(real.dir)}),
                describe(ours.kubeconfig, {"PATH": "/usr/bin:/bin", "HOME": str(ours.data)}),
            ]
            for server in servers:
                run(server, path, f"create ns {NS}")
                run(server, path, "wait --for=jsonpath={{.metadata.name}}=default sa/default --timeout=20s")
            for name, lines in CHECKS:
                wrong = []
                for line in lines:
                    answers = [normal(run(server, path, line)) for server in servers]
                    if answers[0] != answers[1]:
                        wrong.append((line, answers))
                if options.only and options.only not in name:
                    continue
                note = meant.get((name, version)) or meant.get((name, "*"))
                ok = not wrong or note is not None
                check.count(ok)
                table.append(
                    (
                        name,
                        version,
                        "ok",
                        "same" if not wrong else f"differs: {note}" if note else f"{len(wrong)} of {len(lines)} differ",
                    )
                )
                if wrong and (options.verbose or not note):
                    for line, (theirs, mine) in wrong:
                        details.append(
                            f"--- {name} [{version}]: {line}\n"
                            + "\n".join(
                                difflib.unified_diff(
                                    theirs.splitlines(), mine.splitlines(), "real", "ours", lineterm="", n=1
                                )
                            )
                        )
    print("\n".join(details))
    for row in table:
        print(f"{row[0]:28} {row[1]:6} {row[2]:4} {row[3]}")
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
