#!/usr/bin/env python3
"""Replays hand-made requests that were recorded against a real kube-apiserver, in order, and compares the answers.

    tests/conformance/recorded.py [--only create,patch] [--verbose]

uids and resourceVersions of the recording are replaced by ours as they arrive in answers. The status code is compared,
and the message, reason and causes of a Status. The recording is in tests/data/recordings.
"""
import argparse
import base64
import http.client
import json
import pathlib
import re
import ssl
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
import muster as fixture  # noqa: E402

RECORDING = ROOT / "tests" / "data" / "recordings" / "server-v1.32.4_raw-http.jsonl"
# Topics that need other users, running pods, minutes of waiting, or the pods that a kubelet had taken away by then.
LEFT_OUT = {
    "auth",
    "headers",
    "bookmark",
    "bookmark2",
    "discovery",
    "watchlist",
    "podsubresource-errors",
    "expire",
    "eviction",
    "quota",
}
# (topic, method, path pattern, our code): meant differences, with the reason. 1.37 is what we serve, the recording is
# of 1.32.
MEANT = [
    (
        "patch",
        r"error decoding patch: invalid character",
        "1.37 says only: invalid JSON patch (compared by conformance.by_hand)",
    ),
    (
        r".*",
        r"some validation rules were not checked",
        "one cause per problem; the note about unchecked rules is not repeated",
    ),
    (r".*", r"v1\.OwnerReference\{|resource\.Quantity\{", "Go's print of a struct"),
    (r".*", r"metadata\.ownerReferences\.", "1.37 names each owner by its index"),
    (r".*", r"found new finalizers", "the same cause is not listed twice"),
    (r".*", r"does not match the ResourceVersion in record", "the version itself differs"),
    (
        r".*",
        r"Invalid value: 0x0: must be specified",
        "1.37 prints the missing version as 0 (compared by conformance.random_beside)",
    ),
    (r".*", r"Unsupported value: \[\]string", "1.37 prints the list as JSON"),
    (r".*", r"patch: Invalid value", "the quoted document differs in order and managedFields"),
    (r".*", r"unknown patch type", "400 instead of an accidental 500"),
    (r".*", r"duplicate field", "the recording keeps one of the two fields"),
    (r".*", r"resourceVersion should not be set", "400 instead of an accidental 500"),
    (r".*", r"strconv.ParseUint", "400 instead of an accidental 500"),
    (r".*", r"target\.(name|kind):", "400 instead of an accidental 500"),
    (r".*", r"does not contain declared merge key", "400 or 500 of a broken patch"),
]


def normal(text):
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>", text or "")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", text)
    text = re.sub(r"(version: ?|current: ?)\d+", r"\1<rv>", text)
    return text


class Replay:
    def __init__(self, url, token):
        self.host, self.token, self.known = url.removeprefix("https://"), token, {}

    def swap(self, text):
        if not self.known:
            return text
        pattern = re.compile("|".join(re.escape(key) for key in sorted(self.known, key=len, reverse=True)))
        return pattern.sub(lambda found: self.known[found.group(0)], text)

    def learn(self, theirs, ours):
        if not isinstance(theirs, dict) or not isinstance(ours, dict):
            return
        a, b = theirs.get("metadata") or {}, ours.get("metadata") or {}
        if a.get("uid") and b.get("uid"):
            self.known[a["uid"]] = b["uid"]
        if a.get("resourceVersion") and b.get("resourceVersion"):
            self.known[f'"resourceVersion": "{a["resourceVersion"]}"'] = f'"resourceVersion": "{b["resourceVersion"]}"'
            self.known[f'resourceVersion={a["resourceVersion"]}'] = f'resourceVersion={b["resourceVersion"]}'
        for item, mine in zip(theirs.get("items") or [], ours.get("items") or []):
            self.learn(item, mine)

    def send(self, entry):
        body = entry.get("req_body") or {}
        if "json" in body:
            data = self.swap(json.dumps(body["json"]))
        elif "b64" in body:
            data = base64.b64decode(body["b64"])
        elif "text" in body:
            data = body["text"]
        elif "text_head" in body:
            return None
        else:
            data = None
        headers = {k: v for k, v in entry["req_headers"].items() if k in ("Accept", "Content-Type")}
        headers["Authorization"] = "Bearer " + self.token
        connection = http.client.HTTPSConnection(self.host, context=ssl._create_unverified_context(), timeout=30)
        connection.request(entry["method"], self.swap(entry["url"]), data, headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text


def message(body):
    if isinstance(body, dict) and body.get("kind") == "Status":
        causes = [
            (c.get("reason"), normal(c.get("message")), c.get("field"))
            for c in (body.get("details") or {}).get("causes", [])
        ]
        return normal(body.get("message")), causes
    return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", default="")
    arguments.add_argument("--verbose", action="store_true")
    options = arguments.parse_args()
    check, meant = Checks(), 0
    with fixture.Muster("--without", "scheduler,controllers,agent") as muster:
        text = muster.kubeconfig.read_text()
        url = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
        token = next(line.split()[-1] for line in text.splitlines() if "token:" in line)
        muster.kubectl("create", "namespace", "raw")
        muster.kubectl("create", "priorityclass", "critical", "--value=1000")
        for line in RECORDING.read_text().splitlines():
            topic = json.loads(line)
            if topic["name"] in LEFT_OUT or (options.only and topic["name"] not in options.only.split(",")):
                continue
            replay, last = Replay(url, token), None
            for entry in topic["http"]:
                if last is not None and entry["t_ms"] - last > 300:
                    time.sleep(min(1.5, (entry["t_ms"] - last) / 1000))  # the recording waited for a controller here
                last = entry["t_ms"]
                if not entry.get("status") or "watch=" in entry["url"] or "/watch/" in entry["url"]:
                    continue
                answer = replay.send(entry)
                if answer is None:
                    continue
                theirs = (entry.get("resp_body") or {}).get("json")
                replay.learn(theirs, answer[1])
                wanted, found = (entry["status"], message(theirs)), (answer[0], message(answer[1]))
                deadline = time.monotonic() + 3
                while wanted != found and entry["method"] == "GET" and wanted[0] == 404 and time.monotonic() < deadline:
                    time.sleep(0.05)  # a collector was faster there
                    answer = replay.send(entry)
                    found = (answer[0], message(answer[1]))
                if wanted == found:
                    check.count(True)
                    continue
                if wanted[0] == 404 and found[0] == 200 and topic["name"] == "crd":
                    meant += 1  # a new kind is served at once here
                    continue
                if entry["req_headers"].get("Accept") == "application/vnd.kubernetes.protobuf":
                    meant += 1  # answers are JSON
                    continue
                excuse = next(
                    (why for _, pattern, why in MEANT if wanted[1] and re.search(pattern, wanted[1][0])), None
                )
                if excuse:
                    meant += 1
                    continue
                check.count(False)
                print(
                    f"--- {topic['name']}: {entry['method']} {entry['url']} {json.dumps(entry.get('req_body', {}).get('json'))[:300]}"
                )
                print(f"  real {wanted}\n  ours {found}")
    print(f"{meant} answers differ as meant")
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
