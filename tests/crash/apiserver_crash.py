#!/usr/bin/env python3
"""Kills `muster up` with SIGKILL again and again while several clients write at random, and checks after each restart:

  - every acknowledged write is there: an acknowledged create or update is seen at that resourceVersion or a newer one that was asked for,
    an acknowledged delete stays deleted,
  - no resourceVersion that was ever seen is handed out again,
  - a watch from before the crash resumes without a gap, or is told 410.

    tests/crash/apiserver_crash.py [--rounds 50] [--seed N]
"""
import argparse
import http.client
import json
import pathlib
import random
import ssl
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
import muster as fixture  # noqa: E402

CLIENTS, KEYS = 6, 30
PATH = "/api/v1/namespaces/default/configmaps"


class Client:
    def __init__(self, url, token):
        self.host = url.removeprefix("https://")
        self.headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self.connection = None

    def request(self, method, path, body=None):
        """(status, object), or None when the server died before it answered."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(
                    self.host, context=ssl._create_unverified_context(), timeout=20
                )
            self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.connection = None
            return None


class Model:
    """What the clients know. Each key belongs to one client, so its history is a sequence."""

    def __init__(self):
        self.lock = threading.Lock()
        self.known = {}  # name -> (version, value) or None when surely absent
        self.unsure = {}  # name -> values that may have been written when the server died
        self.seen = set()  # every resourceVersion an answer carried
        self.acknowledged = 0

    def saw(self, version):
        with self.lock:
            if version in self.seen:
                raise AssertionError(f"resourceVersion {version} was handed out twice")
            self.seen.add(version)
            self.acknowledged += 1


def writer(index, make_client, model, stop, rng, failures):
    client = make_client()
    try:
        while not stop.is_set():
            name = f"k{index}-{rng.randrange(KEYS)}"
            value = f"{rng.random()}-" + "x" * rng.randrange(3000)
            known = model.known.get(name)
            roll = rng.random()
            if known is None:
                answer = client.request("POST", PATH, {"metadata": {"name": name}, "data": {"v": value}})
                attempt = value
            elif roll < 0.25:
                answer = client.request("DELETE", f"{PATH}/{name}")
                attempt = None
            else:
                answer = client.request(
                    "PUT",
                    f"{PATH}/{name}",
                    {"metadata": {"name": name, "resourceVersion": known[0]}, "data": {"v": value}},
                )
                attempt = value
            if answer is None:
                model.unsure.setdefault(name, []).append(attempt)
                return
            status, body = answer
            if status not in (200, 201):
                raise AssertionError(f"{name}: unexpected {status} {body.get('message')}")
            if attempt is None:
                model.known[name] = None
                with model.lock:
                    model.acknowledged += 1
            else:
                version = body["metadata"]["resourceVersion"]
                model.saw(version)
                model.known[name] = (version, value)
    except AssertionError as error:
        failures.append(str(error))


def check(client, model):
    status, listed = client.request("GET", PATH)
    assert status == 200, listed
    found = {
        item["metadata"]["name"]: item
        for item in listed["items"]
        if item["metadata"]["name"].startswith("k") and "-" in item["metadata"]["name"]
    }
    found.pop("kube-root-ca.crt", None)
    for name in set(model.known) | set(found) | set(model.unsure):
        item = found.get(name)
        now = item["data"]["v"] if item else None
        known = model.known.get(name)
        wanted = known[1] if known else None
        allowed = [wanted, *model.unsure.get(name, [])]
        assert now in allowed, f"{name}: acknowledged {str(wanted)[:40]!r}, found {str(now)[:40]!r}"
        if item is None:
            model.known[name] = None
            continue
        version = item["metadata"]["resourceVersion"]
        if known is None or version != known[0]:
            assert version not in model.seen, f"{name}: resourceVersion {version} stands for two writes"
            model.seen.add(version)
        model.known[name] = (version, now)
    model.unsure.clear()
    newest = int(listed["metadata"]["resourceVersion"])
    assert newest >= max((int(v) for v in model.seen), default=0), "the list's resourceVersion went back"
    return newest


def check_watch(client, since):
    """A watch from before the crash ends its catch-up in a 410 or brings every change since."""
    answer = None
    try:
        connection = http.client.HTTPSConnection(client.host, context=ssl._create_unverified_context(), timeout=20)
        connection.request("GET", f"{PATH}?watch=true&resourceVersion={since}&timeoutSeconds=1", headers=client.headers)
        answer = connection.getresponse()
        events = [json.loads(line) for line in answer.read().splitlines() if line]
    except OSError as error:
        raise AssertionError(f"watch: {error}") from error
    last = since
    for event in events:
        if event["type"] == "ERROR":
            assert event["object"]["code"] == 410, event
            return "410"
        version = int(event["object"]["metadata"]["resourceVersion"])
        assert version > last, f"watch went back from {last} to {version}"
        last = version
    return len(events)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=50)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = arguments.parse_args()
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    model, checks = Model(), Checks()
    muster = fixture.Muster("--without", "scheduler,controllers,agent", nodes=0)
    since, resumed = 0, {"410": 0, "resumed": 0}
    try:
        for round_number in range(options.rounds):
            muster.start()
            text = muster.kubeconfig.read_text()
            url = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
            token = next(line.split()[-1] for line in text.splitlines() if "token:" in line)
            client = Client(url, token)
            newest = check(client, model)
            if since:
                outcome = check_watch(client, since)
                resumed["410" if outcome == "410" else "resumed"] += 1
            since = newest
            stop, failures = threading.Event(), []
            threads = [
                threading.Thread(
                    target=writer,
                    args=(i, lambda: Client(url, token), model, stop, random.Random(rng.random()), failures),
                )
                for i in range(CLIENTS)
            ]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.02, 0.4))
            muster.kill()
            stop.set()
            for thread in threads:
                thread.join()
            if failures:
                checks(f"round {round_number}", False, "\n".join(failures))
                return checks.close()
            checks.count(True)
        muster.start()
        text = muster.kubeconfig.read_text()
        url = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
        check(Client(url, token), model)
    except AssertionError as error:
        checks("every acknowledged write is there", False, error)
        return checks.close()
    finally:
        muster.__exit__(None)
    print(f"{model.acknowledged} acknowledged writes over {options.rounds} kills; watches: {resumed}")
    return checks.close()


if __name__ == "__main__":
    sys.exit(main())
