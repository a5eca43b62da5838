#!/usr/bin/env python3
"""Watches, versions and negotiation by raw HTTP: each numbered check runs against a real kube-apiserver 1.37 and
against Muster.

    tests/conformance/watches.py [--ours]      --ours: without the real one beside

A check reports briefly what it saw; both servers' reports must be the same. Prints one table: check, client, real, ours.
"""
import http.client
import json
import pathlib
import socket
import ssl
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
sys.path.insert(0, str(HERE))
from checks import Checks, skip_all  # noqa: E402
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
from by_hand import NS, Server  # noqa: E402

MAPS = "/api/v1/namespaces/{ns}/configmaps"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BOOKMARKS = "35 bookmarks within 70 seconds when asked for"
CHECKS = []


def check(name):
    return lambda run: CHECKS.append((name, run)) or run


class Watch:
    """A watch of its own connection; events are read until one is wanted no more."""

    def __init__(self, server, query, headers=None, path=MAPS):
        self.connection = http.client.HTTPSConnection(
            server.address, context=ssl._create_unverified_context(), timeout=10
        )
        self.connection.request(
            "GET",
            (path + "?watch=true&" + query).replace("{ns}", NS),
            headers={"Authorization": "Bearer " + server.token, "Accept": "application/json", **(headers or {})},
        )
        self.answer = self.connection.getresponse()

    def next(self, timeout=5):
        self.connection.sock.settimeout(timeout) if self.connection.sock else None
        try:
            line = self.answer.readline()
        except (socket.timeout, TimeoutError):
            return None
        return json.loads(line) if line else None

    def until(self, wanted, most=200):
        """Types and names up to the first event that `wanted` accepts."""
        seen = []
        for _ in range(most):
            event = self.next()
            if event is None:
                break
            seen.append(event)
            if wanted(event):
                break
        return seen

    def close(self):
        self.connection.close()


def brief(events):
    out = []
    for event in events:
        meta = event["object"].get("metadata", {})
        mark = "!" if meta.get("annotations", {}).get("k8s.io/initial-events-end") == "true" else ""
        out.append(f"{event['type']} {event['object'].get('kind')} {meta.get('name', '')}{mark}".strip())
    return "; ".join(out)


def version(text):
    return json.loads(text)["metadata"]["resourceVersion"]


def make(server, name, labels=None):
    code, _, text = server.ask("POST", MAPS, {"metadata": {"name": name, "labels": labels or {}}, "data": {"a": "1"}})
    assert code == 201, text
    return version(text)


def patch(server, name, body):
    code, _, text = server.ask("PATCH", MAPS + "/" + name, body, {"Content-Type": "application/merge-patch+json"})
    assert code == 200, text
    return version(text)


def named(name, kind=None):
    return lambda event: event["object"].get("metadata", {}).get("name") == name and (
        kind is None or event["type"] == kind
    )


def list_version(server):
    return version(server.ask("GET", MAPS + "?limit=1&fieldSelector=metadata.name%3Dnone")[2])


def etag(server):
    connection = http.client.HTTPSConnection(server.address, context=ssl._create_unverified_context(), timeout=10)
    connection.request("GET", "/apis", headers={"Authorization": "Bearer " + server.token, "Accept": DISCOVERY})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.headers.get("ETag")


def await_(condition, timeout=20):
    """Whether it came true in time: the real server's discovery follows a new kind after a moment."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Bookmarks(threading.Thread):
    """Two watches that live beside the other checks, one that asked for bookmarks and one that did not."""

    def __init__(self, server):
        super().__init__()
        none = "fieldSelector=metadata.name%3Dnone&timeoutSeconds=75&resourceVersion=" + list_version(server)
        self.asked = Watch(server, "allowWatchBookmarks=true&" + none)
        self.silent = Watch(server, none)
        self.start()

    def run(self):
        """The first bookmark after at most 75 seconds, while versions move on."""
        until = time.monotonic() + 80
        self.seen = []
        while time.monotonic() < until and (event := self.asked.next(80)) is not None:
            if event["type"] == "BOOKMARK":
                self.seen.append(event)
                break
        self.other = []
        while (event := self.silent.next(80)) is not None:
            self.other += [event] if event["type"] == "BOOKMARK" else []

    def account(self):
        self.join()
        moved = [
            int(event["object"]["metadata"]["resourceVersion"]) > 0 and sorted(event["object"]["metadata"])
            for event in self.seen
        ]
        return f"asked: {brief(self.seen)} {moved}; not asked: {brief(self.other) or 'none'}"


@check("28 every change is seen")
def changes(server):
    watch = Watch(server, "fieldSelector=metadata.name%3Dw28&resourceVersion=" + list_version(server))
    make(server, "w28")
    patch(server, "w28", {"data": {"b": "2"}})
    server.ask("DELETE", MAPS + "/w28")
    return brief(watch.until(named("w28", "DELETED")))


@check("31 in and out of a selector")
def selector(server):
    make(server, "w31", {"app": "x"})
    watch = Watch(server, "labelSelector=app%3Dx&resourceVersion=" + list_version(server))
    patch(server, "w31", {"metadata": {"labels": {"app": "y"}}})
    patch(server, "w31", {"metadata": {"labels": {"app": "x"}}})
    server.ask("DELETE", MAPS + "/w31")
    return (
        brief(
            watch.until(
                lambda event: event["type"] == "DELETED"
                and named("w31")(event)
                and event["object"]["metadata"]["labels"]["app"] == "x",
                3,
            )
        )
        or "nothing"
    )


@check("33 nothing until a change")
def quiet(server):
    watch = Watch(server, "timeoutSeconds=1&resourceVersion=" + list_version(server))
    return brief(watch.until(lambda event: event["type"] != "BOOKMARK"))


@check("104 WatchList of nothing ends its beginning at once")
def empty(server):
    begun = time.monotonic()
    watch = Watch(
        server,
        "labelSelector=none%3Dnone&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    )
    events = watch.until(lambda event: event["type"] == "BOOKMARK")
    soon = time.monotonic() - begun < 2
    follow = Watch(server, "resourceVersion=" + events[-1]["object"]["metadata"]["resourceVersion"])
    make(server, "w104")
    seen = brief(follow.until(named("w104")))
    server.ask("DELETE", MAPS + "/w104")
    return f"{brief(events)}; soon {soon}; then {seen}"


@check("105 WatchList from any version")
def any_version(server):
    make(server, "w105")
    out = []
    for given in ("", "&resourceVersion=0", "&resourceVersion=1", "&resourceVersion=" + list_version(server)):
        watch = Watch(
            server,
            "fieldSelector=metadata.name%3Dw105&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            + given,
        )
        out.append(brief(watch.until(lambda event: event["type"] in ("BOOKMARK", "ERROR"))))
        watch.close()
    return " | ".join(out)


@check("106 WatchList as metadata and as Table")
def forms(server):
    out = []
    for headers in (PARTIAL, TABLE):
        watch = Watch(
            server,
            "fieldSelector=metadata.name%3Dw105&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            headers,
        )
        events = watch.until(lambda event: event["type"] in ("BOOKMARK", "ERROR"))
        out.append(
            ", ".join(f"{event['type']} {event['object']['kind']} {event['object']['apiVersion']}" for event in events)
        )
        last = events[-1]["object"]
        meta = last["metadata"] if last["kind"] != "Table" else last["rows"][0]["object"]["metadata"]
        out.append(str(meta.get("annotations")))
        watch.close()
    return " | ".join(out)


@check("106 WatchList of a custom kind")
def custom(server):
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    before = etag(server)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    server.ask(
        "POST",
        kinds,
        {
            "metadata": {"name": "bolts.w.example.com"},
            "spec": {
                "group": "w.example.com",
                "scope": "Namespaced",
                "names": {"plural": "bolts", "kind": "Bolt"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        },
    )
    bolts = "/apis/w.example.com/v1/namespaces/{ns}/bolts"
    await_(
        lambda: server.ask(
            "POST", bolts, {"apiVersion": "w.example.com/v1", "kind": "Bolt", "metadata": {"name": "b1"}}
        )[0]
        == 201
    )
    watch = Watch(
        server, "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", path=bolts
    )
    seen = brief(watch.until(lambda event: event["type"] in ("BOOKMARK", "ERROR")))
    watch.close()
    during = await_(lambda: etag(server) != before)
    server.ask("DELETE", kinds + "/bolts.w.example.com")
    return f"{seen}; discovery's ETag changes with it: {during}, and back: {await_(lambda: etag(server) == before)}"


@check("105 a watch from no version ends its beginning with a bookmark too")
def legacy(server):
    out = []
    for query in ("allowWatchBookmarks=true", "allowWatchBookmarks=true&resourceVersion=0", "timeoutSeconds=1"):
        watch = Watch(server, "fieldSelector=metadata.name%3Dw105&" + query)
        out.append(brief(watch.until(lambda event: event["type"] != "ADDED")))
        watch.close()
    return " | ".join(out)


@check("107 no initial events when they are not wanted")
def not_wanted(server):
    watch = Watch(
        server, "allowWatchBookmarks=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    )
    return brief([event for event in watch.until(lambda event: False, 20) if event["type"] != "BOOKMARK"]) or "none"


@check("110 discovery by Accept")
def discovery(server):
    out = []
    for accept in (
        DISCOVERY,
        DISCOVERY.replace("v=v2;", "v=v2beta1;"),
        "application/json",
        DISCOVERY + ",application/json",
        "*/*",
    ):
        for path in ("/api", "/apis"):
            connection = http.client.HTTPSConnection(
                server.address, context=ssl._create_unverified_context(), timeout=10
            )
            connection.request("GET", path, headers={"Authorization": "Bearer " + server.token, "Accept": accept})
            answer = connection.getresponse()
            kind = json.loads(answer.read() or b"{}").get("kind")
            etag, code = answer.headers.get("ETag"), answer.status
            again = ""
            if etag:
                connection.request(
                    "GET",
                    path,
                    headers={"Authorization": "Bearer " + server.token, "Accept": accept, "If-None-Match": etag},
                )
                answer2 = connection.getresponse()
                answer2.read()
                again = str(answer2.status)
            out.append(f"{code} {kind} {answer.headers.get('Content-Type')} {again}".strip())
            connection.close()
    return " | ".join(out)


@check("111 every group-version is current")
def current(server):
    text = server.ask("GET", "/apis", None, {"Accept": DISCOVERY})[2]
    return str({each["freshness"] for group in json.loads(text)["items"] for each in group["versions"]})


@check("118 a write's version is its event's")
def versions(server):
    watch = Watch(server, "fieldSelector=metadata.name%3Dw118&resourceVersion=" + list_version(server))
    told = [make(server, "w118"), patch(server, "w118", {"data": {"x": "1"}})]
    told.append(patch(server, "w118", {"data": {"x": "1"}}))
    seen = [
        event["object"]["metadata"]["resourceVersion"]
        for event in watch.until(lambda event: event["type"] == "MODIFIED")
    ]
    server.ask("DELETE", MAPS + "/w118")
    gone = watch.next()["object"]["metadata"]["resourceVersion"]
    numbers = [int(each) for each in seen + [gone]]
    return f"same {told[:2] == seen}; no change keeps {told[1] == told[2]}; rising {numbers == sorted(set(numbers))}"


@check("119 bodies and answers by type")
def types(server):
    out = []
    connection = http.client.HTTPSConnection(server.address, context=ssl._create_unverified_context(), timeout=10)
    connection.putrequest("POST", (MAPS + "?dryRun=All").replace("{ns}", NS))
    body = b'{"metadata":{"name":"bare"}}'
    for key, value in (("Authorization", "Bearer " + server.token), ("Content-Length", str(len(body)))):
        connection.putheader(key, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.read()
    out.append(f"{answer.status} {answer.headers.get('Content-Type')}")
    code, _, text = server.ask("GET", MAPS + "/w105", None, {"Accept": "application/json;q=0.9,application/cbor;q=1"})
    out.append(f"{code} {text[:1]}")
    return " | ".join(out)


@check("120 no null creationTimestamp")
def no_null(server):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    text = server.ask(
        "POST",
        "/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All",
        {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}},
    )[2]
    return str('"creationTimestamp":null' in text.replace(" ", ""))


@check("121 versions that are no number, and of the future")
def future(server):
    out = []
    for query in ("resourceVersion=abc", "resourceVersion=999999999&resourceVersionMatch=NotOlderThan"):
        connection = http.client.HTTPSConnection(server.address, context=ssl._create_unverified_context(), timeout=20)
        connection.request(
            "GET", (MAPS + "?" + query).replace("{ns}", NS), headers={"Authorization": "Bearer " + server.token}
        )
        answer = connection.getresponse()
        status = json.loads(answer.read())
        out.append(
            f"{answer.status} {status.get('reason')} {answer.headers.get('Retry-After')} {[cause.get('reason') for cause in status.get('details', {}).get('causes', [])]}"
        )
        connection.close()
    return " | ".join(out)


def run(server):
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    accounts = {}
    bookmarks = Bookmarks(server)
    for name, each in CHECKS:
        try:
            accounts[name] = each(server)
        except Exception as error:  # noqa: BLE001 - whatever went wrong is this check's result
            accounts[name] = f"{type(error).__name__}: {error}"
    accounts[BOOKMARKS] = bookmarks.account()
    return accounts


def ours(accounts):
    with muster_fixture.Muster("--without", "scheduler,controllers,agent", nodes=0) as muster:
        accounts |= run(Server(muster.kubeconfig, muster.data))


def main():
    ours_said, real_said = {}, {}
    beside = threading.Thread(target=ours, args=(ours_said,))  # both at once: each waits a minute for a bookmark
    beside.start()
    if "--ours" not in sys.argv and real_kubernetes.available():
        with real_kubernetes.RealKubernetes() as kubernetes:
            real_said = run(Server(kubernetes.kubeconfig, kubernetes.dir))
    beside.join()
    if not real_said:
        print("\n".join(f"{name}: {account}" for name, account in ours_said.items()))
        skip_all(real_kubernetes.MISSING)
    check = Checks()
    for name, account in real_said.items():
        said = ours_said.get(name)
        check(name, account == said, f"\n    real: {account}\n    ours: {said}")
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
