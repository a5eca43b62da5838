"""Every filter and sort of the list of jobs against a script that looks at all rows, whatever their number: for jobs_checks.py
and, with a hundred thousand of them, for bench/portal/run."""
import collections
import itertools
import json
import random
import threading
import urllib.parse

from load import connected, sleepers
from visitor import API


def rows_of(visitor, **query):
    status, answer = visitor.topic("jobs", **query)
    assert status == 200, answer
    return answer


def start_of(row):
    """When it started; then what waits, by when it is expected to, then by its place in line, then by how long it has
    waited; then what will not start."""
    if row["started"]:
        return 0, row["started"]
    if row["state"] != "WAITING":
        return 4, 0
    wait = row["wait"] or {"start": None, "place": None}
    if wait["start"]:
        return 1, wait["start"]
    return (2, wait["place"]) if wait["place"] else (3, row["submitted"])


STATES = ["WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "STOPPED", "SUSPENDED"]
SORTS = {
    "submitted": lambda row: row["submitted"],
    "name": lambda row: row["name"],
    "user": lambda row: row["user"],
    # Whatever the time is now: what runs here does so for longer than anything that has ended has run.
    "duration": lambda row: (row["ended"] or 10**15) - row["started"] if row["started"] else 0,
    "vc": lambda row: row["vc"],
    "queue": lambda row: row["queue"],
    "kind": lambda row: row["kind"],
    "retries": lambda row: sum(row["retries"].values()),
    "tasks": lambda row: row["tasks"]["total"],
    "gpus": lambda row: row["gpus"],
    "prio": lambda row: row["prio"]["number"],
    "state": lambda row: STATES.index(row["state"]),
    "start": start_of,
    "ended": lambda row: row["ended"] or 0,
}


def every_row(visitor, **query):
    """All pages of a query, and its first answer without the rows. What comes or goes between two pages moves all
    that follow, so they are read again then."""
    for _ in range(50):
        first = rows_of(visitor, limit=500, **query)
        rows = first.pop("rows")
        while len(rows) < first["total"]:
            page = rows_of(visitor, limit=500, offset=len(rows), **query)
            if page["total"] != first["total"] or not page["rows"]:
                break
            rows += page["rows"]
        if len(rows) == first["total"]:
            return first, rows
    raise AssertionError(f"{query}: jobs come and go too fast to read all pages: {len(rows)} of {first['total']}")


def nodes_of_jobs(muster):
    """Where the tasks of each job are."""
    kinds = {"Job": "job", "PyTorchJob": "pytorchjob"}
    found = collections.defaultdict(set)
    connection, head = connected(muster)
    follow = ""
    while True:  # a hundred thousand pods in one answer would be half a gigabyte
        connection.request("GET", f"/api/v1/pods?limit=2000&continue={follow}", headers=head)
        page = json.loads(connection.getresponse().read())
        for pod in page["items"]:
            meta = pod["metadata"]
            owner = next((one for one in meta.get("ownerReferences", []) if one["kind"] in kinds), None)
            what = f"{kinds[owner['kind']]}/{owner['name']}" if owner else f"pod/{meta['name']}"
            if pod["spec"].get("nodeName"):
                found[f"{meta['namespace']}/{what}"].add(pod["spec"]["nodeName"])
        follow = urllib.parse.quote(page["metadata"].get("continue", ""))
        if not follow:
            connection.close()
            return found


def filters_of(everything, nodes):
    """{(field, value): whether it keeps a row}, for each field of which a list can be asked."""
    some = {
        "user": lambda row: [row["user"]],
        "queue": lambda row: [row["queue"]],
        "vc": lambda row: [row["vc"]],
        "kind": lambda row: [row["kind"]],
        "state": lambda row: [row["state"]],
        "prio": lambda row: [row["prio"]["class"], str(row["prio"]["number"])],
        "tag": lambda row: row["tags"],
        "node": lambda row: sorted(nodes[row["id"]]),
    }
    found = {}
    for field, values in some.items():
        counts = collections.Counter(value for row in everything for value in values(row) if value)
        for value, _ in counts.most_common(4):
            found[field, value] = lambda row, values=values, value=value: value in values(row)
    times = sorted(row["submitted"] for row in everything)
    middle = times[len(times) // 2]
    found["from", str(middle)] = lambda row: row["submitted"] >= middle
    found["to", str(middle)] = lambda row: row["submitted"] < middle
    for text in ("llama-0001", "-00", "PAPER", "urgent"):
        found["q", text] = lambda row, text=text.lower(): text in "\n".join([row["id"], *row["tags"]]).lower()
    return found


def in_order(keys, back):
    return keys == sorted(keys, reverse=back)


def every_filter_and_sort(check, muster, visitor):
    """Each of them, and many together, while nothing changes. What is foretold does: rows by start are compared with what
    they say themselves."""

    def foretold(answer):
        return answer["rows"] and all(row["wait"] and row["wait"]["place"] for row in answer["rows"])

    visitor.wait(f"{API}/jobs?state=WAITING&limit=50", foretold, 120)
    _, everything = every_row(visitor)
    nodes = nodes_of_jobs(muster)
    filters = filters_of(everything, nodes)
    fields = {field for field, _ in filters}
    check(
        "[28] there is something to filter by in each field",
        {*fields, "vc"} == set("user vc queue kind state prio tag node from to q".split()),
        fields,
    )

    def compare(what, chosen, sort):
        """Rows, total and counts of these filters, in this order, at three places of the list."""
        name, back = sort.lstrip("-"), sort.startswith("-")
        together = collections.defaultdict(list)
        for field, value in chosen:
            together[field].append(value)
        # Values of one field are alternatives, fields narrow each other down.
        kept = [
            row
            for row in everything
            if all(any(filters[field, value](row) for value in values) for field, values in together.items())
        ]
        wanted = sorted(map(SORTS[name], kept), reverse=back)
        query = {field: ",".join(values) for field, values in together.items()} | {"sort": sort}
        for offset in sorted({0, len(kept) // 2, max(0, len(kept) - 200)}):
            answer = rows_of(visitor, limit=200, offset=offset, **query)
            if name == "start":
                by_start = lambda found: in_order(list(map(start_of, found["rows"])), back)  # noqa: E731
                words = urllib.parse.urlencode({**query, "limit": 200, "offset": offset})
                answer = visitor.wait(f"{API}/jobs?{words}", by_start)
            seen = [SORTS[name](row) for row in answer["rows"]]
            if name == "start":
                wanted[offset : offset + len(seen)] = [
                    one if one[0] in (0, 4) else now for one, now in zip(wanted[offset:], seen)
                ]
            ids = {row["id"] for row in answer["rows"]}
            counts = {state: n for state, n in answer["counts"].items() if n}
            # Counts are of all states, so that one can go from one to the other.
            apart = {field: values for field, values in together.items() if field != "state"}
            states = collections.Counter(
                row["state"]
                for row in everything
                if all(any(filters[field, value](row) for value in values) for field, values in apart.items())
            )
            good = (
                seen == wanted[offset : offset + 200] and ids <= {row["id"] for row in kept} and len(ids) == len(seen)
            )
            right = answer["total"] == len(kept) and counts == dict(states)
            if not (good and right):
                check(
                    what, False, (query, offset, answer["total"], len(kept), counts, dict(states), seen[:5], wanted[:5])
                )
                return
        check(what, True)

    for name in SORTS:
        for sign in ("", "-"):
            compare(f"[28] {len(everything)} jobs: sort {sign}{name}", [], sign + name)
    for field, value in filters:
        compare(f"[28] {len(everything)} jobs: {field}={value}", [(field, value)], "-submitted")
    dice = random.Random(28)
    for _ in range(40):
        chosen = sorted({dice.choice(list(filters)) for _ in range(dice.choice([2, 2, 3, 4]))})
        # A text and a time have one value.
        single = {field: (field, value) for field, value in chosen if field in ("q", "from", "to")}
        chosen = [one for one in chosen if one[0] not in single] + list(single.values())
        sort = dice.choice(["", "-"]) + dice.choice(list(SORTS))
        compare(f"[28] {' '.join('='.join(one) for one in chosen)}, {sort}", chosen, sort)


def pages_while_jobs_arrive(check, muster, visitor, size=37):
    """What was there at a time is read page by page, while more comes: each once, in order."""
    begun = rows_of(visitor, limit=1)
    until = begun["at"] // 1000 * 1000  # times of objects are whole seconds
    _, before = every_row(visitor, to=until, sort="-submitted")
    arrive = threading.Thread(target=sleepers, args=(muster, 0, 400, "arrives"))
    arrive.start()
    pages, offset = [], itertools.count(0, size)
    while page := rows_of(visitor, to=until, sort="-submitted", offset=next(offset), limit=size)["rows"]:
        pages += [row["id"] for row in page]
    arrive.join()
    came = visitor.wait(f"{API}/jobs?q=arrives&limit=1", lambda answer: answer["total"] == 400)["total"]
    same = pages == [row["id"] for row in before]
    check(
        f"[28] {len(pages)} rows in pages of {size} join without gap or double while {came} jobs arrive", same and pages
    )
    # Whoever comes next finds what was there before.
    visitor.ask("POST", f"{API}/jobs:act", {"action": "stop", "query": {"q": "arrives"}, "expected": came})
    visitor.wait(f"{API}/jobs?q=arrives&limit=1", lambda answer: answer["total"] == 0, 60)
