#!/usr/bin/env python3
"""When a waiting job starts: checks 7, 11, 12, 13, 25 and 34 of the specification of answers, on hollow clusters."""
import datetime
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "tests" / "lib"), str(ROOT / "tests" / "portal")]
from checks import Checks, until  # noqa: E402
from muster import binary  # noqa: E402
from visitor import PortalCluster, Visitor  # noqa: E402

check = Checks()
GROUP = "/apis/answers.muster.dev/v1"
CLOCK = re.compile(r"\b\d\d:\d\d\b")


def pod(name, gpus=1, lasts=60, declared=None, ns="default", **spec):
    annotations = {"muster.dev/hollow-duration": f"{lasts}s"}
    if declared:
        annotations["muster.dev/expected-duration"] = f"{declared}s"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ns, "annotations": annotations, "labels": {"user": "alice"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {"name": "c", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}},
            ],
            **spec,
        },
    }


def apply(muster, *objects):
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return muster.kubectl("apply", "-f", "-", input=body)


def raw(muster, path, *args, check=True):
    done = muster.kubectl("get", "--raw", GROUP + path, *args, check=check)
    return json.loads(done.stdout) if done.returncode == 0 else None


def forecast(muster, name, ns="default"):
    items = (raw(muster, f"/namespaces/{ns}/when?name={name}", check=False) or {"items": []})["items"]
    return items[0] if items else None


def phase(muster, name, ns="default"):
    return json.loads(muster.kubectl("get", "pod", name, "-n", ns, "-o", "json").stdout)["status"].get("phase")


def bound_at(muster, name):
    pod = json.loads(muster.kubectl("get", "pod", name, "-o", "json").stdout)
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return seconds(condition["lastTransitionTime"])
    return None


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def group_of(name):
    """A PodGroup of one, for a pod that names it."""
    meta = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    return {**meta, "spec": {"minMember": 1, "queue": "default"}}


def member(name, **more):
    made = pod(name, **more)
    made["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name
    return made


def annotation(muster, group):
    """Of a PodGroup that waits: when it is expected to start."""
    found = json.loads(muster.kubectl("get", "podgroups.scheduling.volcano.sh", group, "-o", "json").stdout)
    return found["metadata"].get("annotations", {}).get("muster.dev/expected-start")


def metrics(muster):
    """Lines of forecasts, name to value: a name with labels would be about somebody."""
    page = muster.kubectl("get", "--raw", "/metrics").stdout
    return dict(line.rsplit(" ", 1) for line in page.splitlines() if line.startswith("muster_forecast_"))


def rows(visitor):
    """What the portal's list says of those that wait: by name."""
    status, answer = visitor.topic("jobs", state="WAITING")
    assert status == 200, answer
    return {row["name"]: row["wait"] for row in answer["rows"] if row["wait"]}


TIMES = ("start", "startLow", "startHigh")
FIGURES = {
    f"muster_forecast_{name}"
    for name in (
        "cpu_seconds_total age_seconds draws judged_total holds_ratio error_median unanswered"
        " engine_held_seconds follower_differences_total"
    ).split()
}


def check_07(muster):
    """Nothing is declared and nothing has ended: no time anywhere. After five like runs there is one."""
    visitor = Visitor(muster.portal, muster.admin_token())
    apply(muster, pod("hold", 4, 600))
    until(lambda: phase(muster, "hold") == "Running")
    apply(muster, pod("waits", 4, 600), group_of("gang"), member("gang", gpus=4, lasts=600))
    check("7 it is known to wait", until(lambda: forecast(muster, "waits") and forecast(muster, "gang"), 30))
    said = forecast(muster, "waits")
    start = said["start"]
    check("7 basis none", start["basis"] == "none" and start["because"], said)
    check("7 no quantile in the JSON", not any(key in start for key in ("p10", "p50", "p90")), start)
    table = muster.cli("when").stdout
    row = next(line for line in table.splitlines() if line.startswith("waits"))
    check("7 no time in the table", " none " in row + " " and not CLOCK.search(row), table)
    text = muster.cli("explain", "waits").stdout
    line = next((line for line in text.splitlines() if "start can be predicted" in line or "Starts about" in line), "")
    check("7 explain says that none can be told", "No start can be predicted" in line and not CLOCK.search(line), text)
    # Its place is of the forecast: once it is there, the row shows what was foretold.
    shown = lambda: {name: wait for name, wait in rows(visitor).items() if wait["place"]}  # noqa: E731
    check("7 the portal lists both", until(lambda: len(shown()) == 2, 30), lambda: rows(visitor))
    told = shown()
    silent = all(wait["basis"] == "none" and not any(wait[t] for t in TIMES) for wait in told.values())
    check("7 no time in the portal's rows", silent, told)
    # Courses were played, so there was a time that could have been written.
    figures = metrics(muster)
    check("7 the metrics are those of the page, and about nobody", set(figures) == FIGURES, figures)
    check("7 courses were played all the same", float(figures["muster_forecast_draws"]) > 0, figures)
    check("7 both are counted as unanswered", float(figures["muster_forecast_unanswered"]) == 2, figures)
    check("7 no forecast is there to be judged", float(figures["muster_forecast_judged_total"]) == 0, figures)
    muster.wait_idle()
    check("7 no annotation", annotation(muster, "gang") is None, lambda: annotation(muster, "gang"))
    muster.kubectl("delete", "pod", "hold", "waits", "gang", "--grace-period=0", "--force")
    muster.kubectl("delete", "podgroups.scheduling.volcano.sh", "gang")
    # Longer than what follows takes: of a run that outlasts all others nothing is known.
    apply(muster, *[pod(f"run-{i}", 1, 30) for i in range(6)])
    ended = until(lambda: all(phase(muster, f"run-{i}") == "Succeeded" for i in range(6)), 150)
    check("7 six runs end", ended)
    apply(muster, pod("run-6", 4, 300), pod("run-7", 4, 60), group_of("run-8"), member("run-8", gpus=4, lasts=60))
    learned = until(lambda: (forecast(muster, "run-7") or {"start": {}})["start"].get("basis") == "learned", 30)
    check("7 after like runs have ended it is learned", learned, lambda: forecast(muster, "run-7"))
    now = lambda: rows(visitor).get("run-7") or {}  # noqa: E731
    check("7 the portal's row has a time then", until(lambda: now().get("basis") == "learned", 30), now)
    check("7 and a range", all(now().get(t) for t in TIMES), now)
    marked = until(lambda: (annotation(muster, "run-8") or "").endswith("learned"), 30)
    check("7 and the waiting group its annotation", marked, lambda: annotation(muster, "run-8"))
    muster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    muster.kubectl("delete", "podgroups.scheduling.volcano.sh", "--all")


def check_restart(muster):
    """What was learned is learned again from the records of jobs, also by a process that saw none of them."""
    apply(muster, *[pod(f"ends-{i}", 1, 12) for i in range(8)])
    ended = until(lambda: all(phase(muster, f"ends-{i}") == "Succeeded" for i in range(8)), 90)
    check("restart: eight runs end", ended)
    muster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    muster.wait_idle()
    muster.kill()
    muster.start()
    muster.wait_idle()
    apply(muster, pod("hold", 4, 600), pod("waits", 4, 600))
    learned = until(lambda: (forecast(muster, "waits") or {"start": {}})["start"].get("basis") == "learned", 10)
    check("restart: a start is foretold from what ended before", learned, lambda: forecast(muster, "waits"))
    muster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


def check_11(muster):
    """What can never start says so, in the same words as explain."""
    apply(muster, pod("huge", 64))
    check("11 the huge one is known", until(lambda: forecast(muster, "huge"), 30))
    said = forecast(muster, "huge")
    check(
        "11 never fits: none, with that reason",
        said["start"]["basis"] == "none" and said["refusal"]["reason"] == "NeverFits",
        said,
    )
    text = muster.cli("explain", "huge").stdout
    check("11 explain tells no start", "Starts about" not in text and "No start can be predicted" in text, text)
    muster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


def check_12(muster, jobs=50):
    """Declared durations, nothing submitted later: starts lie in the range told at submission and near its middle. Times are told
    in minutes, so that is how the range is read."""
    lasts = [5 + i % 5 for i in range(jobs)]
    apply(muster, *[pod(f"d{i}", 1 + i % 2, lasts[i], lasts[i]) for i in range(jobs)])
    submitted = int(time.time())

    def foretold():
        items = raw(muster, "/namespaces/default/when")["items"]
        # Not from before the last submission.
        fresh = len(items) >= jobs - 10 and all(seconds(item["asked"]) > submitted for item in items)
        return items if fresh else None

    until(foretold, 30)
    said = {item["job"].split("/")[-1]: item for item in foretold() or []}
    check(
        f"12 the {len(said)} of {jobs} that wait are foretold",
        len(said) >= jobs - 10 and all("p50" in s["start"] for s in said.values()),
        said,
    )
    check("12 on what was declared", {s["start"]["basis"] for s in said.values()} == {"known"}, said)
    now = time.time()
    check("13 no middle lies in the past", all(seconds(s["start"]["p50"]) >= now - 8 for s in said.values()), said)
    check("12 all end", until(lambda: all(phase(muster, f"d{i}") == "Succeeded" for i in range(jobs)), 300))
    began = {name: bound_at(muster, name) for name in said}
    told = {name: [seconds(s["start"][q]) for q in ("p10", "p50", "p90")] for name, s in said.items()}
    inside = [n for n, (p10, _, p90) in told.items() if p10 // 60 <= began[n] // 60 <= p90 // 60]
    off = {n: began[n] - p50 for n, (_, p50, _) in told.items()}
    near = [n for n, seconds_off in off.items() if abs(seconds_off) <= 60]
    check(f"12 {len(inside)} of {len(told)} start inside the range told (8 in 10)", len(inside) >= 0.8 * len(told), off)
    check(f"12 {len(near)} of {len(told)} start within a minute of p50 (9 in 10)", len(near) >= 0.9 * len(told), off)
    muster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


def check_25(muster):
    for ns in ("red", "blue"):
        muster.kubectl("create", "namespace", ns)
    apply(muster, pod("blue-secret", 4, 600, 600, ns="blue"))
    until(lambda: phase(muster, "blue-secret", "blue") == "Running")
    apply(muster, pod("mine", 4, 60, 60, ns="red"), pod("blue-later", 4, 60, 60, ns="blue"))
    muster.kubectl("create", "rolebinding", "rita", "-n", "red", "--clusterrole=view", "--user=rita")
    check("25 her job is foretold", until(lambda: forecast(muster, "mine", "red"), 30))
    for path in ("/when", "/gantt", "/namespaces/red/when?alternatives=true", "/queues/default/when"):
        seen = raw(muster, path, "--as=rita")
        text = json.dumps(seen)
        check(f"25 {path} names nobody else's job", "blue" not in text, text)
    said = raw(muster, "/when", "--as=rita")
    check("25 others are a number", said["others"]["jobs"] == 1, said)
    waits_for = [one["job"] for one in said["items"][0]["waitsFor"]]
    check("25 whom it waits for is another team's job", waits_for == ["another team's job"], said)
    check("25 another namespace is refused", raw(muster, "/namespaces/blue/when", "--as=rita", check=False) is None)
    check("25 an administrator reads names", "blue-secret" in json.dumps(raw(muster, "/when")))
    check_25_texts(muster)


def check_25_texts(muster):
    """What the commands and what-if say to somebody of one team, in text and in JSON, beside what an administrator reads."""
    muster.kubectl("create", "serviceaccount", "sam", "-n", "red")
    muster.kubectl("create", "rolebinding", "sam", "-n", "red", "--clusterrole=edit", "--serviceaccount=red:sam")
    may = {"apiGroups": ["answers.muster.dev"], "resources": ["whatifs"], "verbs": ["create"]}
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    apply(muster, {**rbac, "metadata": {"name": "asks"}, "rules": [may]})
    muster.kubectl("create", "clusterrolebinding", "asks", "--clusterrole=asks", "--serviceaccount=red:sam")
    asks = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    path = "/api/v1/namespaces/red/serviceaccounts/sam/token"
    made = muster.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(asks)).stdout
    token = json.loads(made)["status"]["token"]
    text = muster.kubeconfig.read_text()
    own = muster.data / "sam.kubeconfig"
    own.write_text(re.sub(r"token: \S+", f"token: {token}", text))
    muster.kubectl("create", "priorityclass", "first", "--value=1000")
    manifest = muster.data / "job.json"
    manifest.write_text(json.dumps(pod("more", 4, 60, 60, ns="red", priorityClassName="first")))
    # The blue team's jobs are in the way of all of these.
    asked = (
        ("explain", "mine", "-n", "red"),
        ("when", "-n", "red"),
        ("when", "mine", "-n", "red", "-o", "json"),
        ("when", "-f", str(manifest), "-n", "red"),
        ("when", "-f", str(manifest), "-n", "red", "-o", "json"),
        ("whatif", "--drain", "node-0"),
        ("whatif", "--drain", "node-0", "-o", "json"),
        ("history", "mine", "-n", "red"),
    )
    for words in asked:
        said = {}
        for who, config in (("sam", own), ("admin", muster.kubeconfig)):
            env = {**muster.env(), "KUBECONFIG": str(config)}
            done = subprocess.run([binary(), *words], env=env, capture_output=True, text=True)
            said[who] = done.stdout + done.stderr
            fine = done.returncode == 0 or (words[0] == "when" and done.returncode in (0, 10))
            check(f"25 {who} is answered: {' '.join(words[:2])}", fine, said[who])
        check(f"25 {' '.join(words)} names no job of another team", "blue" not in said["sam"], said["sam"])
        if words[0] != "history":
            check(f"25 {' '.join(words)} names it to an administrator", "blue" in said["admin"], said["admin"])


def check_watch(muster):
    """`when --watch` shows what changes and ends with the wait, in a table and in JSON."""
    apply(muster, pod("hold", 4, 600, 600))
    until(lambda: phase(muster, "hold") == "Running")
    apply(muster, pod("watched", 4, 600, 600))
    check("watch: it waits", until(lambda: forecast(muster, "watched"), 30))
    begun = [
        subprocess.Popen(
            [binary(), "when", "watched", "--watch", *more],
            env=muster.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for more in ((), ("-o", "json"))
    ]
    first = [one.stdout.readline() for one in begun]
    check("watch: begins with what waits", first[0].startswith("NAME") and first[1] == "{\n", first)
    muster.kubectl("delete", "pod", "hold", "--grace-period=0", "--force")
    said = [(one.stdout.read(), one.stderr.read()) for one in begun]
    check("watch: ends with the wait, in good order", [one.wait() for one in begun] == [0, 0], said)
    check("watch: says so", "watched: no longer waiting" in "".join(said[0]), said[0])
    documents = (first[1] + said[1][0]).replace("}\n{", "}\0{").split("\0")
    check("watch: each JSON document parses, the last is empty", json.loads(documents[-1])["items"] == [], said[1])
    muster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


def check_34(muster):
    apply(muster, pod("short", 1, 1))
    until(lambda: phase(muster, "short") == "Succeeded", 60)
    text = muster.cli("explain", "short").stdout
    check("34 explain of an ended job tells no start", "tart" not in text.split("What happened")[0], text)


def main():
    wanted = sys.argv[1:]
    with PortalCluster("--hollow", nodes=1, gpus=4) as muster:
        for number, part in (
            ("7", check_07),
            ("restart", check_restart),
            ("11", check_11),
            ("12", check_12),
            ("watch", check_watch),
            ("34", check_34),
            ("25", check_25),
        ):
            if not wanted or number in wanted:
                check.case(part, muster)
    sys.exit(check.close())


if __name__ == "__main__":
    main()
