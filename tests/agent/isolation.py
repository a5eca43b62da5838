"""What a container may see and do: users, groups, capabilities, namespaces, limits, root file systems, devices and the
outside network.

    python3 tests/agent/isolation.py [NAME…]      only the checks whose name contains a NAME
"""
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, host_folder, output, pod, run, terminated, until  # noqa: E402
from checks import Skipped, skip_all  # noqa: E402
from muster import Muster  # noqa: E402


@check
def users_and_groups(c):
    text = output(
        c,
        "who",
        "id -u; id -g; id -G; echo $HOME; touch /data/f /mem/f; stat -c '%g %a' /data /mem; stat -c %g /data/f; cat /conf/k; stat -c '%g %a' /conf/..data/k",
        securityContext={"runAsUser": 1234, "runAsGroup": 4321, "fsGroup": 777, "supplementalGroups": [555]},
        container={
            "volumeMounts": [
                {"name": "d", "mountPath": "/data"},
                {"name": "m", "mountPath": "/mem"},
                {"name": "s", "mountPath": "/conf"},
            ]
        },
        volumes=[
            {"name": "d", "emptyDir": {}},
            {"name": "m", "emptyDir": {"medium": "Memory"}},
            {
                "name": "s",
                "downwardAPI": {
                    "defaultMode": 0o400,
                    "items": [{"path": "k", "fieldRef": {"fieldPath": "metadata.name"}}],
                },
            },
        ],
    )
    lines = text.replace("who", "who\n").split()
    equal(lines[:2], ["1234", "4321"])
    equal(sorted(lines[2:5]), ["4321", "555", "777"])
    equal(lines[5:], ["/", "777", "2777", "777", "2777", "777", "who", "777", "440"])


@check
def a_container_that_must_not_be_root(c):
    c.create(pod("noroot", "id -u", securityContext={"runAsNonRoot": True}))
    p = c.wait(
        "noroot",
        lambda p: p
        and p["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("reason")
        == "CreateContainerConfigError",
        what="refusal",
    )
    message = p["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert message.startswith('container has runAsNonRoot and image will run as root (pod: "noroot_default('), message
    c.muster.kubectl("delete", "pod", "noroot", "--force")


@check
def capabilities_are_the_usual_ones(c):
    show = "grep CapBnd /proc/self/status | cut -f2"
    equal(
        output(c, "caps-usual", show), "00000000a00425fb\n"
    )  # what containerd and Docker give, but MKNOD: nobody makes itself a device
    equal(
        output(c, "caps-none", show, container={"securityContext": {"capabilities": {"drop": ["ALL"]}}}),
        "0000000000000000\n",
    )
    equal(
        output(
            c,
            "caps-one",
            show,
            container={"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}},
        ),
        "0000000000001000\n",
    )
    every = int(output(c, "caps-every", show, container={"securityContext": {"privileged": True}}), 16)
    assert every & (1 << 21), hex(every)  # SYS_ADMIN
    equal(output(c, "caps-mount", "mount -t tmpfs x /mnt 2>/dev/null || echo refused"), "refused\n")


@check
def a_read_only_root_and_no_new_privileges(c):
    text = output(
        c,
        "readonly",
        "touch /muster-ro 2>/dev/null || echo refused; touch /d/x && echo written; grep NoNewPrivs /proc/self/status | cut -f2",
        container={
            "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
            "volumeMounts": [{"name": "d", "mountPath": "/d"}],
        },
        volumes=[{"name": "d", "emptyDir": {}}],
    )
    equal(text, "refused\nwritten\n1\n")


@check
def namespaces_of_the_machine_on_request(c):
    own = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid", "ipc", "uts")}
    show = "for n in net pid ipc uts; do readlink /proc/self/ns/$n; done"
    lines = output(c, "ns-own", show).split()
    assert not set(lines) & set(own.values()), lines
    lines = output(c, "ns-host", show, hostNetwork=True, hostPID=True, hostIPC=True).split()
    equal(lines[:3], [own["net"], own["pid"], own["ipc"]])


@check
def containers_may_share_their_processes(c):
    both = pod("shared", "exec sleep 1234.5", shareProcessNamespace=True)
    both["spec"]["containers"].append(
        {
            "name": "looker",
            "image": "x",
            "command": [
                "sh",
                "-c",
                "until pgrep -f '[s]leep 1234.5' >/dev/null; do sleep 0.05; done; pkill -f '[s]leep 1234.5'; echo seen",
            ],
        }
    )
    c.create(both)
    c.phase("shared", "Failed", "Succeeded")
    equal(c.logs("shared", "-c", "looker"), "seen\n")


@check
def sub_paths(c):
    text = output(
        c,
        "subpath",
        "cat /one/f; echo two > /two/g; ls /all; cat /all/sub-subpath/g",
        initContainers=[
            {
                "name": "fill",
                "image": "x",
                "command": ["sh", "-c", "mkdir /all/a; echo one > /all/a/f"],
                "volumeMounts": [{"name": "d", "mountPath": "/all"}],
            }
        ],
        container={
            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [
                {"name": "d", "mountPath": "/all"},
                {"name": "d", "mountPath": "/one", "subPath": "a"},
                {"name": "d", "mountPath": "/two", "subPathExpr": "sub-$(POD)"},
            ],
        },
        volumes=[{"name": "d", "emptyDir": {}}],
    )
    equal(text, "one\na\nsub-subpath\ntwo\n")


@check
def memory_volumes_have_their_size(c):
    text = output(
        c,
        "memory",
        "df -k /m /dev/shm | awk 'NR>1 {print $1, $2}'; dd if=/dev/zero of=/m/big bs=1M count=5 2>&1 | grep -c 'No space left'",
        container={"volumeMounts": [{"name": "m", "mountPath": "/m"}]},
        volumes=[{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}],
    )
    equal(text.splitlines()[0], "tmpfs 4096")
    equal(text.splitlines()[2], "1")


@check
def termination_messages(c):
    c.create(
        pod("last-words", "echo -n goodbye > /tmp/words; exit 2", container={"terminationMessagePath": "/tmp/words"}),
        pod("log-words", "echo from the log; exit 2", container={"terminationMessagePolicy": "FallbackToLogsOnError"}),
    )
    equal(terminated(c.phase("last-words", "Failed"))["message"], "goodbye")
    equal(terminated(c.phase("log-words", "Failed"))["message"], "from the log\n")


@check
def limits_are_applied_and_can_be_changed(c):
    limits = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
    c.create(pod("limited", "sleep 1000", container={"resources": limits}))
    p = c.running("limited")
    uid = p["metadata"]["uid"]

    def setting(*names):
        for name in names:
            found = subprocess.run(
                ["find", "/sys/fs/cgroup", "-path", f"*{uid}_main/{name}"], capture_output=True, text=True
            ).stdout.split()
            if found:
                return pathlib.Path(found[0]).read_text().split()[0]
        raise AssertionError(f"no group of pod {uid} with {names}")

    equal(setting("memory.max", "memory.limit_in_bytes"), str(128 << 20))
    equal(setting("cpu.max", "cpu.cfs_quota_us"), "20000")
    resized = {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "64Mi"},
                        "limits": {"cpu": "400m", "memory": "256Mi"},
                    },
                }
            ]
        }
    }
    c.muster.kubectl("patch", "pod", "limited", "--subresource", "resize", "-p", json.dumps(resized))
    deadline = time.monotonic() + 20
    while setting("cpu.max", "cpu.cfs_quota_us") != "40000":
        assert time.monotonic() < deadline, "resize did not reach the group"
        time.sleep(0.05)
    equal(setting("memory.max", "memory.limit_in_bytes"), str(256 << 20))
    equal(c.get("pod", "limited")["status"]["containerStatuses"][0]["restartCount"], 0)
    c.muster.kubectl("delete", "pod", "limited", "--force")


@check
def an_image_can_be_a_directory(c):
    text = output(
        c,
        "rooted",
        None,
        container={
            "image": "registry.example/small:1",
            "args": [
                "cat /hello; ls /; echo $FROM_IMAGE; pwd; echo x > /hello; ls -A /dev | tr '\\n' ' '; cat /proc/1/comm"
            ],
        },
    )
    lines = text.splitlines()
    equal(lines[0], "from the image")
    assert "work" in lines and "root" not in lines, lines  # this machine's own directories are not there
    equal(lines[-3:-1], ["yes", "/work"])
    devices = lines[-1].split()
    assert "null" in devices and not {"sda", "vda", "mem", "nvidia0"} & set(devices), devices
    equal((c.small / "hello").read_text(), "from the image\n")  # what a container writes stays its own
    c.create(pod("pulls", "true", container={"image": "registry.example/small:1", "imagePullPolicy": "Always"}))
    c.phase("pulls", "Succeeded", "Failed")
    equal(c.wait_event("pulls", "Pulled")[2], 'Container image "registry.example/small:1" already present on machine')


@check
def a_host_port_leads_to_the_pod(c):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    c.create(
        pod(
            "web",
            container={
                "command": ["python3", "-m", "http.server", "7010"],
                "workingDir": "/etc",
                "ports": [{"containerPort": 7010, "hostPort": port}],
                "readinessProbe": {"tcpSocket": {"port": 7010}, "periodSeconds": 1},
            },
        )
    )
    c.ready("web")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=10) as answer:
        equal(answer.read(), b"web\n")
    c.muster.kubectl("delete", "pod", "web", "--force")
    c.gone("web")


@check
def a_host_port_carries_udp(c):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    echo = "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',7012))\nwhile 1: d,a=s.recvfrom(65536); s.sendto(b'echo '+d,a)"
    c.create(
        pod(
            "datagrams",
            container={
                "command": ["python3", "-c", echo],
                "ports": [{"containerPort": 7012, "hostPort": port, "protocol": "UDP"}],
            },
        )
    )
    c.running("datagrams")

    def ask(client, text):
        client.sendto(text, ("127.0.0.1", port))
        try:
            return client.recv(65536)
        except TimeoutError:
            return None

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as two:
        one.settimeout(0.5)
        two.settimeout(2)
        until("an answer", lambda: ask(one, b"one") == b"echo one")  # python needs its time to listen
        equal(ask(two, b"two" * 5000), b"echo " + b"two" * 5000)  # each sender gets its own answer
        equal(ask(one, b"more"), b"echo more")
    c.muster.kubectl("delete", "pod", "datagrams", "--force")
    c.gone("datagrams")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        again.bind(("0.0.0.0", port))  # closed with the pod


@check
def a_host_port_for_sctp_is_refused_aloud(c):
    c.create(
        pod(
            "streams",
            "exec sleep 1000",
            container={"ports": [{"containerPort": 7014, "hostPort": 7014, "protocol": "SCTP"}]},
        )
    )
    c.running("streams")
    equal(
        c.wait_event("streams", "HostPortNotSupported"),
        (
            "Warning",
            "HostPortNotSupported",
            "Host port 7014 is not opened: SCTP is not forwarded on this node, only TCP and UDP are",
        ),
    )
    c.muster.kubectl("delete", "pod", "streams", "--force")


@check
def a_host_port_keeps_half_closed_connections(c):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Answers only when the client has said everything, as `nc -N` or an HTTP/1.0 upload may.
    server = "import socket\ns=socket.socket(); s.bind(('',7013)); s.listen()\nwhile 1:\n c,_=s.accept(); n=0\n while d:=c.recv(65536): n+=len(d)\n c.sendall(b'%d bytes'%n); c.close()"
    c.create(
        pod(
            "patient-server",
            container={
                "command": ["python3", "-c", server],
                "ports": [{"containerPort": 7013, "hostPort": port}],
                "readinessProbe": {"tcpSocket": {"port": 7013}, "periodSeconds": 1},
            },
        )
    )
    c.ready("patient-server")
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(b"x" * 300_000)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while more := s.recv(100):
            answer += more
        equal(answer, b"300000 bytes")
    c.muster.kubectl("delete", "pod", "patient-server", "--force")


@check
def services_have_addresses_of_their_own(c):
    if not shutil.which("iptables"):
        raise Skipped("no iptables")
    selector = {"app": "backend"}
    server = "import http.server,socket\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(s):\n  b=socket.gethostname().encode(); s.send_response(200); s.send_header('Content-Length',str(len(b))); s.end_headers(); s.wfile.write(b)\n def log_message(s,*a): pass\nhttp.server.ThreadingHTTPServer(('',7011),H).serve_forever()"
    backends = [
        pod(
            f"backend-{i}",
            metadata={"labels": selector},
            container={
                "command": ["python3", "-c", server],
                "ports": [{"name": "web", "containerPort": 7011}],
                "readinessProbe": {"tcpSocket": {"port": 7011}, "periodSeconds": 1},
            },
        )
        for i in range(2)
    ]
    c.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "backend"},
            "spec": {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
        },
        *backends,
    )
    for i in range(2):
        c.ready(f"backend-{i}")
    address = c.get("service", "backend")["spec"]["clusterIP"]
    ask = """import os, time, urllib.request, socket
seen, end = set(), time.time() + 30
while len(seen) < 2 and time.time() < end:
    for where in ('backend', os.environ['BACKEND_SERVICE_HOST'] + ':' + os.environ['BACKEND_SERVICE_PORT']):
        try: seen.add(urllib.request.urlopen('http://%s/' % where, timeout=2).read().decode())
        except OSError: time.sleep(0.1)
print(socket.gethostbyname('backend'), *sorted(seen))"""
    c.create(pod("frontend", container={"command": ["python3", "-c", ask]}))
    c.phase("frontend", "Succeeded", "Failed", timeout=60)
    equal(c.logs("frontend"), f"{address} backend-0 backend-1\n")
    # One goes away: the address leads to the other alone.
    c.muster.kubectl("delete", "pod", "backend-0", "--now")
    c.gone("backend-0")
    deadline = time.monotonic() + 20
    while True:
        rules = subprocess.run(["iptables-save", "-t", "nat"], capture_output=True, text=True).stdout
        if len([line for line in rules.splitlines() if f"-d {address}/32" in line and "DNAT" in line]) == 1:
            break
        assert time.monotonic() < deadline, rules
        time.sleep(0.05)
    c.create(
        pod(
            "again",
            container={
                "command": [
                    "python3",
                    "-c",
                    "import urllib.request\nprint({urllib.request.urlopen('http://backend/', timeout=5).read().decode() for i in range(8)})",
                ]
            },
        )
    )
    c.phase("again", "Succeeded", "Failed")
    equal(c.logs("again"), "{'backend-1'}\n")
    c.muster.kubectl("delete", "service", "backend")
    c.muster.kubectl("delete", "pod", "backend-1", "--force")


@check
def names_of_a_headless_service_follow_its_pods(c):
    selector = {"app": "moving"}
    c.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "moving"},
            "spec": {"clusterIP": "None", "selector": selector, "ports": [{"port": 80}]},
        },
        pod("moving-0", "sleep 1000", metadata={"labels": selector}),
        pod(
            "watcher",
            "while :; do getent ahostsv4 moving | awk '{print $1}' | sort -u | tr '\\n' ' '; echo; sleep 0.1; done",
        ),
    )
    first = c.ready("moving-0")["status"]["podIP"]

    def shows(wanted):
        c.wait("watcher", lambda p: c.logs("watcher", "--tail=1").split() == wanted, what=f"the name leads to {wanted}")

    shows([first])
    c.create(pod("moving-1", "sleep 1000", metadata={"labels": selector}))
    shows(sorted([first, c.ready("moving-1")["status"]["podIP"]]))
    c.muster.kubectl("delete", "pod", "moving-0", "--now")
    shows([c.get("pod", "moving-1")["status"]["podIP"]])
    c.muster.kubectl("delete", "pod", "moving-1", "watcher", "--force")
    c.muster.kubectl("delete", "service", "moving")


@check
def pods_have_one_address_and_loopback(c):
    # No IPv6 addresses on links: each pod would tell all others of its own.
    text = output(
        c,
        "addresses",
        "cut -d' ' -f6- /proc/net/if_inet6 | tr -d ' '; ip -o -4 addr show scope global | wc -l; python3 -c \"import socket; s=socket.socket(socket.AF_INET6); s.bind(('::1',0))\"",
    )
    equal(text.split(), ["lo", "1"])


@check
def pods_reach_beyond_the_machine(c):
    if not shutil.which("iptables") or not shutil.which("ip"):
        raise Skipped("no iptables")
    route = subprocess.run(["ip", "-j", "route", "get", "192.0.2.254"], capture_output=True, text=True)
    address = json.loads(route.stdout)[0]["prefsrc"] if route.returncode == 0 else None
    if not address:
        raise Skipped("this machine has no address but loopback")
    # A listener on the machine's outer address stands for the world: what arrives must not carry a pod's address.
    with socket.socket() as server:
        server.bind((address, 0))
        server.listen()
        server.settimeout(30)
        c.create(
            pod(
                "leaver",
                container={
                    "command": [
                        "python3",
                        "-c",
                        f"import socket; s=socket.create_connection(('{address}',{server.getsockname()[1]}),10); print(s.recv(10).decode())",
                    ]
                },
            )
        )
        peer, _ = server.accept()
        peer.sendall(b"hello")
        peer.close()
    c.phase("leaver", "Succeeded", "Failed")
    equal(c.logs("leaver"), "hello\n")
    bridge = json.loads((c.muster.data / "agent" / "network.json").read_text())["bridge"]
    rules = subprocess.run(["iptables-save", "-t", "nat"], capture_output=True, text=True).stdout
    assert re.search(rf"-A MUSTER-OUT-{bridge[4:]} -s 10\.\d+\.0\.0/16 ! -o {bridge} -j MASQUERADE", rules), rules
    equal(pathlib.Path("/proc/sys/net/ipv4/ip_forward").read_text(), "1\n")


@check
def a_pod_uses_the_api_as_its_account(c):
    c.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "reads-pods"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "reads-pods"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads-pods"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        },
    )
    from muster import kubectls

    # Where pods see it, wherever this repository was cloned: below /tmp they would not.
    kubectl = shutil.copy(kubectls()[0][1], host_folder("muster-kubectl-", "/opt"))
    os.chmod(os.path.dirname(kubectl), 0o755)
    text = output(
        c,
        "insider",
        f"echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT; {kubectl} get pod insider -o name; {kubectl} get secrets 2>&1 | grep -o 'cannot list resource \"secrets\"'; {kubectl} auth whoami -o jsonpath='{{.status.userInfo.username}}'",
        serviceAccountName="reader",
    )
    lines = text.splitlines()
    if not shutil.which("iptables"):  # then the API is reached by name
        lines[0] = lines[0].replace("kubernetes.default.svc:" + lines[0].split(":")[1], "10.96.0.1:443")
    equal(
        lines,
        ["10.96.0.1:443", "pod/insider", 'cannot list resource "secrets"', "system:serviceaccount:default:reader"],
    )


@check
def tokens_belong_to_one_pod(c):
    c.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bound"}},
        pod(
            "holder",
            "exec sleep 1000",
            serviceAccountName="bound",
            container={"volumeMounts": [{"name": "t", "mountPath": "/tokens"}]},
            volumes=[
                {
                    "name": "t",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 700}}
                        ]
                    },
                }
            ],
        ),
    )
    p = c.running("holder")
    own = c.muster.kubectl("exec", "holder", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token").stdout
    vault = c.muster.kubectl("exec", "holder", "--", "cat", "/tokens/vault").stdout

    def claims(token):
        body = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))

    def review(token, *audiences):
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, **({"audiences": list(audiences)} if audiences else {})},
        }
        return json.loads(c.muster.kubectl("create", "-o", "json", "-f", "-", input=json.dumps(body)).stdout)["status"]

    equal(claims(own)["kubernetes.io"]["pod"], {"name": "holder", "uid": p["metadata"]["uid"]})
    equal((claims(vault)["aud"], claims(vault)["exp"] - claims(vault)["iat"]), (["vault"], 700))
    seen = review(own)
    equal(
        (
            seen.get("authenticated"),
            seen["user"]["username"],
            seen["user"]["extra"]["authentication.kubernetes.io/pod-name"],
        ),
        (True, "system:serviceaccount:default:bound", ["holder"]),
    )
    equal(review(vault).get("authenticated", False), False)  # meant for somebody else
    equal(review(vault, "vault").get("authenticated"), True)
    c.muster.kubectl("delete", "pod", "holder", "--force")
    c.gone("holder")
    equal(review(own).get("authenticated", False), False)  # gone with its pod
    equal(review(vault, "vault").get("authenticated", False), False)


GRPC_SERVER = r"""
import socket, struct, threading
def frame(kind, flags, stream, body): return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body
def literal(name, value): return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
def serve(c):
    got = b""
    def need(n):
        nonlocal got
        while len(got) < n:
            more = c.recv(4096)
            if not more: raise SystemExit
            got += more
        head, got = got[:n], got[n:]
        return head
    need(24); c.sendall(frame(4, 0, 0, b""))
    while True:
        head = need(9); size = int.from_bytes(head[:3], "big"); kind, flags = head[3], head[4]; stream = int.from_bytes(head[5:], "big"); body = need(size)
        if kind == 4 and not flags & 1: c.sendall(frame(4, 1, 0, b""))
        if kind == 0 and flags & 1:
            asked = body[5:]
            status = 1 if asked in (b"", b"\x0a\x04good") else 2
            c.sendall(frame(1, 4, stream, b"\x88" + literal(b"content-type", b"application/grpc")) + frame(0, 0, stream, b"\x00\x00\x00\x00\x02\x08" + bytes([status])) + frame(1, 5, stream, literal(b"grpc-status", b"0")))
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(("", 7020)); s.listen()
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


@check
def a_grpc_probe_asks_the_health_service(c):
    c.create(
        pod(
            "healthy",
            container={
                "command": ["python3", "-c", GRPC_SERVER],
                "readinessProbe": {"grpc": {"port": 7020, "service": "good"}, "periodSeconds": 1},
            },
        ),
        pod(
            "unhealthy",
            container={
                "command": ["python3", "-c", GRPC_SERVER],
                "readinessProbe": {"grpc": {"port": 7020, "service": "bad!"}, "periodSeconds": 1},
            },
        ),
    )
    c.ready("healthy")
    deadline = time.monotonic() + 20
    while not any(
        m == 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'
        for t, r, m in c.events("unhealthy")
        if r == "Unhealthy"
    ):
        assert time.monotonic() < deadline, c.events("unhealthy")
        time.sleep(0.1)
    equal(c.get("pod", "unhealthy")["status"]["containerStatuses"][0]["ready"], False)
    c.muster.kubectl("delete", "pod", "healthy", "unhealthy", "--force")


@check
def ephemeral_containers_join_a_running_pod(c):
    c.create(pod("patient", "exec sleep 4321"))
    c.running("patient")
    done = c.muster.kubectl(
        "debug",
        "patient",
        "--image=x",
        "--target=main",
        "--container=doctor",
        "--attach=false",
        "--",
        "sh",
        "-c",
        "pgrep -f '[s]leep 4321' > /dev/null && echo found",
        check=False,
    )
    equal((done.returncode, done.stderr if done.returncode else ""), (0, ""))
    p = c.wait(
        "patient",
        lambda p: any("terminated" in s["state"] for s in p["status"].get("ephemeralContainerStatuses", [])),
        what="the ephemeral container ends",
    )
    equal(p["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0)
    equal(c.logs("patient", "-c", "doctor"), "found\n")
    equal(p["status"]["phase"], "Running")
    c.muster.kubectl("delete", "pod", "patient", "--force")


@check
def long_logs_are_rotated(c):
    # 35 MB: at least three files are full. Every line of what is kept comes back in order, across files.
    c.create(
        pod(
            "wordy",
            "i=0; while [ $i -lt 35 ]; do head -c 1048576 /dev/zero | tr '\\0' x | fold -w 1023; i=$((i+1)); done; echo; echo the end; sleep 1000",
        )
    )
    c.running("wordy")
    c.wait("wordy", lambda p: "the end" in c.logs("wordy", "--tail=1"), what="the end")
    uid = c.get("pod", "wordy")["metadata"]["uid"]
    files = sorted(f for f in os.listdir(c.muster.data / "agent" / "pods" / uid) if f.startswith("main_"))
    assert (
        4 <= len(files) <= 5
        and files[0] == "main_0.log"
        and all(re.fullmatch(r"main_0\.log\.\d{8}-\d{6}\.\d{9}", f) for f in files[1:])
    ), files
    text = c.logs("wordy")
    assert len(text) > 35 * 1048576 and text.endswith("the end\n"), len(text)
    tail = c.logs("wordy", "--tail=30000").splitlines()
    equal((len(tail), tail[-1]), (30000, "the end"))
    c.muster.kubectl("delete", "pod", "wordy", "--force")


@check
def followed_logs_go_on_across_rotation(c):
    from muster import kubectls

    c.create(pod("stream", 'i=0; while [ $i -lt 24 ]; do seq -f "$i.%0100g" 10000; i=$((i+1)); done'))
    c.wait("stream", lambda p: p and p["status"]["phase"] != "Pending", what="started")
    text = subprocess.run(
        [kubectls()[0][1], "logs", "-f", "stream"], capture_output=True, text=True, timeout=120, env=c.muster.env()
    ).stdout
    lines = text.splitlines()
    equal(len(lines), 240000)
    for i, line in enumerate(lines):
        if line.split(".")[0] != str(i // 10000) or int(line.split(".")[1]) != i % 10000 + 1:
            raise AssertionError(f"line {i}: {line}")


def make_muster():
    data = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
    small = data / "small"
    (small / "bin").mkdir(parents=True)
    (small / "work").mkdir()
    (small / "hello").write_text("from the image\n")
    wanted = {"/bin/sh", "/bin/cat", "/bin/ls", "/usr/bin/tr", "/bin/true"}
    for program in list(wanted):
        for word in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split():
            if word.startswith("/"):
                wanted.add(word)
    for path in wanted:
        target = small / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    images = data / "images.yaml"
    images.write_text(
        f'images:\n- name: "registry.example/small:*"\n  root: {small}\n  entrypoint: [/bin/sh, -c]\n  env: {{FROM_IMAGE: "yes", PATH: "/bin:/usr/bin"}}\n  workingDir: /work\n'
    )
    muster = Muster("--images", str(images), data=data)
    muster.own_data = True
    return muster


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip_all("isolation needs root")
    import agent_checks

    made = make_muster()
    agent_checks.Cluster.small = made.data / "small"
    run(lambda: made)
