#!/usr/bin/env python3
"""The portal of `muster run` on a real API server, with the rights of deploy/overlays/portal: people who sign in with a token of the
cluster see and do what the cluster's own rules allow them."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "tests" / "portal")]
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402
from visitor import API, Visitor  # noqa: E402

check = Checks()
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "submitted", "namespace": "vision"},
    "spec": {
        "suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}},
    },
}


def account(real, name, role):
    real.api("POST", "/api/v1/namespaces/vision/serviceaccounts", {"metadata": {"name": name}})
    if role:
        real.kubectl(
            "create", "rolebinding", name, "-n", "vision", f"--clusterrole={role}", f"--serviceaccount=vision:{name}"
        )
    return real.kubectl("create", "token", "-n", "vision", name).stdout.strip()


def start(cluster):
    """The portal's address."""
    before = len(re.findall(r"portal: (\S+)", cluster.log()))
    cluster.start("--portal", f"127.0.0.1:{real_kubernetes.free_port()}")
    until(lambda: len(re.findall(r"portal: (\S+)", cluster.log())) > before, 30)
    cluster.await_start()
    return re.findall(r"portal: (\S+)", cluster.log())[-1]


def signed_in(address, token):
    visitor = Visitor(address)
    status, _, who = visitor.sign_in(token)
    check(f"{who.get('user')} signs in with a token of the cluster", status == 200, who)
    return visitor


def submit(visitor, manifest):
    status, _, body = visitor.ask("POST", f"{API}/jobs", json.dumps(manifest), {"Content-Type": "text/yaml"})
    return status, json.loads(body)


def asks(cluster):
    real = cluster.real
    # No controller manager fills the built-in roles here.
    for role, verbs in (("writer", "*"), ("reader", "get,list,watch")):
        real.kubectl("create", "clusterrole", role, f"--verb={verbs}", "--resource=pods,jobs.batch")
    editor, looker, nobody = (
        account(real, *one) for one in (("editor", "writer"), ("looker", "reader"), ("nobody", None))
    )
    address = start(cluster)
    page = Visitor(address).get("/")
    check("the pages are served", page[0] == 200 and b"<html" in page[2], page[:2])
    edit, look, none = (signed_in(address, token) for token in (editor, looker, nobody))
    status, made = submit(edit, JOB)
    check("a job is submitted in the visitor's name", status == 201 and made["id"] == "vision/job/submitted", made)
    row = edit.wait(f"{API}/jobs?q=submitted", lambda answer: answer["total"] == 1)["rows"][0]
    owner = real.api("GET", "/apis/batch/v1/namespaces/vision/jobs/submitted")["metadata"]["annotations"]
    check("and is listed", row["state"] == "SUSPENDED", row)
    check("its object says whose it is", owner["muster.dev/submitted-by"] == "system:serviceaccount:vision:editor")
    check("who may look sees it", look.topic("jobs")[1]["total"] == 1, look.topic("jobs"))
    check("who may not, does not", none.topic("jobs")[1]["total"] == 0, none.topic("jobs"))
    status, refused = submit(look, {**JOB, "metadata": {"name": "mine", "namespace": "vision"}})
    check("who may only look cannot submit", status == 403 and "cannot create" in refused["message"], refused)
    act = {"action": "stop", "ids": ["vision/job/submitted"]}
    lines = look.ask("POST", f"{API}/jobs:act", act)[2]
    check("nor stop", b'"ok":false' in lines and b"cannot delete" in lines, lines)
    pods = edit.json("GET", "/kube/api/v1/namespaces/vision/pods")
    check("/kube answers in their name", pods[0] == 200 and pods[1]["kind"] == "PodList", pods)
    check("and refuses in their name", edit.get("/kube/api/v1/namespaces/kube-system/secrets")[0] == 403)
    cluster.pod("waits", gpus=64)
    admin = signed_in(address, real.token)
    wait = admin.wait(f"{API}/jobs/default%2Fpod%2Fwaits", lambda one: one.get("wait") and one["wait"]["byCause"])[
        "wait"
    ]
    check("why a job waits, in the scheduler's numbers", "wants 64, the largest node has 4" in wait["text"], wait)
    with edit.live() as tab:
        tab.say({"sub": 1, "topic": "jobs", "query": {}, "window": [0, 10]})
        tab.hear(lambda message: message.get("sub") == 1)
        stopped = edit.ask("POST", f"{API}/jobs:act", act)[2]
        check("the owner stops it", b'"ok":true' in stopped, stopped)
        gone = tab.hear(lambda message: message.get("sub") == 1 and "vision/job/submitted" in message.get("del", []))
        check("and an open page is told", gone["total"] == 0, gone)
    ended = signed_in(address, looker)
    ended.ask("DELETE", f"{API}/session")
    cluster.stop()
    again = Visitor(start(cluster))
    again.cookie = edit.cookie
    check("a session survives a restart", again.get(f"{API}/jobs")[0] == 200)
    again.cookie = ended.cookie
    check("one that was ended does not come back", again.get(f"{API}/jobs")[0] == 401)
    real.kubectl("delete", "serviceaccount", "-n", "vision", "editor")
    again.cookie = edit.cookie
    check("an account that is deleted is signed out", until(lambda: again.get(f"{API}/jobs")[0] == 401, 40))
    denied = [line for line in cluster.log().splitlines() if "orbidden" in line or "cannot list" in line]
    check("the rights of deploy/overlays/portal are enough", not denied, denied[:5])


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    with real_kubernetes.RealKubernetes() as real:
        cluster = Deployed(real)
        try:
            cluster.install()
            cluster.add_node("a")
            real.kubectl("apply", "-f", str(ROOT / "deploy" / "overlays" / "portal" / "rights.yaml"))
            real.api("POST", "/api/v1/namespaces", {"metadata": {"name": "vision"}})
            asks(cluster)
        finally:
            cluster.stop()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
