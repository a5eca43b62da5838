"""L2, L3, L4, L6 and L7: the course's experiments. Each ends with the answer to the course's question, built from what was
seen; docs/openpai.md gives the same answers."""
import time

from lab import ALICE, BOB, CAROL, CAROLS, DAN, DANS, PEOPLE, SLEEP_S, TRAINING_S, check, good, nodes, retries

PREEMPTED, STOPPED = -101, -220


def safety(lab):
    """L2: four prod jobs in vc1, whose only node is Dan's."""
    begun = time.monotonic()
    for person in PEOPLE:
        lab.submit(person, "job-config-0")
    again = lab.driver.submit(ALICE, lab.document("job-config-0"))
    text = "Job alice~job-config-0 already exists."
    right = (again[0], again[1].get("code"), again[1].get("message")) == (409, "ConflictJobError", text)
    check("I4: the same name by the same user is refused", right, again)
    lab.until(ALICE, "job-config-0", "RUNNING", "SUCCEEDED")
    lab.submit(CAROL, "job-config-0", "owner", vc="default")
    own = lab.until(CAROL, "owner", "RUNNING", "SUCCEEDED", timeout=TRAINING_S * 3)
    busy = [lab.state(person, "job-config-0") for person in PEOPLE]
    check("L2: a prod job of default starts beside them", nodes(own) == [CAROLS] and busy.count("WAITING") >= 1, busy)
    details = [lab.ends(person, "job-config-0") for person in PEOPLE]
    check("L2: all four succeed without a retry", all(good(one) and retries(one)[0] == 0 for one in details))
    used = {node for one in details for node in nodes(one)}
    check("L2: on Dan's machine only", used == {DANS}, used)
    elsewhere = {pod.name for pod in lab.watcher.since(begun) if pod.node == CAROLS}
    mine = {pod.name for pod in lab.pods(CAROL, "owner")}
    check("L2: Carol's got none of them", elsewhere == mine, elsewhere)
    spans = [(pod.bound, pod.ended) for person in PEOPLE for pod in lab.pods(person, "job-config-0")]
    one_by_one = all(ended <= bound for (_, ended), (bound, _) in zip(spans, spans[1:]))
    check("L2: one after the other, in the order of submission", len(spans) == 4 and one_by_one, spans)
    took = spans[-1][1] - begun
    check("L2: the last ends after four times the training", 0 <= took - 4 * TRAINING_S < 8, took)
    lab.answers["virtual cluster safety"] = (
        f"the four jobs run only on {', '.join(sorted(used))}, the one node of vc1, one after the other in the order of "
        "submission. `default` is idle meanwhile and stays so: a prod job never uses another virtual cluster's cells, "
        f"so a job of `default` starts at once on {', '.join(nodes(own))}"
    )


def priority(lab):
    """L3: prod after test."""
    begun = time.monotonic()
    lab.submit(ALICE, "job-config-1")
    first = lab.until(ALICE, "job-config-1", "RUNNING")
    check("L3: test runs on Dan's machine", nodes(first) == [DANS], nodes(first))
    lab.submit(ALICE, "job-config-2")
    high = lab.until(ALICE, "job-config-2", "RUNNING")
    low = lab.detail(ALICE, "job-config-1")
    check("L3: prod takes its place", nodes(high) == [DANS], nodes(high))
    check("L3: test waits, retried once by the platform", retries(low) == (1, 0, 1, 0), low["jobStatus"])
    check("L3: and is shown as waiting", low["jobStatus"]["state"] == "WAITING", low["jobStatus"])
    past = lab.detail(ALICE, "job-config-1", 0)["jobStatus"]
    spec = past["appExitSpec"]
    told = (past["appExitCode"], spec["phrase"], past["appExitType"])
    check("L3: its first attempt", told == (PREEMPTED, "PodExternalDeleted", "PLATFORM_FAILURE"), past)
    check("L3: prod succeeds", good(lab.ends(ALICE, "job-config-2")))
    check("L3: then test runs again", nodes(lab.until(ALICE, "job-config-1", "RUNNING")) == [DANS])
    low, high = lab.ends(ALICE, "job-config-1"), lab.detail(ALICE, "job-config-2")
    check("L3: and succeeds", good(low) and retries(low) == (1, 0, 1, 0), low["jobStatus"])
    check("L3: prod was never retried", retries(high) == (0, 0, 0, 0), high["jobStatus"])
    pods, prods = lab.pods(ALICE, "job-config-1"), lab.pods(ALICE, "job-config-2")
    check("L3: two pods of one name", [pod.name for pod in pods] == [pods[0].name] * 2, pods)
    whole = pods[-1].ended - pods[-1].bound
    check("L3: the second did everything again", whole >= TRAINING_S + SLEEP_S, whole)
    check("L3: after prod had ended", pods[-1].bound >= prods[0].ended)
    check(
        "L3: never shown as failed or stopped",
        lab.states[(ALICE, "job-config-1")] <= {"WAITING", "RUNNING", "SUCCEEDED"},
    )
    carols = [pod.name for pod in lab.watcher.since(begun) if pod.node == CAROLS]
    check("L3: Carol's machine was idle", not carols, carols)
    lab.answers["priority and preemption"] = (
        f"the prod job does not wait: test is preempted at once (code {past['appExitCode']} {spec['phrase']}, retries "
        f"{retries(low)[0]}, of the platform {retries(low)[2]}) and prod runs in its place. When prod has succeeded, test "
        "starts from its first command and succeeds; what it had done is lost"
    )
    priority_controls(lab)


def priority_controls(lab):
    """Equal and lower priorities wait, and the waiting go in their order."""
    lab.submit(ALICE, "job-config-2", "prod-1", lasts=True)
    lab.until(ALICE, "prod-1", "RUNNING")
    lab.submit(ALICE, "job-config-1", "test-1", lasts=True)
    lab.submit(ALICE, "job-config-2", "prod-2", lasts=True)
    lab.waiting("L3: prod waits for prod", ALICE, "prod-2")
    lab.waiting("L3: test waits for prod", ALICE, "test-1")
    check(
        "L3: the first was left alone", len(lab.pods(ALICE, "prod-1")) == 1 and lab.state(ALICE, "prod-1") == "RUNNING"
    )
    lab.stop(ALICE, "prod-1")
    lab.until(ALICE, "prod-2", "RUNNING")
    lab.waiting("L3: the later prod goes before the earlier test", ALICE, "test-1")
    lab.stop(ALICE, "prod-2")
    lab.until(ALICE, "test-1", "RUNNING")
    lab.submit(DAN, "job-config-1", "test-2", lasts=True)
    lab.waiting("L3: test waits for test", DAN, "test-2")
    lab.stop(DAN, "test-2")
    lab.stop(ALICE, "test-1")
    lab.submit(ALICE, "job-config-1", "lazy", lasts=True, extras={"lazyPreemptionEnable": True})
    lab.until(ALICE, "lazy", "RUNNING")
    lab.submit(ALICE, "job-config-2", "prod-3", lasts=True)
    lab.until(ALICE, "prod-3", "RUNNING")
    low = lab.detail(ALICE, "lazy")
    lazily = low["jobStatus"]["state"] == "WAITING" and retries(low) == (1, 0, 1, 0)
    check("L3: lazy preemption ends the same, with one cell", lazily, low["jobStatus"])
    lab.stop(ALICE, "prod-3", "lazy")


def opportunism(lab):
    """L4: oppo on what is idle."""
    lab.submit(ALICE, "job-config-3")
    check("L4: prod runs on Dan's machine", nodes(lab.until(ALICE, "job-config-3", "RUNNING")) == [DANS])
    lab.submit(ALICE, "job-config-4")
    guest = lab.until(ALICE, "job-config-4", "RUNNING")
    check("L4: oppo runs at once on Carol's, outside its cluster", nodes(guest) == [CAROLS], nodes(guest))
    vc = lab.driver.virtual_clusters(ALICE)[1]["default"]
    check("I5: default uses nothing", vc["resourcesUsed"]["gpu"] == 0, vc)
    machine = lab.raw("GET", "/virtual-clusters?nodes")[1][CAROLS]
    check("L4: but Carol's machine does", machine["gpuUsed"] == 1, machine)
    lab.submit(ALICE, "x-default-test")
    owner = lab.until(ALICE, "x-default-test", "RUNNING")
    check("L4: a test job of default takes its machine back", nodes(owner) == [CAROLS], nodes(owner))
    waits = lab.detail(ALICE, "job-config-4")
    check("L4: oppo waits, retried", waits["jobStatus"]["state"] == "WAITING" and retries(waits) == (1, 0, 1, 0))
    past = lab.detail(ALICE, "job-config-4", 0)["jobStatus"]
    check("L4: its first attempt was preempted", past["appExitCode"] == PREEMPTED, past)
    lab.submit(DAN, "job-config-4", "another-guest")
    lab.waiting("L4: with both GPUs taken, oppo waits and preempts nobody", DAN, "another-guest")
    lab.stop(DAN, "another-guest")
    first = lab.ends(ALICE, "job-config-3")
    check("L4: prod was left alone", good(first) and retries(first)[0] == 0, first["jobStatus"])
    back = lab.until(ALICE, "job-config-4", "RUNNING")
    check("L4: oppo runs again where a GPU is free", nodes(back) == [DANS], nodes(back))
    check("L4: test succeeds", good(lab.ends(ALICE, "x-default-test")))
    end = lab.ends(ALICE, "job-config-4")
    pods = lab.pods(ALICE, "job-config-4")
    check("L4: oppo succeeds", good(end) and retries(end)[0] == 1, end["jobStatus"])
    check("L4: and never moved by itself", [pod.node for pod in pods] == [CAROLS, DANS], [pod.node for pod in pods])
    check("L4: it did everything again", pods[-1].ended - pods[-1].bound >= TRAINING_S + SLEEP_S)
    lab.answers["opportunistic job"] = (
        f"it starts at once on {nodes(guest)[0]}, the idle machine of the other virtual cluster, and does not wait for "
        f"prod. When a test job of that cluster comes, oppo is preempted (code {past['appExitCode']}), waits, and runs "
        f"again from its first command on {nodes(back)[0]}, the first machine that is free"
    )


def gang(lab):
    """L6: two tasks, all or nothing."""
    lab.submit(ALICE, "job-config-5")
    first = lab.until(ALICE, "job-config-5", "RUNNING")
    (taken,) = nodes(first)
    begun = time.monotonic()
    lab.submit(ALICE, "job-config-6")
    lab.waiting("L6: no task of the gang has a place beside the first job", ALICE, "job-config-6")
    lab.ends(ALICE, "job-config-5")
    end = lab.ends(ALICE, "job-config-6")
    check("L6: the gang succeeds with its first task", good(end) and retries(end)[0] == 0, end["jobStatus"])
    pods, before = lab.pods(ALICE, "job-config-6"), lab.pods(ALICE, "job-config-5")[0]
    apart = sorted(pod.node for pod in pods)
    check("L6: one task on each node", apart == [CAROLS, DANS], apart)
    check("L6: both began after the first job had ended", all(pod.bound >= before.ended for pod in pods))
    idle = [p.name for p in lab.watcher.since(begun) if p.node != taken and p.bound < before.ended]
    check("L6: the other GPU was idle until then", not idle, idle)
    bound, ran = sorted(pod.bound for pod in pods), sorted(pod.ran or pod.ended for pod in pods)
    check("L6: both were placed in one step", bound[1] - bound[0] < 1, bound)
    check("L6: and began together", ran[1] - ran[0] < 12, ran)
    ends = {(one["taskState"], one["containerExitCode"]) for one in end["taskRoles"]["train"]["taskStatuses"]}
    check("L6: one succeeded, the other too or was stopped", ends <= {("SUCCEEDED", 0), ("STOPPED", STOPPED)}, ends)
    check("L6: one at least", ("SUCCEEDED", 0) in ends, ends)
    lab.submit(ALICE, "job-config-6", "both", succeeded=2)
    end = lab.ends(ALICE, "both")
    ends = [one["taskState"] for one in end["taskRoles"]["train"]["taskStatuses"]]
    check("L6: with minSucceededInstances 2 both succeed", good(end) and ends == ["SUCCEEDED"] * 2, ends)
    lab.answers["gang scheduling"] = (
        "the second job starts when the first has ended and both GPUs are free; until then one GPU stays idle. Its tasks "
        f"are placed in one step, on {' and '.join(apart)}, and never run one after the other. The first task that "
        f"succeeds ends the job (`minSucceededInstances: 1`) and the other is stopped ({STOPPED}); with 2 both succeed"
    )


def increments(lab):
    """L7: task by task."""
    lab.submit(CAROL, "job-config-5")
    lab.until(CAROL, "job-config-5", "RUNNING")
    lab.submit(CAROL, "x-7-both")
    detail = lab.until(CAROL, "x-7-both", "RUNNING")
    states = [one["taskState"] for one in detail["taskRoles"]["train"]["taskStatuses"]]
    check("L7: one task runs beside the first job, one waits", sorted(states) == ["RUNNING", "WAITING"], states)
    check("L7: the first job still runs", lab.state(CAROL, "job-config-5") == "RUNNING")
    end = lab.ends(CAROL, "x-7-both")
    codes = [one["containerExitCode"] for one in end["taskRoles"]["train"]["taskStatuses"]]
    check("L7: both tasks succeed", good(end) and codes == [0, 0], codes)
    pods = sorted(lab.pods(CAROL, "x-7-both"), key=lambda pod: pod.bound)
    free = min(pods[0].ended, lab.pods(CAROL, "job-config-5")[0].ended or float("inf"))
    check("L7: the second when a GPU was free", pods[1].bound >= free, (pods[1].bound, free))
    lab.ends(CAROL, "job-config-5")
    lab.submit(DAN, "job-config-5")
    lab.until(DAN, "job-config-5", "RUNNING")
    lab.submit(DAN, "job-config-7")
    end = lab.ends(DAN, "job-config-7")
    ended = sorted(
        (one["taskState"], one["containerExitCode"], one["containerNodeName"] or "")
        for one in end["taskRoles"]["train"]["taskStatuses"]
    )
    check("L7: the exact file ends with its first success", good(end) and ended[1][:2] == ("SUCCEEDED", 0), ended)
    check("L7: the other task never ran", ended[0] == ("STOPPED", STOPPED, ""), ended)
    check("L7: the first job is not done yet", lab.state(DAN, "job-config-5") == "RUNNING")
    lab.ends(DAN, "job-config-5")
    lab.answers["incremental scheduling"] = (
        "the job starts at once: one task runs on the free GPU beside the first job, the other when a GPU is free, so they "
        "may run one after the other. The exact file ends with its first success, and the task that never ran is stopped "
        f"({ended[0][1]}); with `minSucceededInstances: 2` both run"
    )


def over_quota(lab):
    """L7, on two GPUs: four tasks, and one task of four GPUs."""
    lab.submit(ALICE, "x-7-four")
    text = "Job requests 4 SKUs, exceeds maximum 2 SKUs in VC default."
    document = lab.document("x-6-four")
    lab.refused("L7: a gang of four is refused", ALICE, document, 400, "InvalidProtocolError", text)
    detail = lab.until(ALICE, "x-7-four", "RUNNING")
    states = sorted(one["taskState"] for one in detail["taskRoles"]["train"]["taskStatuses"])
    check("L7: of four increments two wait", states.count("WAITING") >= 2, states)
    end = lab.ends(ALICE, "x-7-four")
    codes = [one["containerExitCode"] for one in end["taskRoles"]["train"]["taskStatuses"]]
    check("L7: all four succeed", good(end) and codes == [0] * 4, codes)
    pods = sorted(lab.pods(ALICE, "x-7-four"), key=lambda pod: pod.bound)
    freed = sorted(pod.ended for pod in pods[:2])
    check("L7: the later two when the first had ended", all(p.bound >= freed[0] for p in pods[2:]), freed)
    lab.submit(ALICE, "x-6-four", "guests", extras={"jobPriorityClass": "oppo"})
    lab.waiting("L7: an opportunistic gang of four is taken, and waits", ALICE, "guests")
    lab.stop(ALICE, "guests")
    lab.submit(ALICE, "x-7-wide")
    lab.waiting("L7: a task of four GPUs waits", ALICE, "x-7-wide")
    said = [one["message"] for one in lab.driver.events(ALICE, ALICE, "x-7-wide")[1]["data"]]
    reason = "insufficient capacity"
    check("L7: and its events say why", any(reason in message for message in said), said)
    lab.stop(ALICE, "x-7-wide")
    lab.answers["more than there is"] = (
        "incremental: yes, as many tasks run as there are GPUs, the others follow, and all "
        f"{codes.count(0)} succeed. A gang of that size is refused: `{text}` An opportunistic one is taken and waits, and "
        f"so does a task that no node is wide enough for ({reason})"
    )


def everything_is_listed(lab):
    total = lab.driver.jobs(BOB, limit=1, withTotalCount="true")[1]["totalCount"]
    check("every job of the run is listed", total == len(lab.watcher.order), (total, len(lab.watcher.order)))
