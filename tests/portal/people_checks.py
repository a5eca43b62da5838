#!/usr/bin/env python3
"""People with passwords: the first administrator, wrong passwords, changed passwords, removed users."""
import http.client
import json
import pathlib
import re
import statistics
import sys
import time

from load import cpu_s
from visitor import API, PortalCluster, Visitor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from pai import Api, free_port  # noqa: E402

check = Checks()


def printed_password(muster):
    return re.search(r"user admin, password (\S+)", muster.log()).group(1)


def first_administrator(muster):
    admin = Visitor(muster.portal)
    password = printed_password(muster)
    kept = muster.data / "admin-password"
    check(
        "the password is kept for its owner alone",
        kept.read_text().strip() == password and kept.stat().st_mode & 0o77 == 0,
    )
    status, _, who = admin.sign_in(user="admin", password=password)
    check(
        "[14] admin signs in with the printed password", status == 200 and who["user"] == "admin" and who["admin"], who
    )
    check("administrators see the cluster", admin.topic("nodes")[0] == 200 and admin.topic("nodes")[1]["total"] == 2)
    return admin


def make_user(admin, name, password):
    user = {
        "username": name,
        "password": password,
        "email": f"{name}@example.com",
        "admin": False,
        "virtualCluster": [],
    }
    return admin.json("POST", f"{API}/pai/users", user)


def users(muster, admin):
    status, answer = make_user(admin, "alice", "alice-password")
    check("[15] a user is added with the session", status == 201, (status, answer))
    status, answer = make_user(admin, "alice", "alice-password")
    check(
        "a name twice has REST's own words", status == 409 and answer["code"] == "ConflictUserError", (status, answer)
    )
    alice = Visitor(muster.portal)
    status, _, who = alice.sign_in(user="alice", password="alice-password")
    check("she signs in", status == 200 and not who["admin"], (status, who))
    status, answer = make_user(alice, "eve", "eve-password")
    check("[16] she may not add users", status == 403, (status, answer))
    direct = Visitor(muster.portal)
    direct.cookie = alice.cookie
    status = direct.get("/rest-server/api/v2/users")[0]
    check("[6] REST with only a cookie: 401", status == 401, status)
    return alice


def wrong_passwords(muster):
    def wrong(user):
        return Visitor(muster.portal).sign_in(user=user, password="wrong-password")

    answers = [wrong("alice") for _ in range(5)]
    check("five wrong passwords: 401", all(status == 401 for status, _, _ in answers), answers)
    status, headers, _ = wrong("alice")
    check("[10] the sixth: 429 with Retry-After", status == 429 and int(headers["retry-after"]) > 0, (status, headers))
    status, headers, _ = Visitor(muster.portal).sign_in(user="alice", password="alice-password")
    check("[10] the right one, too", status == 429 and int(headers["retry-after"]) > 0, (status, headers))
    status, _, who = Visitor(muster.portal).sign_in(user="carol", password="carol-password")
    check("[10] other accounts not", status == 200 and who["user"] == "carol", (status, who))
    status, _, who = Visitor(muster.portal, source="127.0.0.2").sign_in(user="alice", password="alice-password")
    check("a stranger does not keep her out where she is", status == 200 and who["user"] == "alice", (status, who))
    unknown = wrong("nobody")
    alike = unknown[0] == 401 and unknown[2] == answers[0][2]
    check("[10] unknown user and wrong password read alike", alike, (unknown[2], answers[0][2]))


def time_of_a_refusal(muster):
    """Unknown and known users by turns, each from an address of its own, which may try only so often. What is compared is the
    server's processor time: what else runs on this machine is not in it."""

    def one(user, number):
        visitor = Visitor(muster.portal, source=f"127.0.{2 + number // 200}.{1 + number % 200}")
        begun = cpu_s(muster)
        status, _, body = visitor.sign_in(user=user, password="wrong-password")
        assert status == 401, (user, status, body)
        return (cpu_s(muster) - begun) * 1000

    known, unknown = [], []
    for number in range(20):
        known.append(one("carol", 2 * number))
        unknown.append(one(f"nobody-{number}", 2 * number + 1))
    both = statistics.median(known), statistics.median(unknown)
    near = abs(both[0] - both[1]) <= 0.2 * max(both)
    check(f"[10] known users take {both[0]:.1f} ms to refuse, unknown ones {both[1]:.1f} ms", near, (known, unknown))


def password_change(muster, admin):
    make_user(admin, "bob", "bob-password")
    here, there = Visitor(muster.portal), Visitor(muster.portal)
    here.sign_in(user="bob", password="bob-password")
    there.sign_in(user="bob", password="bob-password")
    with there.live() as tab:
        tab.next()
        body = {
            "data": {"username": "bob", "oldPassword": "bob-password", "newPassword": "new-password"},
            "patch": True,
        }
        status, answer = here.json("PUT", f"{API}/pai/users/me", body)
        check("she changes her password", status in (200, 201), (status, answer))
        begun = time.monotonic()
        while tab.next() is not None:
            pass
        check(
            "[9] the other tab closes with 4401 within 2 s",
            tab.closed == 4401 and time.monotonic() - begun < 2,
            tab.closed,
        )
    check("[19] the other session is over", there.get(f"{API}/counts")[0] == 401)
    check("[19] this one is not", here.get(f"{API}/counts")[0] == 200)
    with here.live() as tab:
        tab.next()
        status, answer = admin.json("DELETE", f"{API}/pai/users/bob")
        check("the user is removed", status in (200, 201, 204), (status, answer))
        begun = time.monotonic()
        while tab.next() is not None:
            pass
        check(
            "[9] removed: closed with 4401 within 2 s", tab.closed == 4401 and time.monotonic() - begun < 2, tab.closed
        )


def rights_taken(muster, admin):
    make_user(admin, "carol", "carol-password")
    admin.json("PUT", f"{API}/pai/users/carol/admin", {"admin": True})
    admin.json("PUT", f"{API}/pai/users/carol/extension", {"extension": {"githubPAT": "ghp_carols"}})
    carol = Visitor(muster.portal)
    carol.sign_in(user="carol", password="carol-password")
    secrets = "/kube/api/v1/namespaces/kube-system/secrets"
    check("an administrator reads Secrets", carol.get(secrets)[0] == 200)
    status, answer = admin.json("PUT", f"{API}/pai/users/carol/admin", {"admin": False})
    check("the right is taken from her", status == 201, (status, answer))
    check("her session has lost it at once", carol.get(secrets)[0] == 403, carol.get(secrets)[0])
    check("and the audit log", carol.get(f"{API}/audit")[0] == 403)
    alice = Visitor(muster.portal)
    alice.sign_in(user="alice", password="alice-password")
    seen = [alice.get(f"{API}/pai/users{path}")[2] for path in ("", "/carol")]
    check("others do not see her tokens", not any(b"ghp_carols" in body for body in seen), seen)
    check("she does", b"ghp_carols" in carol.get(f"{API}/pai/users/carol")[2])


def environments(muster, admin):
    """OpenPAI's users see who holds which GPU, and no value of an environment, whichever way they ask."""
    alice = Visitor(muster.portal)
    alice.sign_in(user="alice", password="alice-password")
    container = {"name": "c", "image": "i", "env": [{"name": "LEVEL", "value": "hunter2"}]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "theirs"}, "spec": {"template": template}}
    muster.kubectl("create", "-f", "-", input=json.dumps(job))
    alice.wait(f"{API}/jobs?q=theirs", lambda answer: answer["total"] == 1)
    for path in (
        "/kube/api/v1/pods",
        "/kube/apis/batch/v1/jobs",
        "/kube/apis/batch/v1/namespaces/default/jobs/theirs",
        f"{API}/jobs/default%2Fjob%2Ftheirs",
        f"{API}/jobs/default%2Fjob%2Ftheirs/config",
    ):
        status, _, body = alice.get(path)
        check(f"and no value in {path}", status == 200 and b"hunter2" not in body, (status, body))
    status = alice.get("/kube/api/v1/pods?watch=true&timeoutSeconds=1")[0]
    check("there is no watch of summaries", status == 403, status)
    status, _, body = admin.get(f"{API}/jobs/default%2Fjob%2Ftheirs/config")
    check("an administrator sees it", b"hunter2" in body, (status, body))


def followed(visitor, path):
    """An answer that does not end, begun."""
    connection = http.client.HTTPConnection(visitor.host, visitor.port, timeout=20)
    connection.request("GET", path, headers={"Cookie": visitor.cookie, "Origin": visitor.origin})
    answer = connection.getresponse()
    check("a stream begins", answer.status == 200 and answer.read1(1000) != b"", answer.status)
    return answer


def ends(answer):
    try:
        while answer.read1(65536):
            pass
    except http.client.IncompleteRead:
        pass
    except TimeoutError:
        return False
    return True


def streams_end(muster, admin):
    make_user(admin, "dora", "dora-password")
    for what, act in (
        ("she signs out", lambda dora: dora.ask("DELETE", f"{API}/session")),
        ("she is removed", lambda dora: admin.json("DELETE", f"{API}/pai/users/dora")),
    ):
        dora = Visitor(muster.portal)
        dora.sign_in(user="dora", password="dora-password")
        stream = followed(dora, "/kube/api/v1/nodes?watch=true")
        act(dora)
        check(f"it ends when {what}", ends(stream))


def account_gone(muster):
    """A session of a service account's token; the account is deleted."""
    muster.kubectl("create", "serviceaccount", "robot")
    robot = Visitor(muster.portal)
    robot.sign_in(token=muster.token_of("default", "robot"))
    check("a token opens a session", robot.get(f"{API}/counts")[0] == 200)
    muster.kubectl("delete", "serviceaccount", "robot")
    return robot


def changed_before_the_first_visit(rest, alice, carol):
    """The password is changed at OpenPAI's own port; nobody has visited the portal since it was started."""
    hers = Api(rest).login("alice", "alice-password")
    wish = {"data": {"username": "alice", "oldPassword": "alice-password", "newPassword": "other-password"}}
    status, answer = hers("PUT", "/users/me", {**wish, "patch": True})
    check("she changes her password at OpenPAI's port", status in (200, 201), (status, answer))
    check("her session of before is over", alice.get(f"{API}/counts")[0] == 401)
    check("it stays over", alice.get(f"{API}/counts")[0] == 401)
    check("another's is not", carol.get(f"{API}/counts")[0] == 200)


rest = free_port()
# A port of its own, which is the same after a restart whatever runs beside.
portal = f"127.0.0.1:{free_port()}"
with PortalCluster("--hollow", "--pai-rest", f"127.0.0.1:{rest}", portal=portal, nodes=2) as muster:
    admin = first_administrator(muster)
    users(muster, admin)
    rights_taken(muster, admin)
    environments(muster, admin)
    streams_end(muster, admin)
    robot = account_gone(muster)
    password_change(muster, admin)
    wrong_passwords(muster)
    time_of_a_refusal(muster)
    alice, carol = (Visitor(muster.portal, source="127.0.0.2") for _ in range(2))
    alice.sign_in(user="alice", password="alice-password")
    carol.sign_in(user="carol", password="carol-password")
    check("both are signed in", alice.get(f"{API}/counts")[0] == carol.get(f"{API}/counts")[0] == 200)
    seen = admin.json("GET", f"{API}/sessions/seen")[1]
    now = time.time() * 1000
    check("administrators see when each was here", all(now - seen[who] < 60_000 for who in ("alice", "carol")), seen)
    check("[12] others do not", alice.get(f"{API}/sessions/seen")[0] == 403)
    muster.kill()
    muster.start()
    changed_before_the_first_visit(rest, alice, carol)
    again = Visitor(muster.portal)
    again.cookie = admin.cookie
    check("people's sessions survive kill -9", again.get(f"{API}/counts")[0] == 200)
    check("the session of a deleted account does not", robot.get(f"{API}/counts")[0] == 401)
    check("the password is printed once", muster.log().count("user admin, password") == 1)
sys.exit(check.close())
