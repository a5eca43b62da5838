#!/usr/bin/env python3
"""Large and small objects written in every way at once, and jobs deleted and submitted again under their names: every
write is answered, and what is read back is what was written last. What the server does on other threads is crowded
here, so this is also what the sanitizers should see.
"""
import base64
import http.client
import json
import pathlib
import random
import ssl
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()
WRITERS, ROUNDS, NAMES = 4, 9, 3
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


class Api:
    """One connection as the cluster's administrator."""

    def __init__(self, muster):
        config = json.loads(muster.kubectl("config", "view", "--raw", "-o", "json").stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.headers = {"Authorization": "Bearer " + user["token"]}
        self.connection = http.client.HTTPSConnection(cluster["server"].split("//")[1], context=tls, timeout=120)

    def ask(self, method, path, body=None, kind="application/json"):
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, {**self.headers, "Content-Type": kind})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


def config_map(name, data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def vcjob(name, tasks):
    container = {"name": "c", "image": "busybox", "command": ["sleep", "1"]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    names = [f"t{i}" for i in range(tasks)]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "tasks": [{"name": each, "replicas": 1, "template": template} for each in names]},
    }


def write(api, number, strange):
    """Names are this writer's own, so it knows what each object must hold."""
    draw = random.Random(number)
    held = {}

    def ask(wanted, *request):
        status, body = api.ask(*request)
        if status not in wanted:
            strange.append(f"{request[0]} {request[1]}: {status} {body.get('message', '')}")
        return body

    for turn in range(ROUNDS):
        name = f"w{number}-{turn % NAMES}"
        one = f"{MAPS}/{name}"
        data = {f"k{i}": "x" * draw.randrange(1, 200) for i in range(draw.choice([3, 600, 2500]))}
        if name not in held:
            ask((201,), "POST", MAPS, config_map(name, data))
        ask((200,), "PUT", one, config_map(name, data))
        ask((200,), "PATCH", one, {"data": {"merged": "m" * 5000}}, "application/merge-patch+json")
        ask((200,), "PATCH", one, {"data": {"strategic": "s"}}, "application/strategic-merge-patch+json")
        added = [{"op": "add", "path": "/data/added", "value": "a" * 5000}]
        ask((200,), "PATCH", one, added, "application/json-patch+json")
        applied = config_map(name, {**data, "applied": "y"})
        ask((200,), "PATCH", one + "?fieldManager=m&force=true", applied, "application/apply-patch+yaml")
        ask((201,), "POST", MAPS + "?dryRun=All", config_map(name + "-dry", data))
        held[name] = {**data, "merged": "m" * 5000, "strategic": "s", "added": "a" * 5000, "applied": "y"}
        found = ask((200,), "GET", one).get("data")
        if found != held[name]:
            strange.append(f"{name} holds {len(found or {})} members, written were {len(held[name])}")
        ask((201, 409), "POST", JOBS, vcjob(name, draw.choice([2, 300])))
        if turn % 2 == 1:
            ask((200,), "DELETE", one)
            ask((200, 404), "DELETE", f"{JOBS}/{name}")
            del held[name]
            ask((201, 409), "POST", JOBS, vcjob(name, 2))


def write_all(api, number, strange):
    try:
        write(api, number, strange)
    except (OSError, http.client.HTTPException) as gone:
        strange.append(f"writer {number}: {gone}")


with Muster("--hollow", nodes=20, gpus=8) as muster:
    strange = []
    writers = [threading.Thread(target=write_all, args=(Api(muster), i, strange)) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    check("every write is answered, and what was written last is there", not strange, strange[:5])
    check("the server is still the same process", muster.process.poll() is None, muster.process.poll())
    check("it is ready", muster.kubectl("get", "--raw", "/readyz").stdout == "ok")
sys.exit(check.close())
