"""Random sequences of requests about one object: it is created, changed by all kinds of patches, listed, deleted.

A request is a dictionary: method, path, body (a value, or text), type (the patch's media type) and note (what was
meant, for the report). When it is sent, `{id}` becomes the attempt's number, and `{uid}` and `{rv}` the object's
uid and version on that server.
"""
import copy
import json

from random_objects import KINDS, NOT_CHANGED, Values, good, path_of

JSON_PATCH, MERGE, STRATEGIC, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "ports": "containerPort",
    "taints": "key",
    "conditions": "type",
    "ownerReferences": "uid",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "addresses": "type",
    "topologySpreadConstraints": "topologyKey",
}


class Sequences:
    def __init__(self, rng, schemas):
        self.rng, self.values = rng, Values(rng, schemas)

    def options(self, *more):
        query = list(more)
        if self.rng.random() < 0.2:
            query.append("fieldValidation=" + self.rng.choice(["Strict", "Warn", "Ignore"]))
        if self.rng.random() < 0.08:
            query.append("dryRun=All")
        if self.rng.random() < 0.15 and not any(part.startswith("fieldManager") for part in query):
            query.append("fieldManager=" + self.rng.choice(["one", "two"]))
        return "?" + "&".join(query) if query else ""

    def first(self, kind):
        name = f"r-{kind.lower()}-{{id}}"
        body = good(kind, name)
        if self.rng.random() < 0.5:
            self.values.mutate(kind, body, self.rng.choice([1, 1, 2, 3]))
        if self.rng.random() < 0.2:
            return {
                "method": "PATCH",
                "path": path_of(kind, name) + self.options("fieldManager=one"),
                "type": APPLY,
                "body": body,
                "note": "create by apply",
            }
        return {"method": "POST", "path": path_of(kind) + self.options(), "body": body, "note": "create"}

    def next(self, kind, live):
        """One more request; `live` is the object as the real server has it, or None."""
        name = f"r-{kind.lower()}-{{id}}"
        if live is None:
            return self.first(kind)
        live = copy.deepcopy(live)
        makers = [
            (self.update, 3),
            (self.json_patch, 3),
            (self.merge_patch, 4),
            (self.strategic_patch, 5 if "." not in KINDS[kind][0] or "k8s.io" in KINDS[kind][0] else 0.3),
            (self.apply, 7),
            (self.read, 1.5),
            (self.delete, 0.8),
            (self.fresh_create, 1.5),
            (self.scale, 2 if "scale" in KINDS[kind][3] else 0),
        ]
        maker = self.rng.choices([m for m, _ in makers], [w for _, w in makers])[0]
        return maker(kind, name, live)

    def subresource(self, kind):
        """Metadata goes its own way through /status, differently for each kind; see only_status."""
        return "status" if "status" in KINDS[kind][3] and self.rng.random() < 0.15 else ""

    @staticmethod
    def only_status(subresource, body):
        if subresource and isinstance(body.get("metadata"), dict):
            body["metadata"] = {key: value for key, value in body["metadata"].items() if key == "name"}
        return subresource

    def changed(self, kind, live, times=None):
        return self.values.mutate(kind, copy.deepcopy(live), times or self.rng.choice([1, 1, 2, 3]))

    def fresh_create(self, kind, name, live):
        """Another object beside, on trial, so that validation of creates is met as often as that of updates."""
        body = self.values.mutate(kind, good(kind, name + "-b"), self.rng.choice([1, 2, 3]))
        query = "?dryRun=All" + ("&fieldValidation=Strict" if self.rng.random() < 0.3 else "")
        return {"method": "POST", "path": path_of(kind) + query, "body": body, "note": "create on trial"}

    def update(self, kind, name, live):
        body = self.changed(kind, live)
        if not isinstance(body.get("metadata"), dict):
            return {"method": "PUT", "path": path_of(kind, name) + self.options(), "body": body, "note": "update"}
        body["metadata"].pop("managedFields", None)
        draw = self.rng.random()
        if draw < 0.6:
            body["metadata"]["resourceVersion"] = "{rv}"
        elif draw < 0.9:
            body["metadata"].pop("resourceVersion", None)
        else:
            body["metadata"]["resourceVersion"] = "1"
        if body["metadata"].get("uid"):
            body["metadata"]["uid"] = "{uid}"
        return {"method": "PUT", "path": path_of(kind, name) + self.options(), "body": body, "note": "update"}

    def json_patch(self, kind, name, live):
        spots = []
        self.walk(live, "", spots)
        fixed = [f"/{key}" for key in ("apiVersion", "kind")] + [f"/metadata/{key}" for key in NOT_CHANGED]
        spots = [
            spot
            for spot in spots
            if spot[0] not in ("/metadata", *fixed) and not spot[0].startswith("/metadata/managedFields")
        ] or [("/spec", {})]
        operations = []
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            path, value = self.rng.choice(spots)
            other = self.rng.choice(spots)[0]
            draw = self.rng.random()
            if draw < 0.3:
                operations.append({"op": "replace", "path": path, "value": self.similar(value)})
            elif draw < 0.5:
                operations.append({"op": "remove", "path": path})
            elif draw < 0.7:
                operations.append(
                    {
                        "op": "add",
                        "path": path.rsplit("/", 1)[0] + self.rng.choice(["/-", "/0", "/extra", "/9"])
                        if self.rng.random() < 0.5
                        else path,
                        "value": self.similar(value),
                    }
                )
            elif draw < 0.8:
                operations.append({"op": "test", "path": path, "value": value if self.rng.random() < 0.7 else "no"})
            elif draw < 0.9:
                operations.append({"op": self.rng.choice(["move", "copy"]), "from": path, "path": other})
            else:
                operations.append(
                    self.rng.choice(
                        [
                            {"op": "remove", "path": path + "/nosuch"},
                            {"op": "bogus", "path": path},
                            {"op": "add", "path": "nosuch", "value": 1},
                            {"op": "replace", "path": path},
                            {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}},
                            {"op": "replace", "path": "/metadata/annotations/none", "value": "x"},
                        ]
                    )
                )
        return {
            "method": "PATCH",
            "path": path_of(kind, name) + self.options(),
            "type": JSON_PATCH,
            "body": operations,
            "note": "json patch",
        }

    def similar(self, value):
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + self.rng.choice([0, 1, -1, 10])
        if isinstance(value, str):
            return self.rng.choice([value, value + "x", "b", "", "2"])
        return self.rng.choice([value, {}, [], None, {"a": "b"}])

    def walk(self, value, path, spots):
        members = (
            sorted(value.items()) if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
        )
        for key, inner in members:
            here = path + "/" + str(key).replace("~", "~0").replace("/", "~1")
            spots.append((here, inner))
            self.walk(inner, here, spots)

    def difference(self, before, after):
        """A merge patch from `before` to `after`; lists are replaced."""
        if not isinstance(before, dict) or not isinstance(after, dict):
            return after
        patch = {}
        for key in sorted(set(before) | set(after)):
            if key not in after:
                patch[key] = None
            elif key not in before:
                patch[key] = after[key]
            elif before[key] != after[key]:
                patch[key] = self.difference(before[key], after[key])
        return patch

    def merge_patch(self, kind, name, live):
        patch = self.difference(live, self.changed(kind, live))
        subresource = self.only_status(self.subresource(kind), patch)
        self.precondition(patch)
        return {
            "method": "PATCH",
            "path": path_of(kind, name, subresource) + self.options(),
            "type": MERGE,
            "body": patch,
            "note": "merge patch",
        }

    def precondition(self, patch):
        draw = self.rng.random()
        if draw < 0.1 and isinstance(patch.get("metadata", {}), dict):
            patch.setdefault("metadata", {})["resourceVersion"] = self.rng.choice(["{rv}", "1", "x"])
        elif draw < 0.13 and isinstance(patch.get("metadata", {}), dict):
            patch.setdefault("metadata", {})["uid"] = self.rng.choice(["{uid}", "nobody"])

    def strategic_patch(self, kind, name, live):
        after = self.changed(kind, live)
        patch = self.strategic_difference(live, after)
        subresource = self.only_status(self.subresource(kind), patch)
        self.precondition(patch)
        return {
            "method": "PATCH",
            "path": path_of(kind, name, subresource) + self.options(),
            "type": STRATEGIC,
            "body": patch,
            "note": "strategic patch",
        }

    def strategic_difference(self, before, after, field=""):
        """Like `difference`, but lists are patched by their keys, with the directives that kubectl and others send."""
        if isinstance(before, list) and isinstance(after, list) and before and self.rng.random() < 0.8:
            return self.list_patch(before, after, field)
        if not isinstance(before, dict) or not isinstance(after, dict):
            return after
        patch = {}
        for key in sorted(set(before) | set(after)):
            if key in ("managedFields",):
                continue
            if key not in after:
                patch[key] = None
            elif key not in before:
                patch[key] = after[key]
            elif before[key] != after[key] or (
                isinstance(before[key], (list, dict)) and before[key] and self.rng.random() < 0.12
            ):
                inner = self.strategic_difference(before[key], after[key], key)
                patch[key] = inner
                if (
                    isinstance(before[key], list)
                    and all(isinstance(v, str) for v in before[key])
                    and self.rng.random() < 0.4
                ):
                    patch.pop(key)
                    patch["$deleteFromPrimitiveList/" + key] = [self.rng.choice(before[key])]
                elif isinstance(before[key], list) and self.rng.random() < 0.25:
                    patch["$setElementOrder/" + key] = self.order(before[key], key)
        draw = self.rng.random()
        if draw < 0.03:
            patch["$patch"] = self.rng.choice(["replace", "delete", "merge", "bogus"])
        elif draw < 0.06:
            patch["$retainKeys"] = [key for key in sorted(before) if self.rng.random() < 0.7] + [
                key for key in sorted(patch) if not key.startswith("$") and key not in before
            ]
        return patch

    def order(self, items, field):
        key = MERGE_KEYS.get(field)
        names = [({key: item[key]} if key and isinstance(item, dict) and key in item else item) for item in items]
        self.rng.shuffle(names)
        return names[:-1] if len(names) > 1 and self.rng.random() < 0.15 else names

    def list_patch(self, before, after, field):
        key = MERGE_KEYS.get(field)
        if key is None or not all(isinstance(item, dict) for item in before + after):
            return after
        patch = []
        for item in before:
            draw = self.rng.random()
            if draw < 0.2:
                patch.append({key: item.get(key), "$patch": "delete"})
            elif draw < 0.28:
                patch.append({**item, "$patch": "replace"})
            else:
                match = next((other for other in after if other.get(key) == item.get(key)), None)
                if match is not None and (match != item or draw > 0.8):
                    inner = self.strategic_difference(item, match, field)
                    if isinstance(inner, dict):
                        inner[key] = item.get(key)
                    patch.append(inner)
        for item in after:
            if not any(item.get(key) == other.get(key) for other in before):
                patch.append(item)
        if self.rng.random() < 0.06:
            patch.append({"$patch": self.rng.choice(["replace", "delete"])})
        if self.rng.random() < 0.03:
            patch.append({"value": "without its key"})
        return patch

    def apply(self, kind, name, live):
        body = good(kind, name)
        if self.rng.random() < 0.4:
            body = (
                {key: body[key] for key in ("apiVersion", "kind", "metadata")}
                if self.rng.random() < 0.6
                else self.thinned(body)
            )
        self.values.mutate(kind, body, self.rng.choice([0, 1, 1, 2]))
        if self.rng.random() < 0.5:
            body.setdefault("metadata", {}) and isinstance(body["metadata"], dict) and body["metadata"].setdefault(
                "annotations", {self.rng.choice("ab"): self.rng.choice("12")}
            )
        query = ["fieldManager=" + self.rng.choice(["one", "two", "three"])]
        subresource = self.only_status(self.subresource(kind), body)
        if self.rng.random() < 0.4:
            query.append("force=" + self.rng.choice(["true", "true", "false"]))
        return {
            "method": "PATCH",
            "path": path_of(kind, name, subresource) + self.options(*query),
            "type": APPLY,
            "body": body,
            "note": "apply",
        }

    def thinned(self, body):
        """The same with some members left out, as a manager would that owns only some fields."""

        def thin(value):
            if isinstance(value, dict):
                return {
                    key: thin(inner)
                    for key, inner in value.items()
                    if key in ("apiVersion", "kind", "metadata", "name") or self.rng.random() < 0.75
                }
            if isinstance(value, list):
                return [thin(inner) for inner in value if self.rng.random() < 0.85]
            return value

        return thin(body)

    def scale(self, kind, name, live):
        replicas = self.rng.choice([0, 1, 3, 3, -1, "2", None])
        if self.rng.random() < 0.5:
            return {
                "method": "PATCH",
                "path": path_of(kind, name, "scale") + self.options(),
                "type": self.rng.choice([MERGE, STRATEGIC]),
                "body": {"spec": {"replicas": replicas}},
                "note": "scale",
            }
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": "demo"},
            "spec": {"replicas": replicas},
        }
        if self.rng.random() < 0.2:
            body["metadata"]["resourceVersion"] = self.rng.choice(["{rv}", "1"])
        return {"method": "PUT", "path": path_of(kind, name, "scale") + self.options(), "body": body, "note": "scale"}

    def read(self, kind, name, live):
        draw = self.rng.random()
        if draw < 0.3:
            return {"method": "GET", "path": path_of(kind, name, self.rng.choice(KINDS[kind][3] + [""])), "note": "get"}
        query = []
        if self.rng.random() < 0.5:
            query.append(
                "labelSelector="
                + self.rng.choice(
                    [
                        "app%3Dx",
                        "app!%3Dx",
                        "app",
                        "!app",
                        "app+in+(x,y)",
                        "app+notin+(x)",
                        "a%3D%3Db,app",
                        "app+in+(x",
                        "%3D",
                        "a>1",
                        "app%3Dx%2Cb+in+()",
                    ]
                )
            )
        query.append(
            "fieldSelector=metadata.name%3D"
            + name
            + self.rng.choice(
                [
                    "",
                    "",
                    ",metadata.namespace%3Ddemo",
                    ",status.phase!%3DRunning",
                    ",spec.nodeName%3D",
                    ",spec.bogus%3D1",
                ]
            )
        )
        if self.rng.random() < 0.3:
            query.append("limit=" + self.rng.choice(["1", "0", "x"]))
        if self.rng.random() < 0.1:
            query.append("resourceVersionMatch=" + self.rng.choice(["Exact", "NotOlderThan", "X"]))
        return {"method": "GET", "path": path_of(kind) + "?" + "&".join(query), "note": "list"}

    def delete(self, kind, name, live):
        body = {}
        if self.rng.random() < 0.4:
            body["propagationPolicy"] = self.rng.choice(["Background", "Background", "Orphan", "Foreground", "X"])
        if self.rng.random() < 0.3:
            body["preconditions"] = self.rng.choice(
                [{"uid": "{uid}"}, {"uid": "nobody"}, {"resourceVersion": "{rv}"}, {"resourceVersion": "1"}]
            )
        if self.rng.random() < 0.4:
            body["gracePeriodSeconds"] = self.rng.choice([0, 0, 1, 5, -1])
        if self.rng.random() < 0.2:
            body["dryRun"] = ["All"]
        request = {"method": "DELETE", "path": path_of(kind, name), "note": "delete"}
        if body or self.rng.random() < 0.3:
            request["body"] = {"apiVersion": "v1", "kind": "DeleteOptions", **body}
        return request


def text_of(request):
    body = request.get("body")
    return body if body is None or isinstance(body, str) else json.dumps(body)
