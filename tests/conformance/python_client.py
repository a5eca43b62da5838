#!/usr/bin/python3
"""Drives one API server with the Python client as its users do: python_client.py KUBECONFIG. Closes with `N passed, N failed`."""
import sys

from kubernetes import client, config, dynamic, watch

passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    passed, failed = passed + bool(condition), failed + (not condition)
    print(("ok    " if condition else "FAIL  ") + name + ("" if condition else f": {detail}"))


def main():
    config.load_kube_config(sys.argv[1])
    core, custom = client.CoreV1Api(), client.CustomObjectsApi()
    check("version", client.VersionApi().get_code().major == "1")
    core.create_namespace({"metadata": {"name": "pyt"}})
    made = core.create_namespaced_config_map("pyt", {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}})
    check("create", made.metadata.uid and made.data == {"k": "v"})
    patched = core.patch_namespaced_config_map("a", "pyt", {"data": {"k2": "v2"}})
    check("strategic patch of a dict", patched.data == {"k": "v", "k2": "v2"}, patched.data)
    patched = core.patch_namespaced_config_map("a", "pyt", [{"op": "remove", "path": "/data/k2"}])
    check("JSON patch of a list", patched.data == {"k": "v"}, patched.data)
    listed = core.list_namespaced_config_map("pyt", label_selector="x=1")
    check("list by label", [item.metadata.name for item in listed.items] == ["a"])

    seen = []
    watcher = watch.Watch()
    core.create_namespaced_config_map("pyt", {"metadata": {"name": "b"}})
    for event in watcher.stream(core.list_namespaced_config_map, "pyt", resource_version=listed.metadata.resource_version, timeout_seconds=10):
        seen.append((event["type"], event["object"].metadata.name))
        if event["object"].metadata.name == "b":
            watcher.stop()
    check("watch from the list's version", ("ADDED", "b") in seen, seen)
    try:
        core.read_namespaced_config_map("nosuch", "pyt")
        check("not found", False)
    except client.ApiException as error:
        check("not found", error.status == 404 and '"reason":"NotFound"' in error.body.replace(" ", ""), error.body)

    client.ApiextensionsV1Api().create_custom_resource_definition({
        "metadata": {"name": "gears.py.example.com"},
        "spec": {"group": "py.example.com", "scope": "Namespaced", "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    made = None
    for _ in range(100):
        try:
            made = custom.create_namespaced_custom_object("py.example.com", "v1", "pyt", "gears", {"apiVersion": "py.example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"teeth": 7}})
            break
        except client.ApiException as error:
            if error.status != 404:
                raise
    check("custom object", made and made["spec"]["teeth"] == 7, made)
    patched = custom.patch_namespaced_custom_object("py.example.com", "v1", "pyt", "gears", "g", {"spec": {"teeth": 8}})
    check("merge patch of a custom object", patched["spec"]["teeth"] == 8 and patched["metadata"]["generation"] == 2, patched)
    dyn = dynamic.DynamicClient(client.ApiClient())
    gears = dyn.resources.get(api_version="py.example.com/v1", kind="Gear")
    check("dynamic client", gears.get(name="g", namespace="pyt").spec.teeth == 8)
    gone = core.delete_namespaced_config_map("a", "pyt")
    check("delete answers a Status", gone.status == "Success", gone)
    client.ApiextensionsV1Api().delete_custom_resource_definition("gears.py.example.com")
    core.delete_namespace("pyt")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
