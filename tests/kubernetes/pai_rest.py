#!/usr/bin/env python3
"""OpenPAI's REST API on a real API server: `muster run --pai-rest` with the rights of deploy/overlays/pai, and the course's
configuration, people and jobs. There is no kubelet: what one would report, the test writes.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402
from pai import Api, is_error  # noqa: E402

check = Checks()
LAB6 = ROOT / "tests" / "data" / "lab6"
OVERLAY = ROOT / "deploy" / "overlays" / "pai"


def submit(api, file):
    return api("POST", "/jobs", (LAB6 / f"{file}.yaml").read_text(), Content_Type="text/yaml")


def job(api, job_id):
    return api("GET", f"/jobs/{job_id}")[1]


def comes(api, job_id, state):
    return until(lambda: job(api, job_id)["jobStatus"]["state"] == state, 30, 0.2)


def people(admin):
    for name in ("alice", "dan"):
        answer = admin("POST", "/users", {"username": name, "password": f"{name}-password"})
        check(f"{name} is added", answer[0] == 201, answer)
    vcs = admin("GET", "/virtual-clusters")[1]
    check("the virtual clusters of the cells", set(vcs) == {"default", "vc1"}, vcs)
    check("vc1 has its group", until(lambda: admin("GET", "/groups/vc1")[0] == 200, 10, 0.2))
    alice = Api(admin.port).login("alice", "alice-password")
    answer = submit(alice, "job-config-0")
    check("alice may not use vc1", is_error(answer, 403, "ForbiddenUserError"), answer)
    answer = admin(
        "PUT", "/users", {"data": {"username": "alice", "virtualCluster": ["default", "vc1"]}, "patch": True}
    )
    check("until it is granted", answer[0] == 201, answer)
    return alice


def jobs(cluster, alice, admin):
    answer = submit(alice, "job-config-0")
    check("a job is taken", answer[0] == 202, answer)
    check("twice: 409", is_error(submit(alice, "job-config-0"), 409, "ConflictJobError"))
    pod = job(alice, "alice~job-config-0")["debugId"] + "-train-0"
    check("its pod is bound in vc1", until(lambda: cluster.bound(pod), 30), cluster.log()[-2000:])
    found = cluster.real.api("GET", f"/api/v1/namespaces/default/pods/{pod}")
    check("on Dan's node, by Muster", found["spec"].get("nodeName") == "hostname-dan", found["spec"])
    check("with its own scheduler's name", found["spec"]["schedulerName"] == "muster", found["spec"])
    cluster.set_phase(found, "Running")
    check("it runs", comes(alice, "alice~job-config-0", "RUNNING"), lambda: job(alice, "alice~job-config-0"))
    used = admin("GET", "/virtual-clusters")[1]["vc1"]["resourcesUsed"]
    check("vc1 uses a GPU", used["gpu"] == 1, used)
    cluster.set_phase(found, "Succeeded")
    check("and succeeds", comes(alice, "alice~job-config-0", "SUCCEEDED"), lambda: job(alice, "alice~job-config-0"))
    check("one that waits is stopped", submit(alice, "job-config-2")[0] == 202)
    answer = alice("PUT", "/jobs/alice~job-config-2/executionType", {"value": "STOP"})
    check("by its owner", answer[0] == 202, answer)
    pod = job(alice, "alice~job-config-2")["debugId"] + "-train-0"
    until(lambda: any(one["metadata"]["name"] == pod for one in cluster.pods()), 2)
    cluster.real.kubectl("delete", "pod", pod, "--force", "--grace-period=0", check=False)
    check("and ends", comes(alice, "alice~job-config-2", "STOPPED"), lambda: job(alice, "alice~job-config-2"))
    listed = {one["name"] for one in admin("GET", "/jobs?username=alice")[1]}
    check("both are listed", listed == {"job-config-0", "job-config-2"}, listed)
    events = alice("GET", "/jobs/alice~job-config-0/events")
    check("with their events", events[0] == 200 and events[1]["totalCount"] >= 0, events)


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    with real_kubernetes.RealKubernetes(controllers=True) as real:
        cluster = Deployed(real)
        try:
            cluster.install()
            done = real.kubectl("apply", "--server-side", "-f", str(OVERLAY / "rights.yaml"), check=False)
            check("the rights are applied", done.returncode == 0, done.stderr)
            built = real.kubectl("kustomize", str(OVERLAY), check=False)
            check("the overlay builds", "--pai-rest=0.0.0.0:9186" in built.stdout, built.stderr)
            for name in ("hostname-carol", "hostname-dan"):
                cluster.add_node(name, {"nvidia.com/gpu": "1"})
            port, password = real_kubernetes.free_port(), real.dir / "password"
            password.write_text("admin-password\n")
            arguments = ["--pai-rest", f"127.0.0.1:{port}", "--admin-password-file", str(password)]
            cells = f"--from-file=hivedscheduler.yaml={LAB6 / 'hived-config-a.yaml'}"
            real.kubectl("-n", "kube-system", "create", "configmap", "muster-hived", cells)
            cluster.start(*arguments)
            ready = until(lambda: "OpenPAI's API" in cluster.log(), 60)
            if check("it serves OpenPAI's API", ready, cluster.log()[-3000:]):
                admin = Api(port).login("admin", "admin-password")
                alice = people(admin)
                jobs(cluster, alice, admin)
                forbidden = [line for line in cluster.log().splitlines() if "forbidden" in line]
                check("no right was missing", not forbidden, forbidden[:5])
        finally:
            cluster.stop()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
