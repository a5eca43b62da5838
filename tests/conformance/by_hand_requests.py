"""Hand-written requests that a server must answer as Kubernetes does: (name, method, path, body, headers).

The body is a Python value sent as JSON, or text sent as it is. {ns} in paths is the namespace. They run in order in
one namespace of one server, so an earlier one may make what a later one refuses to change.
"""
import json

CORE = "/api/v1/namespaces/{ns}"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSONPATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def pod(name="p", spec=None, container=None, **meta):
    main = {"name": "main", "image": "nginx"}
    main.update(container or {})
    body = {"containers": [main], "schedulerName": "nobody", "automountServiceAccountToken": False}
    body.update(spec or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **meta}, "spec": body}


def template(labels=None, spec=None):
    return {
        "metadata": {"labels": labels or {"app": "x"}},
        "spec": spec or {"containers": [{"name": "main", "image": "nginx"}]},
    }


def job(name="j", **spec):
    base = {"template": template(spec={"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]})}
    base.update(spec)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": base}


def workload(kind, name="w", **spec):
    base = {"selector": {"matchLabels": {"app": "x"}}, "template": template()}
    base.update(spec)
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": base}


def service(name="s", **spec):
    base = {"ports": [{"port": 80}], "selector": {"a": "b"}}
    base.update(spec)
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": base}


def claim(name="c", **spec):
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    base.update(spec)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": base}


REQUESTS = []


def post(name, path, body, headers=None):
    """A create; on trial, unless its name says that it makes something, so that what one server lets pass does not
    hide the next answer."""
    if "?" not in path and not name.startswith(
        ("make ", "binding", "eviction", "token", "self ", "review", "rules ", "event: ok")
    ):
        path += "?dryRun=All"
    REQUESTS.append((name, "POST", path, body, headers or {}))


def call(name, method, path, body=None, headers=None):
    REQUESTS.append((name, method, path, body, headers or {}))


# Names, labels, annotations, owners, finalizers
for label, value in [
    ("upper case", "Bad"),
    ("underscore", "a_b"),
    ("leading dash", "-a"),
    ("trailing dot", "a."),
    ("slash", "a/b"),
    ("empty part", "a..b"),
    ("too long", "a" * 254),
    ("space", "a b"),
    ("dot dot", ".."),
    ("dot", "."),
    ("percent", "a%b"),
]:
    post(f"configmap name: {label}", CORE + "/configmaps", {"metadata": {"name": value}})
    post(f"pod name: {label}", CORE + "/pods", pod(value))
    post(f"service name: {label}", CORE + "/services", service(value))
post("service name: digit first", CORE + "/services", service("1a"))
post("service name: 64", CORE + "/services", service("a" * 64))
post("namespace name: dotted", "/api/v1/namespaces", {"metadata": {"name": "a.b"}})
post("namespace name: 64", "/api/v1/namespaces", {"metadata": {"name": "a" * 64}})
post(
    "role name: colon",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
    {"metadata": {"name": "system:a"}, "rules": []},
)
post("role name: slash", "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {"metadata": {"name": "a/b"}})
post("generateName: bad", CORE + "/configmaps", {"metadata": {"generateName": "A_"}})
for label, labels in [
    ("key with space", {"a b": "c"}),
    ("two slashes", {"a/b/c": "d"}),
    ("empty key", {"": "x"}),
    ("long value", {"a": "x" * 64}),
    ("bad value", {"a": "b c"}),
    ("value ends in dash", {"a": "b-"}),
    ("upper prefix", {"A.com/x": "y"}),
    ("long name", {"x" * 64: "y"}),
    ("wrong type", {"a": 1}),
    ("not a map", ["a"]),
]:
    post(f"labels: {label}", CORE + "/configmaps", {"metadata": {"name": "labels", "labels": labels}})
post("annotations: bad key", CORE + "/configmaps", {"metadata": {"name": "x", "annotations": {"a b": "c"}}})
post("annotations: too large", CORE + "/configmaps", {"metadata": {"name": "x", "annotations": {"a": "b" * 262144}}})
post("annotations: number", CORE + "/configmaps", {"metadata": {"name": "x", "annotations": {"a": 1}}})
for label, owner in [
    ("no uid", {"apiVersion": "v1", "kind": "Pod", "name": "a"}),
    ("no kind", {"apiVersion": "v1", "name": "a", "uid": "u"}),
    ("no name", {"apiVersion": "v1", "kind": "Pod", "uid": "u"}),
    ("no version", {"kind": "Pod", "name": "a", "uid": "u"}),
    ("event", {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}),
    ("bad version", {"apiVersion": "a/b/c", "kind": "Pod", "name": "a", "uid": "u"}),
]:
    post(f"owner: {label}", CORE + "/configmaps", {"metadata": {"name": "x", "ownerReferences": [owner]}})
post(
    "owner: two controllers",
    CORE + "/configmaps",
    {
        "metadata": {
            "name": "x",
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in ("a", "b")
            ],
        }
    },
)
post("finalizer: no slash", CORE + "/configmaps", {"metadata": {"name": "x", "finalizers": ["plain"]}})
post("finalizer: bad", CORE + "/configmaps", {"metadata": {"name": "x", "finalizers": ["a b/c"]}})
post(
    "finalizer: both propagations",
    CORE + "/configmaps",
    {"metadata": {"name": "x", "finalizers": ["orphan", "foregroundDeletion"]}},
)
post("namespace differs", CORE + "/configmaps", {"metadata": {"name": "x", "namespace": "other"}})
post("resourceVersion on create", CORE + "/configmaps", {"metadata": {"name": "x", "resourceVersion": "5"}})
post("no name", CORE + "/configmaps", {"metadata": {}})
post("no metadata", CORE + "/configmaps", {})
post("generation negative", CORE + "/configmaps", {"metadata": {"name": "x", "generation": -1}})

# Bodies
for label, body in [
    ("empty", ""),
    ("not JSON", "{"),
    ("array", "[]"),
    ("string", '"a"'),
    ("number", "1"),
    ("null", "null"),
    ("trailing", "{} {}"),
    ("other kind", {"kind": "Pod", "apiVersion": "v1"}),
    ("other group", {"kind": "ConfigMap", "apiVersion": "apps/v1"}),
    ("unknown kind", {"kind": "Nope", "apiVersion": "v1"}),
    ("bad apiVersion", {"kind": "ConfigMap", "apiVersion": "a/b/c"}),
    ("kind is a number", {"kind": 1}),
    ("data is a list", {"metadata": {"name": "x"}, "data": []}),
    ("data value number", {"metadata": {"name": "x"}, "data": {"a": 1}}),
    ("metadata is text", {"metadata": "x"}),
    ("duplicate", '{"metadata":{"name":"dup"},"metadata":{"name":"dup"}}'),
    ("deep", "[" * 20000),
    ("control character", '{"metadata":{"name":"a\nb"}}'),
    ("bad escape", '{"metadata":{"name":"a\\x"}}'),
    ("name is a number", {"metadata": {"name": 1}}),
    ("binaryData bad", {"metadata": {"name": "x"}, "binaryData": {"a": "!!"}}),
    ("data key bad", {"metadata": {"name": "x"}, "data": {"a/b": "c"}}),
    ("both data", {"metadata": {"name": "x"}, "data": {"a": "1"}, "binaryData": {"a": "MQ=="}}),
    ("creationTimestamp bad", {"metadata": {"name": "x", "creationTimestamp": "yesterday"}}),
]:
    post(f"body: {label}", CORE + "/configmaps", body)
post("body: unknown type", CORE + "/configmaps", "{}", {"Content-Type": "text/html"})
post("body: cbor", CORE + "/configmaps", "{}", {"Content-Type": "application/cbor"})
post(
    "body: yaml",
    CORE + "/configmaps?dryRun=All",
    "metadata:\n  name: from-yaml\n",
    {"Content-Type": "application/yaml"},
)
post("body: bad yaml", CORE + "/configmaps", "a: [", {"Content-Type": "application/yaml"})
post(
    "body: protobuf garbage",
    CORE + "/configmaps",
    "k8s\0garbage",
    {"Content-Type": "application/vnd.kubernetes.protobuf"},
)
post("body: too large", CORE + "/configmaps", {"metadata": {"name": "big"}, "data": {"a": "x" * 3_200_000}})
post("configmap over 1 MiB", CORE + "/configmaps", {"metadata": {"name": "big"}, "data": {"a": "x" * 1_100_000}})
post("secret over 1 MiB", CORE + "/secrets", {"metadata": {"name": "big"}, "stringData": {"a": "x" * 1_100_000}})
post("secret bad base64", CORE + "/secrets", {"metadata": {"name": "x"}, "data": {"a": "not base64!"}})
post(
    "secret tls without key",
    CORE + "/secrets",
    {"metadata": {"name": "x"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "MQ=="}},
)
post(
    "secret docker bad",
    CORE + "/secrets",
    {"metadata": {"name": "x"}, "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "x"}},
)
post(
    "secret basic auth",
    CORE + "/secrets",
    {"metadata": {"name": "x"}, "type": "kubernetes.io/basic-auth", "stringData": {}},
)
post(
    "secret ssh auth",
    CORE + "/secrets",
    {"metadata": {"name": "x"}, "type": "kubernetes.io/ssh-auth", "stringData": {}},
)
post("secret token", CORE + "/secrets", {"metadata": {"name": "x"}, "type": "kubernetes.io/service-account-token"})

# Options
for mode in ("Strict", "Warn", "Ignore", "Maybe", ""):
    post(
        f"fieldValidation {mode or 'empty'}: unknown",
        CORE + f"/configmaps?dryRun=All&fieldValidation={mode}",
        {"metadata": {"name": "fv", "labelz": {}}, "dataa": {}, "data": {}},
    )
    post(
        f"fieldValidation {mode or 'empty'}: nested",
        CORE + f"/pods?dryRun=All&fieldValidation={mode}",
        pod("fv", {"foo": 1}, {"imagee": "x", "resources": {"limitz": {}}}),
    )
    post(
        f"fieldValidation {mode or 'empty'}: duplicate",
        CORE + f"/configmaps?dryRun=All&fieldValidation={mode}",
        '{"metadata":{"name":"fv","name":"fw"},"data":{"a":"1","a":"2"}}',
    )
    post(
        f"fieldValidation {mode or 'empty'}: case",
        CORE + f"/configmaps?dryRun=All&fieldValidation={mode}",
        {"Metadata": {"name": "fv"}, "metadata": {"name": "fv"}},
    )
post("dryRun bad", CORE + "/configmaps?dryRun=Some", {"metadata": {"name": "x"}})
post("dryRun twice", CORE + "/configmaps?dryRun=All&dryRun=All", {"metadata": {"name": "x"}})
post("manager too long", CORE + "/configmaps?dryRun=All&fieldManager=" + "m" * 129, {"metadata": {"name": "x"}})
post("manager unprintable", CORE + "/configmaps?dryRun=All&fieldManager=a%00b", {"metadata": {"name": "x"}})
post("pretty", CORE + "/configmaps?dryRun=All&pretty=true", {"metadata": {"name": "pretty"}})

# Pods
PODS = CORE + "/pods"
for label, spec, container in [
    ("no containers", {"containers": []}, None),
    ("containers null", {"containers": None}, None),
    ("no image", None, {"image": ""}),
    ("no container name", None, {"name": ""}),
    ("bad container name", None, {"name": "A_b"}),
    ("image spaces", None, {"image": " nginx "}),
    ("bad quantity", None, {"resources": {"requests": {"cpu": "abc"}}}),
    ("quantity suffix", None, {"resources": {"requests": {"cpu": "1X"}}}),
    ("negative cpu", None, {"resources": {"requests": {"cpu": "-1"}}}),
    ("request above limit", None, {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
    ("gpu request only", None, {"resources": {"requests": {"nvidia.com/gpu": "1"}}}),
    ("gpu differs", None, {"resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}}),
    ("gpu fraction", None, {"resources": {"limits": {"nvidia.com/gpu": "500m"}}}),
    ("resource unknown", None, {"resources": {"limits": {"foo": "1"}}}),
    ("resource bad name", None, {"resources": {"limits": {"a b/c": "1"}}}),
    ("hugepages alone", None, {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}),
    ("restartPolicy", {"restartPolicy": "Sometimes"}, None),
    ("dnsPolicy", {"dnsPolicy": "Nope"}, None),
    ("dnsPolicy None", {"dnsPolicy": "None"}, None),
    ("negative grace", {"terminationGracePeriodSeconds": -1}, None),
    ("deadline zero", {"activeDeadlineSeconds": 0}, None),
    ("hostname", {"hostname": "A.b"}, None),
    ("subdomain", {"subdomain": "A_b"}, None),
    ("nodeSelector bad", {"nodeSelector": {"a b": "c"}}, None),
    ("nodeName bad", {"nodeName": "A_b"}, None),
    ("schedulerName bad", {"schedulerName": "A b"}, None),
    ("priority unknown", {"priorityClassName": "nosuch"}, None),
    ("priority given", {"priority": 5}, None),
    ("account unknown", {"serviceAccountName": "nosuch"}, None),
    ("port zero", None, {"ports": [{"containerPort": 0}]}),
    ("port 70000", None, {"ports": [{"containerPort": 70000}]}),
    ("port protocol", None, {"ports": [{"containerPort": 80, "protocol": "X"}]}),
    ("port name", None, {"ports": [{"containerPort": 80, "name": "A_B"}]}),
    ("port name long", None, {"ports": [{"containerPort": 80, "name": "a" * 16}]}),
    ("port names twice", None, {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]}),
    (
        "host port twice",
        None,
        {"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
    ),
    ("host network port", {"hostNetwork": True}, {"ports": [{"containerPort": 80, "hostPort": 81}]}),
    ("env name", None, {"env": [{"name": "a=b", "value": "x"}]}),
    ("env empty name", None, {"env": [{"name": ""}]}),
    (
        "env both",
        None,
        {"env": [{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
    ),
    ("env bad fieldRef", None, {"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.foo"}}}]}),
    ("env empty valueFrom", None, {"env": [{"name": "a", "valueFrom": {}}]}),
    ("env configMap no key", None, {"env": [{"name": "a", "valueFrom": {"configMapKeyRef": {"name": "c"}}}]}),
    ("envFrom empty", None, {"envFrom": [{}]}),
    ("mount without volume", None, {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    ("mount no path", {"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumeMounts": [{"name": "v"}]}),
    (
        "mount path twice",
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]},
    ),
    (
        "subPath up",
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "../x"}]},
    ),
    ("volumes twice", {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]}, None),
    ("volume two sources", {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]}, None),
    ("volume no source", {"volumes": [{"name": "v"}]}, None),
    ("volume name", {"volumes": [{"name": "A", "emptyDir": {}}]}, None),
    ("hostPath empty", {"volumes": [{"name": "v", "hostPath": {"path": ""}}]}, None),
    ("hostPath type", {"volumes": [{"name": "v", "hostPath": {"path": "/a", "type": "X"}}]}, None),
    ("secret no name", {"volumes": [{"name": "v", "secret": {}}]}, None),
    ("secret mode", {"volumes": [{"name": "v", "secret": {"secretName": "a", "defaultMode": 9999}}]}, None),
    ("claim no name", {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}, None),
    ("emptyDir negative", {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]}, None),
    ("nfs empty", {"volumes": [{"name": "v", "nfs": {}}]}, None),
    ("probe two", None, {"livenessProbe": {"exec": {"command": ["a"]}, "httpGet": {"port": 80}}}),
    ("probe none", None, {"livenessProbe": {}}),
    ("probe negative", None, {"livenessProbe": {"exec": {"command": ["a"]}, "periodSeconds": -1}}),
    ("probe port", None, {"readinessProbe": {"httpGet": {"port": 0, "path": "/"}}}),
    ("probe scheme", None, {"readinessProbe": {"httpGet": {"port": 80, "scheme": "X"}}}),
    ("probe success", None, {"livenessProbe": {"exec": {"command": ["a"]}, "successThreshold": 2}}),
    ("probe empty command", None, {"livenessProbe": {"exec": {}}}),
    ("lifecycle", None, {"lifecycle": {"preStop": {}}}),
    ("pull policy", None, {"imagePullPolicy": "Now"}),
    ("message policy", None, {"terminationMessagePolicy": "Now"}),
    ("workingDir number", None, {"workingDir": 1}),
    ("command text", None, {"command": "sleep 1"}),
    ("tty text", None, {"tty": "yes"}),
    ("privileged no escalation", None, {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}}),
    ("runAsUser negative", {"securityContext": {"runAsUser": -1}}, None),
    ("fsGroup negative", {"securityContext": {"fsGroup": -1}}, None),
    ("sysctl", {"securityContext": {"sysctls": [{"name": "A B", "value": "1"}]}}, None),
    ("seccomp", {"securityContext": {"seccompProfile": {"type": "X"}}}, None),
    ("share pid and host pid", {"hostPID": True, "shareProcessNamespace": True}, None),
    ("toleration operator", {"tolerations": [{"operator": "X"}]}, None),
    ("toleration exists value", {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, None),
    ("toleration no key", {"tolerations": [{"operator": "Equal", "value": "b"}]}, None),
    ("toleration seconds", {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]}, None),
    ("toleration effect", {"tolerations": [{"key": "a", "effect": "X"}]}, None),
    (
        "affinity operator",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "X"}]}]
                    }
                }
            }
        },
        None,
    ),
    (
        "affinity no values",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                    }
                }
            }
        },
        None,
    ),
    (
        "affinity no terms",
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        None,
    ),
    (
        "affinity gt",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}]
                    }
                }
            }
        },
        None,
    ),
    (
        "affinity weight",
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 101, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                    ]
                }
            }
        },
        None,
    ),
    (
        "pod affinity no topology",
        {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"a": "b"}}}]
                }
            }
        },
        None,
    ),
    (
        "pod affinity weight",
        {
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 0, "podAffinityTerm": {"topologyKey": "a"}}
                    ]
                }
            }
        },
        None,
    ),
    (
        "spread skew",
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]},
        None,
    ),
    ("spread key", {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}, None),
    (
        "spread when",
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "X"}]},
        None,
    ),
    ("gates twice", {"schedulingGates": [{"name": "a"}, {"name": "a"}]}, None),
    ("gate empty", {"schedulingGates": [{"name": ""}]}, None),
    ("gate with node", {"schedulingGates": [{"name": "a"}], "nodeName": "n"}, None),
    ("host alias", {"hostAliases": [{"ip": "x"}]}, None),
    ("preemption policy", {"preemptionPolicy": "X"}, None),
    ("init always", {"initContainers": [{"name": "main", "image": "x"}]}, None),
    ("init restart", {"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Never"}]}, None),
    ("containers twice", {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}, None),
    ("ephemeral on create", {"ephemeralContainers": [{"name": "e", "image": "x"}]}, None),
    ("os", {"os": {"name": "beos"}}, None),
    ("overhead", {"overhead": {"cpu": "1"}}, None),
    ("runtime class", {"runtimeClassName": "nosuch"}, None),
    ("readiness gate", {"readinessGates": [{"conditionType": "a b"}]}, None),
    ("pull secret", {"imagePullSecrets": [{}]}, None),
    ("resource claim", {"resourceClaims": [{"name": "a"}]}, None),
    ("resize policy", None, {"resizePolicy": [{"resourceName": "x", "restartPolicy": "NotRequired"}]}),
    ("pod resources", {"resources": {"requests": {"nvidia.com/gpu": "1"}}}, None),
    ("dns too many", {"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}}, None),
    ("dns bad", {"dnsConfig": {"nameservers": ["x"]}}, None),
]:
    post(f"pod: {label}", PODS, pod("bad", spec, container))
for label, value in [
    ("0.5", "0.5"),
    ("1e3", "1e3"),
    ("1.5Gi", "1.5Gi"),
    ("number", 2),
    ("float", 0.25),
    ("100m", "100m"),
    ("2000m", "2000m"),
    ("0.0001", "0.0001"),
    ("1Ei", "1Ei"),
    ("+1", "+1"),
    ("empty", ""),
    ("true", True),
    ("1_000", "1_000"),
    ("space", " 1"),
]:
    post(f"quantity {label}", PODS + "?dryRun=All", pod("quantity", None, {"resources": {"requests": {"cpu": value}}}))

post("make pod", PODS, pod("web", labels={"app": "web"}))
WEB = PODS + "/web"
for label, patch in [
    ("image", {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}),
    ("command", {"spec": {"containers": [{"name": "main", "command": ["x"]}]}}),
    ("restartPolicy", {"spec": {"restartPolicy": "Never"}}),
    ("resources", {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]}}),
    ("add container", {"spec": {"containers": [{"name": "b", "image": "x"}]}}),
    ("nodeName", {"spec": {"nodeName": "n"}}),
    ("gates added", {"spec": {"schedulingGates": [{"name": "a"}]}}),
    ("deadline", {"spec": {"activeDeadlineSeconds": 5}}),
    ("deadline up", {"spec": {"activeDeadlineSeconds": 9}}),
    ("priority", {"spec": {"priority": 9}}),
    ("grace", {"spec": {"terminationGracePeriodSeconds": 5}}),
    ("toleration added", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
    ("uid", {"metadata": {"uid": "x"}}),
    ("name", {"metadata": {"name": "other"}}),
    ("namespace", {"metadata": {"namespace": "other"}}),
    ("stale version", {"metadata": {"resourceVersion": "1"}}),
    ("status by main", {"status": {"phase": "Failed"}}),
    ("bad label", {"metadata": {"labels": {"a b": "c"}}}),
    ("schedulerName", {"spec": {"schedulerName": "x"}}),
    ("serviceAccount", {"spec": {"serviceAccountName": "x"}}),
    ("volumes", {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
    ("nodeSelector", {"spec": {"nodeSelector": {"a": "b"}}}),
    ("generateName", {"metadata": {"generateName": "x"}}),
    ("creationTimestamp", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}),
]:
    call(f"patch pod: {label}", "PATCH", WEB, patch, STRATEGIC)
call("status patch: phase", "PATCH", WEB + "/status", {"status": {"phase": "Nope"}}, MERGE)
call("status patch: spec", "PATCH", WEB + "/status", {"spec": {"nodeName": "x"}, "status": {"message": "m"}}, MERGE)
call(
    "resize: cpu",
    "PATCH",
    WEB + "/resize",
    {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}},
    STRATEGIC,
)
call(
    "resize: gpu",
    "PATCH",
    WEB + "/resize",
    {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}},
    STRATEGIC,
)
call(
    "ephemeral",
    "PATCH",
    WEB + "/ephemeralcontainers",
    {"spec": {"ephemeralContainers": [{"name": "main", "image": "x"}]}},
    STRATEGIC,
)
call(
    "ephemeral good",
    "PATCH",
    WEB + "/ephemeralcontainers",
    {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "x"}]}},
    STRATEGIC,
)
call("log: unscheduled", "GET", WEB + "/log")
call("log: bad container", "GET", WEB + "/log?container=zz")
call("log: negative tail", "GET", WEB + "/log?tailLines=-1")
call("log: bad since", "GET", WEB + "/log?sinceSeconds=0")
call("log: both since", "GET", WEB + "/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z")
call("log: bad limit", "GET", WEB + "/log?limitBytes=0")
call("log: tail not a number", "GET", WEB + "/log?tailLines=x")
call("log: missing pod", "GET", PODS + "/nosuch/log")
call("exec: no upgrade", "POST", WEB + "/exec?command=x")
call("exec: no command", "POST", WEB + "/exec")
call("exec: missing pod", "POST", PODS + "/nosuch/exec?command=x")
call("attach: no upgrade", "POST", WEB + "/attach")
call("portforward: no upgrade", "POST", WEB + "/portforward")
for label, body in [
    ("no target", {"metadata": {"name": "web"}}),
    ("no node", {"metadata": {"name": "web"}, "target": {"kind": "Node"}}),
    ("kind", {"metadata": {"name": "web"}, "target": {"kind": "Pod", "name": "n"}}),
    ("other uid", {"metadata": {"name": "web", "uid": "x"}, "target": {"kind": "Node", "name": "n"}}),
    ("other name", {"metadata": {"name": "zz"}, "target": {"kind": "Node", "name": "n"}}),
    ("wrong kind", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}}),
]:
    post(f"binding: {label}", WEB + "/binding", body)
post(
    "binding: missing pod",
    PODS + "/nosuch/binding",
    {"metadata": {"name": "nosuch"}, "target": {"kind": "Node", "name": "n"}},
)
post("binding: good", WEB + "/binding", {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n"}})
post("binding: again", WEB + "/binding", {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n"}})
post("bindings: collection", CORE + "/bindings", {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n"}})
post("make gated", PODS, pod("gated", {"schedulingGates": [{"name": "a.b/c"}]}))
post(
    "binding: gated", PODS + "/gated/binding", {"metadata": {"name": "gated"}, "target": {"kind": "Node", "name": "n"}}
)
call("gate removed", "PATCH", PODS + "/gated", [{"op": "remove", "path": "/spec/schedulingGates"}], JSONPATCH)
post(
    "eviction: other name",
    WEB + "/eviction",
    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "zz"}},
)
post("eviction: bad kind", WEB + "/eviction", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}})
post(
    "eviction: dry run",
    WEB + "/eviction?dryRun=All",
    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}},
)
post(
    "eviction: precondition",
    WEB + "/eviction",
    {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web"},
        "deleteOptions": {"preconditions": {"uid": "x"}},
    },
)
post(
    "eviction: missing",
    PODS + "/nosuch/eviction",
    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "nosuch"}},
)

# Deletion
for label, options in [
    ("bad policy", {"propagationPolicy": "X"}),
    ("both", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    ("uid", {"preconditions": {"uid": "x"}}),
    ("version", {"preconditions": {"resourceVersion": "1"}}),
    ("wrong kind", {"kind": "Pod", "apiVersion": "v1"}),
    ("bad type", {"gracePeriodSeconds": "x"}),
    ("bad dry run", {"dryRun": ["x"]}),
    ("unknown field", {"foo": 1}),
    ("negative grace", {"gracePeriodSeconds": -1, "dryRun": ["All"]}),
]:
    call(f"delete: {label}", "DELETE", WEB, options)
call("delete: not JSON", "DELETE", WEB, "{")
call("delete: query policy", "DELETE", WEB + "?propagationPolicy=X")
call("delete: query grace", "DELETE", WEB + "?gracePeriodSeconds=x")
call("delete: pod with grace", "DELETE", WEB + "?gracePeriodSeconds=30")
call("delete: pod again", "DELETE", WEB + "?gracePeriodSeconds=60")
call("patch deleted: add finalizer", "PATCH", WEB, {"metadata": {"finalizers": ["a.b/c"]}}, MERGE)
call("delete: pod now", "DELETE", WEB + "?gracePeriodSeconds=0")
call("delete: missing", "DELETE", WEB)
call("delete collection: bad selector", "DELETE", PODS + "?labelSelector=a%20in")
call("delete collection: nothing", "DELETE", CORE + "/configmaps?labelSelector=none%3Dnone")

# Lists
for label, query in [
    ("label selector", "labelSelector=a%20in"),
    ("label selector two", "labelSelector=a%3D%3D%3Db"),
    ("label key", "labelSelector=A%20b%3Dc"),
    ("label value", "labelSelector=a%3Db%20c"),
    ("set", "labelSelector=a%20in%20(b%2Cc"),
    ("gt", "labelSelector=a%3Ex"),
    ("field unknown", "fieldSelector=spec.foo%3D1"),
    ("field bad", "fieldSelector=a"),
    ("field operator", "fieldSelector=metadata.name%3Ea"),
    ("limit", "limit=x"),
    ("limit negative", "limit=-1"),
    ("continue", "continue=abc"),
    ("continue and version", "limit=1&continue=abc&resourceVersion=5"),
    ("version", "resourceVersion=x"),
    ("match alone", "resourceVersionMatch=Exact"),
    ("match unknown", "resourceVersion=5&resourceVersionMatch=X"),
    ("exact zero", "resourceVersion=0&resourceVersionMatch=Exact"),
    ("initial events", "sendInitialEvents=true"),
    ("timeout", "timeoutSeconds=x"),
    ("include", "includeObject=X"),
    ("watch number", "watch=1&timeoutSeconds=1&resourceVersion=x"),
    ("watch match", "watch=1&timeoutSeconds=1&resourceVersionMatch=Exact"),
    ("watch initial", "watch=1&timeoutSeconds=1&sendInitialEvents=true"),
    ("watch selector", "watch=1&timeoutSeconds=1&labelSelector=a%20in"),
    ("watch expired", "watch=1&timeoutSeconds=1&resourceVersion=1&fieldSelector=a%3Db"),
    ("field name", "fieldSelector=metadata.name%3Dzz"),
    ("empty field", "fieldSelector="),
    ("version negative", "resourceVersion=-1"),
]:
    call(f"list: {label}", "GET", PODS + "?" + query)
    call(f"list configmaps: {label}", "GET", CORE + "/configmaps?" + query)
call("list: table include", "GET", PODS + "?includeObject=X", None, TABLE)
call("accept unknown", "GET", PODS, None, {"Accept": "text/html"})
call(
    "accept partial list of one",
    "GET",
    PODS + "/gated",
    None,
    {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
)
call(
    "accept partial",
    "GET",
    PODS + "/gated",
    None,
    {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
)
call("accept unknown as", "GET", PODS + "/gated", None, {"Accept": "application/json;as=Nope;g=meta.k8s.io;v=v1"})
call("accept yaml", "GET", PODS + "/nosuch", None, {"Accept": "application/yaml"})
for path in (
    "/api/v1/nosuch",
    "/apis/nosuch/v1/x",
    "/apis/apps/v9",
    "/apis/apps/v1/nosuch",
    "/nosuch",
    "/api/v2",
    CORE + "/pods/gated/nosuch",
    CORE + "/pods/gated/status/more",
    "/api/v1/namespaces/{ns}/nodes",
    "/api/v1/namespaces/nosuch/pods",
    "/api/v1/pods/x",
    "/api/v1/namespaces/../pods",
    "/api//v1/pods",
    "/apis/apps",
    "/apis/apps/v1/namespaces/{ns}/deployments/x/scale",
):
    call(f"path {path}", "GET", path)
for method in ("PUT", "PATCH", "OPTIONS"):
    call(f"collection {method}", method, PODS, {} if method != "OPTIONS" else None, MERGE if method == "PATCH" else {})
call("post to an object", "POST", PODS + "/gated", {})
call("delete a scale", "DELETE", "/apis/apps/v1/namespaces/{ns}/deployments/x/scale")

# Updates and patches
post("make configmap", CORE + "/configmaps", {"metadata": {"name": "conf"}, "data": {"a": "1"}})
CONF = CORE + "/configmaps/conf"
for label, body in [
    ("stale", {"metadata": {"name": "conf", "resourceVersion": "1"}}),
    ("bad version", {"metadata": {"name": "conf", "resourceVersion": "x"}}),
    ("other name", {"metadata": {"name": "zz"}}),
    ("other namespace", {"metadata": {"name": "conf", "namespace": "zz"}}),
    ("other uid", {"metadata": {"name": "conf", "uid": "x"}}),
    ("no name", {"metadata": {}}),
    ("wrong kind", {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "conf"}}),
    ("not JSON", "{"),
    ("bad label", {"metadata": {"name": "conf", "labels": {"a b": "c"}}}),
]:
    call(f"put: {label}", "PUT", CONF, body)
call("put: missing", "PUT", CORE + "/configmaps/absent", {"metadata": {"name": "absent"}})
for label, headers, body in [
    ("no type", {"Content-Type": "application/json"}, {}),
    ("text", {"Content-Type": "text/plain"}, {}),
    ("json patch object", JSONPATCH, {}),
    ("json patch op", JSONPATCH, [{"op": "x", "path": "/a"}]),
    ("json patch path", JSONPATCH, [{"op": "remove", "path": "/nosuch"}]),
    ("json patch no slash", JSONPATCH, [{"op": "add", "path": "a", "value": 1}]),
    ("json patch test", JSONPATCH, [{"op": "test", "path": "/data/a", "value": "2"}]),
    ("json patch to text", JSONPATCH, [{"op": "replace", "path": "/data", "value": "x"}]),
    ("json patch from", JSONPATCH, [{"op": "move", "from": "/nosuch", "path": "/data/b"}]),
    ("json patch root", JSONPATCH, [{"op": "remove", "path": ""}]),
    ("json patch not JSON", JSONPATCH, "{"),
    ("merge array", MERGE, []),
    ("merge text", MERGE, "x"),
    ("merge wrong type", MERGE, {"data": []}),
    ("merge unknown", MERGE, {"foo": 1}),
    ("strategic array", STRATEGIC, []),
    ("strategic wrong type", STRATEGIC, {"data": "x"}),
    ("strategic directive", STRATEGIC, {"$patch": "nope"}),
    ("merge name", MERGE, {"metadata": {"name": "zz"}}),
    ("merge null name", MERGE, {"metadata": {"name": None}}),
    ("merge uid", MERGE, {"metadata": {"uid": "x"}}),
    ("merge version", MERGE, {"metadata": {"resourceVersion": "1"}}),
    ("merge kind", MERGE, {"kind": "Pod"}),
    ("merge apiVersion", MERGE, {"apiVersion": "apps/v1"}),
]:
    call(f"patch: {label}", "PATCH", CONF, body, headers)
call("patch: strict unknown", "PATCH", CONF + "?fieldValidation=Strict", {"foo": 1, "metadata": {"bar": 2}}, MERGE)
call("patch: strict duplicate", "PATCH", CONF + "?fieldValidation=Strict", '{"data":{"a":"1","a":"2"}}', MERGE)
call("patch: force", "PATCH", CONF + "?force=true", {}, MERGE)
call("patch: missing", "PATCH", CORE + "/configmaps/absent", {}, MERGE)
call("strategic: no merge key", "PATCH", PODS + "/gated", {"spec": {"containers": [{"image": "x"}]}}, STRATEGIC)
BASE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": {"a": "1"}}
SSA = CORE + "/configmaps/ssa"
call("apply: no manager", "PATCH", SSA, BASE, APPLY)
call("apply: no kind", "PATCH", SSA + "?fieldManager=one", {"metadata": {"name": "ssa"}}, APPLY)
call("apply: other name", "PATCH", SSA + "?fieldManager=one", {**BASE, "metadata": {"name": "zz"}}, APPLY)
call("apply: other kind", "PATCH", SSA + "?fieldManager=one", {**BASE, "kind": "Secret"}, APPLY)
call(
    "apply: managed fields",
    "PATCH",
    SSA + "?fieldManager=one",
    {**BASE, "metadata": {"name": "ssa", "managedFields": [{"manager": "x"}]}},
    APPLY,
)
call("apply: unknown field", "PATCH", SSA + "?fieldManager=one&fieldValidation=Strict", {**BASE, "foo": 1}, APPLY)
call("apply: wrong type", "PATCH", SSA + "?fieldManager=one", {**BASE, "data": []}, APPLY)
call("apply: not YAML", "PATCH", SSA + "?fieldManager=one", "a: [", APPLY)
call("apply: create", "PATCH", SSA + "?fieldManager=one", BASE, APPLY)
call("apply: again", "PATCH", SSA + "?fieldManager=one", BASE, APPLY)
call("apply: conflict", "PATCH", SSA + "?fieldManager=two", {**BASE, "data": {"a": "2", "b": "3"}}, APPLY)
call("apply: force", "PATCH", SSA + "?fieldManager=two&force=true", {**BASE, "data": {"a": "2", "b": "3"}}, APPLY)
call(
    "apply: nameless",
    "PATCH",
    CORE + "/configmaps/ssa-new?fieldManager=one",
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}},
    APPLY,
)
call("apply: undeclared field", "PATCH", SSA + "?fieldManager=one", {**BASE, "foo": 1}, APPLY)
call("apply: give up", "PATCH", SSA + "?fieldManager=two", {**BASE, "data": {"b": "3"}}, APPLY)
call(
    "apply: version",
    "PATCH",
    SSA + "?fieldManager=two",
    {**BASE, "metadata": {"name": "ssa", "resourceVersion": "1"}},
    APPLY,
)
call("apply: force bad", "PATCH", SSA + "?fieldManager=two&force=x", BASE, APPLY)
call(
    "apply: missing namespace",
    "PATCH",
    "/api/v1/namespaces/nosuch/configmaps/x?fieldManager=two",
    {**BASE, "metadata": {"name": "x"}},
    APPLY,
)
DEPLOY = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "ssa"},
    "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template()},
}
call("apply deployment", "PATCH", "/apis/apps/v1/namespaces/{ns}/deployments/ssa?fieldManager=one", DEPLOY, APPLY)
call(
    "apply deployment conflict",
    "PATCH",
    "/apis/apps/v1/namespaces/{ns}/deployments/ssa?fieldManager=two",
    {
        **DEPLOY,
        "spec": {
            **DEPLOY["spec"],
            "replicas": 5,
            "template": template(spec={"containers": [{"name": "main", "image": "other"}]}),
        },
    },
    APPLY,
)

# Jobs
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
post("job: default labels", JOBS + "?dryRun=All", job())
for label, spec in [
    (
        "restart Always",
        {"template": template(spec={"restartPolicy": "Always", "containers": [{"name": "a", "image": "b"}]})},
    ),
    ("no restart", {"template": template()}),
    ("negative parallelism", {"parallelism": -1}),
    ("negative completions", {"completions": -1}),
    ("negative backoff", {"backoffLimit": -1}),
    ("deadline negative", {"activeDeadlineSeconds": -1}),
    ("ttl negative", {"ttlSecondsAfterFinished": -1}),
    ("mode", {"completionMode": "X"}),
    ("indexed without completions", {"completionMode": "Indexed"}),
    ("selector given", {"selector": {"matchLabels": {"a": "b"}}}),
    ("manual selector", {"manualSelector": True}),
    ("managedBy", {"managedBy": "x"}),
    ("no template", {"template": None}),
    ("pod failure policy", {"podFailurePolicy": {"rules": [{"action": "X"}]}}),
    ("backoff per index", {"backoffLimitPerIndex": 1}),
    ("suspend text", {"suspend": "yes"}),
    ("replacement policy", {"podReplacementPolicy": "X"}),
    ("bad pod", {"template": template(spec={"restartPolicy": "Never", "containers": []})}),
    ("max failed", {"maxFailedIndexes": 1}),
    ("success policy", {"successPolicy": {"rules": []}}),
]:
    post(f"job: {label}", JOBS, job("bad", **spec))
post("make job", JOBS, job("j", suspend=True))
for label, patch in [
    ("completions", {"spec": {"completions": 5}}),
    ("parallelism", {"spec": {"parallelism": 2}}),
    ("selector", {"spec": {"selector": {"matchLabels": {"z": "y"}}}}),
    ("mode", {"spec": {"completionMode": "Indexed"}}),
    ("template image", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}}),
    ("template labels", {"spec": {"template": {"metadata": {"labels": {"z": "y"}}}}}),
    ("backoff", {"spec": {"backoffLimit": 2}}),
    ("ttl", {"spec": {"ttlSecondsAfterFinished": 2}}),
    ("managedBy", {"spec": {"managedBy": "a.b/c"}}),
]:
    call(f"patch job: {label}", "PATCH", JOBS + "/j", patch, MERGE)
call("patch job status", "PATCH", JOBS + "/j/status", {"status": {"active": -1}}, MERGE)
call(
    "job conditions both",
    "PATCH",
    JOBS + "/j/status",
    {"status": {"conditions": [{"type": "Complete", "status": "True"}, {"type": "Failed", "status": "True"}]}},
    MERGE,
)
call("delete job", "DELETE", JOBS + "/j")
CRON = "/apis/batch/v1/namespaces/{ns}/cronjobs"
for label, spec in [
    ("bad schedule", {"schedule": "x"}),
    ("empty schedule", {"schedule": ""}),
    ("policy", {"schedule": "* * * * *", "concurrencyPolicy": "X"}),
    ("deadline", {"schedule": "* * * * *", "startingDeadlineSeconds": -1}),
    ("zone", {"schedule": "* * * * *", "timeZone": "Nope/Nope"}),
]:
    post(
        f"cronjob: {label}", CRON, {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": job()["spec"]}, **spec}}
    )

# Workloads
for plural, kind in (
    ("deployments", "Deployment"),
    ("replicasets", "ReplicaSet"),
    ("statefulsets", "StatefulSet"),
    ("daemonsets", "DaemonSet"),
):
    path = "/apis/apps/v1/namespaces/{ns}/" + plural
    for label, spec in [
        ("no selector", {"selector": None}),
        ("empty selector", {"selector": {}}),
        ("selector differs", {"selector": {"matchLabels": {"z": "y"}}}),
        ("negative replicas", {"replicas": -1}),
        (
            "restart Never",
            {"template": template(spec={"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]})},
        ),
        ("no template", {"template": None}),
        ("selector operator", {"selector": {"matchExpressions": [{"key": "app", "operator": "X"}]}}),
        ("selector values", {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}),
        ("minReady", {"minReadySeconds": -1}),
        ("history", {"revisionHistoryLimit": -1}),
    ]:
        post(f"{kind}: {label}", path, workload(kind, "bad", **spec))
    post(f"make {kind}", path, workload(kind, "w", **({} if kind == "DaemonSet" else {"replicas": 0})))
    call(f"patch {kind}: selector", "PATCH", path + "/w", {"spec": {"selector": {"matchLabels": {"z": "y"}}}}, MERGE)
    call(
        f"patch {kind}: template",
        "PATCH",
        path + "/w",
        {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
        MERGE,
    )
    call(f"get {kind} scale", "GET", path + "/w/scale")
    call(f"put {kind} scale", "PUT", path + "/w/scale", {"metadata": {"name": "w"}, "spec": {"replicas": -1}})
    call(f"patch {kind} scale", "PATCH", path + "/w/scale", {"spec": {"replicas": 2}}, MERGE)
    call(f"patch {kind} scale text", "PATCH", path + "/w/scale", {"spec": {"replicas": "x"}}, MERGE)
    call(f"delete {kind}", "DELETE", path + "/w?propagationPolicy=Background")
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
for label, spec in [
    ("strategy", {"strategy": {"type": "X"}}),
    ("recreate with rolling", {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}),
    ("both zero", {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}),
    ("percent", {"strategy": {"rollingUpdate": {"maxSurge": "x%"}}}),
    ("unavailable above", {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}}),
    ("deadline", {"progressDeadlineSeconds": 0}),
    ("deadline below ready", {"progressDeadlineSeconds": 5, "minReadySeconds": 9}),
]:
    post(f"Deployment: {label}", DEPLOYMENTS, workload("Deployment", "bad", **spec))
STATEFULSETS = "/apis/apps/v1/namespaces/{ns}/statefulsets"
for label, spec in [
    ("policy", {"podManagementPolicy": "X"}),
    ("strategy", {"updateStrategy": {"type": "X"}}),
    ("partition", {"updateStrategy": {"rollingUpdate": {"partition": -1}}}),
    ("ordinals", {"ordinals": {"start": -1}}),
    ("service name", {"serviceName": "A_b"}),
]:
    post(f"StatefulSet: {label}", STATEFULSETS, workload("StatefulSet", "bad", **spec))
post("make statefulset", STATEFULSETS, workload("StatefulSet", "sts", replicas=0, serviceName="a"))
for label, patch in [
    ("serviceName", {"spec": {"serviceName": "b"}}),
    ("policy", {"spec": {"podManagementPolicy": "Parallel"}}),
    ("replicas", {"spec": {"replicas": 1}}),
    ("claims", {"spec": {"volumeClaimTemplates": [claim()]}}),
]:
    call(f"patch statefulset: {label}", "PATCH", STATEFULSETS + "/sts", patch, MERGE)

# Services and friends
SERVICES = CORE + "/services"
for label, spec in [
    ("no ports", {"ports": []}),
    ("port zero", {"ports": [{"port": 0}]}),
    ("port text", {"ports": [{"port": "x"}]}),
    ("target port", {"ports": [{"port": 80, "targetPort": "A_B"}]}),
    ("protocol", {"ports": [{"port": 80, "protocol": "X"}]}),
    ("two without names", {"ports": [{"port": 80}, {"port": 81}]}),
    ("names twice", {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}),
    ("same port", {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}),
    ("type", {"type": "X"}),
    ("clusterIP", {"clusterIP": "x"}),
    ("clusterIP outside", {"clusterIP": "1.2.3.4"}),
    ("external without name", {"type": "ExternalName", "ports": []}),
    ("external name bad", {"type": "ExternalName", "externalName": "A_b"}),
    ("headless node port", {"type": "NodePort", "clusterIP": "None"}),
    ("node port range", {"type": "NodePort", "ports": [{"port": 80, "nodePort": 1}]}),
    ("affinity", {"sessionAffinity": "X"}),
    ("selector bad", {"selector": {"a b": "c"}}),
    ("external ip", {"externalIPs": ["x"]}),
    ("family", {"ipFamilyPolicy": "X"}),
    ("traffic policy", {"internalTrafficPolicy": "X"}),
    ("load balancer ranges", {"loadBalancerSourceRanges": ["x"]}),
]:
    post(f"service: {label}", SERVICES, service("bad", **spec))
post("make service", SERVICES, service("s"))
for label, patch in [
    ("clusterIP", {"spec": {"clusterIP": "10.96.77.77", "clusterIPs": ["10.96.77.77"]}}),
    ("to headless", {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
    ("type", {"spec": {"type": "NodePort"}}),
    ("back", {"spec": {"type": "ClusterIP"}}),
    ("ports", {"spec": {"ports": [{"port": 90}]}}),
]:
    call(f"patch service: {label}", "PATCH", SERVICES + "/s", patch, MERGE)
call("delete service", "DELETE", SERVICES + "/s")
post(
    "endpoints bad address",
    CORE + "/endpoints",
    {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": "x"}], "ports": [{"port": 80}]}]},
)
post(
    "endpoints loopback",
    CORE + "/endpoints",
    {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 80}]}]},
)
post(
    "slice no type",
    "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
    {"metadata": {"name": "e"}, "endpoints": []},
)

# Storage
CLAIMS = CORE + "/persistentvolumeclaims"
for label, spec in [
    ("no modes", {"accessModes": []}),
    ("bad mode", {"accessModes": ["X"]}),
    ("no storage", {"resources": {}}),
    ("zero", {"resources": {"requests": {"storage": "0"}}}),
    ("bad quantity", {"resources": {"requests": {"storage": "x"}}}),
    ("volume mode", {"volumeMode": "X"}),
    ("class", {"storageClassName": "A_b"}),
    ("selector", {"selector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}),
]:
    post(f"claim: {label}", CLAIMS, claim("bad", **spec))
post("make claim", CLAIMS, claim("c"))
for label, patch in [
    ("modes", {"spec": {"accessModes": ["ReadOnlyMany"]}}),
    ("smaller", {"spec": {"resources": {"requests": {"storage": "1Mi"}}}}),
    ("class", {"spec": {"storageClassName": "x"}}),
    ("larger", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
]:
    call(f"patch claim: {label}", "PATCH", CLAIMS + "/c", patch, MERGE)
for label, spec in [
    ("no capacity", {"capacity": None}),
    ("no source", {"hostPath": None}),
    ("no modes", {"accessModes": None}),
    ("reclaim", {"persistentVolumeReclaimPolicy": "X"}),
]:
    post(
        f"volume: {label}",
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/x"},
                **spec,
            },
        },
    )
for label, body in [
    ("no provisioner", {}),
    ("reclaim", {"provisioner": "a", "reclaimPolicy": "X"}),
    ("mode", {"provisioner": "a", "volumeBindingMode": "X"}),
]:
    post(f"storage class: {label}", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "sc"}, **body})

# Small kinds
for label, spec in [
    ("both", {"minAvailable": 1, "maxUnavailable": 1}),
    ("negative", {"minAvailable": -1}),
    ("percent", {"minAvailable": "x%"}),
    ("above", {"maxUnavailable": "101%"}),
    ("selector", {"minAvailable": 1, "selector": {"matchLabels": {"a b": "c"}}}),
    ("policy", {"unhealthyPodEvictionPolicy": "X"}),
]:
    post(
        f"pdb: {label}",
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": spec},
    )
PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses"
for label, body in [
    ("system name", {"metadata": {"name": "system-x"}, "value": 1}),
    ("too high", {"metadata": {"name": "hi"}, "value": 2000000000}),
    ("policy", {"metadata": {"name": "pp"}, "value": 1, "preemptionPolicy": "X"}),
    ("text", {"metadata": {"name": "t"}, "value": "x"}),
]:
    post(f"priority: {label}", PRIORITY, body)
post("make priority", PRIORITY, {"metadata": {"name": "conformance-p"}, "value": 5})
call("patch priority: value", "PATCH", PRIORITY + "/conformance-p", {"value": 6}, MERGE)
call("patch priority: policy", "PATCH", PRIORITY + "/conformance-p", {"preemptionPolicy": "Never"}, MERGE)
call("delete priority", "DELETE", PRIORITY + "/conformance-p")
for label, spec in [
    ("bad name", {"hard": {"a b": "1"}}),
    ("negative", {"hard": {"cpu": "-1"}}),
    ("fraction", {"hard": {"pods": "1.5"}}),
    ("scope", {"hard": {"pods": "1"}, "scopes": ["X"]}),
    ("scopes both", {"hard": {"pods": "1"}, "scopes": ["Terminating", "NotTerminating"]}),
    ("bad quantity", {"hard": {"pods": "x"}}),
]:
    post(f"quota: {label}", CORE + "/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
for label, limits in [
    ("no type", {}),
    ("bad type", {"type": "X"}),
    ("default above max", {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "2"}}),
    ("min above max", {"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}),
    ("pod default", {"type": "Pod", "default": {"cpu": "1"}}),
]:
    post(f"limit range: {label}", CORE + "/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limits]}})
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
for label, rule in [
    ("no verbs", {"apiGroups": [""], "resources": ["pods"]}),
    ("no groups", {"resources": ["pods"], "verbs": ["get"]}),
    ("no resources", {"apiGroups": [""], "verbs": ["get"]}),
    ("non resource", {"nonResourceURLs": ["/x"], "verbs": ["get"]}),
]:
    post(f"role: {label}", RBAC + "/roles", {"metadata": {"name": "r"}, "rules": [rule]})
for label, body in [
    ("no ref", {}),
    ("bad kind", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "X", "name": "r"}}),
    ("bad group", {"roleRef": {"apiGroup": "x", "kind": "Role", "name": "r"}}),
    (
        "subject kind",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "X", "name": "a"}],
        },
    ),
    (
        "account without namespace",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "a"}],
        },
    ),
    (
        "subject no name",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"kind": "User"}],
        },
    ),
]:
    post(f"role binding: {label}", RBAC + "/rolebindings", {"metadata": {"name": "rb"}, **body})
post(
    "make role binding",
    RBAC + "/rolebindings",
    {"metadata": {"name": "rb"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}},
)
call("patch role binding: ref", "PATCH", RBAC + "/rolebindings/rb", {"roleRef": {"name": "z"}}, MERGE)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
for label, spec in [
    ("negative", {"leaseDurationSeconds": -1}),
    ("zero", {"leaseDurationSeconds": 0}),
    ("transitions", {"leaseTransitions": -1}),
    ("time", {"renewTime": "yesterday"}),
]:
    post(f"lease: {label}", LEASES, {"metadata": {"name": "l"}, "spec": spec})
call("lease: create by put", "PUT", LEASES + "/by-put", {"metadata": {"name": "by-put"}, "spec": {}})
EVENTS = CORE + "/events"
for label, body in [
    ("other namespace", {"involvedObject": {"namespace": "zz"}}),
    ("ok", {"involvedObject": {"namespace": "{ns}"}, "reason": "r"}),
]:
    post(
        f"event: {label}", EVENTS, json.loads(json.dumps({"metadata": {"name": "e1"}, **body}).replace("{ns}", "demo"))
    )
for label, body in [
    ("bare", {}),
    (
        "no reason",
        {
            "eventTime": "2020-01-01T00:00:00.000000Z",
            "reportingController": "a.b/c",
            "reportingInstance": "i",
            "action": "a",
            "type": "Normal",
        },
    ),
    (
        "type",
        {
            "eventTime": "2020-01-01T00:00:00.000000Z",
            "reportingController": "a.b/c",
            "reportingInstance": "i",
            "action": "a",
            "reason": "r",
            "type": "X",
        },
    ),
]:
    post(
        f"new event: {label}",
        "/apis/events.k8s.io/v1/namespaces/{ns}/events",
        {"metadata": {"name": "e2"}, "regarding": {"namespace": "demo"}, **body},
    )
for label, body in [
    ("no name", {}),
    ("taint effect", {"metadata": {"name": "conf-n"}, "spec": {"taints": [{"key": "a", "effect": "X"}]}}),
    (
        "taints twice",
        {
            "metadata": {"name": "conf-n"},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
        },
    ),
    ("cidr", {"metadata": {"name": "conf-n"}, "spec": {"podCIDR": "x", "podCIDRs": ["x"]}}),
]:
    post(f"node: {label}", "/api/v1/nodes", body)
TOKEN = CORE + "/serviceaccounts/default/token"
for label, spec in [
    ("seconds text", {"expirationSeconds": "x"}),
    ("seconds small", {"expirationSeconds": 5}),
    ("seconds huge", {"expirationSeconds": 1 << 33}),
    ("bound kind", {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "x"}}),
    ("bound missing", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nosuch"}}),
    ("audience text", {"audiences": "a"}),
]:
    post(f"token: {label}", TOKEN, {"spec": spec})
post("token: missing account", CORE + "/serviceaccounts/nosuch/token", {"spec": {}})
for label, body in [
    ("no attributes", {"spec": {}}),
    ("both", {"spec": {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get", "path": "/x"}}}),
    ("with name", {"metadata": {"name": "x"}, "spec": {"nonResourceAttributes": {"verb": "get", "path": "/x"}}}),
]:
    post(f"self review: {label}", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
post(
    "review: no user",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    {"spec": {"resourceAttributes": {"verb": "get"}}},
)
post("token review: bad", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
post("token review: empty", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}})
post("rules review: no namespace", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {}})
HPA = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
post(
    "autoscaler: max",
    HPA,
    {"metadata": {"name": "h"}, "spec": {"maxReplicas": 0, "scaleTargetRef": {"kind": "Deployment", "name": "x"}}},
)
call(
    "namespace: finalize",
    "PUT",
    "/api/v1/namespaces/{ns}/finalize",
    {"metadata": {"name": "demo"}, "spec": {"finalizers": ["kubernetes"]}},
)
call("delete namespace default", "DELETE", "/api/v1/namespaces/default")
call("delete namespace kube-system", "DELETE", "/api/v1/namespaces/kube-system")

# CRDs
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(group="conf.example.com", plural="things", kind="Thing", schema=None, **spec):
    base = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": kind + "List"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": schema
                    or {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    }
    base.update(spec)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": base,
    }


for label, body in [
    ("name", {**crd(), "metadata": {"name": "x"}}),
    ("no versions", crd(versions=[])),
    (
        "no storage",
        crd(
            versions=[
                {"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ]
        ),
    ),
    ("no schema", crd(versions=[{"name": "v1", "served": True, "storage": True}])),
    ("scope", crd(scope="X")),
    ("untyped", crd(schema={"properties": {"spec": {"type": "object"}}})),
    ("nested untyped", crd(schema={"type": "object", "properties": {"spec": {"properties": {}}}})),
    ("bad type", crd(schema={"type": "object", "properties": {"a": {"type": "x"}}})),
    ("protected group", crd(group="x.k8s.io")),
    (
        "two storage",
        crd(
            versions=[
                {"name": n, "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                for n in ("v1", "v2")
            ]
        ),
    ),
    ("default wrong", crd(schema={"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}})),
    (
        "list key",
        crd(
            schema={
                "type": "object",
                "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}},
            }
        ),
    ),
    ("conversion", crd(conversion={"strategy": "X"})),
    ("plural", crd(plural="Things")),
    (
        "column",
        crd(
            versions=[
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "additionalPrinterColumns": [{"name": "a", "type": "x", "jsonPath": "b"}],
                }
            ]
        ),
    ),
]:
    post(f"crd: {label}", CRDS, body)

# Tables: the columns of every kind
for path in [
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumes",
    "/api/v1/componentstatuses",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/networking.k8s.io/v1/ingressclasses",
]:
    call(f"columns {path}", "GET", path + "?limit=1&fieldSelector=metadata.name%3Dnosuch", None, TABLE)
for group, plurals in [
    (
        "/api/v1",
        "pods services endpoints configmaps secrets serviceaccounts events persistentvolumeclaims resourcequotas limitranges replicationcontrollers podtemplates",
    ),
    ("/apis/apps/v1", "deployments replicasets statefulsets daemonsets controllerrevisions"),
    ("/apis/batch/v1", "jobs cronjobs"),
    ("/apis/policy/v1", "poddisruptionbudgets"),
    ("/apis/coordination.k8s.io/v1", "leases"),
    ("/apis/events.k8s.io/v1", "events"),
    ("/apis/discovery.k8s.io/v1", "endpointslices"),
    ("/apis/rbac.authorization.k8s.io/v1", "roles rolebindings"),
    ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("/apis/networking.k8s.io/v1", "ingresses networkpolicies"),
    ("/apis/resource.k8s.io/v1", "resourceclaims resourceclaimtemplates"),
    ("/apis/storage.k8s.io/v1", "csistoragecapacities"),
]:
    for plural in plurals.split():
        call(
            f"columns {plural}.{group}",
            "GET",
            f"{group}/namespaces/{{ns}}/{plural}?limit=1&fieldSelector=metadata.name%3Dnosuch",
            None,
            TABLE,
        )

# Found by random_beside.py
DEPLOYED = "/apis/apps/v1/namespaces/{ns}/deployments/found"
post("make found", "/apis/apps/v1/namespaces/{ns}/deployments", workload("Deployment", "found"))
post("warning beside a refusal", DEPLOYMENTS, {**workload("Deployment", "bad", replicas=-1), "foo": 1})
call("warning beside a refused patch", "PATCH", DEPLOYED, {"spec": {"replicas": -1, "foo": 1}}, MERGE)
for label, meta in [
    ("deletion time", {"deletionTimestamp": "2031-05-05T05:05:05Z"}),
    ("grace", {"deletionGracePeriodSeconds": 600}),
    ("grace zero", {"deletionGracePeriodSeconds": 0}),
    ("no namespace", {"namespace": ""}),
]:
    call(f"metadata by update: {label}", "PATCH", DEPLOYED + "?dryRun=All", {"metadata": meta}, MERGE)
call(
    "apply empty list",
    "PATCH",
    DEPLOYED + "?fieldManager=one&force=true",
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "found"},
        "spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
    },
    APPLY,
)
call(
    "apply empty list: none left",
    "PATCH",
    DEPLOYED + "?fieldManager=two&force=true",
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "found"},
        "spec": {"template": {"spec": {"tolerations": []}}},
    },
    APPLY,
)
call(
    "retain keys without the kind",
    "PATCH",
    DEPLOYED + "?dryRun=All",
    {"$retainKeys": ["metadata", "spec"], "metadata": {"labels": {"a": "b"}}},
    STRATEGIC,
)
post(
    "make found pod",
    CORE + "/pods",
    pod("found", {"tolerations": [{"key": "k", "operator": "Exists"}], "hostIPC": False}, {"tty": False}),
)
call(
    "the pod's tolerations again",
    "PATCH",
    CORE + "/pods/found?fieldManager=one&force=true",
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "found"},
        "spec": {"tolerations": [{"key": "k", "operator": "Exists"}]},
    },
    APPLY,
)
post(
    "node with capacity alone",
    "/api/v1/nodes",
    {"metadata": {"name": "found"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}},
)
post(
    "quota: unknown resource",
    CORE + "/resourcequotas",
    {"metadata": {"name": "found"}, "spec": {"hard": {"gpus": "1"}}},
)
post("service: traffic policy of an inner service", SERVICES, service("found", externalTrafficPolicy="Local"))
post(
    "role: null verb",
    RBAC + "/roles",
    {"metadata": {"name": "found"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", None]}]},
)
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
post("make found budget", BUDGETS, {"metadata": {"name": "found"}, "spec": {"selector": {}}})
call(
    "budget: update without a version",
    "PUT",
    BUDGETS + "/found",
    {"metadata": {"name": "found"}, "spec": {"selector": {}}},
)

# Scopes of quotas are held against what they limit.
for number, (scopes, hard) in enumerate(
    [
        (["BestEffort"], {"pods": "1", "cpu": "1", "services": "1"}),
        (["NotBestEffort"], {"services": "1"}),
        (["Terminating", "Never"], {"pods": "1"}),
        (["PriorityClass"], {"requests.nvidia.com/gpu": "1"}),
        (["VolumeAttributesClass"], {"persistentvolumeclaims": "1"}),
    ]
):
    post(
        f"quota scopes {number}",
        CORE + "/resourcequotas",
        {"metadata": {"name": f"scopes{number}"}, "spec": {"hard": hard, "scopes": scopes}},
    )
for number, (expression, hard) in enumerate(
    [
        ({"scopeName": "BestEffort", "operator": "In", "values": ["x"]}, {"pods": "1"}),
        ({"scopeName": "PriorityClass", "operator": "In"}, {"pods": "1"}),
        ({"scopeName": "PriorityClass", "operator": "Exists", "values": ["x"]}, {"pods": "1"}),
        ({"scopeName": "PriorityClass", "operator": "Near"}, {"pods": "1"}),
        ({"scopeName": "Sometimes", "operator": "Exists"}, {"pods": "1"}),
        ({"scopeName": "Terminating", "operator": "Exists"}, {"secrets": "1"}),
    ]
):
    post(
        f"quota selector {number}",
        CORE + "/resourcequotas",
        {
            "metadata": {"name": f"selector{number}"},
            "spec": {"hard": hard, "scopeSelector": {"matchExpressions": [expression]}},
        },
    )

# The addresses of a node's pods.
post(
    "make node: pod ranges that differ",
    "/api/v1/nodes",
    {"metadata": {"name": "ranges"}, "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.2.0.0/24"]}},
)
post(
    "node: two ranges of a family",
    "/api/v1/nodes",
    {"metadata": {"name": "twice"}, "spec": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]}},
)
call("node: another range", "PATCH", "/api/v1/nodes/ranges", {"spec": {"podCIDR": "10.9.0.0/24"}}, MERGE)
call("node: provider", "PATCH", "/api/v1/nodes/ranges", {"spec": {"providerID": "a://b"}}, MERGE)
call("node: another provider", "PATCH", "/api/v1/nodes/ranges", {"spec": {"providerID": "a://c"}}, MERGE)

# An eviction that is refused leaves no mark on its pod.
post("make guarded pod", CORE + "/pods", pod("guarded"))
post(
    "eviction: of another uid",
    CORE + "/pods/guarded/eviction",
    {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "guarded"},
        "deleteOptions": {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}},
    },
)
call("eviction: the pod is as before", "GET", CORE + "/pods/guarded")
