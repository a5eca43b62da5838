"""Random objects that make sense: a valid one of each kind, and changes to it drawn from the kind's OpenAPI schema.

A value is usually allowed for its field and sometimes not: a word outside the enumeration, a bad quantity, another
type, an unknown field. `{id}` in a name stands for the number of the attempt, so that a
sequence can be sent again beside its first run.
"""
import copy

NAMESPACE = "demo"
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "containers": [
            {"name": "main", "image": "nginx", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
        ]
    },
}
JOB_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
REPLICA = {
    "replicas": 1,
    "restartPolicy": "OnFailure",
    "template": {"spec": {"containers": [{"name": "pytorch", "image": "torch"}]}},
}

# kind: apiVersion, plural, namespaced, subresources, what a good object has beside its metadata
KINDS = {
    "Pod": (
        "v1",
        "pods",
        True,
        ["status"],
        {
            "spec": {
                "schedulerName": "nobody",
                "automountServiceAccountToken": False,
                "containers": [
                    {
                        "name": "main",
                        "image": "nginx",
                        "ports": [{"containerPort": 80, "name": "http"}],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}},
                    },
                    {"name": "side", "image": "busybox"},
                ],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }
        },
    ),
    "ConfigMap": ("v1", "configmaps", True, [], {"data": {"a": "1", "b": "2"}}),
    "Service": (
        "v1",
        "services",
        True,
        ["status"],
        {
            "spec": {
                "selector": {"app": "x"},
                "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}],
            }
        },
    ),
    "Deployment": (
        "apps/v1",
        "deployments",
        True,
        ["status", "scale"],
        {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE}},
    ),
    "Job": (
        "batch/v1",
        "jobs",
        True,
        ["status"],
        {"spec": {"template": JOB_TEMPLATE, "backoffLimit": 2, "parallelism": 1}},
    ),
    "Node": (
        "v1",
        "nodes",
        False,
        ["status"],
        {
            "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi"}},
        },
    ),
    "Role": (
        "rbac.authorization.k8s.io/v1",
        "roles",
        True,
        [],
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        "poddisruptionbudgets",
        True,
        [],
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
    ),
    "ResourceQuota": (
        "v1",
        "resourcequotas",
        True,
        [],
        {"spec": {"hard": {"pods": "500000", "requests.cpu": "400000"}}},
    ),
    "PodGroup": (
        "scheduling.volcano.sh/v1beta1",
        "podgroups",
        True,
        ["status"],
        {"spec": {"minMember": 2, "queue": "default", "minResources": {"cpu": "2"}}},
    ),
    "PyTorchJob": (
        "kubeflow.org/v1",
        "pytorchjobs",
        True,
        ["status"],
        {"spec": {"pytorchReplicaSpecs": {"Master": REPLICA, "Worker": REPLICA}}},
    ),
}
WORDS = ["a", "x-1", "b.example.com", "example.com/k", "default", "1", "A_b", "-bad-", "", "a" * 64, "with space", "ü"]
LABELS = ["a", "x-1", "example.com/k", "app", "-bad-", "a b", ""]
QUANTITIES = [
    "1",
    "500m",
    "1Gi",
    "0",
    "2",
    "1.5",
    "100M",
    "1e3",
    "0.1",
    3,
    "-1",
    "x",
    "1.5.5",
    "",
    "1 Gi",
    1.5,
    "100000000000000000000",
]
PORTS = [80, "50%", "http", 0, 1, "101%", -1, "x%", "30%"]
INTEGERS = [0, 1, 2, 3, 10, 30, 600, -1, 65536]
# What says which object it is, and what only the server and its garbage collector write.
NOT_CHANGED = (
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "generateName",
    "uid",
    "managedFields",
    "resourceVersion",
    "ownerReferences",
    "selfLink",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def path_of(kind, name="", subresource=""):
    version, plural, namespaced, _, _ = KINDS[kind]
    path = (
        ("/api/" if "/" not in version else "/apis/")
        + version
        + (f"/namespaces/{NAMESPACE}" if namespaced else "")
        + "/"
        + plural
    )
    return path + (f"/{name}" if name else "") + (f"/{subresource}" if subresource else "")


def good(kind, name):
    version, _, _, _, rest = KINDS[kind]
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": {"app": "x"}},
        **copy.deepcopy(rest),
    }


class Schemas:
    """The kinds' schemas as the real server publishes them."""

    def __init__(self, fetch):
        self.parts = {}
        for version in sorted({row[0] for row in KINDS.values()}):
            document = fetch("/openapi/v3/" + ("api/" if "/" not in version else "apis/") + version)
            self.parts.update(document["components"]["schemas"])
        self.roots = {}
        for name in sorted(self.parts):
            for gvk in self.parts[name].get("x-kubernetes-group-version-kind", []):
                version = (gvk["group"] + "/" if gvk["group"] else "") + gvk["version"]
                if gvk["kind"] in KINDS and KINDS[gvk["kind"]][0] == version:
                    self.roots[gvk["kind"]] = {"$ref": "#/components/schemas/" + name}

    def resolve(self, schema):
        """The schema behind references, and the last name on the way."""
        name = ""
        for _ in range(8):
            if "$ref" in schema:
                name = schema["$ref"].rsplit("/", 1)[1]
                schema = {**self.parts[name], **{k: v for k, v in schema.items() if k != "$ref"}}
            elif len(schema.get("allOf", [])) == 1:
                schema = {**schema["allOf"][0], **{k: v for k, v in schema.items() if k != "allOf"}}
            else:
                break
        return schema, name


class Values:
    def __init__(self, rng, schemas):
        self.rng, self.schemas = rng, schemas

    def chance(self, part):
        return self.rng.random() < part

    def often_good(self, values, good_count):
        """One of the first `good_count` mostly, one of the rest now and then."""
        return self.rng.choice(values[:good_count] if self.chance(0.9) else values)

    def value(self, schema, field="", depth=0):
        schema, name = self.schemas.resolve(schema)
        if self.chance(0.02):
            return self.rng.choice([None, "text", 7, True, [], {}, 1.5, ["x"], {"zz": 1}])
        if name.endswith("resource.Quantity"):
            return self.often_good(QUANTITIES, 10)
        if (
            name.endswith("IntOrString")
            or schema.get("x-kubernetes-int-or-string")
            or schema.get("format") == "int-or-string"
        ):
            return self.often_good(PORTS, 3)
        if schema.get("format") in ("date-time",):
            return self.often_good(["2024-01-01T00:00:00Z", "2031-05-05T05:05:05Z", "yesterday", ""], 2)
        if "enum" in schema:
            return self.rng.choice(schema["enum"]) if self.chance(0.92) else self.rng.choice(["Bogus", ""])
        kind = schema.get("type")
        if kind == "integer":
            return self.often_good(INTEGERS, 7)
        if kind == "number":
            return self.rng.choice([0, 1.5, -2])
        if kind == "boolean":
            return self.chance(0.5)
        if kind == "array":
            items = [
                self.value(schema.get("items", {}), field, depth + 1) for _ in range(self.rng.choice([0, 1, 1, 2]))
            ]
            return items
        if kind == "string":
            return self.often_good(WORDS, 6)
        if "properties" in schema:
            return self.members(schema, depth)
        if "additionalProperties" in schema:
            inner = schema["additionalProperties"]
            keys = (
                ["cpu", "memory", "pods", "nvidia.com/gpu", "a b"]
                if self.schemas.resolve(inner)[1].endswith("Quantity")
                else LABELS
            )
            return {
                self.often_good(keys, 4): self.value(inner, field, depth + 1) for _ in range(self.rng.choice([1, 1, 2]))
            }
        return self.often_good(WORDS, 6)

    def members(self, schema, depth):
        made = {}
        names = sorted(schema["properties"])
        for field in names:
            wanted = field in schema.get("required", []) and self.chance(0.95)
            if wanted or self.chance(0.4 / (1 + depth) if depth < 5 else 0):
                made[field] = self.value(schema["properties"][field], field, depth + 1)
        if not made and names and depth < 6:
            field = self.rng.choice(names)
            made[field] = self.value(schema["properties"][field], field, depth + 1)
        if self.chance(0.01):
            made["unknownField"] = 1
        return made

    def spot(self, kind, target):
        """A random place in the object, deep or not: its parent, key and schema."""
        schema, parent, key = self.schemas.roots[kind], None, None
        here = target
        for step in range(12):
            schema, _ = self.schemas.resolve(schema)
            if isinstance(here, dict) and schema.get("properties"):
                fields = sorted(schema["properties"])
                present = [f for f in fields if f in here and f not in ("apiVersion", "kind")]
                if step == 0:
                    field = (
                        self.rng.choice([f for f in present if f != "status"] or fields)
                        if self.chance(0.97)
                        else self.rng.choice(fields)
                    )
                else:
                    field = self.rng.choice(present) if present and self.chance(0.6) else self.rng.choice(fields)
                parent, key, schema = here, field, schema["properties"][field]
            elif (
                isinstance(here, dict)
                and here
                and "additionalProperties" in schema
                and isinstance(schema["additionalProperties"], dict)
                and self.chance(0.7)
            ):
                parent, key, schema = here, self.rng.choice(sorted(here) + ["a"]), schema["additionalProperties"]
            elif isinstance(here, list) and here and "items" in schema and self.chance(0.8):
                parent, key, schema = here, self.rng.randrange(len(here)), schema["items"]
            else:
                break
            here = parent.get(key) if isinstance(parent, dict) else parent[key]
            if here is None:
                break
            if not isinstance(here, (dict, list)) or self.chance(0.1):
                break
        return parent, key, schema

    def mutate(self, kind, target, times=1):
        for _ in range(times):
            parent, key, schema = self.spot(kind, target)
            if (
                parent is None
                or (parent is target and key in ("metadata", *NOT_CHANGED))
                or (parent is target.get("metadata") and key in NOT_CHANGED)
            ):
                continue
            draw = self.rng.random()
            if draw < 0.12 and isinstance(parent, dict):
                parent.pop(key, None)
            elif draw < 0.15:
                parent[key] = None
            elif draw < 0.18 and isinstance(parent, dict):
                parent[self.rng.choice(["unknownField", key + "x" if isinstance(key, str) else "zz"])] = 1
            elif draw < 0.26 and isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            else:
                parent[key] = self.value(schema, str(key), 1)
        return target
