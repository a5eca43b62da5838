#!/usr/bin/env python3
"""OpenPAI's REST API on a real `muster up`, request by request as curl would send them: people, tokens, groups, virtual
clusters, jobs. What is expected is what OpenPAI 1.2 to 1.8 answers (docs/openpai.md)."""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, until  # noqa: E402
from muster import ROOT, Muster  # noqa: E402
from pai import Api, free_port, is_error  # noqa: E402

check = Checks()
LAB6 = ROOT / "tests" / "data" / "lab6"


def nobody(guest):
    status, info = guest("GET", "/info")
    check(
        "GET /info says who serves",
        status == 200 and info["name"] == "PAI RESTful API" and info["authnMethod"] == "basic",
        info,
    )
    check("/authn/info names the login", guest("GET", "/authn/info")[1]["loginURI"] == "/authn/basic/login")
    answer = guest("GET", "/no/such")
    check("an unknown path is 404 NoApiError", is_error(answer, 404, "NoApiError"), answer)
    answer = guest("GET", "/users")
    check(
        "without a token 401",
        is_error(answer, 401, "UnauthorizedUserError") and "Guest" in answer[1]["message"],
        answer,
    )
    for wrong in (
        "Bearer nonsense",
        "Bearer a.b.c",
        "Basic !!!",
        "Basic " + base64.b64encode(b"admin:x").decode(),
        "x",
    ):
        answer = Api(guest.port, wrong)("GET", "/users")
        check(f"a wrong token ({wrong[:12]}) is 401", is_error(answer, 401, "UnauthorizedUserError"), answer)
    answer = guest("POST", "/authn/basic/login", "{", Content_Type="application/json")
    check("a body that is not JSON is 400", is_error(answer, 400, "InvalidParametersError"), answer)
    answer = guest("POST", "/authn/basic/login", {"username": "admin"})
    check("a login without password is 400", is_error(answer, 400, "InvalidParametersError"), answer)
    answer = guest("POST", "/authn/basic/login", {"username": "ghost", "password": "whatever"})
    check("an unknown user is 400 NoUserError", is_error(answer, 400, "NoUserError"), answer)
    answer = guest("POST", "/authn/basic/login", {"username": "admin", "password": "whatever", "expiration": 1})
    check("an expiration of a second is 400", is_error(answer, 400, "InvalidParametersError"), answer)


def users(admin, guest):
    make = {"username": "alice", "password": "alice-pw", "email": "alice@example.com", "virtualCluster": []}
    check("a user is made: 201", admin("POST", "/users/", make)[0] == 201)
    check("twice: 409", is_error(admin("POST", "/users", make), 409, "ConflictUserError"))
    for name, password in (
        ("a b", "secret1"),
        ("a~b", "secret1"),
        ("", "secret1"),
        ("x" * 127, "secret1"),
        ("bob", "12345"),
    ):
        answer = admin("POST", "/users", {"username": name, "password": password})
        check(f"user {name[:10]!r} with {password!r} is 400", is_error(answer, 400, "InvalidParametersError"), answer)
    answer = admin("POST", "/users", {"username": "bob", "password": "secret1", "virtualCluster": ["no-such"]})
    check("an unknown virtual cluster is 400", is_error(answer, 400, "NoVirtualClusterError"), answer)
    status, alice = admin("GET", "/users/alice")
    wanted = {"username", "email", "admin", "virtualCluster", "storageConfig", "grouplist", "extension"}
    check("UserInfo has OpenPAI's fields and no password", status == 200 and set(alice) == wanted, alice)
    check(
        "everybody is in group default",
        alice["grouplist"] == ["default"] and alice["virtualCluster"] == ["default"],
        alice,
    )
    check("an unknown user is 400 NoUserError", is_error(admin("GET", "/users/nobody"), 400, "NoUserError"))
    form = "username=alice&password=alice-pw&expiration=4000"
    status, login = guest("POST", "/authn/basic/login", form, Content_Type="application/x-www-form-urlencoded")
    check("a form logs in as well", status == 200 and login["user"] == "alice" and login["admin"] is False, login)
    hers = guest.login("alice", "alice-pw")
    check("she sees users", hers("GET", "/users")[0] == 200)
    check("she may make none", is_error(hers("POST", "/users", make), 403, "ForbiddenUserError"))
    answer = hers("PUT", "/users/me", {"data": {"username": "alice", "email": "new@example.com"}, "patch": True})
    check(
        "she changes her address",
        answer[0] == 201 and admin("GET", "/users/alice")[1]["email"] == "new@example.com",
        answer,
    )
    answer = hers("PUT", "/users/me", {"data": {"username": "admin", "email": "x"}, "patch": True})
    check("not somebody else's", answer[0] == 403, answer)
    wrong = {"data": {"username": "alice", "oldPassword": "wrong-pw", "newPassword": "alice-pw2"}, "patch": True}
    check("a wrong old password is 403", is_error(hers("PUT", "/users/me", wrong), 403, "ForbiddenUserError"))
    right = {"data": {"username": "alice", "oldPassword": "alice-pw", "newPassword": "alice-pw2"}, "patch": True}
    check("a new password is taken", hers("PUT", "/users/me", right)[0] == 201)
    check("and ends her browsers' tokens", hers("GET", "/users")[0] == 401)
    answer = guest("POST", "/authn/basic/login", {"username": "alice", "password": "alice-pw"})
    check("the old password is wrong now", is_error(answer, 400, "IncorrectPasswordError"), answer)
    answer = admin("PUT", "/users", {"data": {"username": "alice", "email": "x"}})
    check("a whole update needs every field", is_error(answer, 400, "InvalidParametersError"), answer)
    answer = admin("PUT", "/users", {"data": {"username": "ghost", "email": "x"}, "patch": True})
    check("an update of nobody is 404", is_error(answer, 404, "NoUserError"), answer)
    check("an admin is not removed: 403", is_error(admin("DELETE", "/users/admin"), 403, "RemoveAdminError"))
    answer = admin("PUT", "/users/admin/admin", {"admin": False})
    check("the only administrator stays one", answer[0] == 403, answer)
    check("nobody is removed: 404", is_error(admin("DELETE", "/users/ghost"), 404, "NoUserError"))
    hers = guest.login("alice", "alice-pw2")
    check("alice is removed", admin("DELETE", "/users/alice")[0] == 200 and admin("GET", "/users/alice")[0] == 400)
    check("and her token with her", hers("GET", "/users")[0] == 401)


def groups(admin):
    team = {"groupname": "team", "description": "a team", "extension": {"acls": {"virtualClusters": ["default"]}}}
    check("a group is made", admin("POST", "/groups", team)[0] == 201)
    check("and is there", admin("GET", "/groups/team")[1]["description"] == "a team")
    check("an unknown one is 404", is_error(admin("GET", "/groups/none"), 404, "NoGroupError"))
    admin("POST", "/users", {"username": "carol", "password": "carol-pw"})
    check("carol joins", admin("PUT", "/users/carol/group", {"groupname": "team"})[0] == 201)
    answer = admin("PUT", "/users/carol/group", {"groupname": "none"})
    check("not a group that is none", is_error(answer, 404, "NoGroupError"), answer)
    check("the group lists her", admin("GET", "/groups/team/userlist")[1][0]["username"] == "carol")
    change = {"data": {"groupname": "team", "description": "changed"}, "patch": True}
    check(
        "a group changes",
        admin("PUT", "/groups", change)[0] == 201 and admin("GET", "/groups/team")[1]["description"] == "changed",
    )
    check("she leaves", admin("DELETE", "/users/carol/group", {"groupname": "team"})[0] == 201)
    check("and her list shows it", admin("GET", "/users/carol")[1]["grouplist"] == ["default"])
    check("default cannot be left", admin("DELETE", "/users/carol/group", {"groupname": "default"})[0] == 403)
    answer = admin("PUT", "/users/carol/grouplist", {"grouplist": ["team"]})
    check(
        "a list replaces hers, default stays",
        sorted(admin("GET", "/users/carol")[1]["grouplist"]) == ["default", "team"],
        answer,
    )
    check("a group is removed, from its members too", admin("DELETE", "/groups/team")[0] == 200)
    check("carol has left it", admin("GET", "/users/carol")[1]["grouplist"] == ["default"])
    check("group default stays", admin("DELETE", "/groups/default")[0] == 403)


def tokens(guest, admin):
    hers = guest.login("carol", "carol-pw")
    status, made = hers("POST", "/tokens/application", {})
    check("an application token is made", status == 200 and made["application"] is True, made)
    program = Api(guest.port, "Bearer " + made["token"])
    basic = Api(guest.port, "Basic " + base64.b64encode(f"carol:{made['token']}".encode()).decode())
    answer = program("GET", "/users")
    check(
        "it is for jobs alone: 403",
        is_error(answer, 403, "ForbiddenUserError") and "Applications" in answer[1]["message"],
        answer,
    )
    check("it is what it says", program("GET", "/tokens/check")[1]["application"] is True)
    check("as Basic, too", basic("GET", "/tokens/check")[1]["username"] == "carol")
    other = Api(guest.port, "Basic " + base64.b64encode(f"admin:{made['token']}".encode()).decode())
    check("but not under another name", other("GET", "/tokens/check")[0] == 401)
    check("both tokens are listed", len(hers("GET", "/tokens")[1]["tokens"]) == 2)
    check("one is revoked", hers("DELETE", "/tokens/" + made["token"])[0] == 200)
    check("and good for nothing", program("GET", "/tokens/check")[0] == 401)
    mine = hers.authorization.split()[1]
    admin_token = admin.authorization.split()[1]
    check("nobody else's", hers("DELETE", "/tokens/" + admin_token)[0] == 403)
    check("log out", hers("DELETE", "/authn/basic/logout")[0] == 200 and hers("GET", "/tokens")[0] == 401, mine)


def kubernetes(muster, guest, admin):
    """One person, one set of rights: the same token at the Kubernetes API."""
    config = json.loads(muster.kubectl("config", "view", "--raw", "-o", "json").stdout)
    server = config["clusters"][0]["cluster"]["server"]
    hers = guest.login("carol", "carol-pw").authorization.split()[1]

    def kubectl(token, *args):
        plain = ["--kubeconfig", "/dev/null", "--server", server, "--insecure-skip-tls-verify", "--token", token]
        return muster.kubectl(*plain, *args, check=False)

    check("carol sees nodes with kubectl", kubectl(hers, "get", "nodes").returncode == 0)
    refused = kubectl(hers, "get", "secrets", "-n", "pai-user-v2")
    check("but no secrets", refused.returncode != 0 and 'User "carol" cannot list' in refused.stderr, refused.stderr)
    check("the admin does", kubectl(admin.authorization.split()[1], "get", "secrets", "-A").returncode == 0)
    carol = guest.login("carol", "carol-pw")
    program = carol("POST", "/tokens/application", {})[1]["token"]
    check("a program's token is none of Kubernetes'", kubectl(program, "get", "nodes").returncode != 0)
    check("/kubernetes/nodes is the administrators'", carol("GET", "/kubernetes/nodes")[0] == 403)
    check("and the raw list", admin("GET", "/kubernetes/nodes")[1]["kind"] == "NodeList")
    check("/kubernetes/pods?namespace=", admin("GET", "/kubernetes/pods?namespace=default")[1]["kind"] == "PodList")


def taken_over(muster, guest):
    """A user of OpenPAI, as its own server kept her: PBKDF2, made with Python's hashlib here."""
    import hashlib

    salt = hashlib.md5(b"dan").hexdigest().encode()
    kept = hashlib.pbkdf2_hmac("sha512", b"from-openpai", salt, 10000, 64).hex()
    data = {"username": "dan", "password": kept, "email": "", "grouplist": '["default"]', "extension": "{}"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": b"dan".hex(), "namespace": "pai-user-v2"},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }
    muster.kubectl("create", "-f", "-", input=json.dumps(secret))
    check("a user with OpenPAI's hash logs in", until(lambda: try_login(guest, "dan", "from-openpai"), 10))
    stored = json.loads(muster.kubectl("get", "secret", "-n", "pai-user-v2", b"dan".hex(), "-o", "json").stdout)
    now = base64.b64decode(stored["data"]["password"]).decode()
    check("and is kept with argon2id from then on", now.startswith("$argon2id$"), now)


def try_login(guest, user, password):
    return guest("POST", "/authn/basic/login", {"username": user, "password": password})[0] == 200


def guessing(guest, admin):
    admin("POST", "/users", {"username": "eve", "password": "right-one"})
    seen = [guest("POST", "/authn/basic/login", {"username": "eve", "password": "wrong-one"})[0] for _ in range(6)]
    check("the sixth wrong password is 429", seen == [400] * 5 + [429], seen)
    check("with a time to wait", 0 < int(guest.headers["Retry-After"]) <= 30, guest.headers["Retry-After"])
    check("the right one too", not try_login(guest, "eve", "right-one"))
    check("others are not hindered", try_login(guest, "carol", "carol-pw"))


def virtual_clusters(muster, guest, admin):
    status, vcs = admin("GET", "/virtual-clusters")
    one = {"cpu": 2, "memory": 4096, "gpu": 1, "vCores": 2, "GPUs": 1}
    check("the lab's two virtual clusters", status == 200 and set(vcs) == {"default", "vc1"}, vcs)
    for vc in vcs.values():
        right = vc["resourcesTotal"] == one and vc["resourcesGuaranteed"] == one and vc["capacity"] == 50
        check("each half of the cluster, unused", right and vc["resourcesUsed"]["gpu"] == 0, vc)
    check(
        "?nodes",
        admin("GET", "/virtual-clusters?nodes")[1]["hostname-dan"] == {"gpuUsed": 0, "gpuAvailable": 1, "gpuTotal": 1},
    )
    check("an unknown one is 404", is_error(admin("GET", "/virtual-clusters/none"), 404, "NoVirtualClusterError"))
    check("sku types", set(admin("GET", "/cluster/sku-types")[1]) == {"GPU-C", "GPU-D"})
    check("of one", admin("GET", "/cluster/sku-types?vc=vc1")[1] == {"GPU-D": {"cpu": 2, "memory": 4096, "gpu": 1}})
    check("in the SDK's spelling", set(admin("GET", "/virtual-clusters/default/sku-types")[1]) == {"GPU-C"})
    check("of none: 404", is_error(admin("GET", "/cluster/sku-types?vc=x"), 404, "NoVirtualClusterError"))
    check("they are not made here", is_error(admin("PUT", "/virtual-clusters/new", {}), 400, "NotImplementedError"))
    check("vc1 has its group", admin("GET", "/groups/vc1")[1]["extension"]["acls"]["virtualClusters"] == ["vc1"])
    check("the admin may use both", sorted(admin("GET", "/users/admin")[1]["virtualCluster"]) == ["default", "vc1"])
    admin("POST", "/users", {"username": "alice", "password": "alice-pw"})
    check("alice only default", admin("GET", "/users/alice")[1]["virtualCluster"] == ["default"])
    grant = {"data": {"username": "alice", "virtualCluster": ["default", "vc1"]}, "patch": True}
    check("vc1 is granted", admin("PUT", "/users", grant)[0] == 201)
    check("and she has it", sorted(admin("GET", "/users/alice")[1]["virtualCluster"]) == ["default", "vc1"])


def same_rights(muster, guest):
    """Where queues are closed, kubectl lets alice use what REST lets her use."""
    config = json.loads(muster.kubectl("config", "view", "--raw", "-o", "json").stdout)
    server = config["clusters"][0]["cluster"]["server"]
    token = guest.login("alice", "alice-pw").authorization.split()[1]

    def may(vc):
        plain = ["--kubeconfig", "/dev/null", "--server", server, "--insecure-skip-tls-verify", "--token", token]
        wanted = {"verb": "use", "group": "muster.dev", "resource": "virtualclusters", "name": vc}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        where = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        asked = muster.kubectl(*plain, "create", "--raw", where, "-f", "-", input=json.dumps(review))
        return json.loads(asked.stdout)["status"]["allowed"]

    check("she may use vc1 for Kubernetes, too", until(lambda: may("vc1"), 10, 0.3))
    check("and default", may("default"))
    check("and no other", not may("vc2"))


def one_vc_again(muster, admin):
    """The cells of lab 6's configuration B: vc1 vanishes, and with it its group and every grant."""
    text = (LAB6 / "hived-config-b.yaml").read_text()
    patch = json.dumps({"data": {"hivedscheduler.yaml": text}})
    muster.kubectl("patch", "configmap", "-n", "kube-system", "muster-hived", "--type", "merge", "-p", patch)
    check("vc1 is gone", until(lambda: set(admin("GET", "/virtual-clusters")[1]) == {"default"}, 20, 0.3))
    total = admin("GET", "/virtual-clusters/default")[1]["resourcesTotal"]
    check("default has both nodes", (total["gpu"], total["cpu"], total["memory"]) == (2, 4, 8192), total)
    check("its group too", until(lambda: admin("GET", "/groups/vc1")[0] == 404, 10, 0.3))
    check("and alice's grant", until(lambda: admin("GET", "/users/alice")[1]["grouplist"] == ["default"], 10, 0.3))


def after_a_crash(muster, port, admin):
    muster.kill()
    muster.start()
    check("users, tokens and all are there after kill -9", admin("GET", "/users/carol")[0] == 200)
    said = muster.log().split("muster is ready")[-1]
    check("the password is printed once", "password" not in said, said)


JOB = """
protocolVersion: 2
name: {name}
type: job
prerequisites:
- {{type: dockerimage, name: image, uri: "{image}"}}
secrets: {{password: hush}}
taskRoles:
  Worker_A:
    instances: {instances}
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 256, gpu: {gpu}}}
    commands: ["{command}"]
defaults: {{virtualCluster: {vc}}}
extras: {{hivedScheduler: {{jobPriorityClass: {priority}}}}}
"""


def job(name, command="echo hello; exit 0", **values):
    values = {"instances": 1, "gpu": 1, "vc": "default", "priority": "prod", "image": "any", **values}
    return JOB.format(name=name, command=command, **values)


def submit(api, text):
    return api("POST", "/jobs", text, Content_Type="text/yaml")


def state_of(api, job_id):
    status, detail = api("GET", f"/jobs/{job_id}")
    return detail["jobStatus"]["state"] if status == 200 else None


def comes(api, job_id, state, timeout=60):
    return until(lambda: state_of(api, job_id) == state, timeout, 0.2)


def submitting(alice, admin, guest):
    check("nobody submits without a token", submit(guest, job("j"))[0] == 401)
    status, answer = submit(alice, job("first"))
    told = {"status": 202, "message": "Update job first for user alice successfully."}
    check("a job is taken: 202", status == 202 and answer == told, answer)
    check("and is there at once", alice("GET", "/jobs/alice~first")[0] == 200)
    check("twice: 409", is_error(submit(alice, job("first")), 409, "ConflictJobError"))
    answer = submit(alice, job("foreign", vc="vc1"))
    right = "User alice is not allowed to do operation in vc1"
    check(
        "a foreign virtual cluster is 403",
        is_error(answer, 403, "ForbiddenUserError") and answer[1]["message"] == right,
        answer,
    )
    check("so is one that is none", is_error(submit(alice, job("foreign", vc="none")), 403, "ForbiddenUserError"))
    check("no YAML is 400", is_error(submit(alice, "name: [1"), 400, "InvalidProtocolError"))
    check("another shape is 400", is_error(submit(alice, "name: x"), 400, "InvalidProtocolError"))
    check("a name of 256 characters is 400", is_error(submit(alice, job("x" * 256)), 400, "InvalidProtocolError"))
    big = job("big") + "#" * (1024 * 1024)
    check("more than a MiB is 413", submit(alice, big)[0] == 413)
    answer = submit(alice, job("wide", instances=2, priority="prod"))
    check(
        "more cells than there are are refused",
        is_error(answer, 400, "InvalidProtocolError") and "exceeds maximum 1 SKUs" in answer[1]["message"],
        answer,
    )
    known = {each["name"] for each in admin("GET", "/jobs")[1]}
    check("nothing of what was refused is stored", known == {"first"}, known)
    check("an unknown job is 404", is_error(alice("GET", "/jobs/alice~none"), 404, "NoJobError"))
    check("a name without an owner, too", is_error(alice("GET", "/jobs/none"), 404, "NoJobError"))


def watching(alice, admin, muster):
    check("it runs and succeeds", comes(alice, "alice~first", "SUCCEEDED"), lambda: alice("GET", "/jobs/alice~first"))
    status, detail = alice("GET", "/jobs/alice~first")
    task = detail["taskRoles"]["workera"]["taskStatuses"][0]
    check(
        "on the node of its virtual cluster",
        task["containerNodeName"] == "hostname-carol" and task["containerExitCode"] == 0,
        task,
    )
    check(
        "with its times",
        detail["jobStatus"]["submissionTime"] <= detail["jobStatus"]["completedTime"],
        detail["jobStatus"],
    )
    status, config = alice("GET", "/jobs/alice~first/config")
    check(
        "its configuration, secrets masked", status == 200 and "name: first" in config and "hush" not in config, config
    )
    check("its events", alice("GET", "/jobs/alice~first/events")[1]["totalCount"] > 0)
    check("no SSH: 404", is_error(alice("GET", "/jobs/alice~first/ssh"), 404, "NoJobSshInfoError"))
    base = "/jobs/alice~first/attempts/0/taskRoles/workera/taskIndex/0/attempts"
    status, found = alice("GET", base)
    check(
        "the task and its attempts",
        status == 200 and len(found["attempts"]) == 1 and found["taskState"] == "SUCCEEDED",
        found,
    )
    check("an unknown task is 404", is_error(alice("GET", base.replace("Index/0", "Index/7")), 404, "NoTaskError"))
    status, logs = alice("GET", base + "/0/logs")
    check("where its log is", status == 200 and logs["locations"][0]["name"] == "user.pai.all", logs)
    if status == 200:
        log = Api(alice.port, alice.authorization, "")("GET", logs["locations"][0]["uri"])
        check("and what is in it", log[0] == 200 and "hello" in log[1], log)
    check("no log of another attempt", is_error(alice("GET", base + "/5/logs"), 404, "NoTaskLogError"))
    status, attempts = alice("GET", "/jobs/alice~first/job-attempts")
    check("its attempts", status == 200 and [each["isLatest"] for each in attempts] == [True], attempts)
    check("job-attempts/healthz", alice("GET", "/jobs/alice~first/job-attempts/healthz")[0] == 200)
    check("an attempt that never was is 404", is_error(alice("GET", "/jobs/alice~first/attempts/3"), 404, "NoJobError"))


def stopping(alice, bob, admin):
    check("a long job is taken", submit(alice, job("long", "sleep 600"))[0] == 202)
    check("and runs", comes(alice, "alice~long", "RUNNING"), lambda: alice("GET", "/jobs/alice~long"))
    used = admin("GET", "/virtual-clusters/default")[1]["resourcesUsed"]
    check("its virtual cluster uses a GPU", used["gpu"] == 1, used)
    check("wrong words are 400", alice("PUT", "/jobs/alice~long/executionType", {"value": "PAUSE"})[0] == 400)
    answer = bob("PUT", "/jobs/alice~long/executionType", {"value": "STOP"})
    check("others do not stop it: 403", is_error(answer, 403, "ForbiddenUserError"), answer)
    check("its owner does: 202", alice("PUT", "/jobs/alice~long/executionType", {"value": "STOP"})[0] == 202)
    check("it is stopped", comes(alice, "alice~long", "STOPPED"))
    check(
        "START changes nothing",
        alice("PUT", "/jobs/alice~long/executionType", {"value": "START"})[0] == 202
        and state_of(alice, "alice~long") == "STOPPED",
    )
    check(
        "nothing is used any more",
        until(lambda: admin("GET", "/virtual-clusters/default")[1]["resourcesUsed"]["gpu"] == 0, 20, 0.3),
    )


def tagging(alice, bob):
    check("a tag is added", alice("PUT", "/jobs/alice~first/tag", {"value": "good"})[0] == 200)
    check("and shown", alice("GET", "/jobs/alice~first")[1]["tags"] == ["good"])
    check("not by others", bob("PUT", "/jobs/alice~first/tag", {"value": "bad"})[0] == 403)
    check("a comma is 400", alice("PUT", "/jobs/alice~first/tag", {"value": "a,b"})[0] == 400)
    names = {each["name"] for each in alice("GET", "/jobs?tagsContain=good")[1]}
    check("jobs are found by tag", names == {"first"}, names)
    check("and without it", "first" not in {each["name"] for each in alice("GET", "/jobs?tagsNotContain=good")[1]})
    check(
        "an unknown tag is 404",
        is_error(alice("DELETE", "/jobs/alice~first/tag", {"value": "none"}), 404, "NoTagError"),
    )
    check(
        "a tag goes",
        alice("DELETE", "/jobs/alice~first/tag", {"value": "good"})[0] == 200
        and alice("GET", "/jobs/alice~first")[1]["tags"] == [],
    )


def listing(alice, bob, admin):
    submit(bob, job("zeta", "true", priority="oppo", gpu=0))
    comes(bob, "bob~zeta", "SUCCEEDED")
    everything = admin("GET", "/jobs")[1]
    times = [each["submissionTime"] for each in everything]
    names = {each["name"] for each in everything}
    newest_first = times == sorted(times, reverse=True)
    check("everybody's, the newest first", newest_first and names == {"zeta", "long", "first"}, everything)
    wanted = {
        "debugId",
        "name",
        "username",
        "state",
        "subState",
        "executionType",
        "tags",
        "retries",
        "retryDetails",
        "submissionTime",
        "createdTime",
    }
    check("with OpenPAI's fields", wanted <= set(everything[0]), everything[0])
    for query, names in {
        "username=alice": {"first", "long"},
        "username=alice,bob": {"first", "long", "zeta"},
        "state=STOPPED": {"long"},
        "state=STOPPED,SUCCEEDED&username=bob": {"zeta"},
        "keyword=irs": {"first"},
        "keyword=bob": {"zeta"},
        "vc=default": {"first", "long", "zeta"},
        "vc=vc1": set(),
        "jobPriority=oppo": {"zeta"},
        "order=jobName,DESC&limit=1": {"zeta"},
        "order=jobName,ASC&limit=1&offset=1": {"long"},
        "order=username,DESC&limit=1": {"zeta"},
        "order=jobName,ASC&limit=1": {"first"},
    }.items():
        found = {each["name"] for each in admin("GET", "/jobs?" + query)[1]}
        check(f"GET /jobs?{query}", found == names, found)
    counted = admin("GET", "/jobs?limit=1&withTotalCount=true")[1]
    check("with the total", counted["totalCount"] == 3 and len(counted["data"]) == 1, counted)
    for wrong in ("limit=50001", "limit=x", "offset=-1", "order=nothing,ASC", "order=state,UP"):
        check(f"GET /jobs?{wrong} is 400", is_error(admin("GET", "/jobs?" + wrong), 400, "InvalidParametersError"))


def retried(alice, muster):
    """A job whose pod somebody deletes: a new attempt, and the former one is remembered."""
    submit(alice, job("again", "sleep 600"))
    if not check("it runs", comes(alice, "alice~again", "RUNNING")):
        return
    framework = alice("GET", "/jobs/alice~again")[1]["debugId"]
    muster.kubectl("delete", "pod", f"{framework}-workera-0", "--wait=false")

    def second():
        status = alice("GET", "/jobs/alice~again")[1]["jobStatus"]
        return status["retries"] == 1 and status["state"] == "RUNNING"

    check("it runs again", until(second, 60, 0.2), lambda: alice("GET", "/jobs/alice~again"))
    known = until(lambda: alice("GET", "/jobs/alice~again/attempts/0")[0] == 200, 10, 0.2)
    status, detail = alice("GET", "/jobs/alice~again/attempts/0")
    check("its first attempt is known", known, detail)
    check("with its end", known and detail["jobStatus"]["appExitCode"] == -101, detail)
    log = "/jobs/alice~again/attempts/0/taskRoles/workera/taskIndex/0/attempts/0/logs"
    check("and its log", until(lambda: alice("GET", log)[0] == 200, 10, 0.3), lambda: alice("GET", log))
    attempts = alice("GET", "/jobs/alice~again/job-attempts")[1]
    check("both are listed", [each["attemptIndex"] for each in attempts] == [1, 0], attempts)
    alice("PUT", "/jobs/alice~again/executionType", {"value": "STOP"})


def retried_tasks(alice):
    """A task of an incremental job is tried alone; each of its attempts is shown."""
    text = job("thrice", "echo try $FC_TASK_ATTEMPT_ID; exit 5", gpu=0, priority="oppo").replace(
        "Worker_A:", "Worker_A:\n    taskRetryCount: 2"
    )
    text = text.replace("extras: {", "extras: {gangAllocation: false, ")
    check("an incremental job is taken", submit(alice, text)[0] == 202)
    check("and fails", comes(alice, "alice~thrice", "FAILED"), lambda: alice("GET", "/jobs/alice~thrice"))
    base = "/jobs/alice~thrice/attempts/0/taskRoles/workera/taskIndex/0/attempts"
    attempts = alice("GET", base)[1]["attempts"]
    seen = [(one["taskAttemptIndex"], one["containerExitCode"], one["taskState"]) for one in attempts]
    check("a task's former attempts are known", seen == [(i, 5, "FAILED") for i in (2, 1, 0)], seen)
    pods = {one["containerId"] for one in attempts}
    check("each with its own pod", len(pods) == 3 and all(pods), attempts)
    plain = Api(alice.port, alice.authorization, "")
    for number in range(3):
        where = alice("GET", f"{base}/{number}/logs")
        log = plain("GET", where[1]["locations"][0]["uri"]) if where[0] == 200 else where
        check(f"what attempt {number} wrote", log == (200, f"try {number}\n"), log)
    tail = alice("GET", f"{base}/0/logs?tail-mode=true")[1]["locations"][0]["uri"]
    check("and its end", plain("GET", tail) == (200, "try 0\n"))
    check("no log of an attempt that never was", is_error(alice("GET", base + "/7/logs"), 404, "NoTaskLogError"))


def programs(alice):
    token = alice("POST", "/tokens/application", {})[1]["token"]
    program = Api(alice.port, "Bearer " + token)
    check("a program lists jobs", program("GET", "/jobs")[0] == 200)
    check("and submits", submit(program, job("by-program", "true", gpu=0, priority="oppo"))[0] == 202)


def services_yaml(config):
    """services-configuration.yaml as the course edits it."""
    lines = "".join(f"    {line}\n" for line in config.read_text().splitlines())
    return "cluster:\n  common:\n    cluster-id: pai\nhivedscheduler:\n  config: |\n" + lines


def paictl(muster, admin, folder):
    """The course's own commands, through a link, with their questions."""
    link = folder / "paictl.py"
    link.symlink_to(os.path.realpath(os.environ.get("MUSTER", ROOT / "build" / "muster")))

    def run(words, answer="pai\n"):
        return muster.run(str(link), *words.split(), check=False, input=answer)

    done = run("config get-id")
    check("config get-id says pai", done.returncode == 0 and "Cluster-id is: pai" in done.stderr, done)
    pulled = folder / "cluster-configuration"
    done = run(f"config pull -o {pulled}")
    text = (pulled / "services-configuration.yaml").read_text()
    check("config pull writes the two files", done.returncode == 0 and "GPU-D-NODE-POOL" in text, text)
    check("with the machines", "hostname-dan" in (pulled / "layout.yaml").read_text())
    done = run("service stop -n rest-server hivedscheduler")
    check("service stop asks for the cluster", done.returncode == 0 and "cluster-id" in done.stdout, done)
    check("REST is stopped then: 503", until(lambda: admin("GET", "/users")[0] == 503, 10))
    (pulled / "services-configuration.yaml").write_text(services_yaml(LAB6 / "hived-config-b.yaml"))
    done = run(f"config push -p {pulled} -m service", "wrong\n")
    check("a wrong cluster-id changes nothing", done.returncode == 1, done)
    pushed = muster.kubectl("get", "configmap", "-n", "kube-system", "muster-pai-services", "-o", "json").stdout
    check("nothing is pushed", "childCellType" not in pushed)
    done = run(f"config push -p {pulled} -m service")
    check("the right one pushes", done.returncode == 0, done)
    live = muster.kubectl("get", "configmap", "-n", "kube-system", "muster-hived", "-o", "json").stdout
    check("which has no effect yet", "GPU-D-NODE-POOL" in live)
    done = run("service start -n rest-server hivedscheduler")
    check("service start takes it over", done.returncode == 0, done)
    check("REST answers again", until(lambda: admin("GET", "/users")[0] == 200, 10))
    check("with one virtual cluster", until(lambda: set(admin("GET", "/virtual-clusters")[1]) == {"default"}, 20, 0.3))
    paictl_stops_the_scheduler(muster, admin, run, pulled)
    (pulled / "services-configuration.yaml").rename(pulled / "service-configuration.yaml")
    (pulled / "service-configuration.yaml").write_text("hivedscheduler:\n  config: |\n    physicalCluster: [1\n")
    done = run(f"config push -p {pulled} -m service")
    check("a wrong file is refused with its place", done.returncode == 1 and "line" in done.stderr, done.stderr)
    done = run("service start -n nonsense")
    check("an unknown service, too", done.returncode == 1 and "nonsense" in done.stderr, done.stderr)
    done = run("service delete -n hivedscheduler", "maybe\nn\n")
    check("service delete asks until it is told", done.returncode == 0 and done.stdout.count("(Y/N)") == 2, done)


def paictl_stops_the_scheduler(muster, admin, run, pulled):
    """hivedscheduler alone is stopped: jobs are taken and wait; what runs goes on. Limits come with rest-server."""
    submit(admin, job("before"))
    check("a job runs", comes(admin, "admin~before", "RUNNING"))
    done = run("service stop -n hivedscheduler")
    check("hivedscheduler stops alone", done.returncode == 0 and admin("GET", "/users")[0] == 200, done)
    submit(admin, job("meanwhile"))
    muster.wait_idle()
    check("a job that comes then waits", state_of(admin, "admin~meanwhile") == "WAITING")
    framework = admin("GET", "/jobs/admin~meanwhile")[1]["debugId"]
    why = lambda: muster.kubectl("get", "pod", f"{framework}-workera-0", "-o", "json").stdout  # noqa: E731
    check("and is told why", until(lambda: "hivedscheduler is stopped" in why(), 20, 0.3), why)
    check("what ran goes on", state_of(admin, "admin~before") == "RUNNING")
    muster.kill()
    muster.start()
    muster.wait_idle()
    check("it stays stopped over a crash", state_of(admin, "admin~meanwhile") == "WAITING")
    limited = (pulled / "services-configuration.yaml").read_text() + "rest-server: {rate-limit-list-job-per-min: 3}\n"
    (pulled / "services-configuration.yaml").write_text(limited)
    check("limits are pushed", run(f"config push -p {pulled} -m service").returncode == 0)
    run("service start -n hivedscheduler")
    check("started, the job runs", comes(admin, "admin~meanwhile", "RUNNING"), why)
    for name in ("before", "meanwhile"):
        admin("PUT", f"/jobs/admin~{name}/executionType", {"value": "STOP"})
    run("service start")
    few = lambda: [admin("GET", "/jobs")[0] for _ in range(4)][-1] == 429  # noqa: E731
    check("the fourth list within a minute is 429", until(few, 10))
    check("with the time to wait", 0 < int(admin.headers["Retry-After"]) <= 60)
    text = limited.replace("min: 3", "min: none")
    (pulled / "services-configuration.yaml").write_text(text)
    done = run(f"config push -p {pulled} -m service")
    check("a limit that is no number is refused", done.returncode == 1 and "rate-limit-list" in done.stderr, done)


def hived_apply(muster, admin):
    """The short way: one command, which says what it does."""
    done = muster.cli("hived", "apply", str(LAB6 / "hived-config-a.yaml"), check=False)
    check("hived apply says what it does", done.returncode == 0 and "applied" in done.stdout, done)
    both = lambda: set(admin("GET", "/virtual-clusters")[1]) == {"default", "vc1"}  # noqa: E731
    check("and the virtual clusters are there", until(both, 20, 0.3))
    bad = muster.data / "bad.yaml"
    bad.write_text("physicalCluster: 1\n")
    done = muster.cli("hived", "apply", str(bad), check=False)
    check("a wrong file changes nothing", done.returncode == 1 and both(), done)


def installed(folder):
    """The course's installation files as they are."""
    files = folder / "deploy"
    files.mkdir()
    (files / "master.csv").write_text("hostname-bob,10.0.1.2\n")
    (files / "worker.csv").write_text("hostname-carol,10.0.1.3\nhostname-dan,10.0.1.4\n")
    (files / "config.yaml").write_text("user: openpai\npassword: paiopen\nbranch_name: v1.2.0\n")
    port = free_port()
    muster = Muster("--hollow", "--pai-layout", str(files), "--pai-rest", f"127.0.0.1:{port}")
    for flag in ("--nodes", "--gpus"):  # the files say it
        del muster.args[muster.args.index(flag) : muster.args.index(flag) + 2]
    with muster:
        log = muster.log()
        for line in ("OpenPAI cluster ID        :     pai", "Default password          :     admin-password"):
            check(f"the installer's words: {line.split(':')[0].strip()}", line in log, log)
        names = muster.kubectl("get", "nodes", "-o", "name").stdout.split()
        check("three nodes", sorted(names) == ["node/hostname-bob", "node/hostname-carol", "node/hostname-dan"], names)
        admin = Api(port).login("admin", "admin-password")
        vcs = admin("GET", "/virtual-clusters")[1]
        check(
            "one virtual cluster with both workers",
            set(vcs) == {"default"} and vcs["default"]["resourcesTotal"]["gpu"] == 2,
            vcs,
        )
        check("of sku DT", set(admin("GET", "/cluster/sku-types")[1]) == {"DT"})
        nodes = admin("GET", "/virtual-clusters?nodes")[1]
        check("the master takes no jobs", "hostname-bob" not in nodes, nodes)


LAB_NODES = """
apiVersion: v1
kind: Node
metadata: {name: hostname-carol}
status: {capacity: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1", pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: hostname-dan}
status: {capacity: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1", pods: "110"}}
"""


def main():
    parts = sys.argv[1:]

    def wanted(name):
        return not parts or name in parts

    with tempfile.TemporaryDirectory(prefix="muster-pai-") as folder:
        nodes = pathlib.Path(folder) / "nodes.yaml"
        nodes.write_text(LAB_NODES)
        if wanted("people"):
            port = free_port()
            with Muster("--hollow", "--pai-rest", f"127.0.0.1:{port}", nodes=2, gpus=1) as muster:
                password = (muster.data / "admin-password").read_text().strip()
                check("up prints the first password once", muster.log().count(password) == 1)
                mode = os.stat(muster.data / "admin-password").st_mode & 0o777
                check("and keeps it for its owner alone", mode == 0o600, oct(mode))
                guest = Api(port)
                admin = guest.login("admin", password)
                check(
                    "version 1 and the portal's prefix answer, too",
                    Api(port, admin.authorization, "/rest-server/api/v1")("GET", "/user")[0] == 200,
                )
                nobody(guest)
                users(admin, guest)
                groups(admin)
                tokens(guest, admin)
                kubernetes(muster, guest, admin)
                taken_over(muster, guest)
                after_a_crash(muster, port, admin)
                guessing(guest, admin)
        if wanted("cells"):
            port = free_port()
            secret = pathlib.Path(folder) / "password"
            secret.write_text("admin-password\n")
            args = ["--hollow", "--pai-rest", f"127.0.0.1:{port}", "--hived-config", str(LAB6 / "hived-config-a.yaml")]
            with Muster(*args, "--admin-password-file", str(secret), nodes=nodes) as muster:
                check("a password of a file is not printed", "admin-password (kept" not in muster.log())
                guest = Api(port)
                admin = guest.login("admin", "admin-password")
                virtual_clusters(muster, guest, admin)
                same_rights(muster, guest)
                one_vc_again(muster, admin)
                hived_apply(muster, admin)
                paictl(muster, admin, pathlib.Path(folder))
        if wanted("layout"):
            installed(pathlib.Path(folder))
        if wanted("jobs"):
            port = free_port()
            args = ["--pai-rest", f"127.0.0.1:{port}", "--hived-config", str(LAB6 / "hived-config-a.yaml")]
            with Muster(*args, nodes=nodes) as muster:
                guest = Api(port)
                admin = guest.login("admin", (muster.data / "admin-password").read_text().strip())
                for name in ("alice", "bob"):
                    admin("POST", "/users", {"username": name, "password": name + "-password"})
                alice, bob = (guest.login(name, name + "-password") for name in ("alice", "bob"))
                submitting(alice, admin, guest)
                watching(alice, admin, muster)
                stopping(alice, bob, admin)
                tagging(alice, bob)
                listing(alice, bob, admin)
                retried(alice, muster)
                retried_tasks(alice)
                programs(alice)
    sys.exit(check.close())


if __name__ == "__main__":
    main()
