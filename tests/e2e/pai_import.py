#!/usr/bin/env python3
"""`muster pai import` takes over an OpenPAI: the folder that its administrator exported becomes cells, groups, users with
their passwords, and jobs; what cannot be taken over is reported."""
import base64
import hashlib
import json
import pathlib
import re
import sys
import tempfile

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks, until  # noqa: E402
from course import NODES  # noqa: E402
from muster import ROOT, Muster  # noqa: E402
from pai import Api, free_port  # noqa: E402

LAB6 = ROOT / "tests" / "data" / "lab6"
check = Checks()


def secret(namespace, name, **data):
    """As kubectl writes it, with what only the old cluster needed."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name.encode().hex(),
            "namespace": namespace,
            "resourceVersion": "12345",
            "uid": "6f9d8e1c-0000-4000-8000-000000000000",
            "creationTimestamp": "2021-01-01T00:00:00Z",
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def user(name, password, groups):
    salt = hashlib.md5(name.encode()).hexdigest().encode()
    kept = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 10000, 64).hex()
    more = {"email": f"{name}@example.com", "grouplist": json.dumps(groups), "extension": '{"sshKeys": []}'}
    return secret("pai-user-v2", name, username=name, password=kept, **more)


def group(name, vcs, admin=False):
    acls = {"acls": {"admin": admin, "virtualClusters": vcs, "storageConfigs": []}}
    more = {"description": f"the {name}s", "externalName": "", "extension": json.dumps(acls)}
    return secret("pai-group", name, groupname=name, **more)


def export(folder):
    """What an administrator takes along: kubectl, paictl and REST wrote it."""
    users = [
        user("erin", "erin-in-openpai", ["default", "vc1", "team"]),
        user("frank", "frank-in-openpai", ["default"]),
    ]
    stranger = secret("pai-user-v2", "grace", username="somebody-else", password="x")
    listed = {"apiVersion": "v1", "kind": "List", "items": [*users, stranger]}
    (folder / "users.yaml").write_text(yaml.safe_dump(listed))
    groups = {"apiVersion": "v1", "kind": "List", "items": [group("team", ["default"]), group("vc1", ["vc1"])]}
    (folder / "groups.yaml").write_text(yaml.safe_dump(groups))
    cells = "".join(f"    {line}\n" for line in (LAB6 / "hived-config-a.yaml").read_text().splitlines())
    (folder / "services-configuration.yaml").write_text("hivedscheduler:\n  config: |\n" + cells)
    jobs = folder / "jobs"
    jobs.mkdir()
    (jobs / "erin~job-config-0.yaml").write_text((LAB6 / "job-config-0.yaml").read_text())
    masked = yaml.safe_load((LAB6 / "job-config-5.yaml").read_text())
    (jobs / "frank~job-config-5.yaml").write_text(yaml.safe_dump({**masked, "secrets": "******"}))
    (jobs / "frank~wrong.yaml").write_text("protocolVersion: 2\nname: wrong\n")
    (jobs / "nobody.yaml").write_text("x: 1\n")


def main():
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="muster-import-") as name:
        folder = pathlib.Path(name)
        (folder / "nodes.yaml").write_text(NODES)
        taken = folder / "openpai"
        taken.mkdir()
        with Muster("--hollow", "--pai-rest", f"127.0.0.1:{port}", nodes=folder / "nodes.yaml") as muster:

            def take(*words):
                return muster.cli("pai", "import", *words, str(taken), check=False)

            done = take()
            check("an empty folder is refused", done.returncode == 1 and "nothing of an OpenPAI" in done.stderr, done)
            export(taken)
            admin = Api(port).login("admin", (muster.data / "admin-password").read_text().strip())
            dry = take("--dry-run")
            check("a dry run says what would be done", "user erin: added" in dry.stdout, dry)
            check("and does nothing", admin("GET", "/users/erin")[0] == 400 and admin("GET", "/jobs")[1] == [])
            done = take()
            told = done.stdout
            check("it exits with 1, since not all could be taken", done.returncode == 1, done)
            # The group of vc1 may have come with the cells.
            counted = re.search(r"^(\d) added, (\d) here already, 3 not taken over$", told, re.M)
            check("and counts", counted and int(counted[1]) + int(counted[2]) == 7, told)
            for line in (
                "services-configuration.yaml: pushed, and its cells are the cluster's",
                "group team: added",
                "user erin: added, with their password",
                "job erin~job-config-0: kept, stopped",
                "6772616365 is not one of OpenPAI's",
                "wanted a file named USER~JOB.yaml",
                "these jobs have none; give them when you submit them again: frank~job-config-5",
                "Tokens are not taken over",
            ):
                check(f"it says: {line}", line in told, told)
            check("why a job could not be taken", "job frank~wrong: [{" in told and "taskRoles" in told, told)
            both = {"default", "vc1"}
            check(
                "the virtual clusters are there", until(lambda: set(admin("GET", "/virtual-clusters")[1]) == both, 20)
            )
            erin = Api(port).login("erin", "erin-in-openpai")
            check("erin logs in with OpenPAI's password", erin("GET", "/jobs")[0] == 200)
            seen = admin("GET", "/users/erin")[1]
            check("with her groups", set(seen["grouplist"]) == {"default", "vc1", "team"}, seen)
            check("and virtual clusters", sorted(seen["virtualCluster"]) == ["default", "vc1"], seen)
            stopped = until(lambda: erin("GET", "/jobs/erin~job-config-0")[1]["jobStatus"]["state"] == "STOPPED", 20)
            check("her job is there and does not run", stopped, lambda: erin("GET", "/jobs/erin~job-config-0"))
            config = yaml.safe_load(erin("GET", "/jobs/erin~job-config-0/config")[1])
            check("with its configuration", config == yaml.safe_load((LAB6 / "job-config-0.yaml").read_text()), config)
            again = erin("POST", "/jobs", yaml.safe_dump({**config, "name": "again"}), Content_Type="text/yaml")
            check("which can be submitted again", again[0] == 202, again)
            before = muster.kubectl("get", "secrets,frameworks", "-A", "-o", "name").stdout
            done = take()
            check("a second time adds nothing", "0 added, 7 here already, 3 not taken over" in done.stdout, done)
            after = muster.kubectl("get", "secrets,frameworks", "-A", "-o", "name").stdout
            check("and changes nothing", before == after, (before, after))
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
