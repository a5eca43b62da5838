"""Two ways to drive a cluster through OpenPAI's REST API, with the same calls: request by request, as curl would send
them, and with OpenPAI's own JavaScript client, unmodified. Every call answers (status, body)."""
import json
import os
import pathlib
import shutil
import subprocess

import yaml

from checks import skip_all
from muster import ROOT
from pai import Api

SDK = ROOT / ".cache" / "openpai-sdk" / "node_modules"


class Rest:
    """Request by request."""

    def __init__(self, port):
        self.guest, self.people = Api(port), {}

    def login(self, person, password):
        self.people[person] = self.guest.login(person, password)

    def add_user(self, user):
        return self.people["admin"]("POST", "/users", user)

    def change_user(self, user):
        return self.people["admin"]("PUT", "/users", {"data": user, "patch": True})

    def user(self, name):
        return self.people["admin"]("GET", f"/users/{name}")

    def group(self, name):
        return self.people["admin"]("GET", f"/groups/{name}")

    def submit(self, person, document):
        return self.people[person]("POST", "/jobs", yaml.safe_dump(document, sort_keys=False), Content_Type="text/yaml")

    def job(self, person, owner, name, attempt=None):
        past = "" if attempt is None else f"/attempts/{attempt}"
        return self.people[person]("GET", f"/jobs/{owner}~{name}{past}")

    def jobs(self, person, **query):
        return self.people[person]("GET", "/jobs?" + "&".join(f"{key}={value}" for key, value in query.items()))

    def events(self, person, owner, name):
        return self.people[person]("GET", f"/jobs/{owner}~{name}/events")

    def stop(self, person, owner, name):
        return self.people[person]("PUT", f"/jobs/{owner}~{name}/executionType", {"value": "STOP"})

    def virtual_clusters(self, person):
        return self.people[person]("GET", "/virtual-clusters")

    def sku_types(self, person, vc):
        return self.people[person]("GET", f"/cluster/sku-types?vc={vc}")

    def close(self):
        pass


class Sdk:
    """Through sdk.js, one line of JSON for each call and each answer."""

    def __init__(self, port):
        if not shutil.which("node"):
            skip_all("node is not installed")
        if not (SDK / "@microsoft" / "openpai-js-sdk").exists():
            skip_all("OpenPAI's client is not here; tools/openpai_sdk fetches it")
        self.node = subprocess.Popen(
            ["node", str(pathlib.Path(__file__).with_name("sdk.js")), f"127.0.0.1:{port}/rest-server"],
            env={**os.environ, "NODE_PATH": str(SDK), "NODE_NO_WARNINGS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, person, method, *arguments):
        self.node.stdin.write(json.dumps({"person": person, "method": method, "arguments": arguments}) + "\n")
        self.node.stdin.flush()
        answer = json.loads(self.node.stdout.readline())
        return answer["status"], answer["body"]

    def login(self, person, password):
        status, answer = self.call(person, "login", password)
        assert status == 200, answer

    def add_user(self, user):
        return self.call("admin", "user.createUser", user)

    def change_user(self, user):
        return self.call("admin", "user.updateUser", user, True)

    def user(self, name):
        return self.call("admin", "user.getUser", name)

    def group(self, name):
        return self.call("admin", "group.getGroup", name)

    def submit(self, person, document):
        return self.call(person, "job.createJob", document)

    def job(self, person, owner, name, attempt=None):
        return self.call(person, "job.getJob", owner, name, *([] if attempt is None else [attempt]))

    def jobs(self, person, **query):
        return self.call(person, "job.listJobs", query)

    def events(self, person, owner, name):
        return self.call(person, "job.listEvents", owner, name, {})

    def stop(self, person, owner, name):
        return self.call(person, "job.updateJobExecutionType", owner, name, "STOP")

    def virtual_clusters(self, person):
        return self.call(person, "virtualCluster.listVirtualClusters")

    def sku_types(self, person, vc):
        return self.call(person, "virtualCluster.getVirtualClusterSkuTypes", vc)

    def close(self):
        self.node.stdin.close()
        self.node.wait(10)


DRIVERS = {"rest": Rest, "sdk": Sdk}
