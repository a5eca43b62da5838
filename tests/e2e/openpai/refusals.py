"""Bad input: what is sent, and OpenPAI's status, code and words (docs/openpai.md). None of it may be stored."""
from pai import Api
from rows import Row, job

NO_YAML = "protocolVersion: 2\nname: [a\ntype: job\n"


def refused(status, code, text, one, who=None):
    def check(w):
        seen = w.submit(one(w) if callable(one) else one, who(w) if who else None)
        wanted = (status, {"code": code, "message": text})
        exact = seen == wanted
        assert exact or (text.endswith("…") and seen[0] == status and text[:-1] in seen[1]["message"]), (seen, wanted)
        return True

    return f"{status} {code}: `{text}`", check


def row(what, told_and_check, openpai="", why=""):
    """`openpai`: what it does, where that is something else."""
    told, check = told_and_check
    seen = "the answer, and nothing is stored"
    return Row(what, openpai, check, seen, told, why) if openpai else Row(what, told, check, seen)


def unknown_job(w):
    seen = w.alice("GET", "/jobs/alice~none")
    return seen == (404, {"code": "NoJobError", "message": "Job alice~none is not found."})


def many_ports():
    return {"resourcePerInstance": {"ports": {f"p{i}": 1000 for i in range(25)}}}


def gang_of(instances):
    return job("never", role={"instances": instances}, extras={"hivedScheduler": {"jobPriorityClass": "prod"}})


REFUSALS = [
    row(
        "no token",
        refused(
            401, "UnauthorizedUserError", "Guest is not allowed to do this operation.", job("never"), lambda w: w.guest
        ),
    ),
    row(
        "a wrong token",
        refused(
            401,
            "UnauthorizedUserError",
            "Your token is invalid.",
            job("never"),
            lambda w: Api(w.guest.port, "Bearer a.b.c"),
        ),
    ),
    row(
        "a foreign virtual cluster",
        refused(
            403,
            "ForbiddenUserError",
            "User alice is not allowed to do operation in vc1",
            job("never", defaults={"virtualCluster": "vc1"}),
        ),
    ),
    row(
        "a virtual cluster that does not exist",
        refused(
            403,
            "ForbiddenUserError",
            "User alice is not allowed to do operation in none",
            job("never", defaults={"virtualCluster": "none"}),
        ),
    ),
    Row(
        "a job that does not exist",
        "404 NoJobError: `Job alice~none is not found.`",
        unknown_job,
        "GET /jobs/alice~none",
    ),
    row(
        "malformed YAML",
        refused(400, "InvalidProtocolError", "yaml: line 3, column 5: did not find expected ',' or ']'", NO_YAML),
        openpai="400 InvalidProtocolError with the words of its own parser",
        why="another parser; line and column are always there",
    ),
    row(
        "1 MiB and 1 byte",
        refused(
            413,
            "InvalidParametersError",
            "The job is 1048577 bytes long, at most 1048576 are allowed.",
            "#" * (1024 * 1024 + 1),
        ),
        openpai="413",
        why="the limit is named",
    ),
    row(
        "a name of 256 characters",
        refused(400, "InvalidProtocolError", "should NOT be longer than 255 characters…", job("x" * 256)),
    ),
    row(
        "a name that the user has already used",
        refused(409, "ConflictJobError", "Job alice~kept already exists.", job("kept")),
    ),
    row(
        "extras for a task role that does not exist",
        refused(
            400,
            "InvalidProtocolError",
            "Taskrole none does not exist.",
            job("never", extras={"hivedScheduler": {"taskRoles": {"none": {"skuType": "GPU-C"}}}}),
        ),
    ),
    row(
        "a prerequisite that does not exist",
        refused(
            400, "InvalidProtocolError", "Prerequisite none does not exist.", job("never", role={"script": "none"})
        ),
    ),
    row(
        "a prerequisite twice",
        refused(
            400,
            "InvalidProtocolError",
            "Duplicate dockerimage prerequisites image.",
            job("never", prerequisites=[{"name": "image", "type": "dockerimage", "uri": "any"}] * 2),
        ),
    ),
    Row(
        "a template with an unknown parameter or secret",
        "taken; the text stays",
        lambda w: w.made(job(role={"commands": ["<% $parameters.x %> <% $secrets.x %>"]})).commands
        == ["<% $parameters.x %> <% $secrets.x %>"],
        "the command is unchanged",
    ),
    row(
        "a gang of 10,000 instances",
        refused(
            400,
            "InvalidProtocolError",
            "Job requests 10000 SKUs, exceeds maximum 1 SKUs in VC default.",
            gang_of(10000),
        ),
    ),
    row(
        "10,001 instances",
        refused(400, "InvalidProtocolError", "should be <= 10000…", gang_of(10001)),
        openpai="taken; the API server refuses the Framework",
        why="the submitter is told at once",
    ),
    row(
        "more ports than the range has",
        refused(
            400,
            "InvalidProtocolError",
            "Taskrole train requests 25002 ports, but the range from 15000 to 39999 has 24999.",
            job("never", role=many_ports()),
        ),
        openpai="taken",
        why="no task could ever have them",
    ),
    row(
        "a storage that does not exist",
        refused(
            404, "NoStorageError", "Storage none is not found.", job("never", extras={"storages": [{"name": "none"}]})
        ),
    ),
    row(
        "a number that is too large",
        refused(
            400,
            "InvalidProtocolError",
            "should be <= 2147483647…",
            job("never", role={"resourcePerInstance": {"cpu": 2**63 - 1}}),
        ),
        openpai="taken; the API server refuses the pods",
        why="the submitter is told at once",
    ),
]
