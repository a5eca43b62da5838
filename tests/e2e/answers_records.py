#!/usr/bin/env python3
"""The records of jobs that ended: checks 25, 28 and 31 of the specification of answers, on hollow clusters."""
import csv
import datetime
import io
import json
import os
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from checks import Checks, until  # noqa: E402
from muster import Muster  # noqa: E402

check = Checks()
GROUP = "/apis/answers.muster.dev/v1"


def pod(name, gpus=1, seconds=1, ns="default", priority=None, user=None):
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": ns,
            "labels": {"user": user} if user else {},
            "annotations": {"muster.dev/hollow-duration": f"{seconds}s"},
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "c",
                    "image": "trainer:1",
                    "command": ["train", "--key=hunter2"],
                    "env": [{"name": "TOKEN", "value": "hunter2"}],
                    "resources": {"limits": {"nvidia.com/gpu": gpus}},
                }
            ],
        },
    }
    if priority:
        made["spec"]["priorityClassName"] = priority
    return made


def apply(muster, *objects):
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return muster.kubectl("apply", "-f", "-", input=body)


def get(muster, *args):
    return json.loads(muster.kubectl("get", *args, "-o", "json").stdout)


def raw(muster, path, *args, check=True):
    done = muster.kubectl("get", "--raw", GROUP + path, *args, check=check)
    return json.loads(done.stdout) if done.returncode == 0 else None


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def ended(muster, count):
    items = get(muster, "pods")["items"]
    return len(items) == count and all(p["status"].get("phase") in ("Succeeded", "Failed") for p in items)


def times_of(pod):
    bound = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    finished = [s["state"]["terminated"]["finishedAt"] for s in pod["status"]["containerStatuses"]]
    return seconds(bound["lastTransitionTime"]), max(map(seconds, finished))


def check_28(kills=int(os.environ.get("MUSTER_KILLS", "100"))):
    """Killed at any moment: each run is on record, once, with the API server's times."""
    random.seed(28)
    muster = Muster("--hollow", "--portal", "none", nodes=2, gpus=4)
    with muster:
        made = 0
        for kill in range(kills):
            apply(muster, *[pod(f"p{made + i}", 1 + i % 2, random.choice([1, 1, 2])) for i in range(2)])
            made += 2
            time.sleep(random.random())  # the moment is what is tried
            muster.kill()
            muster.start()
        check("28 all pods have ended", until(lambda: ended(muster, made), 240), lambda: get(muster, "pods"))
        muster.wait_idle(120)
        pods = get(muster, "pods")["items"]
        records = {}
        for item in get(muster, "jobrecords")["items"]:
            record = item["record"]
            check.count(record["uid"] not in records)
            records[record["uid"]] = record
        wrong = []
        for one in pods:
            record = records.get(one["metadata"]["uid"])
            if record is None or len(record["runs"]) != 1 or "ended" not in record:
                wrong.append((one["metadata"]["name"], record))
                continue
            begin, end = times_of(one)
            run = record["runs"][0]
            if (seconds(run["start"]), seconds(run["end"])) != (begin, end):
                wrong.append((one["metadata"]["name"], run, begin, end))
        check(f"28 {made} runs after {kills} kills are on record once, none is lost", not wrong, lambda: wrong[:3])
        held = sum(
            (times_of(one)[1] - times_of(one)[0])
            * int(one["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
            for one in pods
        )
        total = raw(muster, "/usage")["total"]["gpuSeconds"]
        check("28 GPU seconds are those of the pods", total == held, (total, held))
        muster.kubectl("delete", "pods", "--all", "--wait=true", "--grace-period=0", "--force")
        muster.kubectl("delete", "events", "--all")
        muster.wait_idle(60)
        listed = raw(muster, "/records?limit=1000")["items"]
        check("28 records outlive the jobs and their events", len(listed) == made, len(listed))
        muster.kill()
        muster.start()
        check(
            "28 and a restart",
            until(lambda: len((raw(muster, "/records?limit=1000", check=False) or {"items": []})["items"]) == made, 30),
        )
        again = raw(muster, "/usage")["total"]["gpuSeconds"]
        check("28 nothing is counted again", again == held, (again, held))


def check_31(muster):
    """One job's timeline, the table of usage, and a trace."""
    muster.kubectl("create", "priorityclass", "urgent", "--value", "1000")
    apply(muster, pod("victim", 4, 600, user="alice"), pod("other", 4, 600, user="bob"))
    # A run is counted in whole seconds: one that is evicted within its first discards nothing.
    both = until(lambda: raw(muster, "/usage")["total"]["gpuSeconds"] >= 8)
    check("31 what runs is counted while it runs", both)
    apply(muster, pod("late", 4, 2, user="carol"))
    waits = until(lambda: "waits" in muster.cli("history", "late", check=False).stdout, 30)
    text = muster.cli("history", "late", check=False).stdout
    check("31 a wait is on record while it lasts", waits and "NoNodeFits" in text, text)
    apply(muster, pod("boss", 4, 2, priority="urgent", user="dora"))
    check(
        "31 the urgent job ends",
        until(lambda: get(muster, "pod", "boss")["status"].get("phase") == "Succeeded", 60),
    )
    # Either of the two was evicted; the late job needs the room of the other one.
    names = [p["metadata"]["name"] for p in get(muster, "pods")["items"]]
    left = "other" if "other" in names else "victim"
    muster.kubectl("delete", "pod", left, "--grace-period=0", "--force")
    check("31 the late job ends", until(lambda: get(muster, "pod", "late")["status"].get("phase") == "Succeeded", 60))
    muster.wait_idle(60)
    victim = "victim" if left == "other" else "other"
    text = muster.cli("history", victim).stdout
    check("31 the victim's timeline names its preemptor", "evicted" in text and "default/boss" in text, text)
    text = muster.cli("history", "late").stdout
    kinds = [line.split()[2] for line in text.splitlines()[1:]]
    check("31 a timeline tells of waits, the start and the end", kinds[:2] == ["submitted", "waits"], text)
    check("31 and of how it ended", "ended" in kinds and "SUCCEEDED" in text, text)
    again = json.loads(muster.cli("history", "late", "-o", "json").stdout)
    check("31 the same as JSON", [e["what"] for e in again["entries"]] == kinds_of(again, kinds), again)
    table = list(csv.DictReader(io.StringIO(muster.cli("report", "usage", "--by", "user", "-o", "csv").stdout)))
    by_user = {row["user"]: float(row["gpuSeconds"]) for row in table}
    queues = list(csv.DictReader(io.StringIO(muster.cli("report", "usage", "--by", "queue", "-o", "csv").stdout)))
    listed = raw(muster, "/records")["items"]
    sums = {}
    for row in listed:
        sums[row["user"]] = sums.get(row["user"], 0) + row["gpuSeconds"]
    check("31 usage by user is the sum of the records", by_user == sums, (by_user, sums))
    total = sum(float(row["gpuSeconds"]) for row in queues)
    check("31 users and queues agree", total == sum(by_user.values()), (total, by_user))
    discarded = {row["user"]: float(row["discardedHours"]) for row in table}
    check("31 what was discarded is the victim's", sum(1 for v in discarded.values() if v > 0) == 1, discarded)
    text = json.dumps(get(muster, "jobrecords"))
    check("31 no argument and no variable is on record", "hunter2" not in text)
    trace = muster.data / "trace.csv"
    trace.write_text(muster.cli("history", "--export", "trace").stdout)
    played = muster.cli("sim", "--trace", str(trace), "--nodes", "2x4", check=False)
    check("31 the trace can be played", played.returncode == 0, played.stdout + played.stderr)
    check_32(muster)
    wrong = muster.cli("report", "usage", "--by", "colour", check=False)
    check(
        "31 a wrong field is refused in words", wrong.returncode != 0 and "wanted some of" in wrong.stderr, wrong.stderr
    )


def check_32(muster):
    """The trace of what ran here, played by the policy that ran it, waits as the jobs did whose durations were declared."""
    since = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    jobs = 24
    for i in range(jobs):
        made = pod(f"t{i}", 1 + i % 4, 3 + i % 6, user="erna")
        made["metadata"]["annotations"]["muster.dev/expected-duration"] = f"{3 + i % 6}s"
        apply(muster, made)
    over = lambda: [r for r in raw(muster, "/records?user=erna&limit=100")["items"] if "ended" in r]  # noqa: E731
    check("32 they end", until(lambda: len(over()) == jobs, 120), over)
    waited = {r["job"]: seconds(r["started"]) - seconds(r["submitted"]) for r in over()}
    trace = muster.data / "declared.csv"
    trace.write_text(muster.cli("history", "--user", "erna", "--since", since, "--export", "trace").stdout)
    rows = list(csv.DictReader(trace.open()))
    check("32 the trace has all of them", {r["name"].split("/")[-1] for r in rows} == set(waited), rows)
    out = json.loads(muster.cli("sim", "--trace", str(trace), "--nodes", "2x4", "--json", "-").stdout)
    played, seen = out[0]["meanWaitSeconds"], sum(waited.values()) / jobs
    # Times are whole seconds, and each start follows an end by some of one.
    check(f"32 waits: {seen:.1f} s on average, {played:.1f} s played again", abs(played - seen) <= 3, (out, waited))


def kinds_of(answer, shown):
    """The words of the table for the entries of the JSON: runs that left are told by how they did."""
    words = []
    for entry, word in zip(answer["entries"], shown):
        words.append(entry["what"] if entry["what"] != "left" or entry["how"] == word else None)
    return words


def check_25(muster):
    """Who may look into one namespace sees other teams' jobs as numbers."""
    for ns in ("red", "blue"):
        muster.kubectl("create", "namespace", ns)
        apply(muster, pod(f"{ns}-job", 1, 1, ns=ns, user=f"{ns}-user"))
    muster.kubectl("create", "rolebinding", "rita", "-n", "red", "--clusterrole=view", "--user=rita")
    until(
        lambda: len([r for r in raw(muster, "/records")["items"] if r["namespace"] in ("red", "blue") and "ended" in r])
        == 2,
        60,
    )
    apply(muster, pod("blue-runs", 2, 600, ns="blue", user="blue-user"))
    until(lambda: get(muster, "pod", "blue-runs", "-n", "blue")["status"].get("phase") == "Running", 30)
    seen = raw(muster, "/records", "--as=rita")
    check("25 a user sees the jobs of their namespace", [r["job"] for r in seen["items"]] == ["red-job"], seen)
    check("25 and how many GPUs others hold", seen["others"]["jobs"] >= 1 and seen["others"]["gpus"] >= 2, seen)
    usage = raw(muster, "/usage?by=user,namespace", "--as=rita")
    check("25 usage of others has no names", "blue" not in json.dumps(usage) and "(others)" in json.dumps(usage), usage)
    everything = raw(muster, "/usage?by=user,namespace")
    check(
        "25 and the same sum",
        abs(usage["total"]["gpuSeconds"] - everything["total"]["gpuSeconds"]) < 60,
        (usage["total"], everything["total"]),
    )
    check("25 an administrator sees names", "blue-user" in json.dumps(everything), everything)
    blue = next(r for r in raw(muster, "/records")["items"] if r["job"] == "blue-job")
    for path in (f"/records/{blue['uid']}", f"/records/{blue['uid']}/timeline"):
        check(
            f"25 {path.split('/')[-1][:8]} of another team is not found",
            raw(muster, path, "--as=rita", check=False) is None,
        )


def main():
    wanted = sys.argv[1:]
    if not wanted or "28" in wanted:
        check_28()
    if not wanted or "31" in wanted or "25" in wanted:
        with Muster("--hollow", "--portal", "none", nodes=2, gpus=4) as muster:
            if not wanted or "31" in wanted:
                check_31(muster)
            if not wanted or "25" in wanted:
                check_25(muster)
    sys.exit(check.close())


if __name__ == "__main__":
    main()
