#!/usr/bin/env python3
"""The scheduler's policy in the portal: read, checked, applied, protected against simultaneous changes, and restored."""
import json
import pathlib
import subprocess
import sys

from visitor import API, PortalCluster, Visitor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from chromium import PASSWORD, with_password  # noqa: E402

check = Checks()
SPREAD = "# for teaching\nplacement: spread\n"


def asked(admin, text):
    return admin.json("POST", f"{API}/policy:check", {"text": text})


def put(visitor, text, version):
    return visitor.json("PUT", f"{API}/policy", {"text": text, "resourceVersion": version})


def node_of(muster, name):
    """Where a pod that wants one GPU is put."""
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    muster.kubectl("create", "-f", "-", input=json.dumps(pod))
    muster.kubectl("wait", "--for=condition=PodScheduled", f"pod/{name}", "--timeout=30s")
    return muster.kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}").stdout


def in_force(muster, times):
    """Waits for the line of the log that says so, at most 20 s."""
    command = ["timeout", "20", "tail", "-n", "+1", "-f", str(muster.data / "test.log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as follows:
        for line in follows.stdout:
            times -= "the new configuration is in force" in line
            if times == 0:
                break
        follows.terminate()
    return times == 0


def reads_and_checks(admin):
    status, policy = admin.json("GET", f"{API}/policy")
    check("without a file the defaults hold", status == 200 and policy == {**policy, "text": "", "present": False})
    check("its page is offered", "policy" in admin.json("GET", f"{API}/session")[1]["features"])
    _, wrong = asked(admin, "plcement: spread\n")
    check("a wrong key is refused in words", not wrong["ok"] and 'did you mean "placement"?' in wrong["message"], wrong)
    _, good = asked(admin, SPREAD)
    check("a check names the keys that change", good["facts"] == ["placement: spread (was not set)"], good)
    _, other = asked(admin, "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n")
    check("the other kind takes a restart, and that is said", not other["ok"] and "restart" in other["message"], other)
    check("checks change nothing", admin.json("GET", f"{API}/policy")[1] == policy)


def applies(muster, admin):
    status, now = put(admin, SPREAD, "")
    check("a policy is applied", status == 200 and now["present"], now)
    check("the scheduler takes it over", in_force(muster, 1), muster.log()[-1500:])
    check("spread: two pods, two nodes", node_of(muster, "s-1") != node_of(muster, "s-2"))
    muster.kubectl("delete", "pod", "s-1", "s-2")
    status, theirs = put(admin, "placement: pack\n", "")
    check("one who had not seen it gets 409 and the text", status == 409 and theirs["text"] == SPREAD, theirs)
    status, refused = put(admin, "placement: nowhere\n", now["resourceVersion"])
    check("what a check refuses is not applied", status == 422 and "nowhere" in refused["message"], refused)
    check("comments stay", admin.json("GET", f"{API}/policy")[1]["text"] == SPREAD)
    status, packed = put(admin, "placement: pack\n", now["resourceVersion"])
    check("and another one", status == 200 and in_force(muster, 2), packed)
    check("pack: two pods, one node", node_of(muster, "p-1") == node_of(muster, "p-2"))
    return packed["resourceVersion"]


def goes_back(muster, admin, version):
    _, versions = admin.json("GET", f"{API}/policy/versions")
    check("former ones are kept", [v["text"] for v in versions] == ["placement: pack\n", SPREAD], versions)
    muster.stop()
    muster.start()
    back = Visitor(muster.portal)
    back.cookie, admin = admin.cookie, back
    status, kept = admin.json("GET", f"{API}/policy")
    check("a restart keeps it", status == 200 and kept["text"] == "placement: pack\n", kept)
    status, none = put(admin, "\n", version)
    check("blank: the defaults again", status == 200 and not none["present"], none)
    check("the file is gone", not (muster.data / "scheduler.yaml").exists())


def only_administrators(muster, admin):
    user = {"username": "alice", "password": "alice-password", "email": "", "admin": False, "virtualCluster": []}
    admin.json("POST", f"{API}/pai/users", user)
    alice = Visitor(muster.portal)
    alice.sign_in(user="alice", password="alice-password")
    check("[12] others do not see it", alice.json("GET", f"{API}/policy")[0] == 403)
    status, answer = put(alice, SPREAD, "")
    check("[12] nor change it", status == 403, (status, answer))
    _, audit = admin.json("GET", f"{API}/audit?limit=100")
    rows = [row for row in audit["rows"] if row["object"] == "policy"]
    check("[54] who applied it is in the audit", any(r["user"] == "admin" and r["code"] == 200 for r in rows), rows)
    check("[54] and who was refused", any(r["user"] == "alice" and r["code"] == 403 for r in rows), rows)


def main():
    with with_password(PortalCluster("--hollow", nodes=2, gpus=4)) as muster:
        admin = Visitor(muster.portal)
        admin.sign_in(user="admin", password=PASSWORD)
        reads_and_checks(admin)
        version = applies(muster, admin)
        only_administrators(muster, admin)
        goes_back(muster, admin, version)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
