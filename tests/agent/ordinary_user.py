"""`muster up` without root, where the kernel lets every user create user namespaces: pods have a root, processes, volumes and a
network of their own, and the README's first job and the first documents of docs/seeds.md run. Numbers are those of the acceptance
list that docs/security.md sums up.

    python3 tests/agent/ordinary_user.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import Cluster, check, equal, host_folder, output, pod, run, terminated, until  # noqa: E402
from checks import Skipped, skip_all  # noqa: E402
from muster import ROOT, Muster  # noqa: E402
from other_ways import OrdinaryUser, without_user_namespaces  # noqa: E402

TESTS = pathlib.Path(__file__).resolve().parents[1]


@check
def a_pod_has_a_root_of_its_own(c):
    script = """id -u; id -g; echo $HOME; hostname; cat /proc/1/comm; ls /proc | grep -c '^[0-9]'
touch /root/x /run/x /tmp/x /var/tmp/x /etc/x /opt/x /var/lib/x /x && mkdir -p /data/deep && echo writes
ls -A /home/*; test -d /run/sshd && python3 -c 'print(1)'; grep Seccomp: /proc/self/status | cut -f2
touch /usr/x 2>/dev/null || echo refused"""
    lines = output(c, "own", script).split()
    equal(lines[:5], ["0", "0", "/root", "own", "muster-init"])
    assert int(lines[5]) < 10, lines
    equal(lines[6:], ["writes", "muster", "1", "2", "refused"])
    for path in ("/etc/x", "/opt/x", "/x", "/data/deep"):
        assert not os.path.exists(path), path


@check
def check_24_secrets_and_sockets_are_out_of_reach(c):
    data = c.muster.data
    names = ("pki/admin.token", "pki/ca.key", "kubeconfig", "muster.db", "api.sock", "agent/keeper.sock")
    for name in names:
        assert (data / name).exists(), name
    secret = c.user.home / "secret"
    secret.write_text("canary\n")
    os.chown(secret, c.user.uid, c.user.gid)
    script = f"ls -A {data} 2>/dev/null; " + "".join(f"cat {data}/{n} 2>/dev/null; " for n in names)
    equal(output(c, "spy", script + f"cat {secret} 2>/dev/null; ls -A /var/log; echo tried"), "tried\n")
    connect = f"import socket\ntry: socket.socket(socket.AF_UNIX).connect('{data}/api.sock'); print('in')\nexcept OSError: print('out')"
    equal(output(c, "caller", None, container={"command": ["python3", "-c", connect]}), "out\n")
    ways = [
        "mount -t tmpfs x /mnt",
        "umount /proc/sys",
        "unshare -U true",
        "nsenter -t 1 -m true",
        "mount --bind / /mnt",
    ]
    script = "".join(f"{one} >/dev/null 2>&1 && echo did {one.split()[0]}; " for one in ways) + "echo tried"
    equal(output(c, "ways", script), "tried\n")
    done = c.muster.kubectl("get", "pod", "spy", "-o", "jsonpath={.status.phase}").stdout
    equal(done, "Succeeded")


@check
def volumes_are_mounted(c):
    path = pathlib.Path(host_folder("muster-mine-"))
    os.chown(path, c.user.uid, c.user.gid)
    c.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"k": "secret\n"}})
    volumes = [
        {"name": "s", "secret": {"secretName": "key", "defaultMode": 0o400}},
        {"name": "h", "hostPath": {"path": str(path)}},
        {"name": "e", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}},
    ]
    mounts = [{"name": v["name"], "mountPath": f"/mnt/{v['name']}"} for v in volumes]
    script = "cat /mnt/s/k; echo mine > /mnt/h/f; touch /mnt/e/x /mnt/m/x && df -k /mnt/m | awk 'NR>1 {print $2}'; test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token"
    equal(output(c, "volumes", script, volumes=volumes, container={"volumeMounts": mounts}), "secret\n4096\ntoken\n")
    equal(((path / "f").read_text(), (path / "f").stat().st_uid), ("mine\n", c.user.uid))


@check
def a_container_may_name_its_user(c):
    text = output(
        c, "named", "id -u; id -g; touch /tmp/x && echo writes", securityContext={"runAsUser": 1234, "runAsGroup": 4321}
    )
    equal(text, "1234\n4321\nwrites\n")


@check
def pods_have_a_network_of_their_own(c):
    """Addresses, names of services and pods, probes, the API, port-forward's way in, ports such as 80."""
    server = {"command": ["python3", "-m", "http.server", "80"], "workingDir": "/etc", "ports": [{"containerPort": 80}]}
    probe = {"httpGet": {"path": "/hostname", "port": 80}, "periodSeconds": 1}
    labels = {"app": "web"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    c.create(service)
    c.create(
        *[pod(f"web-{i}", metadata={"labels": labels}, container={**server, "readinessProbe": probe}) for i in range(2)]
    )
    addresses = {c.ready(f"web-{i}")["status"]["podIP"] for i in range(2)}
    equal(len(addresses), 2)
    get = "import urllib.request as u; print(u.urlopen('http://%s/hostname', timeout=10).read().decode().strip())"
    seen = output(c, "client", None, container={"command": ["python3", "-c", get % "web"]}).strip()
    assert seen in ("web-0", "web-1"), seen
    version = "import os, ssl, urllib.request as u; t = open('/var/run/secrets/kubernetes.io/serviceaccount/token').read(); c = ssl.create_default_context(cafile='/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'); print(u.urlopen(u.Request('https://%s:%s/version' % (os.environ['KUBERNETES_SERVICE_HOST'], os.environ['KUBERNETES_SERVICE_PORT']), headers={'Authorization': 'Bearer ' + t}), context=c, timeout=10).status)"
    equal(output(c, "asker", None, container={"command": ["python3", "-c", version]}), "200\n")
    equal(c.muster.kubectl("exec", "web-0", "--", "cat", "/etc/hostname").stdout, "web-0\n")
    c.muster.kubectl("delete", "pod", "--all", "--now")


class Beyond:
    """Another machine, as far as this one is concerned: a network namespace with a web server at 198.51.100.2."""

    name, address = "muster-beyond", "198.51.100.2"

    def __enter__(self):
        for words in (
            f"netns add {self.name}",
            f"link add {self.name} type veth peer name there netns {self.name}",
            f"addr add 198.51.100.1/30 dev {self.name}",
            f"link set {self.name} up",
            f"-n {self.name} addr add {self.address}/30 dev there",
            f"-n {self.name} link set there up",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        web = [
            "ip",
            "netns",
            "exec",
            self.name,
            "/usr/bin/python3",
            "-m",
            "http.server",
            "80",
            "--directory",
            "/var/empty",
        ]
        self.server = subprocess.Popen(web, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()
        subprocess.run(["ip", "netns", "delete", self.name], check=False)
        subprocess.run(["ip", "link", "delete", self.name], check=False, capture_output=True)


@check
def the_way_out_leads_beyond_this_machine(c):
    if not shutil.which("pasta") or not os.path.exists("/usr/sbin/iptables"):
        raise Skipped("no pasta, or no iptables")
    if not os.path.exists("/dev/net/tun"):
        raise Skipped("no /dev/net/tun")
    get = "import urllib.request as u, urllib.error as e\ntry: print(u.urlopen('http://%s/', timeout=10).status)\nexcept e.HTTPError as answer: print(answer.code)"
    with Beyond() as beyond:
        until(
            "its server answers",
            lambda: subprocess.run(["/usr/bin/python3", "-c", get % beyond.address], capture_output=True).returncode
            == 0,
        )
        text = output(c, "outward", None, container={"command": ["python3", "-c", get % beyond.address]})
        assert text in ("200\n", "404\n"), text
    # What listens on the machine's own loopback is not reached by that way.
    port = json.loads(c.muster.kubectl("config", "view", "-o", "json").stdout)["clusters"][0]["cluster"][
        "server"
    ].split(":")[-1]
    inward = f"import socket\ntry: socket.create_connection(('127.0.0.1', {port}), 2); print('in')\nexcept OSError: print('out')"
    equal(output(c, "inward", None, container={"command": ["python3", "-c", inward]}), "out\n")


@check
def kill_minus_nine_changes_nothing_for_pods(c):
    c.create(pod("stays", "while true; do date +%s; sleep 0.2; done"))
    before = c.running("stays")["status"]
    c.muster.kill()
    c.muster.start()
    after = c.running("stays")["status"]
    equal(after["containerStatuses"][0]["containerID"], before["containerStatuses"][0]["containerID"])
    equal((after["podIP"], after["containerStatuses"][0]["restartCount"]), (before["podIP"], 0))
    c.muster.kubectl("exec", "stays", "--", "true")
    c.muster.kubectl("delete", "pod", "stays", "--now")


@check
def what_is_missing_is_said_once(c):
    lines = [line for line in c.muster.log().splitlines() if "without root a pod has one user" in line]
    equal(len(lines), 2)  # started twice by now
    assert "pods share this machine's" not in c.muster.log()


@check
def the_first_job_of_the_readme(c):
    """As its own person, from an empty home."""
    data = c.user.home / ".muster"
    up = c.user.run(
        str(c.user.program),
        "up",
        "--nodes",
        "3",
        "--gpus",
        "4",
        "--detach",
        "--listen",
        "127.0.0.1:0",
        "--portal",
        "none",
    )
    equal(up.returncode, 0)
    try:
        with_config = {"KUBECONFIG": str(data / "kubeconfig")}
        words = "submit pytorch --name=hello --gpus=1 --workers=2 --image=any".split() + ["sh -c 'hostname; sleep 5'"]
        done = c.user.run(str(c.user.program), *words, **with_config)
        equal(done.returncode, 0)
        until(
            "the job succeeds",
            lambda: "SUCCEEDED" in c.user.run(str(c.user.program), "get", "hello", **with_config).stdout,
            timeout=90,
        )
        equal(c.user.run(str(c.user.program), "logs", "hello", **with_config).stdout.split()[-1], "hello-master-0")
    finally:
        down = c.user.run(str(c.user.program), "down")
    equal(down.returncode, 0)


@check
def the_demo(c):
    tools = c.user.home / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("demo.sh", "portal_seed"):
        shutil.copy(ROOT / "tools" / name, tools / name)
    done = c.user.run("bash", str(tools / "demo.sh"), MUSTER=str(c.user.program))
    equal((done.returncode, done.stderr[-2000:] if done.returncode else ""), (0, ""))


def plays(c, script):
    env = {**os.environ, "MUSTER": str(c.user.muster())}
    done = subprocess.run(
        [sys.executable, TESTS / "e2e" / script],
        env=env,
        capture_output=True,
        text=True,
        timeout=400,
        start_new_session=True,
    )
    assert done.returncode == 0 and " 0 failed" in done.stdout and "SKIPPED" not in done.stdout, done.stdout[-4000:]


@check
def seed_001_preemption_of_a_pytorch_job(c):
    plays(c, "pytorchjob_preemption.py")


@check
def seed_002_kubeflow_jobs_under_a_queue(c):
    plays(c, "kubeflow_volcano_queue.py")


@check
def what_is_mounted_on_the_machine_leaves_room_for_new_files(c):
    """A mount below /opt, such as another suite makes, rules out a layer over all of /opt."""
    mounts = "mount -t tmpfs x /opt && mkdir /opt/deep /opt/plain && mount -t tmpfs x /opt/deep && echo seen | tee /opt/deep/f >/opt/plain/f"
    before, os.environ["MUSTER"] = os.environ["MUSTER"], str(c.user.muster(before=mounts))
    try:
        with Muster("--portal", "none", nodes=1) as muster:
            script = """cat /opt/deep/f /opt/plain/f; touch /opt/x && mkdir /opt/y && echo writes
for f in /opt/deep/x /opt/plain/x; do touch $f 2>/dev/null || echo refused; done; ls /opt"""
            said = output(Cluster(muster), "mounted", script)
            equal(said.split(), "seen seen writes refused refused deep plain x y".split())
    finally:
        os.environ["MUSTER"] = before


@check
def without_user_namespaces_pods_run_still(c):
    """In the machine's own network and on its files, and muster says so."""
    if os.uname().machine != "x86_64":
        raise Skipped("the filter is for x86-64")
    program = without_user_namespaces(c.user.program)
    (c.user.home / "open").mkdir(exist_ok=True)
    os.chown(c.user.home / "open", c.user.uid, c.user.gid)
    before, os.environ["MUSTER"] = os.environ["MUSTER"], str(c.user.muster(program))
    try:
        with Muster("--portal", "none", nodes=1) as muster:
            other = Cluster(muster)
            other.create(pod("plain", "echo $HOSTNAME; id -u; exit 4"), pod("served", "exec sleep 1000"))
            equal(terminated(other.phase("plain", "Failed"))["exitCode"], 4)
            equal(other.logs("plain"), f"plain\n{c.user.uid}\n")
            other.running("served")
            equal(muster.kubectl("exec", "served", "--", "id", "-u").stdout, f"{c.user.uid}\n")
            lines = [line for line in muster.log().splitlines() if "pods share this machine's network" in line]
            equal(len(lines), 1)
            check_24_landlock_alone_closes_the_data_folder(other, lines[0])
            muster.kubectl("delete", "pod", "served", "--now")
    finally:
        os.environ["MUSTER"] = before


# Asks a socket of muster's for what only its owner may have: to start a program, to read a Secret.
ASK = """
import socket, sys
kind, path, words = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if kind == "seqpacket" else socket.SOCK_STREAM)
s.settimeout(10)
try:
    s.connect(path)
    s.sendall(words.encode())
    print(s.recv(65536)[:200].decode(errors="replace").split("\\r")[0] or "closed")
except OSError as e:
    print("closed" if isinstance(e, ConnectionError) else e)
"""


def check_24_landlock_alone_closes_the_data_folder(c, line):
    """Neither root nor namespaces: the kernel's Landlock keeps pods out of it, and its sockets give nothing away."""
    if "Landlock" in line:
        raise Skipped(line)
    assert "the data folder is closed to them" in line, line
    data = c.muster.data
    names = ("pki/admin.token", "pki/ca.key", "kubeconfig", "muster.db", "agent/key")
    spied = "".join(f"cat {data}/{n} 2>&1 | grep -c 'Permission denied'; rm -f {data}/{n} 2>/dev/null; " for n in names)
    spied += f"touch {data}/new 2>/dev/null && echo made; (echo > {data}/kubeconfig) 2>/dev/null; mv {data}/pki /var/tmp/pki 2>/dev/null && echo moved; echo tried"
    equal(output(c, "spy", spied), "1\n" * len(names) + "tried\n")
    equal(c.muster.kubectl("exec", "served", "--", "sh", "-c", spied).stdout, "1\n" * len(names) + "tried\n")
    for name in names:
        assert (data / name).stat().st_size > 0, name
    assert not (data / "new").exists()
    uid = c.get("pod", "served")["metadata"]["uid"]
    asked = [
        (
            "stream",
            "api.sock",
            "GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 401 Unauthorized\n",
        ),
        ("seqpacket", f"agent/run/{uid}/shim.sock", json.dumps({"op": "shutdown", "request": 1}), "closed\n"),
        ("seqpacket", "agent/keeper.sock", json.dumps({"op": "exit"}), "closed\n"),
    ]
    for i, (kind, name, words, answer) in enumerate(asked):
        assert (data / name).exists(), name
        command = ["python3", "-c", ASK, kind, str(data / name), words]
        equal(output(c, f"asks-{i}", None, container={"command": command}), answer)
    c.running("served")
    # What is beside the folder is open, as it is to the person.
    equal(
        output(c, "works", f"mktemp -p {c.user.home}/open >/dev/null && cat /etc/hostname >/dev/null && echo works"),
        "works\n",
    )
    # The next muster says the key and goes on with the same container.
    before = c.running("served")["status"]["containerStatuses"][0]["containerID"]
    c.muster.kill()
    c.muster.start()
    equal(c.running("served")["status"]["containerStatuses"][0]["containerID"], before)
    equal(c.muster.kubectl("exec", "served", "--", "echo", "here").stdout, "here\n")


def main():
    if os.geteuid() != 0:
        skip_all("needs root to make an ordinary user")
    Cluster.user = OrdinaryUser()
    os.environ["MUSTER"] = str(Cluster.user.muster())
    run(lambda: Muster("--portal", "none", nodes=2))


if __name__ == "__main__":
    main()
