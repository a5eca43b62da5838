"""Pods that really run: every promise of the node agent, checked with the real kubectl.

    python3 tests/agent/pods.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, host_folder, pod, run, terminated, until  # noqa: E402
from muster import Muster  # noqa: E402


@check
def a_pod_runs_and_its_log_can_be_read(c):
    c.create(pod("hello", "echo hello; echo oops >&2; exit 3"))
    p = c.phase("hello", "Failed")
    equal(terminated(p)["exitCode"], 3)
    equal(terminated(p)["reason"], "Error")
    text = c.logs("hello")
    assert sorted(text.splitlines()) == ["hello", "oops"], text
    assert p["status"]["podIP"] and p["status"]["hostIP"] and p["status"]["startTime"]
    equal(p["status"]["observedGeneration"], p["metadata"]["generation"])


@check
def events_have_the_texts_users_know(c):
    c.create(pod("texts", "sleep 100"))
    c.running("texts")
    equal(
        c.wait_event("texts", "Pulled"),
        ("Normal", "Pulled", 'Container image "busybox:1.36" already present on machine'),
    )
    equal(c.wait_event("texts", "Created"), ("Normal", "Created", "Created container main"))
    equal(c.wait_event("texts", "Started"), ("Normal", "Started", "Started container main"))
    c.muster.kubectl("delete", "pod", "texts")
    equal(c.wait_event("texts", "Killing"), ("Normal", "Killing", "Stopping container main"))


@check
def environment_comes_from_everywhere(c):
    c.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"colour": "blue", "size": "9"},
        },
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}, "stringData": {"password": "pa ss"}},
        pod(
            "env",
            'echo "$A|$B|$C|$D|$E|$F|$G|$PRE_size|$H"',
            metadata={"labels": {"app": "x"}},
            container={
                "args": ["unused"],
                "resources": {"limits": {"cpu": "1500m", "memory": "64Mi"}},
                "envFrom": [{"prefix": "PRE_", "configMapRef": {"name": "settings"}}],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "value": "$(A)-$(NOPE)-$$(A)"},
                    {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                    {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
                    {"name": "E", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "password"}}},
                    {"name": "F", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "G", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
                    {"name": "H", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
            },
        ),
    )
    p = c.phase("env", "Succeeded", "Failed")
    equal(c.logs("env").strip(), f"1|1-$(NOPE)-$(A)|x|blue|pa ss|2|64|9|{p['spec']['nodeName']}")


@check
def a_missing_configmap_is_waited_for(c):
    c.create(
        pod(
            "late",
            "echo $X",
            container={"env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "latecomer", "key": "k"}}}]},
        )
    )
    p = c.wait(
        "late",
        lambda p: p
        and any(
            s["state"].get("waiting", {}).get("reason") == "CreateContainerConfigError"
            for s in p["status"].get("containerStatuses", [])
        ),
        what="CreateContainerConfigError",
    )
    equal(p["status"]["containerStatuses"][0]["state"]["waiting"]["message"], 'configmap "latecomer" not found')
    c.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "latecomer"}, "data": {"k": "here"}})
    c.phase("late", "Succeeded")
    equal(c.logs("late"), "here\n")


@check
def volumes_of_every_kind(c):
    host = host_folder("muster-hostpath-")
    (pathlib.Path(host) / "f").write_text("from host\n")
    script = """cat /v/config/colour /v/secret/password /v/down/labels /v/host/f; echo; cat /v/proj/a/name; echo
                df -k /dev/shm | tail -1 | awk '{print $2}'; echo mine > /v/empty/x; cat /v/other/x; stat -c %a /v/secret/..data/password
                echo kept > /v/claim/data; ls /var/run/secrets/kubernetes.io/serviceaccount | tr '\\n' ' '"""
    mounts = [
        {"name": n, "mountPath": f"/v/{n}"} for n in ("config", "secret", "down", "host", "proj", "empty", "claim")
    ]
    c.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vol-settings"}, "data": {"colour": "blue\n"}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "vol-hidden"},
            "stringData": {"password": "secret\n"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "claim"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
        pod(
            "volumes",
            script,
            metadata={"labels": {"app": "x"}},
            container={
                "volumeMounts": mounts
                + [{"name": "empty", "mountPath": "/v/other"}, {"name": "shm", "mountPath": "/dev/shm"}]
            },
            volumes=[
                {"name": "config", "configMap": {"name": "vol-settings"}},
                {"name": "secret", "secret": {"secretName": "vol-hidden", "defaultMode": 0o400}},
                {
                    "name": "down",
                    "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
                },
                {"name": "host", "hostPath": {"path": host}},
                {"name": "empty", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}},
                {
                    "name": "proj",
                    "projected": {
                        "sources": [
                            {"downwardAPI": {"items": [{"path": "a/name", "fieldRef": {"fieldPath": "metadata.name"}}]}}
                        ]
                    },
                },
            ],
        ),
    )
    p = c.phase("volumes", "Succeeded", "Failed")
    lines = c.logs("volumes").split("\n")
    equal(
        lines[:9],
        ["blue", "secret", 'app="x"from host', "", "volumes", "8192", "mine", "400", "ca.crt namespace token "],
    )
    equal(terminated(p)["exitCode"], 0)
    c.create(
        pod(
            "claim-again",
            "cat /data/data",
            container={"volumeMounts": [{"name": "claim", "mountPath": "/data"}]},
            volumes=[{"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}}],
        )
    )
    c.phase("claim-again", "Succeeded")
    equal(c.logs("claim-again"), "kept\n")


@check
def a_mounted_configmap_follows_changes(c):
    c.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "moving"}, "data": {"k": "one"}},
        pod(
            "follower",
            "cat /c/k; echo; until grep -q two /c/k; do sleep 0.05; done; cat /c/k",
            container={"volumeMounts": [{"name": "c", "mountPath": "/c"}]},
            volumes=[{"name": "c", "configMap": {"name": "moving"}}],
        ),
    )
    c.running("follower")
    c.muster.kubectl("patch", "configmap", "moving", "-p", '{"data":{"k":"two"}}')
    c.phase("follower", "Succeeded")
    equal(c.logs("follower"), "one\ntwo")


@check
def init_containers_run_in_order_and_sidecars_stay(c):
    shared = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    c.create(
        pod(
            "ordered",
            "cat /d/log; test -e /d/side-up && echo sidecar was first",
            container=shared,
            volumes=[{"name": "d", "emptyDir": {}}],
            initContainers=[
                {"name": "first", "image": "x", "command": ["sh", "-c", "echo first >> /d/log"], **shared},
                {
                    "name": "side",
                    "image": "x",
                    "restartPolicy": "Always",
                    "command": ["sh", "-c", "trap 'exit 0' TERM; touch /d/side-up; while :; do sleep 0.1; done"],
                    "startupProbe": {"exec": {"command": ["test", "-e", "/d/side-up"]}, "periodSeconds": 1},
                    **shared,
                },
                {"name": "second", "image": "x", "command": ["sh", "-c", "echo second >> /d/log"], **shared},
            ],
        )
    )
    c.phase("ordered", "Succeeded")
    equal(c.logs("ordered", "-c", "main"), "first\nsecond\nsidecar was first\n")


@check
def a_failed_init_container_fails_the_pod(c):
    c.create(pod("bad-init", "echo never", initContainers=[{"name": "broken", "image": "x", "command": ["false"]}]))
    c.phase("bad-init", "Failed")
    assert "Init:Error" in c.muster.kubectl("get", "pod", "bad-init").stdout


@check
def containers_of_a_pod_share_network_and_hostname(c):
    server = "import socket; s=socket.socket(); s.bind(('127.0.0.1',7001)); s.listen(); c,_=s.accept(); c.sendall(b'shared'); c.close()"
    client = "import socket,time\nwhile 1:\n try: print(socket.create_connection(('127.0.0.1',7001)).recv(9).decode(), socket.gethostname()); break\n except OSError: time.sleep(.05)"
    c.create(
        pod(
            "two",
            container={"command": ["python3", "-c", server]},
            hostname="chosen",
        )
    )
    text = json.dumps(pod("pair", container={"command": ["python3", "-c", server]}, hostname="chosen"))
    both = json.loads(text)
    both["spec"]["containers"].append({"name": "client", "image": "x", "command": ["python3", "-c", client]})
    c.create(both)
    c.phase("pair", "Succeeded")
    equal(c.logs("pair", "-c", "client"), "shared chosen\n")
    c.muster.kubectl("delete", "pod", "two", "--force")


@check
def restart_policies_and_crash_loop(c):
    c.create(
        pod("crashing", "echo try; exit 1", restartPolicy="Always"),
        pod(
            "once",
            "test -e /kept/ran || { touch /kept/ran; exit 1; }",
            restartPolicy="OnFailure",
            container={"volumeMounts": [{"name": "kept", "mountPath": "/kept"}]},
            volumes=[{"name": "kept", "emptyDir": {}}],
        ),
    )
    p = c.wait(
        "crashing",
        lambda p: p
        and p["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("reason")
        == "CrashLoopBackOff",
        what="CrashLoopBackOff",
    )
    status = p["status"]["containerStatuses"][0]
    equal(status["restartCount"], 1)
    equal(status["lastState"]["terminated"]["exitCode"], 1)
    equal(
        status["state"]["waiting"]["message"],
        f"back-off 10s restarting failed container=main pod=crashing_default({p['metadata']['uid']})",
    )
    equal(p["status"]["phase"], "Running")
    equal(c.logs("crashing", "-p"), "try\n")
    c.wait_event("crashing", "BackOff")
    p = c.phase("once", "Succeeded")
    equal(p["status"]["containerStatuses"][0]["restartCount"], 1)
    c.wait(
        "crashing",
        lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 2,
        timeout=20,
        what="second restart after 10 s",
    )


@check
def a_command_that_does_not_exist(c):
    c.create(pod("nowhere", container={"command": ["no-such-program"]}))
    p = c.phase("nowhere", "Failed")
    equal(terminated(p)["reason"], "StartError")
    equal(terminated(p)["exitCode"], 128)
    assert "executable file not found" in terminated(p)["message"]


@check
def too_much_memory_is_oomkilled(c):
    c.create(
        pod(
            "hungry",
            container={
                "command": ["python3", "-c", "x = bytearray(300*1024*1024)"],
                "resources": {"limits": {"memory": "64Mi"}},
            },
        )
    )
    p = c.phase("hungry", "Failed")
    equal((terminated(p)["reason"], terminated(p)["exitCode"]), ("OOMKilled", 137))


@check
def probes_decide_about_ready_and_restart(c):
    http = "import http.server,os\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(s):\n  ok = os.path.exists('/d/ok') or s.path != '/ready'\n  s.send_response(200 if ok else 503); s.end_headers()\n def log_message(s,*a): pass\nhttp.server.HTTPServer(('',7002),H).serve_forever()"
    c.create(
        pod(
            "probed",
            container={
                "command": ["python3", "-c", http],
                "volumeMounts": [{"name": "d", "mountPath": "/d"}],
                "ports": [{"name": "web", "containerPort": 7002}],
                "startupProbe": {"tcpSocket": {"port": 7002}, "periodSeconds": 1, "failureThreshold": 30},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1},
            },
            volumes=[{"name": "d", "emptyDir": {}}],
        ),
        pod(
            "sick",
            "sleep 1000",
            restartPolicy="Always",
            terminationGracePeriodSeconds=1,
            container={"livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}},
        ),
    )
    p = c.running("probed")
    c.wait_event("probed", "Unhealthy")
    p = c.get("pod", "probed")
    equal(p["status"]["containerStatuses"][0]["ready"], False)
    c.muster.kubectl("exec", "probed", "--", "touch", "/d/ok")
    c.ready("probed")
    c.muster.kubectl("exec", "probed", "--", "rm", "/d/ok")
    c.wait("probed", lambda p: not p["status"]["containerStatuses"][0]["ready"], what="unready again")
    c.wait(
        "sick",
        lambda p: p and p["status"].get("containerStatuses", [{"restartCount": 0}])[0]["restartCount"] > 0,
        what="liveness restart",
    )
    equal(c.wait_event("sick", "Killing")[2], "Container main failed liveness probe, will be restarted")
    c.muster.kubectl("delete", "pod", "probed", "sick", "--force")


@check
def hooks_and_grace(c):
    host = host_folder("muster-hooks-")
    volume = {"volumes": [{"name": "h", "hostPath": {"path": host}}]}
    c.create(
        pod(
            "hooked",
            "trap 'echo term >> /h/log; exit 0' TERM; while :; do sleep 0.05; done",
            container={
                "volumeMounts": [{"name": "h", "mountPath": "/h"}],
                "lifecycle": {
                    "postStart": {"exec": {"command": ["sh", "-c", "echo started >> /h/log"]}},
                    "preStop": {"exec": {"command": ["sh", "-c", "echo stopping >> /h/log"]}},
                },
            },
            **volume,
        ),
        pod("stubborn", "trap '' TERM; while :; do sleep 0.05; done", terminationGracePeriodSeconds=1),
    )
    c.running("hooked")
    c.running("stubborn")
    begun = time.monotonic()
    c.muster.kubectl("delete", "pod", "hooked", "stubborn")
    took = time.monotonic() - begun
    assert 1 <= took < 10, took
    equal((pathlib.Path(host) / "log").read_text(), "started\nstopping\nterm\n")


@check
def a_deadline_ends_the_pod(c):
    c.create(pod("limited", "sleep 1000", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1))
    p = c.phase("limited", "Failed")
    equal(
        (p["status"]["reason"], p["status"]["message"]),
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
    )


@check
def names_of_services_and_pods_resolve(c):
    selector = {"app": "named"}
    c.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "headless"},
            "spec": {"clusterIP": "None", "selector": selector, "ports": [{"port": 80}]},
        },
        pod("named-0", "sleep 1000", metadata={"labels": selector}, hostname="named-0", subdomain="headless"),
    )
    p = c.ready("named-0")
    ip = p["status"]["podIP"]
    names = "headless headless.default headless.default.svc headless.default.svc.cluster.local named-0.headless named-0.headless.default.svc named-0"
    c.create(
        pod(
            "asker",
            f"for n in {names}; do i=0; until getent hosts $n || [ $i = 100 ]; do i=$((i+1)); sleep 0.1; done; done; hostname; getent hosts asker; getent hosts nope.default.svc.cluster.local || echo none",
        )
    )
    c.phase("asker", "Succeeded", timeout=90)
    lines = c.logs("asker").splitlines()
    equal([line.split()[0] for line in lines[:7]], [ip] * 7)
    equal((lines[7], lines[8].split()[0], lines[9]), ("asker", c.get("pod", "asker")["status"]["podIP"], "none"))
    c.muster.kubectl("delete", "pod", "named-0", "--force")


@check
def a_pod_can_use_the_api(c):
    script = """import json, os, ssl, urllib.request
d='/var/run/secrets/kubernetes.io/serviceaccount/'
ctx=ssl.create_default_context(cafile=d+'ca.crt')
r=urllib.request.Request('https://%s:%s/version'%(os.environ['KUBERNETES_SERVICE_HOST'],os.environ['KUBERNETES_SERVICE_PORT']),headers={'Authorization':'Bearer '+open(d+'token').read()})
print(json.load(urllib.request.urlopen(r,context=ctx))['major'])"""
    c.create(pod("inside", container={"command": ["python3", "-c", script]}))
    c.phase("inside", "Succeeded", "Failed")
    equal(c.logs("inside"), "1\n")


@check
def gpus_are_given_by_index(c):
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    c.create(
        *[
            pod(
                f"gpu-{i}",
                "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES; sleep 1000",
                container=gpu,
                nodeName="node-1",
            )
            for i in range(2)
        ]
    )
    seen = []
    for i in range(2):
        c.running(f"gpu-{i}")
        c.wait(f"gpu-{i}", lambda p: c.logs(f"gpu-{i}"), what="log")
        cuda, nvidia = c.logs(f"gpu-{i}").split()
        equal(cuda, nvidia)
        seen += cuda.split(",")
    equal(sorted(seen), ["0", "1", "2", "3"])
    c.muster.kubectl("delete", "pod", "gpu-0", "gpu-1", "--force")


@check
def top_shows_usage(c):
    assert "metrics.k8s.io/v1beta1" in c.muster.kubectl("api-versions").stdout
    c.create(pod("busy", "x=$(head -c 30000000 /dev/zero | tr '\\0' x); while :; do :; done"))
    c.running("busy")
    deadline = time.monotonic() + 20
    while True:
        done = c.muster.kubectl("top", "pod", "busy", "--no-headers", check=False)
        words = done.stdout.split()
        if done.returncode == 0 and len(words) == 3 and int(words[1][:-1]) > 100 and int(words[2][:-2]) > 10:
            break
        assert time.monotonic() < deadline, done
        time.sleep(0.5)
    assert "node-0" in c.muster.kubectl("top", "node").stdout
    c.muster.kubectl("delete", "pod", "busy", "--force")


@check
def nodes_have_leases_and_are_ready(c):
    node = c.get("node", "node-0")
    equal([x["status"] for x in node["status"]["conditions"] if x["type"] == "Ready"], ["True"])
    lease = json.loads(c.muster.kubectl("get", "lease", "-n", "kube-node-lease", "node-0", "-o", "json").stdout)
    equal(lease["spec"]["holderIdentity"], "node-0")
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("process://")


@check
def hollow_nodes_only_seem_to_run(c):
    node = c.get("node", "node-0")
    c.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "hollow-0",
                "annotations": {"muster.dev/hollow": "true"},
                "labels": {"kubernetes.io/hostname": "hollow-0"},
            },
        }
    )
    c.muster.kubectl(
        "patch",
        "node",
        "hollow-0",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": {"capacity": node["status"]["capacity"], "allocatable": node["status"]["allocatable"]}}),
    )
    c.create(
        pod(
            "ghost",
            container={"command": ["/no/such/program"]},
            nodeName="hollow-0",
            metadata={"annotations": {"muster.dev/hollow-duration": "1s", "muster.dev/hollow-exit-code": "4"}},
        ),
        pod("forever", container={"command": ["/no/such/program"]}, nodeName="hollow-0"),
    )
    c.phase("ghost", "Running", "Failed")
    p = c.phase("ghost", "Failed")
    equal(terminated(p)["exitCode"], 4)
    c.phase("forever", "Running")
    c.muster.kubectl("delete", "pod", "forever", timeout=20)
    c.muster.kubectl("delete", "node", "hollow-0")  # or pods of later checks end up there


@check
def pods_survive_kill_9_of_muster(c):
    host = host_folder("muster-survive-")
    c.create(
        pod(
            "survivor",
            "echo before; until test -e /h/go; do sleep 0.02; done; echo after; exit 9",
            container={"volumeMounts": [{"name": "h", "mountPath": "/h"}]},
            volumes=[{"name": "h", "hostPath": {"path": host}}],
        ),
        pod("orphan", "while :; do sleep 1; done"),
    )
    before = c.running("survivor")
    c.running("orphan")
    c.muster.kill()
    (pathlib.Path(host) / "go").touch()  # it ends while nobody looks
    c.muster.start()
    p = c.phase("survivor", "Failed")
    equal(p["metadata"]["uid"], before["metadata"]["uid"])
    equal(terminated(p)["containerID"], before["status"]["containerStatuses"][0]["containerID"])
    equal(terminated(p)["exitCode"], 9)
    equal(c.logs("survivor"), "before\nafter\n")
    p = c.running("orphan")
    equal(p["status"]["containerStatuses"][0]["restartCount"], 0)
    c.muster.kubectl("delete", "pod", "orphan", "--now")
    c.gone("orphan")


@check
def what_a_pod_did_is_not_lost_with_muster(c):
    """Pods that ended well before muster could say so have succeeded, whether it ends in order then or not."""
    folder = pathlib.Path(host_folder("muster-ends-"))
    mounted = {
        "container": {"volumeMounts": [{"name": "h", "mountPath": "/h"}]},
        "volumes": [{"name": "h", "hostPath": {"path": str(folder)}}],
    }
    for way, end in (("stop", c.muster.stop), ("kill", c.muster.kill)):
        names = [f"{way}-{i}" for i in range(80)]

        def seen():
            return json.loads(c.muster.kubectl("get", "pods", "-l", f"way={way}", "-o", "json").stdout)["items"]

        def phases():
            return {item["status"]["phase"] for item in seen()}

        script = f"until test -e /h/{way}; do sleep 0.1; done; touch /h/ended-$HOSTNAME"
        labels = {"labels": {"way": way}}
        c.create(*[pod(name, script, metadata=labels, **mounted) for name in names])
        until("all of them to run", lambda: phases() == {"Running"}, 60)
        c.muster.process.send_signal(signal.SIGSTOP)
        try:
            (folder / way).touch()
            until("pods that have ended", lambda: all((folder / f"ended-{name}").exists() for name in names), 60)
            # Heard together with all that the pods' supervisors have told meanwhile.
            if way == "stop":
                c.muster.process.send_signal(signal.SIGTERM)
        finally:
            c.muster.process.send_signal(signal.SIGCONT)
        end()
        c.muster.start()
        equal(
            until("all of them to have ended", lambda: not phases() & {"Pending", "Running"} and phases()),
            {"Succeeded"},
        )
        c.muster.kubectl("delete", "pods", "-l", f"way={way}", "--now")


if __name__ == "__main__":
    run(Muster)
