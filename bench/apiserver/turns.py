#!/usr/bin/env python3
"""What one program costs beside another, or one flag: the processor time of the whole server per request, by turns.

    bench/apiserver/turns.py --audit                               the audit log against none
    bench/apiserver/turns.py 'plain=/tmp/muster' 'hardened=build/muster'
                             [--rounds 8] [--requests 20000]

All servers run from the start; each round gives every one the same work, so other load on the machine affects all of them alike. A service account asks, over one TLS connection. Of the rounds the best and the median are printed: other processes evict caches and can only make a round more expensive.
"""
import argparse
import contextlib
import json
import os
import pathlib
import socket
import ssl
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from muster import Muster, binary  # noqa: E402

PIPELINED, LISTED = 100, 200
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "schedulerName": "nobody",
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "command": ["sleep", "3600"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}},
            }
        ],
    },
}


class Server:
    def __init__(self, name, program, *flags):
        self.name, self.rounds = name, {}
        os.environ["MUSTER"] = program
        self.muster = Muster("--without", "scheduler,controllers,agent", *flags)
        self.muster.start()
        kubectl = self.muster.kubectl
        kubectl("create", "configmap", "small", "--from-literal=text=" + "x" * 1024)
        kubectl("create", "serviceaccount", "asker")
        kubectl("create", "namespace", "written")
        for namespace in ("default", "written"):
            kubectl(
                *("create", "rolebinding", "asker", "-n", namespace, "--clusterrole=edit"),
                "--serviceaccount=default:asker",
            )
        self.token = kubectl("create", "token", "asker", "--duration=3h").stdout.strip()
        config = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
        host, port = config["clusters"][0]["cluster"]["server"].split("//")[1].split(":")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.stream = context.wrap_socket(socket.create_connection((host, int(port))))
        self.create("default", LISTED)

    def stop(self):
        self.stream.close()
        self.muster.stop()

    def used_s(self):
        """Processor time of all its threads, those that ended too: Linux' clock of another process."""
        return time.clock_gettime(~self.muster.process.pid << 3 | 2)

    def ask(self, method, path, body=""):
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: muster\r\nAuthorization: Bearer {self.token}\r\nUser-Agent: turns/1\r\n"
        )
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return f"{head}\r\n{body}".encode()

    def exchange(self, requests, status):
        """Pipelined; every answer has the status."""
        wanted = f"HTTP/1.1 {status} ".encode()
        for at in range(0, len(requests), PIPELINED):
            bunch = requests[at : at + PIPELINED]
            self.stream.sendall(b"".join(bunch))
            answers = 0
            rest = b""
            while answers < len(bunch):
                rest += self.stream.recv(1 << 18)
                while True:
                    end = rest.find(b"\r\n\r\n")
                    if end < 0:
                        break
                    head = rest[:end].lower()
                    length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                    if len(rest) < end + 4 + length:
                        break
                    if not rest.startswith(wanted):
                        raise AssertionError(rest[: end + 4 + length].decode())
                    rest = rest[end + 4 + length :]
                    answers += 1

    def gets(self, count):
        self.exchange([self.ask("GET", "/api/v1/namespaces/default/configmaps/small")] * count, 200)
        return count

    def lists(self, count):
        count = max(count // 200, 1)
        self.exchange([self.ask("GET", "/api/v1/namespaces/default/pods")] * count, 200)
        return count

    def writes(self, count):
        """Pods that are created and deleted again, so that nothing grows."""
        count = max(count // 40, 1)
        self.create("written", count)
        path = "/api/v1/namespaces/written/pods"
        self.exchange([self.ask("DELETE", f"{path}/p-{i}") for i in range(count)], 200)
        return 2 * count

    def create(self, namespace, count):
        bodies = [json.dumps({**POD, "metadata": {"name": f"p-{i}"}}) for i in range(count)]
        self.exchange([self.ask("POST", f"/api/v1/namespaces/{namespace}/pods", body) for body in bodies], 201)


def measure(servers, rounds, requests):
    works = ["gets", "writes", "lists"]
    for _ in range(rounds):
        for work in works:
            for server in servers:
                begun = server.used_s()
                count = getattr(server, work)(requests)
                took = (server.used_s() - begun) / count * 1e6
                server.rounds.setdefault(work, []).append(took)
        servers.reverse()
    return works


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "servers", nargs="*", help="NAME=PROGRAM[ FLAGS…]; the first is what the others are compared with"
    )
    arguments.add_argument("--audit", action="store_true")
    arguments.add_argument("--rounds", type=int, default=8)
    arguments.add_argument("--requests", type=int, default=20000)
    options = arguments.parse_args()
    wanted = options.servers
    if options.audit:
        wanted = [f"none={binary()} --audit-log-path none", f"audit={binary()}"]
    with contextlib.ExitStack() as stack:
        servers = []
        for each in wanted:
            name, words = each.split("=", 1)
            servers.append(Server(name, *words.split()))
            stack.callback(servers[-1].stop)
        named = list(servers)
        works = measure(servers, options.rounds, options.requests)
    first = named[0]
    print(f"{'µs each, best / median':24}" + "".join(f"{server.name:>26}" for server in named))
    for work in works:
        row = f"{work:24}"
        for server in named:
            best, median = min(server.rounds[work]), statistics.median(server.rounds[work])
            more = best / min(first.rounds[work]) - 1
            pairs = [a / b - 1 for a, b in zip(server.rounds[work], first.rounds[work])]
            cell = f"{best:.2f} / {median:.2f}"
            if server is not first:
                cell += f" ({more:+.1%}, pairs {statistics.median(pairs):+.1%})"
            row += f"{cell:>26}" if server is first else f"  {cell}"
        print(row)


if __name__ == "__main__":
    main()
