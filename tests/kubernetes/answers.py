#!/usr/bin/env python3
"""Answers on a real API server: checks 26 and 27. Two replicas of `muster run` keep records and serve answers.muster.dev behind the
APIService of deploy/overlays/answers, with the rights of the account there; questions go through the API server, as users ask them.
"""
import base64
import collections
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import muster as muster_fixture  # noqa: E402
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402

check = Checks()
OVERLAY = ROOT / "deploy" / "overlays" / "answers"
GROUP = "/apis/answers.muster.dev/v1"


def own_address():
    """An EndpointSlice may not name a loopback address, so the machine's own is taken. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


class World:
    def __init__(self, real, cluster, address):
        self.real, self.cluster, self.address = real, cluster, address
        self.replicas = {}  # port -> process

    def install(self):
        real = self.real
        self.cluster.install()
        for item in yaml.safe_load_all(
            (OVERLAY / "rights.yaml").read_text() + "---\n" + (OVERLAY / "service.yaml").read_text()
        ):
            self.cluster.create(item)
        self.certificate()
        for name in ("vision", "speech"):
            real.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            real.api("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        # No controller manager gathers the built-in roles here.
        for role in ("muster-view", "muster-edit"):
            real.kubectl("create", "rolebinding", role, "-n", "vision", f"--clusterrole={role}", "--user=jane")
        real.kubectl("create", "clusterrole", "pods", "--verb=*", "--resource=pods")
        real.kubectl("create", "rolebinding", "pods", "-n", "vision", "--clusterrole=pods", "--user=jane")
        for name in ("node-a", "node-b"):
            self.cluster.add_node(name)

    def certificate(self):
        host = "muster-answers.muster-system.svc"
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.real.kubeconfig),
            "PATH": f"{real_kubernetes.BIN}:{os.environ['PATH']}",
        }
        script = ROOT / "deploy" / "overlays" / "webhook" / "certificate"
        done = subprocess.run(
            [script, "muster-system", host, "muster-answers"], env=environment, text=True, capture_output=True
        )
        check("26 the script makes the certificate", done.returncode == 0, done.stderr)
        secret = self.real.api("GET", "/api/v1/namespaces/muster-system/secrets/muster-answers")["data"]
        for name in ("tls.crt", "tls.key"):
            (self.real.dir / name).write_bytes(base64.b64decode(secret[name]))
        service = self.real.api("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.answers.muster.dev")
        check("26 the APIService trusts it", service["spec"].get("caBundle") == secret["tls.crt"], service["spec"])

    def start(self):
        port = real_kubernetes.free_port()
        self.replicas[port] = self.cluster.start(
            "--leader-elect",
            "--history=90d,200000",
            f"--answers-listen={self.address}:{port}",
            f"--answers-certificate={self.real.dir / 'tls.crt'}",
            f"--answers-key={self.real.dir / 'tls.key'}",
        )
        check(
            "26 a replica listens",
            until(lambda: f"answers are served at port {port}" in self.cluster.log(), 60),
            self.tail,
        )
        return port

    def tail(self):
        return self.cluster.log()[-1500:]

    def leads_to(self):
        slices = self.real.api("GET", "/apis/discovery.k8s.io/v1/namespaces/muster-system/endpointslices")["items"]
        return [port["port"] for one in slices for port in one["ports"]]

    def raw(self, path, *args, body=None):
        """(answer, error) of a question through the API server."""
        verb = ["create", "--raw", GROUP + path, "-f", "-"] if body is not None else ["get", "--raw", GROUP + path]
        done = self.real.kubectl(*verb, *args, check=False, **({"input": json.dumps(body)} if body is not None else {}))
        return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr)

    def answers(self, path="/when"):
        return self.raw(path)[0] is not None

    def cli(self, *args, user=None):
        """A command as somebody types it, with their own rights."""
        kubeconfig = self.real.kubeconfig
        if user:
            kubeconfig = self.real.dir / f"{user}-kubeconfig"
            named = self.real.kubeconfig.read_text().replace(
                f"{{token: {self.real.token}}}", f"{{token: {self.real.token}, as: {user}}}"
            )
            kubeconfig.write_text(named)
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(self.real.dir)}
        return subprocess.run(
            [muster_fixture.binary(), *args], env=environment, text=True, capture_output=True, timeout=60
        )

    def direct(self, port, certificate, headers):
        """What a replica says to whoever comes past the API server."""
        context = ssl.create_default_context(cafile=str(self.real.dir / "tls.crt"))
        context.check_hostname = False
        if certificate:
            context.load_cert_chain(
                str(self.real.dir / f"{certificate}.crt"), str(self.real.dir / f"{certificate}.key")
            )
        request = urllib.request.Request(f"https://{self.address}:{port}{GROUP}/when", headers=headers)
        try:
            with urllib.request.urlopen(request, context=context, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except (ssl.SSLError, OSError):
            return 0  # the handshake was refused


def pod(name, ns="vision", gpus=4, lasts="10m", user="jane"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": ns,
            "labels": {"user": user},
            "annotations": {"muster.dev/expected-duration": lasts},
        },
        "spec": {
            "schedulerName": "muster",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}],
        },
    }


def bound(world, name, ns="vision"):
    return world.real.api("GET", f"/api/v1/namespaces/{ns}/pods/{name}")["spec"].get("nodeName")


def busy(world):
    """A run that is over, two that fill the nodes, three that wait."""
    cluster = world.cluster
    cluster.create(pod("ended"))
    check("26 a pod is placed", until(lambda: bound(world, "ended"), 30), world.tail)
    ended = world.real.api("GET", "/api/v1/namespaces/vision/pods/ended")
    cluster.set_phase(ended, "Running", "vision")
    cluster.set_phase(ended, "Succeeded", "vision")
    until(lambda: world.real.api("GET", "/api/v1/namespaces/vision/pods/ended")["status"]["phase"] == "Succeeded", 20)
    cluster.create(pod("gpt-a"), pod("secret-b", "speech", lasts="30m", user="sam"))
    until(lambda: bound(world, "gpt-a") and bound(world, "secret-b", "speech"), 30)
    for name, ns in (("gpt-a", "vision"), ("secret-b", "speech")):
        cluster.set_phase(world.real.api("GET", f"/api/v1/namespaces/{ns}/pods/{name}"), "Running", ns)
    cluster.create(pod("llama"), pod("hidden", "speech", user="sam"), pod("huge", gpus=64))


def check_26_questions(world):
    check("26 the APIService is available", until(world.answers, 60), lambda: world.raw("/when")[1] + world.tail())
    waits = lambda: {one["job"]: one for one in world.raw("/when")[0]["items"]}  # noqa: E731
    until(lambda: len(waits()) == 3, 30)
    said = waits()
    check("26 when: all that waits", set(said) == {"vision/pod/llama", "speech/pod/hidden", "vision/pod/huge"}, said)
    start = said.get("vision/pod/llama", {}).get("start", {})
    check("26 with a time, by what its predecessors declare", start.get("basis") == "known" and start.get("p50"), start)
    one, wrong = world.raw("/namespaces/vision/jobs/pod.llama/explain")
    check("26 one job, with what would start it now", one and one["alternatives"] and one["waitsFor"], one or wrong)
    table = world.cli("when", "-A").stdout
    check("26 `muster when -A`", re.search(r"llama +4 +1 of 3 .* known +gpt-a", table), table)
    text = world.cli("explain", "llama", "-n", "vision").stdout
    check("26 `muster explain`", "Starts about" in text and "waits for gpt-a" in text, text)
    if_more = world.cli("whatif", "--add-nodes", "1x4")
    check("26 `muster whatif`", "start earlier" in if_more.stdout, if_more)
    manifest = world.real.dir / "draft.yaml"
    manifest.write_text(yaml.safe_dump(pod("draft")))
    asked = world.cli("when", "-f", str(manifest), "-n", "vision", "--exit-code", user="jane")
    check(
        "26 `muster when -f` in somebody's name",
        asked.returncode == 10 and "draft (4 GPUs) waits" in asked.stdout,
        asked,
    )
    left = world.real.api("GET", "/api/v1/namespaces/vision/pods")["items"]
    check("26 nothing of it is stored", "draft" not in [p["metadata"]["name"] for p in left])
    past = world.cli("history", "ended", "-n", "vision", user="jane")
    check("26 `muster history JOB`", "ended      SUCCEEDED" in past.stdout, past)
    used = world.cli("report", "usage", "--by", "user")
    check("26 `muster report usage`", re.search(r"^jane +", used.stdout, re.M), used)
    watch = subprocess.Popen(
        [muster_fixture.binary(), "when", "-A", "--watch"],
        env={**os.environ, "KUBECONFIG": str(world.real.kubeconfig), "HOME": str(world.real.dir)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        first = [watch.stdout.readline() for _ in range(2)]
        check("26 `muster when --watch`", first[0].startswith("NAME"), first)
    finally:
        watch.kill()
        watch.wait()


def check_26_strangers(world, leader, standby):
    mine, wrong = world.raw("/when", "--as=jane")
    check(
        "26 jane sees her own and the others as a number",
        mine and mine["others"]["jobs"] == 1 and "hidden" not in json.dumps(mine),
        mine or wrong,
    )
    theirs, wrong = world.raw("/namespaces/speech/when", "--as=jane")
    check(
        "26 the API server itself keeps her out of speech",
        theirs is None and "forbidden" in wrong.lower(),
        theirs or wrong,
    )
    told, wrong = world.raw("/namespaces/vision/jobs/pod.llama/explain", "--as=jane")
    check("26 nor does what she is told name them", told and "secret-b" not in json.dumps(told), told or wrong)
    records, wrong = world.raw("/namespaces/vision/records", "--as=jane")
    check(
        "26 records of her namespace",
        records and {r["namespace"] for r in records["items"]} == {"vision"},
        records or wrong,
    )
    all_of_it, wrong = world.raw("/whatifs", "--as=jane", body={"changes": []})
    check("26 what-if is for those who may", all_of_it is None and "forbidden" in wrong.lower(), all_of_it or wrong)
    admin = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
    check(
        "26 a replica that stands by answers 503",
        world.direct(standby, "front", admin) == 503,
        world.direct(standby, "front", admin),
    )
    check("26 the leader answers the API server", world.direct(leader, "front", admin) == 200, world.tail)
    check("26 headers without its certificate are nobody's", world.direct(leader, None, admin) in (0, 401))
    check("26 nor with another authority's", world.direct(leader, "other", admin) in (0, 401))
    check("26 nor is the certificate anybody without a name", world.direct(leader, "front", {}) == 401)


def check_26_takeover(world, leader):
    """The leader dies without a word."""
    kept = {r["uid"]: r["state"] for r in world.raw("/records")[0]["items"]}
    judged = world.raw("/accuracy")[0]
    process = world.replicas[leader]
    process.send_signal(signal.SIGKILL)
    process.wait()
    begun = time.monotonic()
    back = until(world.answers, 60, 0.1)
    took = time.monotonic() - begun
    check(f"26 answers again {took:.1f} s after the leader was killed (15 or less)", back and took <= 15, world.tail)
    now = {r["uid"]: r["state"] for r in world.raw("/records")[0]["items"]}
    check("26 the history is kept", kept and set(kept) <= set(now), (kept, now))
    check("26 and so is what was judged", world.raw("/accuracy")[0] == judged, (judged, world.raw("/accuracy")))
    check("26 a stand-by takes the Service over", world.leads_to() and leader not in world.leads_to(), world.leads_to())


def check_27(world, gangs=300):
    """Annotations of many waiting gangs: twenty a second."""
    for i in range(gangs):
        world.real.api(
            "POST",
            "/apis/scheduling.volcano.sh/v1beta1/namespaces/vision/podgroups",
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": f"g{i}"},
                "spec": {"minMember": 1, "queue": "default"},
            },
        )
        member = pod(f"g{i}-0")
        member["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = f"g{i}"
        world.real.api("POST", "/api/v1/namespaces/vision/pods", member)
    asked = lambda: world.raw(f"/queues/default/when?limit={gangs}")[0] or {"items": []}  # noqa: E731
    until(lambda: len(asked()["items"]) >= gangs, 60, 1)

    def writes():
        out = collections.Counter()
        for line in world.real.audit_log.read_text().splitlines():
            event = json.loads(line)
            if (
                event["verb"] == "patch"
                and event["objectRef"].get("resource") == "podgroups"
                and "subresource" not in event["objectRef"]
            ):
                out[event["requestReceivedTimestamp"][:19]] += 1
        return out

    marked = lambda: sum(  # noqa: E731
        "muster.dev/expected-start" in one["metadata"].get("annotations", {})
        for one in world.real.api("GET", "/apis/scheduling.volcano.sh/v1beta1/namespaces/vision/podgroups")["items"]
    )
    check("27 gangs that wait carry when they start", until(lambda: asked() and marked() >= 60, 60, 1), marked)
    per_second = writes()
    check("27 at most 20 are written a second", per_second and max(per_second.values()) <= 21, per_second)


def main():
    address = own_address()
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    if address is None or address.startswith("127."):
        skip_all("this machine has no address but loopback, which an EndpointSlice may not name")
    real = real_kubernetes.RealKubernetes(audit=True)
    real.pass_on_users()
    # Nothing routes to Services here: the API server goes to their endpoints itself.
    real.apiserver_args.append("--enable-aggregator-routing=true")
    with real:
        world = World(real, Deployed(real), address)
        try:
            world.install()
            leader = world.start()
            check("26 the Service leads to the leader", until(lambda: world.leads_to() == [leader], 60), world.tail)
            standby = world.start()
            busy(world)
            check_26_questions(world)
            check_26_strangers(world, leader, standby)
            check_26_takeover(world, leader)
            check_27(world)
            denied = [line for line in world.cluster.log().splitlines() if "orbidden" in line]
            check("26 the rights of deploy/overlays/answers are enough", not denied, denied[:5])
        finally:
            world.cluster.stop()
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
