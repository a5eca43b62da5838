"""The cases of access.py: what is set up on both servers, the hand-written questions, and how random cases are made."""
import json
import re

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACES = {
    "free": {},
    "baseline": {"pod-security.kubernetes.io/enforce": "baseline"},
    "restricted": {"pod-security.kubernetes.io/enforce": "restricted"},
    "warned": {
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/warn-version": "v1.24",
    },
    "mixed": {
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.25",
        "pod-security.kubernetes.io/warn": "restricted",
    },
}
USERS = ["alice", "bob", "carol", "system:serviceaccount:free:robot"]
GROUPS = ["dev", "ops"]
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "impersonate", "use"]
THINGS = [
    ("", "pods"),
    ("", "pods/log"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "users"),
    ("", "groups"),
    ("apps", "deployments"),
    ("apps", "deployments/scale"),
    ("apps", "*/scale"),
    ("batch", "jobs"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("*", "*"),
    ("", "*"),
]


def as_user(name, *groups):
    return {"Impersonate-User": name, **({"Impersonate-Group": groups[0]} if groups else {})}


def role(name, rules):
    return {"metadata": {"name": name}, "rules": rules}


def rule(groups, resources, verbs, names=None):
    return {
        "apiGroups": groups,
        "resources": resources,
        "verbs": verbs,
        **({"resourceNames": names} if names else {}),
    }


def binding(name, kind, ref, *subjects):
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ref},
        "subjects": list(subjects),
    }


def user(name):
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def group(name):
    return {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def account(ns, name):
    return {"kind": "ServiceAccount", "namespace": ns, "name": name}


def pod(name="p", spec=None, container=None):
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", **(container or {})}], **(spec or {})},
    }


def set_up(pair):
    for name, labels in NAMESPACES.items():
        pair.prepare("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        pair.prepare("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    pair.prepare("POST", "/api/v1/namespaces/free/serviceaccounts", {"metadata": {"name": "robot"}})
    roles = f"{RBAC}/namespaces/free/roles"
    bindings = f"{RBAC}/namespaces/free/rolebindings"
    pair.prepare("POST", roles, role("reader", [rule([""], ["pods", "pods/log"], ["get", "list"])]))
    pair.prepare("POST", roles, role("one", [rule([""], ["secrets"], ["get"], ["a"])]))
    pair.prepare(
        "POST",
        f"{RBAC}/clusterroles",
        role("grants", [rule(["rbac.authorization.k8s.io"], ["roles", "rolebindings"], ["*"])]),
    )
    pair.prepare(
        "POST",
        f"{RBAC}/clusterroles",
        role(
            "acts",
            [
                rule([""], ["users"], ["impersonate"], ["bob"]),
                rule([""], ["groups"], ["impersonate"], ["dev"]),
                rule(["authentication.k8s.io"], ["userextras/scopes"], ["impersonate"], ["view"]),
                rule(["authentication.k8s.io"], ["uids"], ["impersonate"], ["7"]),
                rule([""], ["serviceaccounts"], ["impersonate"]),
            ],
        ),
    )
    pair.prepare("POST", bindings, binding("readers", "Role", "reader", user("bob"), group("dev")))
    pair.prepare("POST", bindings, binding("one", "Role", "one", account("free", "robot")))
    pair.prepare("POST", bindings, binding("grants", "ClusterRole", "grants", user("alice")))
    pair.prepare(
        "POST",
        f"{RBAC}/clusterroles",
        role("edits", [rule([""], ["pods", "secrets", "configmaps"], ["*"]), rule(["apps"], ["*/scale"], ["get"])]),
    )
    pair.prepare("POST", bindings, binding("edits", "ClusterRole", "edits", user("carol")))
    pair.prepare("POST", f"{RBAC}/clusterrolebindings", binding("acts", "ClusterRole", "acts", user("carol")))
    pair.prepare(
        "POST",
        "/api/v1/namespaces/warned/limitranges",
        {
            "metadata": {"name": "limits"},
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2", "memory": "1Gi"},
                        "min": {"cpu": "100m"},
                        "default": {"cpu": "500m", "memory": "256Mi"},
                        "defaultRequest": {"cpu": "200m"},
                        "maxLimitRequestRatio": {"cpu": "4"},
                    },
                    {"type": "Pod", "max": {"cpu": "3", "memory": "2Gi"}, "min": {"memory": "64Mi"}},
                    {"type": "PersistentVolumeClaim", "max": {"storage": "10Gi"}, "min": {"storage": "1Gi"}},
                ]
            },
        },
    )


def by_hand(pair):
    rbac_by_hand(pair)
    acting_by_hand(pair)
    security_by_hand(pair)
    names_by_hand(pair)
    limits_by_hand(pair)


def rbac_by_hand(pair):
    for who, headers in [
        ("bob", as_user("bob")),
        ("dev", as_user("mallory", "dev")),
        ("nobody", as_user("mallory")),
        ("robot", as_user("system:serviceaccount:free:robot")),
        ("carol", as_user("carol")),
    ]:
        for method, path in [
            ("GET", "/api/v1/namespaces/free/pods"),
            ("GET", "/api/v1/namespaces/free/pods/x"),
            ("GET", "/api/v1/namespaces/free/pods/x/log"),
            ("GET", "/api/v1/pods"),
            ("GET", "/api/v1/namespaces/free/secrets/a"),
            ("GET", "/api/v1/namespaces/free/secrets/b"),
            ("GET", "/api/v1/namespaces/free/secrets"),
            ("DELETE", "/api/v1/namespaces/free/pods"),
            ("DELETE", "/api/v1/namespaces/free/pods/x"),
            ("GET", "/api/v1/nodes"),
            ("GET", "/api/v1/namespaces/free"),
            ("GET", "/apis/apps/v1/namespaces/free/deployments/x/scale"),
            ("GET", "/metrics"),
        ]:
            pair.compare(f"rbac {who}", method, path, None, headers)
    alice = as_user("alice")
    for name, rules in [
        ("held", [rule(["rbac.authorization.k8s.io"], ["roles"], ["get", "delete"])]),
        ("more", [rule([""], ["pods", "secrets"], ["get", "list"])]),
        ("all", [rule(["*"], ["*"], ["*"])]),
        ("named", [rule([""], ["secrets"], ["get"], ["a", "b"])]),
        ("partly", [rule(["rbac.authorization.k8s.io", "apps"], ["roles"], ["get"])]),
    ]:
        pair.compare(f"escalate {name}", "POST", f"{RBAC}/namespaces/free/roles?dryRun=All", role(name, rules), alice)
    for name, kind, ref in [
        ("b1", "ClusterRole", "cluster-admin"),
        ("b2", "ClusterRole", "view"),
        ("b3", "Role", "reader"),
        ("b4", "ClusterRole", "grants"),
        ("b5", "Role", "absent"),
        ("b6", "ClusterRole", "absent"),
    ]:
        body = binding(name, kind, ref, user("alice"))
        if ref == "view":  # Muster's own rules are part of it
            continue
        pair.compare(f"bind {name}", "POST", f"{RBAC}/namespaces/free/rolebindings?dryRun=All", body, alice)
    pair.compare("bind cluster", "POST", f"{RBAC}/clusterrolebindings", binding("c", "ClusterRole", "grants"), alice)
    body = binding("c", "ClusterRole", "absent")
    pair.compare("bind cluster absent", "POST", f"{RBAC}/clusterrolebindings?dryRun=All", body)


def acting_by_hand(pair):
    """By carol, who may act as some; the admin acts as carol by asking for reviews with her name, so here her rights
    are asked for with SubjectAccessReviews."""
    me = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    for name, headers in [
        ("user", {"Impersonate-User": "jane"}),
        ("group alone", {"Impersonate-Group": "dev"}),
        ("uid alone", {"Impersonate-Uid": "7"}),
        ("extra alone", {"Impersonate-Extra-scopes": "view"}),
        ("user and group", {"Impersonate-User": "jane", "Impersonate-Group": "dev"}),
        ("user and uid", {"Impersonate-User": "jane", "Impersonate-Uid": "7"}),
        ("extra", {"Impersonate-User": "jane", "Impersonate-Extra-Example.com%2fscope": "a"}),
        ("account", {"Impersonate-User": "system:serviceaccount:free:robot"}),
        ("odd account", {"Impersonate-User": "system:serviceaccount:free"}),
        ("odd account 2", {"Impersonate-User": "system:serviceaccount:a:b:c"}),
        ("anonymous", {"Impersonate-User": "system:anonymous"}),
        ("masters", {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}),
        ("unauthenticated", {"Impersonate-User": "jane", "Impersonate-Group": "system:unauthenticated"}),
    ]:
        pair.compare(
            f"act as {name}",
            "POST",
            me,
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
            headers,
        )
    # A token of carol's own kind: an account that may act as some.
    pair.prepare(
        "POST",
        f"{RBAC}/clusterrolebindings",
        binding("acts-robot", "ClusterRole", "acts", account("free", "robot")),
    )
    tokens = []
    for server in pair.servers:
        code, _, text = server.ask("POST", "/api/v1/namespaces/free/serviceaccounts/robot/token", {"spec": {}})
        if code != 201:
            raise RuntimeError(text)
        tokens.append(json.loads(text)["status"]["token"])
    kept = [server.token for server in pair.servers]
    for server, token in zip(pair.servers, tokens):
        server.token = token
    try:
        for who in ["bob", "jane", "system:serviceaccount:free:default", "system:serviceaccount:other:default"]:
            for more in [
                {},
                {"Impersonate-Group": "dev"},
                {"Impersonate-Group": "system:masters"},
                {"Impersonate-Uid": "7"},
                {"Impersonate-Uid": "8"},
                {"Impersonate-Extra-scopes": "view"},
                {"Impersonate-Extra-scopes": "edit"},
                {"Impersonate-Extra-Other": "view"},
            ]:
                pair.compare(
                    f"robot acts as {who}",
                    "POST",
                    me,
                    {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
                    {"Impersonate-User": who, **more},
                )
    finally:
        for server, token in zip(pair.servers, kept):
            server.token = token


BAD = {
    "privileged": ({}, {"securityContext": {"privileged": True}}),
    "capabilities": ({}, {"securityContext": {"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}}}),
    "host": ({"hostNetwork": True, "hostPID": True, "hostIPC": True}, {}),
    "path": ({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, {}),
    "ports": ({}, {"ports": [{"containerPort": 80, "hostPort": 80}]}),
    "selinux": ({"securityContext": {"seLinuxOptions": {"type": "custom_t", "user": "u"}}}, {}),
    "proc": ({}, {"securityContext": {"procMount": "Unmasked"}}),
    "seccomp": ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {}),
    "sysctls": ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, {}),
    "apparmor": ({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}, {}),
    "root": ({"securityContext": {"runAsUser": 0}}, {}),
    "group": ({"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}}, {}),
    "good": (
        {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}},
        {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
    ),
    "probe": ({}, {"livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}}}),
}


def security_by_hand(pair):
    for ns in NAMESPACES:
        for name, (spec, container) in BAD.items():
            pair.compare(
                f"security {ns} {name}", "POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod("p", spec, container)
            )
            template = pod("p", spec, container)
            template["metadata"] = {"labels": {"a": "b"}}
            pair.compare(
                f"security {ns} {name} deployment",
                "POST",
                f"/apis/apps/v1/namespaces/{ns}/deployments?dryRun=All",
                {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}},
            )
    for labels in [
        {"pod-security.kubernetes.io/enforce": "tight"},
        {"pod-security.kubernetes.io/enforce-version": "v1"},
        {"pod-security.kubernetes.io/audit": "baseline", "pod-security.kubernetes.io/audit-version": "latest"},
    ]:
        pair.compare(
            "security labels", "POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": "x", "labels": labels}}
        )


NAMES = {
    "claim": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "../a"}}]},
    "secret volume": {"volumes": [{"name": "v", "secret": {"secretName": "a/b"}}]},
    "map volume": {"volumes": [{"name": "v", "configMap": {"name": "a/b"}}]},
    "projected": {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "a/b"}}]}}]},
    "pull": {"imagePullSecrets": [{"name": "a/b"}]},
    "account": {"serviceAccountName": "a/b"},
    "item": {"volumes": [{"name": "v", "secret": {"secretName": "a", "items": [{"key": "k", "path": "../x"}]}}]},
    "item root": {"volumes": [{"name": "v", "configMap": {"name": "a", "items": [{"key": "k", "path": "/x"}]}}]},
    "sub path": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "../x"}]}
        ],
    },
}
FROM = {
    "secret": {"envFrom": [{"secretRef": {"name": "a/b"}}]},
    "map": {"envFrom": [{"configMapRef": {"name": "a/b"}}]},
    "secret key": {"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "a/b", "key": "k"}}}]},
    "map key": {"env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "../k"}}}]},
}


def names_by_hand(pair):
    for name, spec in NAMES.items():
        body = pod()
        body["spec"].update(spec)
        pair.compare(f"name of {name}", "POST", "/api/v1/namespaces/free/pods?dryRun=All", body)
    for name, container in FROM.items():
        pair.compare(f"name of {name}", "POST", "/api/v1/namespaces/free/pods?dryRun=All", pod("p", {}, container))


def resources(requests=None, limits=None):
    return {"resources": {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}}


def limits_by_hand(pair):
    path = "/api/v1/namespaces/warned/pods?dryRun=All"
    for name, spec, container in [
        ("nothing", {}, {}),
        ("request", {}, resources({"cpu": "300m"})),
        ("limit", {}, resources(None, {"cpu": "1", "memory": "512Mi"})),
        ("too much", {}, resources(None, {"cpu": "4", "memory": "4Gi"})),
        ("too little", {}, resources({"cpu": "10m"})),
        ("ratio", {}, resources({"cpu": "100m"}, {"cpu": "2"})),
        ("init", {"initContainers": [{"name": "i", "image": "i", **resources(None, {"memory": "3Gi"})}]}, {}),
        ("many", {"containers": [{"name": f"c{n}", "image": "i", **resources(None, {"cpu": "2"})} for n in "123"]}, {}),
    ]:
        body = pod("p", {}, container)
        body["spec"].update(spec)
        pair.compare(f"limits {name}", "POST", path, body)
    for size in ["512Mi", "20Gi"]:
        pair.compare(
            f"limits claim {size}",
            "POST",
            "/api/v1/namespaces/warned/persistentvolumeclaims?dryRun=All",
            {
                "metadata": {"name": "c"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
            },
        )


def random_cases(pair, chance, seed):
    random_rights(pair, chance, seed)
    random_pod(pair, chance, seed)
    random_limits(pair, chance, seed)


def filled(**fields):
    """Without those that are empty, which Kubernetes does not repeat."""
    return {key: value for key, value in fields.items() if value}


def some(chance, things, most):
    return chance.sample(things, chance.randint(1, most))


def random_rule(chance):
    picked = some(chance, THINGS, 3)
    return rule(
        sorted({each[0] for each in picked}),
        sorted({each[1] for each in picked}),
        some(chance, VERBS, 4),
        chance.choice([None, None, None, ["a"], ["a", "b"]]),
    )


def random_rights(pair, chance, seed):
    """A role and a binding of it, then what its subject may do, and what they may hand on."""
    name, ns = f"r{seed}", chance.choice(["free", "baseline"])
    wide = chance.random() < 0.4
    where = RBAC if wide else f"{RBAC}/namespaces/{ns}"
    who = chance.choice(USERS)
    subject = chance.choice([user(who), group(chance.choice(GROUPS)), account("free", "robot")])
    kind = "ClusterRole" if wide else "Role"
    plural = "clusterrole" if wide else "role"
    pair.prepare("POST", f"{where}/{plural}s", role(name, [random_rule(chance) for _ in range(chance.randint(1, 3))]))
    pair.prepare("POST", f"{where}/{plural}bindings", binding(name, kind, name, subject))
    for _ in range(6):
        thing = chance.choice([each for each in THINGS if "*" not in each[0] + each[1]])
        resource, _, sub = thing[1].partition("/")
        pair.compare(
            f"rights, seed {seed}",
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": chance.choice(USERS),
                    "groups": chance.choice([[], ["dev"], ["ops", "system:authenticated"]]),
                    "resourceAttributes": filled(
                        verb=chance.choice(VERBS[:-3] + ["use"]),
                        group=thing[0],
                        resource=resource,
                        subresource=sub,
                        namespace=chance.choice(["free", "baseline", ""]),
                        name=chance.choice(["", "a", "b", "c"]),
                    ),
                },
            },
            # Which of several bindings is named depends on the order of Go's maps.
            change=lambda text: re.sub(r'(RBAC: allowed by )[^}]*"', r'\1somebody"', text),
        )
    handed = role("handed", [random_rule(chance) for _ in range(chance.randint(1, 2))])
    acting = as_user(chance.choice(USERS), *chance.choice([(), ("dev",), ("ops",)]))
    pair.compare(f"hands on, seed {seed}", "POST", f"{RBAC}/namespaces/{ns}/roles?dryRun=All", handed, acting)
    if not wide:
        bound = binding("handed", "Role", name, user("mallory"))
        pair.compare(f"binds, seed {seed}", "POST", f"{RBAC}/namespaces/{ns}/rolebindings?dryRun=All", bound, acting)
    # Only some stay, so that the next rounds are not all alike.
    if chance.random() < 0.7:
        pair.prepare("DELETE", f"{where}/{plural}bindings/{name}")


def random_context(chance, of_pod):
    context = {}
    for key, values in {
        "runAsNonRoot": [True, False],
        "runAsUser": [0, 1000],
        "seccompProfile": [
            {"type": "RuntimeDefault"},
            {"type": "Unconfined"},
            {"type": "Localhost", "localhostProfile": "x"},
        ],
        "seLinuxOptions": [{"type": "container_t"}, {"type": "bad_t"}, {"user": "u"}, {"role": "r", "level": "s0"}],
        "appArmorProfile": [{"type": "RuntimeDefault"}, {"type": "Unconfined"}],
    }.items():
        if chance.random() < 0.35:
            context[key] = chance.choice(values)
    if of_pod:
        if chance.random() < 0.3:
            context["sysctls"] = [{"name": chance.choice(["net.ipv4.tcp_syncookies", "kernel.sem"]), "value": "1"}]
        return context
    for key, values in {
        "privileged": [True, False],
        "allowPrivilegeEscalation": [True, False],
        "procMount": ["Default"],
        "capabilities": [
            {"drop": ["ALL"]},
            {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            {"add": ["SYS_ADMIN", "CHOWN"]},
            {"add": ["NET_RAW", "KILL"]},
        ],
    }.items():
        if chance.random() < 0.4:
            context[key] = chance.choice(values)
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        del context["privileged"]  # cannot be both, whatever the level
    if "SYS_ADMIN" in context.get("capabilities", {}).get("add", []):
        context.pop("allowPrivilegeEscalation", None)
    return context


def random_container(chance, name):
    container = {"name": name, "image": "i"}
    if chance.random() < 0.8:
        container["securityContext"] = random_context(chance, False)
    if chance.random() < 0.2:
        container["ports"] = [{"containerPort": 80, "hostPort": chance.choice([80, 8080])}]
    return container


def random_pod(pair, chance, seed):
    spec = {"containers": [random_container(chance, f"c{n}") for n in range(chance.randint(1, 3))]}
    if chance.random() < 0.3:
        spec["initContainers"] = [random_container(chance, "init")]
        spec["initContainers"][0].pop("ports", None)
    if chance.random() < 0.7:
        spec["securityContext"] = random_context(chance, True)
    for key in ["hostPID", "hostIPC"]:
        if chance.random() < 0.15:
            spec[key] = True
    if chance.random() < 0.3:
        spec["volumes"] = [
            {
                "name": f"v{n}",
                **chance.choice(
                    [{"emptyDir": {}}, {"hostPath": {"path": "/x"}}, {"nfs": {"server": "s", "path": "/"}}]
                ),
            }
            for n in range(2)
        ]
    ns = chance.choice(list(NAMESPACES))
    body = {"metadata": {"name": "p"}, "spec": spec}
    pair.compare(f"pod, seed {seed}", "POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", body)


def random_amounts(chance):
    amounts = {}
    if chance.random() < 0.7:
        amounts["cpu"] = chance.choice(["50m", "100m", "250m", "1", "2", "5"])
    if chance.random() < 0.7:
        amounts["memory"] = chance.choice(["32Mi", "128Mi", "1Gi", "3Gi"])
    return amounts


def random_limits(pair, chance, seed):
    containers = []
    for n in range(chance.randint(1, 3)):
        asked, most = random_amounts(chance), random_amounts(chance)
        containers.append({"name": f"c{n}", "image": "i", **resources(asked, most)})
    spec = {"containers": containers}
    if chance.random() < 0.4:
        spec["initContainers"] = [{"name": "init", "image": "i", **resources(None, random_amounts(chance))}]
    body = {"metadata": {"name": "p"}, "spec": spec}
    pair.compare(f"limits, seed {seed}", "POST", "/api/v1/namespaces/warned/pods?dryRun=All", body)
