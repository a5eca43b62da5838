"""The REST API, route by route (docs/openpai-rest.md), in an order in which each finds what it needs."""
import base64

from pai import Api, is_error
from rows import Row

USER_FIELDS = {"username", "email", "admin", "virtualCluster", "storageConfig", "grouplist", "extension"}
SUMMARY_FIELDS = set(
    "debugId name username state subState executionType tags retries retryDetails retryDelayTime submissionTime "
    "createdTime launchedTime completedTime appExitCode virtualCluster totalGpuNumber totalTaskNumber "
    "totalTaskRoleNumber jobPriority".split()
)
STATUS_FIELDS = (SUMMARY_FIELDS - {"debugId", "name", "tags"}) | set(
    "attemptId attemptState appId appCreatedTime appLaunchedTime appCompletedTime appExitSpec appExitDiagnostics "
    "appExitMessages appExitTriggerMessage appExitTriggerTaskRoleName appExitTriggerTaskIndex appExitType".split()
)
TASK_FIELDS = set(
    "taskIndex taskUid taskState containerId containerIp containerNodeName containerPorts containerGpus containerLog "
    "containerExitCode containerExitSpec containerExitDiagnostics retries accountableRetries createdTime launchedTime "
    "completedTime attemptId attemptState hived".split()
)
EVENT_FIELDS = set(
    "uid frameworkName podUid taskroleName taskName taskIndex type reason message firstTimestamp lastTimestamp count "
    "sourceComponent sourceHost".split()
)
TASK = "/jobs/alice~kept/attempts/0/taskRoles/train/taskIndex/0/attempts"


def answers(wanted, who, method, path, body=None):
    def check(w):
        seen = getattr(w, who)(method, path, body)
        assert seen[0] == wanted, seen
        return True

    return check


def shows(who, path, look):
    def check(w):
        seen = getattr(w, who)("GET", path)
        assert seen[0] == 200 and look(seen[1]), seen
        return True

    return check


def fails(who, method, path, wanted, code, body=None):
    def check(w):
        seen = getattr(w, who)(method, path, body)
        assert is_error(seen, wanted, code), seen
        return True

    return check


def both(*checks):
    return lambda w: all(check(w) for check in checks)


def logs_in(path):
    def check(w):
        seen = w.guest("POST", path, {"username": "alice", "password": "alice-password"})
        assert seen[0] == 200 and seen[1]["user"] == "alice" and seen[1]["admin"] is False, seen
        assert seen[1]["token"].count(".") == 2 and "hasGitHubPAT" in seen[1], seen
        return True

    return check


def logs_out(w):
    once = w.guest.login("alice", "alice-password")
    return once("DELETE", "/authn/basic/logout")[0] == 200 and once("GET", "/tokens")[0] == 401


def application_token(w):
    made = w.alice("POST", "/tokens/application", {})
    assert made[0] == 200 and made[1]["application"] is True, made
    basic = Api(w.guest.port, "Basic " + base64.b64encode(f"alice:{made[1]['token']}".encode()).decode())
    assert basic("GET", "/jobs")[0] == 200
    assert is_error(basic("GET", "/users"), 403, "ForbiddenUserError")
    assert w.alice("DELETE", "/tokens/" + made[1]["token"])[0] == 200
    return basic("GET", "/jobs")[0] == 401


def reads_log(w):
    seen = w.alice("GET", TASK + "/0/logs")
    assert seen[0] == 200 and seen[1]["locations"][0]["name"] == "user.pai.all", seen
    log = Api(w.guest.port, w.alice.authorization, "")("GET", seen[1]["locations"][0]["uri"])
    assert log == (200, "hello\n"), log
    return is_error(w.alice("GET", TASK + "/7/logs"), 404, "NoTaskLogError")


def stops(w):
    assert is_error(w.bob("PUT", "/jobs/alice~long/executionType", {"value": "STOP"}), 403, "ForbiddenUserError")
    assert w.alice("PUT", "/jobs/alice~long/executionType", {"value": "STOP"})[0] == 202
    return w.comes("alice~long", "STOPPED")


def tags(w):
    path = "/jobs/alice~kept/tag"
    assert w.alice("PUT", path, {"value": "good"})[0] == 200 and w.alice("GET", "/jobs?tagsContain=good")[1]
    assert is_error(w.alice("DELETE", path, {"value": "none"}), 404, "NoTagError")
    return w.alice("DELETE", path, {"value": "good"})[0] == 200


def listed(w):
    everything = w.alice("GET", "/jobs")[1]
    assert {one["name"] for one in everything} == {"kept", "long"}, everything
    assert all(set(one) == SUMMARY_FIELDS for one in everything), everything[0].keys() ^ SUMMARY_FIELDS
    page = w.alice("GET", "/jobs?username=alice&order=jobName,ASC&limit=1&offset=1&withTotalCount=true")[1]
    assert page["totalCount"] == 2 and page["data"][0]["name"] == "long", page
    return w.alice("GET", "/jobs?limit=50001")[0] == 400


def detailed(w):
    status, detail = w.alice("GET", "/jobs/alice~kept")
    assert status == 200 and set(detail) == {"debugId", "name", "tags", "jobStatus", "taskRoles"}, detail
    assert STATUS_FIELDS <= set(detail["jobStatus"]), STATUS_FIELDS - set(detail["jobStatus"])
    task = detail["taskRoles"]["train"]["taskStatuses"][0]
    assert TASK_FIELDS <= set(task), TASK_FIELDS - set(task)
    return is_error(w.alice("GET", "/jobs/alice~none"), 404, "NoJobError")


def virtual_clusters(w):
    seen = w.alice("GET", "/virtual-clusters")[1]
    assert set(seen) == {"default", "vc1"}, seen
    fields = "capacity usedCapacity maxCapacity dedicated resourcesUsed resourcesGuaranteed resourcesTotal".split()
    assert all(set(fields) <= set(one) for one in seen.values()), seen
    amount = {"cpu": 2, "memory": 4096, "gpu": 1, "vCores": 2, "GPUs": 1}
    assert seen["vc1"]["resourcesTotal"] == amount and seen["vc1"]["capacity"] == 50, seen["vc1"]
    return True


ROUTES = [
    Row(
        "GET `/info`",
        "{name, version, launcherType, authnMethod}",
        shows("guest", "/info", lambda seen: seen["name"] == "PAI RESTful API" and seen["launcherType"] == "k8s"),
        "without a token",
        "same; `version` is Muster's",
        "clients that show it tell the truth",
        who="all",
    ),
    Row(
        "GET `/authn/info`",
        "{authn_type, loginURI, loginURIMethod}",
        shows("guest", "/authn/info", lambda seen: seen["authn_type"] == "basic"),
        "basic",
        who="all",
    ),
    Row(
        "POST `/authn/basic/login`",
        "{user, token, admin, hasGitHubPAT}; 400 NoUserError, 400 IncorrectPasswordError",
        both(
            logs_in("/authn/basic/login"),
            fails("guest", "POST", "/authn/basic/login", 400, "NoUserError", {"username": "no", "password": "secret"}),
        ),
        "alice's token; nobody's 400",
        "same; a client that guesses gets 429 with `Retry-After`",
        "guessing stays slow",
        who="all",
    ),
    Row("POST `/token` (v1)", "as login", logs_in("/token"), "alice's token", who="all"),
    Row("DELETE `/authn/basic/logout`", "ends the token", logs_out, "401 with it from then on", who="user"),
    Row(
        "GET `/authn/oidc/login`, `/authn/oidc/logout`",
        "to Azure's page",
        both(
            fails("guest", "GET", "/authn/oidc/login", 400, "NotImplementedError"),
            fails("guest", "GET", "/authn/oidc/logout", 400, "NotImplementedError"),
        ),
        "both are 400",
        "400 NotImplementedError",
        "there is no Azure Active Directory here",
        who="all",
    ),
    Row(
        "GET `/tokens`",
        "{tokens}",
        shows("alice", "/tokens", lambda seen: seen["tokens"]),
        "her own",
        "same; at most 200 of browsers and 100 of programs a user",
        "a Secret holds a MiB",
        who="user",
    ),
    Row(
        "GET `/tokens/check`",
        "the token's payload",
        shows("alice", "/tokens/check", lambda seen: seen["username"] == "alice"),
        "alice's",
        who="user, programs",
    ),
    Row(
        "POST `/tokens/application`, DELETE `/tokens/:token`",
        "a token for routes of jobs, until it is revoked; also as Basic",
        application_token,
        "made, used, 403 elsewhere, revoked",
        who="user",
    ),
    Row(
        "POST `/users`",
        "201; 409 ConflictUserError, 400 NoVirtualClusterError",
        both(
            answers(201, "admin", "POST", "/users", {"username": "dora", "password": "dora-pw"}),
            fails("admin", "POST", "/users", 409, "ConflictUserError", {"username": "dora", "password": "dora-pw"}),
            fails("alice", "POST", "/users", 403, "ForbiddenUserError", {"username": "x", "password": "dora-pw"}),
        ),
        "dora; twice 409; alice 403",
        who="admin",
    ),
    Row(
        "GET `/users`, `/users/:user`",
        "UserInfo; 400 NoUserError",
        both(
            shows("alice", "/users", lambda seen: all(set(one) == USER_FIELDS for one in seen)),
            shows("alice", "/users/dora", lambda seen: seen["virtualCluster"] == ["default"]),
            fails("alice", "GET", "/users/none", 400, "NoUserError"),
        ),
        "the fields of everybody; dora; nobody 400",
        who="user",
    ),
    Row(
        "PUT `/users`",
        "201; with `patch` a part of the fields",
        both(
            answers(201, "admin", "PUT", "/users", {"data": {"username": "dora", "email": "d@e.f"}, "patch": True}),
            fails("admin", "PUT", "/users", 400, "InvalidParametersError", {"data": {"username": "dora"}}),
        ),
        "her address; without `patch` every field is wanted",
        "same; the last administrator stays one",
        "nobody could manage users any more",
        who="admin",
    ),
    Row(
        "PUT `/users/me`",
        "201; 403 for others and for a wrong password",
        both(
            answers(201, "alice", "PUT", "/users/me", {"data": {"username": "alice", "email": "a@b.c"}, "patch": True}),
            answers(403, "alice", "PUT", "/users/me", {"data": {"username": "dora", "email": "a@b.c"}, "patch": True}),
        ),
        "her own address, not dora's",
        who="user",
    ),
    Row(
        "PUT `/users/:user/email`, `/extension`, `/virtualcluster`, `/password`, `/admin`",
        "201; the routes of older versions",
        both(
            answers(201, "admin", "PUT", "/users/dora/email", {"email": "x@y.z"}),
            answers(201, "admin", "PUT", "/users/dora/extension", {"extension": {"a": 1}}),
            answers(201, "admin", "PUT", "/users/dora/virtualcluster", {"virtualCluster": ["vc1"]}),
            answers(201, "admin", "PUT", "/users/dora/password", {"newPassword": "dora-pw2"}),
            answers(201, "admin", "PUT", "/users/dora/admin", {"admin": False}),
            shows("admin", "/users/dora", lambda seen: "vc1" in seen["virtualCluster"]),
        ),
        "all five, and vc1 is granted",
        who="admin; some self",
    ),
    Row(
        "POST, PUT `/groups`, GET `/groups`, `/groups/:group`, `/groups/:group/userlist`",
        "{groupname, description, externalName, extension}; 404 NoGroupError",
        both(
            answers(201, "admin", "POST", "/groups", {"groupname": "team", "description": "a"}),
            answers(201, "admin", "PUT", "/groups", {"data": {"groupname": "team", "description": "b"}, "patch": True}),
            shows("alice", "/groups", lambda seen: {"default", "vc1", "team"} <= {one["groupname"] for one in seen}),
            shows("alice", "/groups/team", lambda seen: seen["description"] == "b"),
            shows("alice", "/groups/team/userlist", lambda seen: seen == []),
            fails("alice", "GET", "/groups/none", 404, "NoGroupError"),
        ),
        "made, changed, listed; none 404",
        who="user; writing admin",
    ),
    Row(
        "PUT, DELETE `/users/:user/group`, PUT `/users/:user/grouplist`",
        "201; a comparison of lengths makes the last one fail always",
        both(
            answers(201, "admin", "PUT", "/users/dora/group", {"groupname": "team"}),
            answers(201, "admin", "DELETE", "/users/dora/group", {"groupname": "team"}),
            answers(201, "admin", "PUT", "/users/dora/grouplist", {"grouplist": ["team"]}),
            shows("admin", "/users/dora", lambda seen: sorted(seen["grouplist"]) == ["default", "team"]),
        ),
        "joined, left, replaced; default stays",
        "all three work",
        "a mistake of OpenPAI's",
        who="admin",
    ),
    Row(
        "DELETE `/groups/:group`",
        "200",
        both(
            answers(200, "admin", "DELETE", "/groups/team"),
            shows("admin", "/users/dora", lambda seen: seen["grouplist"] == ["default"]),
            answers(403, "admin", "DELETE", "/groups/default"),
        ),
        "team, and dora has left it; default 403",
        "a removed group leaves its members' lists; `default` and `admingroup` stay",
        "a later group of that name would inherit them",
        who="admin",
    ),
    Row(
        "DELETE `/users/:user`",
        "200; 403 RemoveAdminError, 404 NoUserError",
        both(
            answers(200, "admin", "DELETE", "/users/dora"),
            fails("admin", "DELETE", "/users/dora", 404, "NoUserError"),
            fails("admin", "DELETE", "/users/admin", 403, "RemoveAdminError"),
        ),
        "dora; again 404; an administrator 403",
        who="admin",
    ),
    Row(
        "GET `/virtual-clusters`, `/virtual-clusters/:vc`",
        "{vc: {capacity, usedCapacity, resourcesTotal …}}; 404 NoVirtualClusterError",
        both(virtual_clusters, fails("alice", "GET", "/virtual-clusters/none", 404, "NoVirtualClusterError")),
        "the course's two, half of the cluster each; none 404",
        "same, counted from the live cells; without cells virtual clusters are queues",
        "clusters without HiveD are served as well",
        who="user",
    ),
    Row(
        "GET `/virtual-clusters?nodes`",
        "{node: {gpuUsed, gpuAvailable, gpuTotal}}",
        shows("alice", "/virtual-clusters?nodes", lambda seen: seen["hostname-dan"]["gpuTotal"] == 1),
        "the course's nodes",
        who="user",
    ),
    Row(
        "PUT, DELETE `/virtual-clusters/:vc`, PUT `/virtual-clusters/:vc/status`",
        "400 NotImplementedError on Kubernetes",
        both(
            fails("admin", "PUT", "/virtual-clusters/new", 400, "NotImplementedError", {}),
            fails("admin", "DELETE", "/virtual-clusters/vc1", 400, "NotImplementedError"),
            fails("admin", "PUT", "/virtual-clusters/vc1/status", 400, "NotImplementedError", {}),
        ),
        "all three",
        "same",
        "`muster hived apply` and paictl do it",
        who="admin",
    ),
    Row(
        "GET `/cluster/sku-types`, `?vc=`; `/virtual-clusters/:vc/sku-types`",
        "{sku: {cpu, memory, gpu}}; 404 NoVirtualClusterError",
        both(
            shows("alice", "/cluster/sku-types", lambda seen: set(seen) == {"GPU-C", "GPU-D"}),
            shows("alice", "/cluster/sku-types?vc=vc1", lambda seen: set(seen) == {"GPU-D"}),
            shows("alice", "/virtual-clusters/vc1/sku-types", lambda seen: set(seen) == {"GPU-D"}),
            fails("alice", "GET", "/cluster/sku-types?vc=none", 404, "NoVirtualClusterError"),
        ),
        "both types; vc1's one; none 404",
        who="user",
    ),
    Row(
        "GET `/storages`, `/storages/:storage`",
        "{storages: [{name, share, volumeName, default}]}; 403, 404 NoStorageError",
        both(
            shows("alice", "/storages", lambda seen: [one["name"] for one in seen["storages"]] == ["common"]),
            shows("alice", "/storages/common", lambda seen: "type" in seen and "data" in seen),
            fails("alice", "GET", "/storages/none", 404, "NoStorageError"),
        ),
        "the claim that her group names; none 404",
        "claims of namespace `default`; the first that a group names is its default",
        "where OpenPAI keeps them is up to its installation",
        who="user",
    ),
    Row(
        "POST `/jobs`",
        "202 {status, message}",
        "e2e.pai_rest: a job is taken: 202",
        who="user, programs",
    ),
    Row(
        "GET `/jobs`",
        "JobSummary[]; filters, order, offset, limit, withTotalCount",
        listed,
        "both jobs with every field; a page with its total; limit 50001 is 400",
        "same; times have whole seconds",
        "Kubernetes' objects have no finer ones",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job`",
        "JobDetail; 404 NoJobError",
        detailed,
        "every field of job, status and task",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job/config`",
        "YAML, secrets masked",
        shows("bob", "/jobs/alice~kept/config", lambda seen: "name: kept" in seen and "hush" not in seen),
        "bob reads alice's, without her secret",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job/attempts/:n`",
        "JobDetail of an attempt",
        both(
            shows("alice", "/jobs/alice~kept/attempts/0", lambda seen: seen["jobStatus"]["attemptId"] == 0),
            fails("alice", "GET", "/jobs/alice~kept/attempts/3", 404, "NoJobError"),
        ),
        "attempt 0; attempt 3 404. Former ones: `e2e.pai_rest`, its first attempt is known",
        "the newest 20 earlier attempts are kept; one that ended while Muster was down is not",
        "OpenPAI has a database for them, here they are a ConfigMap of the job",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job/job-attempts`, `/job-attempts/:n`, `/job-attempts/healthz`",
        "JobAttempt[], the older shape",
        both(
            shows("alice", "/jobs/alice~kept/job-attempts", lambda seen: [one["isLatest"] for one in seen] == [True]),
            shows("alice", "/jobs/alice~kept/job-attempts/0", lambda seen: seen["attemptIndex"] == 0),
            answers(200, "alice", "GET", "/jobs/alice~kept/job-attempts/healthz"),
        ),
        "one attempt, the latest",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job/attempts/:n/taskRoles/:role/taskIndex/:i/attempts`",
        "the task with its attempts, the newest first; 404 NoTaskError",
        both(
            shows("alice", TASK, lambda seen: seen["taskState"] == "SUCCEEDED" and len(seen["attempts"]) == 1),
            fails("alice", "GET", TASK.replace("Index/0", "Index/7"), 404, "NoTaskError"),
        ),
        "one attempt; task 7 404. Retried ones: `e2e.pai_rest`, a task's former attempts are known",
        who="user, programs",
    ),
    Row(
        "GET `…/attempts/:a/logs`",
        "{locations: [{name, uri}]}; 404 NoTaskLogError",
        reads_log,
        "where the log is, what is in it, 404 of another attempt",
        "one location, `user.pai.all`, whose address wants the same token; `tail-mode=true`: the last 16 KiB",
        "a log is read with the rights of the user who asks",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job/events`",
        "{totalCount, data}, the newest first",
        shows("alice", "/jobs/alice~kept/events", lambda seen: seen["data"] and EVENT_FIELDS <= set(seen["data"][0])),
        "every field of an event",
        "Kubernetes' events, which live for an hour",
        "OpenPAI copies them to its database",
        who="user, programs",
    ),
    Row(
        "GET `/jobs/:job/ssh`",
        "404 NoJobSshInfoError, always",
        fails("alice", "GET", "/jobs/alice~kept/ssh", 404, "NoJobSshInfoError"),
        "404",
        who="user, programs",
    ),
    Row(
        "PUT, DELETE `/jobs/:job/tag`", "200; 404 NoTagError", tags, "added, found, missed, removed", who="owner, admin"
    ),
    Row(
        "PUT `/jobs/:job/executionType`",
        "202; STOP stops, START does nothing",
        stops,
        "bob 403, alice 202, and it is STOPPED",
        who="owner, admin",
    ),
    Row(
        "GET `/kubernetes/nodes`, `/kubernetes/pods?namespace=`",
        "raw lists",
        both(
            shows("admin", "/kubernetes/nodes", lambda seen: seen["kind"] == "NodeList"),
            shows("admin", "/kubernetes/pods?namespace=default", lambda seen: seen["kind"] == "PodList"),
            answers(403, "alice", "GET", "/kubernetes/nodes"),
        ),
        "both for the administrator, 403 for alice",
        who="admin",
    ),
    Row(
        "GET `/alerts`",
        "alerts of Prometheus",
        answers(200, "alice", "GET", "/alerts"),
        "a list",
        "nodes that are not ready, for administrators",
        "what Prometheus watches is up to its own rules",
        who="user",
    ),
    Row(
        "any other path",
        "404 NoApiError",
        fails("guest", "GET", "/no/such", 404, "NoApiError"),
        "/no/such",
        who="all",
    ),
]
