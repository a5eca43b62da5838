"""L0, L1 and L5: the installation, the people, and the two configurations, with paictl commands as in the course."""
import os
import pathlib

from checks import until
from lab import ALICE, BOB, CAROL, CAROLS, DAN, DANS, DATA, PEOPLE, TRAINING_S, check, good, nodes
from muster import binary

ONE = {"cpu": 2, "memory": 4096, "gpu": 1, "vCores": 2, "GPUs": 1}


def layout(folder):
    """What the course has its readers write before they run the installer."""
    (folder / "master.csv").write_text("hostname-bob,10.0.1.2\n")
    (folder / "worker.csv").write_text("hostname-carol,10.0.1.3\nhostname-dan,10.0.1.4\n")
    (folder / "config.yaml").write_text(
        "user: openpai\npassword: paiopen\nbranch_name: v1.2.0\ndocker_image_tag: v1.2.0\n"
    )
    return folder


class Paictl:
    """paictl.py in the course's dev box: a link to this program."""

    def __init__(self, muster, folder):
        self.muster, self.configuration = muster, folder / "cluster-configuration"
        self.link = folder / "paictl.py"
        self.link.symlink_to(os.path.realpath(binary()))

    def __call__(self, words, answer="pai\n"):
        return self.muster.run("./paictl.py", *words.split(), check=False, input=answer, cwd=self.link.parent)

    def write(self, config):
        """Edits hivedscheduler.config, as the course does by hand."""
        lines = "".join(f"    {line}\n" for line in (DATA / config).read_text().splitlines())
        text = "cluster:\n  common:\n    cluster-id: pai\nhivedscheduler:\n  config: |\n" + lines
        (self.configuration / "services-configuration.yaml").write_text(text)


def deployment(lab, paictl):
    log = lab.muster.log()
    for line in (
        f"Kubernetes cluster config :     {lab.muster.data}/kubeconfig",
        f"OpenPAI cluster config    :     {lab.muster.data}/pai-deploy/cluster-cfg",
        "OpenPAI cluster ID        :     pai",
        "Default username          :     admin",
        "Default password          :     admin-password",
    ):
        check(f"L0: the installer's last words: {line.split(' :')[0].strip()}", line in log, log[-2000:])
    machines = lab.muster.kubectl("get", "nodes", "-o", "name").stdout.split()
    check("L0: three nodes", sorted(machines) == [f"node/hostname-{one}" for one in ("bob", "carol", "dan")], machines)
    done = paictl("config get-id")
    check("L0: get-id prints pai", done.returncode == 0 and "Cluster-id is: pai" in done.stdout + done.stderr, done)
    clusters = lab.driver.virtual_clusters(BOB)[1]
    check("L0: one virtual cluster of two GPUs", clusters["default"]["resourcesTotal"]["gpu"] == 2, clusters)
    check("L0: no other", set(clusters) == {"default"}, clusters)
    check("L0: sku DT", set(lab.driver.sku_types(BOB, "default")[1]) == {"DT"})
    for name in (ALICE, CAROL, DAN):
        user = {"username": name, "password": f"{name}-password", "email": f"{name}@example.com"}
        check(f"L0: {name} is added", lab.driver.add_user(user)[0] in (200, 201))
        lab.driver.login(name, f"{name}-password")
    short = lab.driver.add_user({"username": "eve", "password": "short"})
    check("L0: a password of five characters is refused", short[1].get("code") == "InvalidParametersError", short)
    seen = lab.driver.user(ALICE)[1]
    check("L0: alice is no administrator", seen["admin"] is False and seen["virtualCluster"] == ["default"], seen)


def first_jobs(lab):
    """Everybody submits a single job to `default`."""
    for person in PEOPLE:
        lab.submit(person, "job-config-0", "single", vc="default")
    for person in PEOPLE[:2]:
        lab.until(person, "single", "RUNNING", "SUCCEEDED")
    now = [lab.state(person, "single") for person in PEOPLE]
    check("L0: two run at most, others wait", now.count("RUNNING") <= 2, now)
    details = [lab.ends(person, "single") for person in PEOPLE]
    check("L0: all four succeed", all(good(one) for one in details))
    used = {node for one in details for node in nodes(one)}
    check("L0: on both workers", used == {CAROLS, DANS}, used)
    bound = [lab.pods(person, "single")[0].bound for person in PEOPLE]
    check("L0: in the order of submission", bound == sorted(bound), bound)
    together = bound[2] - bound[0]
    check("L0: the third waited for a GPU", together >= TRAINING_S * 0.9, together)


def clusters_are(lab, wanted):
    return until(lambda: set(lab.raw("GET", "/virtual-clusters")[1]) == wanted, 20, 0.5)


def restart(lab, paictl, config, name):
    """Stop, push, start, as parts 4.1 and 4.5 have it. A wrong cluster id and a push alone change nothing."""
    before = set(lab.driver.virtual_clusters(BOB)[1])
    done = paictl(f"config pull -o {paictl.configuration}")
    check(f"{name}: config pull", done.returncode == 0, done)
    done = paictl("service stop -n rest-server hivedscheduler")
    check(f"{name}: service stop asks for the cluster id", done.returncode == 0 and "cluster-id" in done.stdout, done)
    check(f"{name}: REST is stopped then", until(lambda: lab.raw("GET", "/virtual-clusters")[0] == 503, 10))
    paictl.write(config)
    done = paictl(f"config push -p {paictl.configuration} -m service", "wrong\n")
    check(f"{name}: a wrong cluster id is refused", done.returncode == 1, done)
    pushed = pushed_text(lab)
    check(f"{name}: and nothing is pushed", (DATA / config).read_text().splitlines()[0] not in pushed, pushed)
    done = paictl(f"config push -p {paictl.configuration} -m service")
    check(f"{name}: the right one pushes", done.returncode == 0 and "cluster-id" in done.stdout, done)
    live = lab.muster.kubectl("get", "configmap", "-n", "kube-system", "muster-hived", "-o", "json").stdout
    check(f"{name}: which has no effect yet", (DATA / config).read_text().splitlines()[0] not in live, live)
    done = paictl("service start -n rest-server hivedscheduler")
    check(f"{name}: service start", done.returncode == 0, done)
    check(f"{name}: REST answers again", until(lambda: lab.raw("GET", "/virtual-clusters")[0] == 200, 20))
    return before


def pushed_text(lab):
    done = lab.muster.kubectl("get", "configmap", "-n", "kube-system", "muster-pai-services", "-o", "json", check=False)
    return done.stdout


def two_clusters(lab, paictl):
    """L1."""
    restart(lab, paictl, "hived-config-a.yaml", "L1")
    check("L1: default and vc1", clusters_are(lab, {"default", "vc1"}))
    lab.watcher.homes = {"default": {CAROLS}, "vc1": {DANS}}
    for name, vc in lab.driver.virtual_clusters(BOB)[1].items():
        right = vc["resourcesTotal"] == ONE and vc["resourcesGuaranteed"] == ONE
        check(f"L1: {name} is half of it, unused", right and vc["capacity"] == 50, vc)
        check(f"L1: {name} is unused", vc["resourcesUsed"]["gpu"] == 0, vc)
    check("L1: sku types", set(lab.raw("GET", "/cluster/sku-types")[1]) == {"GPU-C", "GPU-D"})
    check("L1: of vc1", set(lab.driver.sku_types(ALICE, "vc1")[1]) == {"GPU-D"})
    check("L1: of default", set(lab.driver.sku_types(ALICE, "default")[1]) == {"GPU-C"})
    there = until(lambda: lab.driver.group("vc1")[0] == 200, 10, 0.3)
    check("L1: group vc1", there and lab.driver.group("vc1")[1]["extension"]["acls"]["virtualClusters"] == ["vc1"])
    lab.submit(BOB, "job-config-0", "at-once")
    check("L1: the administrator uses vc1 at once", good(lab.ends(BOB, "at-once")))
    for person in (ALICE, CAROL, DAN):
        text = f"User {person} is not allowed to do operation in vc1"
        document = lab.document("job-config-0")
        lab.refused(f"L1: {person} is refused", person, document, 403, "ForbiddenUserError", text)
        lab.driver.change_user({"username": person, "virtualCluster": ["default", "vc1"]})
        seen = sorted(lab.driver.user(person)[1]["virtualCluster"])
        check(f"L1: {person} is granted vc1", seen == ["default", "vc1"], seen)
    document = lab.document("job-config-0", "two", instances=2)
    text = "Job requests 2 SKUs, exceeds maximum 1 SKUs in VC vc1."
    lab.refused("L1: a gang of two in vc1 is refused", ALICE, document, 400, "InvalidProtocolError", text)
    document = lab.document("job-config-0", "elsewhere", sku={"skuType": "GPU-C"})
    text = "VC vc1 only allows GPU-D"
    lab.refused("L1: another cluster's sku is refused", ALICE, document, 400, "InvalidProtocolError", text)
    name = lab.submit(ALICE, "job-config-4", "guest", sku={"skuType": "GPU-C"})
    check("L1: unless the job is opportunistic", nodes(lab.until(ALICE, name, "RUNNING")) == [CAROLS])
    lab.stop(ALICE, name)


def one_cluster(lab, paictl):
    """L5."""
    restart(lab, paictl, "hived-config-b.yaml", "L5")
    check("L5: default alone", clusters_are(lab, {"default"}))
    lab.watcher.homes = {"default": {CAROLS, DANS}}
    total = lab.driver.virtual_clusters(BOB)[1]["default"]["resourcesTotal"]
    check("L5: with everything", (total["gpu"], total["cpu"], total["memory"]) == (2, 4, 8192), total)
    check("L5: sku type GPU", set(lab.driver.sku_types(ALICE, "default")[1]) == {"GPU"})
    gone = until(lambda: lab.driver.group("vc1")[1].get("code") == "NoGroupError", 10, 0.3)
    check("L5: group vc1 is gone", gone, lambda: lab.driver.group("vc1"))
    for person in (ALICE, CAROL, DAN):
        grant = until(lambda: lab.driver.user(person)[1]["virtualCluster"] == ["default"], 10, 0.3)
        check(f"L5: and {person}'s grant", grant, lambda: lab.driver.user(person))
    for person in PEOPLE:
        text = f"User {person} is not allowed to do operation in vc1"
        document = lab.document("job-config-0", "late")
        lab.refused(f"L5: {person} cannot use vc1", person, document, 403, "ForbiddenUserError", text)
    old = {one["name"] for one in lab.driver.jobs(ALICE, vc="vc1")[1]}
    check("L5: old jobs are listed with vc1", {"job-config-0", "job-config-1", "job-config-4"} <= old, old)


def dev_box(folder):
    box = pathlib.Path(folder) / "dev-box"
    box.mkdir()
    return box
