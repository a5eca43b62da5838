#!/usr/bin/env python3
"""Jobs of every kind in one list: rows, filters, sort orders, windows, differences, actions, and who may see what. Every filter
and sort is compared with all rows of 3,000 jobs; bench/portal/run does the same with 100,000."""
import json
import pathlib
import re
import sys
import time
import urllib.parse

from listing import every_filter_and_sort, pages_while_jobs_arrive, rows_of
from load import cpu_s, seed
from visitor import API, PortalCluster, Visitor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402

check = Checks()


def pod_template(gpus, seconds):
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "metadata": {"annotations": {"muster.dev/hollow-duration": f"{seconds}s"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


def batch_job(name, gpus, seconds=600, labels=None):
    template = pod_template(gpus, seconds)
    spec = {"template": template, "backoffLimit": 0}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def pytorch_job(name, workers, gpus):
    role = {"replicas": workers, "restartPolicy": "Never", "template": pod_template(gpus, 600)}
    role["template"]["spec"]["containers"][0]["name"] = "pytorch"
    master = json.loads(json.dumps(role)) | {"replicas": 1}
    specs = {"Master": master, "Worker": role}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": specs},
    }


def submit(visitor, manifest):
    return visitor.json("POST", f"{API}/jobs", json.dumps(manifest), headers={"Content-Type": "text/yaml"})


def many_kinds(visitor):
    """One shape for a Job, a PyTorchJob, a pod; 2 nodes of 4 GPUs."""
    status, made = submit(visitor, batch_job("first", 4))
    check("a Job is submitted", status == 201 and made["id"] == "default/job/first", (status, made))
    status, made = submit(visitor, pytorch_job("second", 1, 2))
    check("a PyTorchJob is submitted", status == 201 and made["id"] == "default/pytorchjob/second", (status, made))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "third"}, "spec": pod_template(4, 600)["spec"]}
    status, made = submit(visitor, pod)
    check("a pod is submitted", status == 201 and made["id"] == "default/pod/third", (status, made))

    def settled(answer):
        states = {row["id"]: row["state"] for row in answer["rows"]}
        waiting = [row for row in answer["rows"] if row["state"] == "WAITING"]
        if sorted(states.values()) != ["RUNNING", "RUNNING", "WAITING"]:
            return False
        # Its place in line is known before its reason is written.
        return waiting[0]["wait"] and waiting[0]["wait"]["text"]

    answer = visitor.wait(f"{API}/jobs", settled)
    rows = {row["id"]: row for row in answer["rows"]}
    check(
        "counts are of the same set",
        answer["total"] == 3 and answer["counts"] == {"RUNNING": 2, "WAITING": 1},
        answer["counts"],
    )
    second = rows["default/pytorchjob/second"]
    check("tasks and GPUs are counted", (second["tasks"]["total"], second["gpus"]) == (2, 4), second)
    check("who submitted it", second["user"] == visitor.user, second["user"])
    waiting = next(row for row in rows.values() if row["state"] == "WAITING")
    check("why it waits", "nvidia.com/gpu" in waiting["wait"]["text"], waiting["wait"])
    status, detail = visitor.json("GET", f"{API}/jobs/{urllib.parse.quote(waiting['id'], safe='')}")
    wait = detail["wait"]
    check(
        "the detail has the scheduler's numbers", status == 200 and wait["place"] == 1 and wait["nodesTotal"] == 2, wait
    )
    causes = {cause["cause"]: cause["nodes"] for cause in wait["byCause"]}
    check("causes over the nodes", causes.get("Insufficient nvidia.com/gpu") == 2, wait["byCause"])
    check("no estimate without durations", wait["basis"] == "none" and wait["start"] is None, wait)
    status, tasks = visitor.json("GET", f"{API}/tasks/default/pytorchjob/second")
    check("its tasks", status == 200 and [t["id"] for t in tasks["rows"]] == ["master-0", "worker-0"], tasks)
    status, _, config = visitor.get(f"{API}/jobs/default%2Fpytorchjob%2Fsecond/config")
    check("its YAML", status == 200 and b"kind: PyTorchJob" in config and b"managedFields" not in config, config[:200])
    return waiting["id"]


def live(visitor, waiting):
    """A snapshot, then differences; nothing for what is outside of the window."""
    with visitor.live() as tab:
        tab.say({"sub": 7, "topic": "jobs", "query": {"sort": "name"}, "window": [0, 2]})
        first = tab.hear(lambda message: message.get("sub") == 7)
        check(
            "a snapshot", first["total"] == 3 and [row["name"] for row in first["rows"]] == ["first", "second"], first
        )
        submit(visitor, batch_job("absent", 4))
        news = tab.hear(lambda message: message.get("sub") == 7 and "order" in message)
        check("a new row comes as a difference", "default/job/absent" in news["set"], news)
        check("what left the window is named", news["del"] == ["default/pytorchjob/second"], news)
        tab.say({"sub": 8, "topic": f"job/{waiting}"})
        detail = tab.hear(lambda message: message.get("sub") == 8)
        check("one job as a value", detail["value"]["row"]["id"] == waiting, detail)
        tab.say({"win": 7, "window": [2, 4]})
        moved = tab.hear(lambda message: message.get("sub") == 7 and "rows" in message)
        check("another window", moved["window"] == [2, 4] and len(moved["rows"]) == 2, moved)
        for topic in ("counts", "tenants", "nodes", "topology", "events", "gantt"):
            tab.say({"sub": 20, "topic": topic})
            answer = tab.hear(lambda message: message.get("sub") == 20 and "ping" not in message)
            check(
                f"topic {topic}", "error" not in answer and ("value" in answer or "rows" in answer), str(answer)[:300]
            )
            same = visitor.topic(topic)[1]
            check(f"GET {topic} has the same members", set(same) == set(answer) - {"sub"}, (set(same), set(answer)))
        tab.say({"unsub": 20})
        for wrong in (
            "{",
            "[]",
            '{"sub":-1,"topic":"jobs"}',
            '{"sub":9,"topic":"jobs","window":[0,501]}',
            '{"sub":9,"topic":"x"}',
        ):
            tab.say(wrong)
            answer = tab.hear(lambda message: "error" in message)
            check(f"{wrong} is refused in words", answer["error"]["message"], answer)
        for number in range(100, 120):
            tab.say({"sub": number, "topic": "counts"})
        refused = tab.hear(lambda message: "error" in message)
        check("at most 16 subscriptions", refused["error"]["code"] == "TooManyRequests", refused)


def many_tabs(muster, visitor, count=200):
    """Many open portals are told of a change, and cost little while nothing changes."""
    tabs = []
    before = memory_kib(muster)
    for number in range(count):
        if number % 30 == 0:  # a session has at most 32 sockets
            person = Visitor(muster.portal)
            person.sign_in(muster.admin_token())
        tab = person.live()
        tab.say({"sub": 1, "topic": "jobs", "query": {"q": "seen-by-all"}, "window": [0, 50]})
        tabs.append(tab)
    for tab in tabs:
        tab.hear(lambda message: message.get("sub") == 1)
    each = (memory_kib(muster) - before) / count
    check(f"[58] an open portal takes {each:.0f} KiB (1024)", each <= 1024, each)
    used, begun = cpu_s(muster), time.monotonic()
    time.sleep(4)
    share = (cpu_s(muster) - used) / (time.monotonic() - begun)
    check(f"[58] {count} of them take {share * 100:.1f} % of a core while nothing changes (25)", share <= 0.25, share)
    submit(visitor, batch_job("seen-by-all", 0))
    told = sum(bool(tab.hear(lambda message: "default/job/seen-by-all" in message.get("set", {}))) for tab in tabs)
    check("[58] each of them is told of a change", told == count, told)
    for tab in tabs:
        tab.socket.close()
    visitor.ask("POST", f"{API}/jobs:act", {"action": "stop", "ids": ["default/job/seen-by-all"]})
    visitor.wait(f"{API}/jobs?q=seen-by-all", lambda answer: answer["total"] == 0)


def memory_kib(muster):
    text = pathlib.Path(f"/proc/{muster.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))


def acts(visitor, muster):
    status, answer = visitor.json(
        "POST", f"{API}/jobs:act", {"action": "stop", "query": {"kind": ["job"]}, "expected": 1}
    )
    check("[29] another number than expected: 409", status == 409 and answer["found"] == 2, (status, answer))
    act = {"action": "tag", "ids": ["default/job/first", "default/job/none"], "value": "paper"}
    status, _, body = visitor.ask("POST", f"{API}/jobs:act", act)
    lines = [json.loads(line) for line in body.splitlines()]
    check("one line for each, then the sum", status == 200 and lines[-1] == {"done": 1, "failed": 1}, lines)
    tagged = visitor.wait(f"{API}/jobs?tag=paper", lambda answer: answer["total"] == 1)
    check("tags are a filter", tagged["rows"][0]["name"] == "first", tagged)
    status, impact = visitor.json("GET", f"{API}/jobs:impact?kind=job")
    check("whom an act would hit", impact["total"] == 2 and impact["users"][0]["user"] == visitor.user, impact)
    status, _, body = visitor.ask(
        "POST", f"{API}/jobs:act", {"action": "stop", "query": {"kind": ["job"]}, "expected": 2}
    )
    check("[29] all that match are stopped", json.loads(body.splitlines()[-1]) == {"done": 2, "failed": 0}, body)
    visitor.wait(f"{API}/jobs?kind=job", lambda answer: answer["total"] == 0)
    visitor.ask("POST", f"{API}/jobs:act", {"action": "stop", "ids": ["default/pod/third"]})
    visitor.wait(f"{API}/jobs?kind=pod", lambda answer: answer["total"] == 0)
    check("a pod that is gone has no row", visitor.get(f"{API}/jobs/default%2Fpod%2Fthird")[0] == 404)
    left = muster.kubectl("get", "jobs", "-o", "name").stdout
    check("they are gone", left == "", left)


def rights(muster, admin):
    """Somebody who may look into one namespace alone sees its jobs alone, and may not stop others'."""
    muster.kubectl("create", "namespace", "lab")
    muster.kubectl("create", "serviceaccount", "carol", "-n", "lab")
    muster.kubectl("create", "rolebinding", "carol", "-n", "lab", "--clusterrole=edit", "--serviceaccount=lab:carol")
    carol = Visitor(muster.portal)
    status, _, who = carol.sign_in(muster.token_of("lab", "carol"))
    check("a service account signs in", status == 200 and not who["admin"], who)
    carol.user = who["user"]
    check("[12] jobs of other namespaces are not there", rows_of(carol)["total"] == 0, rows_of(carol))
    hidden = carol.json("GET", f"{API}/jobs/default%2Fpytorchjob%2Fsecond")[0]
    check("[12] nor by their name", hidden == 404, hidden)
    status, _, body = carol.ask("POST", f"{API}/jobs:act", {"action": "stop", "ids": ["default/pytorchjob/second"]})
    check("[12] nor can they be stopped", json.loads(body.splitlines()[0])["ok"] is False, body)
    direct = carol.ask("DELETE", "/kube/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/second")[0]
    check("[12] the API says 403, too", direct == 403, direct)
    manifest = batch_job("mine", 1) | {"metadata": {"name": "mine", "namespace": "lab"}}
    status, made = submit(carol, manifest)
    check("her own namespace is hers", status == 201 and made["id"] == "lab/job/mine", (status, made))
    carol.wait(f"{API}/jobs?user=me", lambda answer: answer["total"] == 1)
    check("administrators see both", rows_of(admin)["total"] == 2, rows_of(admin)["total"])
    for path in ("hived", "hived/versions"):
        check(f"[12] {path} is for administrators", carol.get(f"{API}/{path}")[0] == 403)
    pods = carol.json("GET", "/kube/api/v1/namespaces/lab/pods")
    check("/kube answers in her name", pods[0] == 200 and pods[1]["kind"] == "PodList", pods[0])
    check("/kube refuses in her name", carol.get("/kube/api/v1/nodes")[0] == 403)


def checks(muster, visitor):
    """A check makes nothing, and neither much nor often is asked for nothing."""

    def ask(text):
        status, headers, body = visitor.ask("POST", f"{API}/check", text, {"Content-Type": "text/yaml"})
        return status, headers, json.loads(body)

    def everything():
        muster.wait_idle()
        objects = muster.kubectl("get", "pods,jobs,pytorchjobs,podgroups,events,configmaps,secrets", "-A", "-o", "json")
        listed = json.loads(objects.stdout)["items"]
        counts = visitor.topic("counts")[1]["value"]
        revision = json.loads(muster.kubectl("get", "--raw", "/api/v1/pods").stdout)["metadata"]["resourceVersion"]
        return sorted(one["metadata"]["uid"] for one in listed), counts["all"], revision

    before = everything()
    good = json.dumps(batch_job("only-asked", 1))
    status, _, answer = ask(good)
    check("[41] a check says what would be made", status == 200 and "kind: Job" in answer["objects"], answer)
    check("[41] and finds nothing wrong", answer["diagnostics"] == [] and answer["kind"] == "job", answer)
    wrong = json.loads(good)
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Sometimes"
    found = ask(json.dumps(wrong))[2]["diagnostics"]
    check("[41] what is wrong has its path", found[0]["path"] == "spec.template.spec.restartPolicy", found)
    broken = ask("a: [")[2]["diagnostics"]
    check("[41] broken YAML has its line", broken[0]["line"] >= 1 and broken[0]["message"], broken)
    check("[41] nothing is stored: no object, event, count or revision", everything() == before, (before, everything()))
    check("[41] over 1 MiB: 413", ask("a: " + "x" * (1024 * 1024))[0] == 413)
    answers = [ask(good)[:2] for _ in range(60)]
    refused = [headers for status, headers in answers if status == 429]
    check("[41] too often: 429 with Retry-After", refused and refused[0].get("retry-after"), [a[0] for a in answers])


def brute_force(muster, visitor):
    """Filters and sorts equal what a script finds in all rows."""
    manifests = []
    for i in range(60):
        job = batch_job(f"load-{i * 7 % 60:02}", i % 3, labels={"arena.kubeflow.org/username": f"user{i % 4}"})
        job["spec"]["suspend"] = i % 5 == 0
        manifests.append(json.dumps(job))
    muster.kubectl("create", "-f", "-", input="\n---\n".join(manifests))
    visitor.wait(f"{API}/jobs?q=load-", lambda answer: answer["total"] == 60)
    muster.wait_idle()
    everything = rows_of(visitor, limit=500)["rows"]
    keys = {
        "name": lambda row: row["name"],
        "user": lambda row: row["user"],
        "gpus": lambda row: row["gpus"],
        "tasks": lambda row: row["tasks"]["total"],
        "submitted": lambda row: row["submitted"],
        "kind": lambda row: row["kind"],
    }
    for sort, key in keys.items():
        for sign in ("", "-"):
            seen = [key(row) for row in rows_of(visitor, sort=sign + sort, limit=500)["rows"]]
            check(f"[28] sort {sign}{sort}", seen == sorted(map(key, everything), reverse=bool(sign)), seen[:10])
    filters = {
        "user=user1,user2": lambda row: row["user"] in ("user1", "user2"),
        "state=SUSPENDED": lambda row: row["state"] == "SUSPENDED",
        "kind=job&q=LOAD-1": lambda row: row["kind"] == "job" and "load-1" in row["id"],
        "q=nothing-like-it": lambda row: False,
    }
    for query, keep in filters.items():
        answer = visitor.json("GET", f"{API}/jobs?limit=500&{query}")[1]
        expected = {row["id"] for row in everything if keep(row)}
        check(
            f"[28] {query}",
            {row["id"] for row in answer["rows"]} == expected and answer["total"] == len(expected),
            answer["total"],
        )
    pages = []
    for offset in range(0, len(everything), 7):
        pages += rows_of(visitor, sort="name", offset=offset, limit=7)["rows"]
    check(
        "[28] pages join without gap or double",
        [row["id"] for row in pages] == [row["id"] for row in rows_of(visitor, sort="name", limit=500)["rows"]],
    )
    check("[28] limit=501: 400", visitor.get(f"{API}/jobs?limit=501")[0] == 400)
    check("an unknown filter: 400", visitor.get(f"{API}/jobs?colour=red")[0] == 400)
    groups = rows_of(visitor, group="user", q="load-")["groups"]
    check("groups", {g["value"]: g["jobs"] for g in groups} == {f"user{i}": 15 for i in range(4)}, groups)


def crowd(muster, visitor, jobs):
    """Many jobs of many people, some of them urgent or suspended; they run for hours."""
    muster.kubectl("create", "priorityclass", "urgent", "--value=1000")
    seed(muster, jobs, 6, seconds="36000")
    extras = []
    for i in range(40):
        labels = {"arena.kubeflow.org/username": "zoe", "virtualCluster": f"vc-{i % 3}"}
        job = batch_job(f"urgent-{i:02}", i % 3, seconds=36000, labels=labels)
        job["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
        job["spec"]["suspend"] = i % 4 == 0
        extras.append(json.dumps(job))
    muster.kubectl("create", "-f", "-", input="\n---\n".join(extras))
    muster.wait_idle(1800)
    visitor.wait(f"{API}/jobs?limit=1", lambda answer: answer["total"] >= jobs, 120)


def suspended(muster, visitor):
    """How urgent a job without pods is, its class says: also one that is made after it."""
    job = batch_job("held-back", 1)
    job["spec"]["template"]["spec"]["priorityClassName"] = "made-later"
    job["spec"]["suspend"] = True
    submit(visitor, job)

    def prio(number):
        wanted = {"class": "made-later", "number": number}
        return visitor.wait(
            f"{API}/jobs?q=held-back", lambda answer: [row["prio"] for row in answer["rows"]] == [wanted]
        )

    check("a suspended job names its class before there is one", prio(0)["rows"][0]["state"] == "SUSPENDED")
    muster.kubectl("create", "priorityclass", "made-later", "--value=77")
    check("and has its number once there is", prio(77)["total"] == 1)
    muster.kubectl("delete", "job", "held-back")
    # The list takes changes over a moment later, and what follows compares whole lists.
    visitor.wait(f"{API}/jobs?q=held-back", lambda answer: answer["total"] == 0)
    urgent = rows_of(visitor, q="urgent-", limit=100)["rows"]
    check("[28] there are virtual clusters to filter by", len({row["vc"] for row in urgent}) == 3)
    numbers = {(row["state"] == "SUSPENDED", row["prio"]["number"]) for row in urgent}
    check("those that run and those that are suspended alike", numbers == {(True, 1000), (False, 1000)}, numbers)


with PortalCluster("--hollow", nodes=2, gpus=4) as muster:
    admin = Visitor(muster.portal)
    _, _, who = admin.sign_in(muster.admin_token())
    admin.user = who["user"]
    waiting = many_kinds(admin)
    live(admin, waiting)
    many_tabs(muster, admin)
    acts(admin, muster)
    checks(muster, admin)
    rights(muster, admin)
    brute_force(muster, admin)
    crowd(muster, admin, int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
    suspended(muster, admin)
    every_filter_and_sort(check, muster, admin)
    pages_while_jobs_arrive(check, muster, admin)
sys.exit(check.close())
