"""A security review of an early version tried 27 things (docs/security.md lists them). Each attempt that needs only the API is repeated
here, from outside and as the same users, so that the same file shows what an older program answers:

    MUSTER=/path/to/an/older/muster python3 tests/security/review.py [NAME…]

Attempts from inside a pod (rows 1, 4, 5, 8, 19, 20) are in volumes.py, devices.py, files.py and host_pods.py.
"""
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402

CPU_S_MAX = 0.3  # of the whole program, for one request; the review saw 0.9 to 19.6 s
RBAC = "/apis/rbac.authorization.k8s.io/v1"
checks = []


def row(function):
    checks.append(function)
    return function


class World:
    def __init__(self, muster):
        self.muster = muster
        config = json.loads(muster.kubectl("config", "view", "--raw", "-o", "json").stdout)
        self.address = config["clusters"][0]["cluster"]["server"].split("//")[1]
        self.admin = config["users"][0]["user"]["token"]
        for ns in ("vision", "speech"):
            muster.kubectl("create", "namespace", ns)
        self.editor = self.account("vision", "editor", "edit")
        self.owner = self.account("vision", "owner", "admin")
        self.lowly = self.account("speech", "lowly", None)

    def account(self, ns, name, role):
        k = self.muster.kubectl
        k("create", "serviceaccount", name, "-n", ns)
        if role:
            k("create", "rolebinding", name, "-n", ns, f"--clusterrole={role}", f"--serviceaccount={ns}:{name}")
        return k("create", "token", name, "-n", ns).stdout.strip()

    def ask(self, method, path, body=None, token=None, kind="application/json", headers=None):
        connection = http.client.HTTPSConnection(self.address, timeout=60, context=ssl._create_unverified_context())
        sent = {"Authorization": f"Bearer {token or self.admin}", "Content-Type": kind, **(headers or {})}
        connection.request(method, path, body if isinstance(body, str) else body and json.dumps(body), sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.muster.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def pod(self, name, token=None, ns="vision", metadata=None, container=None, **spec):
        """Creates one; the status of the answer, and its text."""
        containers = spec.pop("containers", [{"name": "c", "image": "i", **(container or {})}])
        body = {"metadata": {"name": name, **(metadata or {})}, "spec": {"containers": containers, **spec}}
        return self.ask("POST", f"/api/v1/namespaces/{ns}/pods", body, token or self.editor)


def refused(answer, *statuses):
    assert answer[0] in (statuses or (403,)), answer


def cheap(w, *request, **more):
    before = w.cpu_s()
    answer = w.ask(*request, **more)
    took = w.cpu_s() - before
    assert took < CPU_S_MAX, f"{took:.2f} s of processor time; {answer[0]}"
    return answer


@row
def row_2_brackets_of_yaml(w):
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    refused(cheap(w, "POST", path, "[" * 40_000, w.lowly, "application/yaml"), 400)


@row
def row_3_a_token_outside_its_volume(w):
    source = {"serviceAccountToken": {"path": "../../canary"}}
    refused(w.pod("out", volumes=[{"name": "v", "projected": {"sources": [source]}}]), 422)


@row
def row_4_devices_by_an_annotation(w):
    refused(w.pod("grab", metadata={"annotations": {"muster.dev/gpu-indices": "0,1,2,3"}}))


@row
def row_5_cells_by_an_annotation(w):
    notes = {"hivedscheduler.microsoft.com/pod-bind-info": "{}", "muster.dev/gpu-indices": "0"}
    refused(w.pod("forged", metadata={"annotations": notes}, nodeName="node-0"))


@row
def row_6_granting_oneself_everything(w):
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "owner", "namespace": "vision"}
    body = {"metadata": {"name": "x"}, "roleRef": ref, "subjects": [subject]}
    refused(w.ask("POST", f"{RBAC}/namespaces/vision/rolebindings", body, w.owner))
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    refused(w.ask("POST", f"{RBAC}/namespaces/vision/roles", {"metadata": {"name": "x"}, "rules": [rule]}, w.owner))


@row
def row_7_privileged_pods_in_a_restricted_namespace(w):
    w.muster.kubectl("create", "namespace", "strict")
    w.muster.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    token = w.account("strict", "editor", "edit")
    refused(w.pod("king", token, "strict", container={"securityContext": {"privileged": True}}))
    refused(w.pod("host", token, "strict", hostPID=True, hostNetwork=True))


@row
def row_7_a_policy_that_does_nothing(w):
    spec = {"validations": [{"expression": "false"}], "matchConstraints": {"resourceRules": []}}
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    refused(w.ask("POST", path, {"metadata": {"name": "never"}, "spec": spec}), 403)


@row
def row_9_a_network_policy_that_does_nothing(w):
    body = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}}}
    refused(w.ask("POST", "/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies", body), 403)


@row
def row_10_a_pattern_that_backtracks(w):
    schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "slows", "singular": "slow", "kind": "Slow", "listKind": "SlowList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = w.ask("POST", path, {"metadata": {"name": "slows.example.com"}, "spec": spec})
    assert made[0] == 201, made
    w.muster.kubectl("wait", "--for=condition=Established", "crd/slows.example.com", "--timeout=20s")
    body = {"apiVersion": "example.com/v1", "kind": "Slow", "metadata": {"name": "x"}, "text": "a" * 26 + "!"}
    refused(cheap(w, "POST", "/apis/example.com/v1/namespaces/vision/slows", body), 422)


@row
def row_11_past_a_limit_range(w):
    w.muster.kubectl("create", "namespace", "small")
    limits = [{"type": "Container", "max": {"memory": "100Mi"}}, {"type": "Pod", "max": {"memory": "120Mi"}}]
    made = w.ask(
        "POST", "/api/v1/namespaces/small/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    )
    assert made[0] == 201, made
    token = w.account("small", "editor", "edit")
    of = lambda name, memory: {"name": name, "image": "i", "resources": {"limits": {"memory": memory}}}
    refused(w.pod("l2", token, "small", containers=[of("c", "50Mi")], initContainers=[of("i", "4Gi")]))
    refused(w.pod("l3", token, "small", containers=[of(name, "90Mi") for name in "abc"]))


@row
def row_12_before_everybody_elses_work(w):
    refused(w.pod("king", priorityClassName="system-node-critical"))


@row
def row_13_a_queue_of_others(w):
    queue = {
        "metadata": {"name": "gold", "annotations": {"muster.dev/allowed-namespaces": "speech"}},
        "spec": {"weight": 1},
    }
    made = w.ask("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue)
    assert made[0] == 201, made
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": "gold"}}
    refused(w.ask("POST", "/apis/scheduling.volcano.sh/v1beta1/namespaces/vision/podgroups", group, w.editor))
    refused(w.pod("thief", metadata={"annotations": {"scheduling.volcano.sh/queue-name": "gold"}}))


@row
def row_14_unseen(w):
    w.ask("GET", "/api/v1/namespaces/speech/secrets", token=w.editor)
    again = (
        lambda: "secrets" in (w.muster.data / "audit.log").read_text()
        if (w.muster.data / "audit.log").exists()
        else False
    )
    w.muster.wait_idle()
    assert again(), "no line of it in audit.log"


@row
def row_15_aliases_of_aliases(w):
    text = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for before, name in zip("abcdefghi", "bcdefghij"):
        text += f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    refused(cheap(w, "POST", path, text, w.lowly, "application/yaml"), 400)


@row
def row_16_acting_as_odd_names(w):
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    who = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    for name in ("system:serviceaccount:x", "system:serviceaccount:a:b:c"):
        refused(w.ask("POST", path, who, w.editor, headers={"Impersonate-User": name}))
    headers = {"Impersonate-User": "system:serviceaccount:vision:owner", "Impersonate-Uid": "1"}
    refused(w.ask("POST", path, who, w.editor, headers=headers))
    refused(w.ask("POST", path, who, w.editor, headers={"Impersonate-Group": "g"}), 400, 500)


@row
def row_17_the_token_of_a_deleted_secret(w):
    k = w.muster.kubectl
    k("create", "secret", "generic", "s", "-n", "vision")
    bound = ("--bound-object-kind=Secret", "--bound-object-name=s")
    token = k("create", "token", "editor", "-n", "vision", *bound).stdout.strip()
    assert w.ask("GET", "/api/v1/namespaces/vision/pods", token=token)[0] == 200
    k("delete", "secret", "s", "-n", "vision")
    refused(w.ask("GET", "/api/v1/namespaces/vision/pods", token=token), 401)


@row
def row_18_a_request_hidden_in_anothers_body(w):
    host, port = w.address.split(":")
    for coding in ("xchunked", "chunked, identity"):
        inner = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        outer = f"POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n"
        context = ssl._create_unverified_context()
        with context.wrap_socket(socket.create_connection((host, int(port)), 10)) as line:
            line.sendall((outer + inner).encode())
            said = b""
            while piece := line.recv(65536):
                said += piece
        answers = re.findall(rb"HTTP/1.1 \d+ ", said)
        assert len(answers) == 1 and said.split()[1] in (b"400", b"501"), said


@row
def row_21_services_that_point_at_others(w):
    subsets = [{"addresses": [{"ip": "10.0.0.1"}]}]
    body = {"metadata": {"name": "fw"}, "subsets": subsets}
    refused(w.ask("POST", "/api/v1/namespaces/vision/endpoints", body, w.editor))


@row
def row_22_environments_of_others(w):
    w.pod("env", container={"env": [{"name": "PASSWORD", "value": "hunter2"}]})
    token = w.account("speech", "viewer", None)
    w.muster.kubectl(
        "create",
        "clusterrolebinding",
        "viewer",
        "--clusterrole=muster-cluster-overview",
        "--serviceaccount=speech:viewer",
    )
    status, text = w.ask("GET", "/api/v1/pods", token=token)
    assert status == 200 and "PASSWORD" in text and "hunter2" not in text, (status, text[:500])


@row
def row_23_a_certificate_that_nobody_signs(w):
    spec = {"request": "eA==", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    refused(w.ask("POST", path, {"metadata": {"name": "c"}, "spec": spec}), 403)


@row
def row_24_files_outside_their_volume(w):
    items = [{"key": "k", "path": "../x"}]
    refused(w.pod("items", volumes=[{"name": "v", "configMap": {"name": "m", "items": items}}]), 422)


def main():
    check = Checks()
    wanted = sys.argv[1:]
    with Muster("--hollow", nodes=1) as muster:
        world = World(muster)
        for one in checks:
            if not wanted or any(word in one.__name__ for word in wanted):
                check.case(one, world)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
