#!/usr/bin/python3
"""Drives one API server with the Python client as its users do. Closes with `N passed, N failed`.

    python_client.py KUBECONFIG [--pods]      --pods: also a running pod with logs, exec and port-forward
"""
import http.client
import pathlib
import sys
import tempfile
import time

from kubernetes import client, config, dynamic, stream, utils, watch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402

check = Checks()


def until_gone(core):
    for _ in range(600):
        try:
            core.read_namespace("pyt")
        except client.ApiException as error:
            return error.status == 404
        time.sleep(0.1)
    return False


def several(core):
    """A file of several documents, and a watch from a version that is long gone."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y1}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: y2}\nspec: {ports: [{port: 80}]}\n"
        )
        file.flush()
        utils.create_from_yaml(client.ApiClient(), file.name, namespace="pyt")
    check(
        "create_from_yaml",
        core.read_namespaced_config_map("y1", "pyt").metadata.uid
        and core.read_namespaced_service("y2", "pyt").spec.cluster_ip,
    )
    try:
        for event in watch.Watch().stream(
            core.list_namespaced_config_map, "pyt", resource_version="1", timeout_seconds=1
        ):
            check(
                "a watch from version 1 gives events or is refused as too old",
                event["type"] in ("ADDED", "MODIFIED", "DELETED"),
                event,
            )
            break
        else:
            check("a watch from version 1 gives events or is refused as too old", False, "nothing came")
    except client.ApiException as error:
        check("a watch from version 1 gives events or is refused as too old", error.status == 410, error)


def pods(core):
    """What only a running pod can show."""
    script = (
        "echo first; sleep 1; echo second; cd $(mktemp -d) && echo served > page && exec python3 -m http.server 8123"
    )
    core.create_namespaced_pod(
        "pyt",
        {
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "any",
                        "command": ["sh", "-c", script],
                        "readinessProbe": {"tcpSocket": {"port": 8123}, "periodSeconds": 1},
                    }
                ]
            },
        },
    )
    watcher = watch.Watch()
    lines = []
    for event in watcher.stream(core.list_namespaced_pod, "pyt", timeout_seconds=30):
        if any(each.type == "Ready" and each.status == "True" for each in (event["object"].status.conditions or [])):
            watcher.stop()
    for line in watch.Watch().stream(core.read_namespaced_pod_log, "p", "pyt"):
        lines.append(line)
        if line == "second":
            break
    check("logs followed", lines == ["first", "second"], lines)
    answer = stream.stream(
        core.connect_get_namespaced_pod_exec,
        "p",
        "pyt",
        command=["sh", "-c", "echo out; echo err >&2; exit 3"],
        stderr=True,
        stdin=False,
        stdout=True,
        tty=False,
        _preload_content=False,
    )
    answer.run_forever(timeout=20)
    check(
        "exec: streams apart, exit code through",
        (answer.read_stdout(), answer.read_stderr(), answer.returncode) == ("out\n", "err\n", 3),
    )
    forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "p", "pyt", ports="8123")
    connection = http.client.HTTPConnection("p", 8123)
    connection.sock = forward.socket(8123)
    connection.request("GET", "/page")
    check("port-forward", connection.getresponse().read() == b"served\n")
    connection.close()
    core.delete_namespaced_pod("p", "pyt", grace_period_seconds=0)


def main():
    config.load_kube_config(sys.argv[1])
    core, custom = client.CoreV1Api(), client.CustomObjectsApi()
    check("version", client.VersionApi().get_code().major == "1")
    core.create_namespace({"metadata": {"name": "pyt"}})
    made = core.create_namespaced_config_map(
        "pyt", {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}}
    )
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
    for event in watcher.stream(
        core.list_namespaced_config_map, "pyt", resource_version=listed.metadata.resource_version, timeout_seconds=10
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["object"].metadata.name == "b":
            watcher.stop()
    check("watch from the list's version", ("ADDED", "b") in seen, seen)
    try:
        core.read_namespaced_config_map("nosuch", "pyt")
        check("not found", False)
    except client.ApiException as error:
        check("not found", error.status == 404 and '"reason":"NotFound"' in error.body.replace(" ", ""), error.body)

    client.ApiextensionsV1Api().create_custom_resource_definition(
        {
            "metadata": {"name": "gears.py.example.com"},
            "spec": {
                "group": "py.example.com",
                "scope": "Namespaced",
                "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
    )
    made = None
    for _ in range(100):
        try:
            made = custom.create_namespaced_custom_object(
                "py.example.com",
                "v1",
                "pyt",
                "gears",
                {"apiVersion": "py.example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"teeth": 7}},
            )
            break
        except client.ApiException as error:
            if error.status != 404:
                raise
    check("custom object", made and made["spec"]["teeth"] == 7, made)
    patched = custom.patch_namespaced_custom_object("py.example.com", "v1", "pyt", "gears", "g", {"spec": {"teeth": 8}})
    check(
        "merge patch of a custom object",
        patched["spec"]["teeth"] == 8 and patched["metadata"]["generation"] == 2,
        patched,
    )
    dyn = dynamic.DynamicClient(client.ApiClient())
    gears = dyn.resources.get(api_version="py.example.com/v1", kind="Gear")
    check("dynamic client", gears.get(name="g", namespace="pyt").spec.teeth == 8)
    pages = core.list_namespaced_config_map("pyt", limit=1)
    rest = core.list_namespaced_config_map("pyt", limit=100, _continue=pages.metadata._continue)
    check(
        "pages of a list",
        len(pages.items) == 1 and pages.items[0].metadata.name not in [item.metadata.name for item in rest.items],
        rest,
    )
    several(core)
    if "--pods" in sys.argv:
        pods(core)
    gone = core.delete_namespaced_config_map("a", "pyt")
    # A Status of a plain dict since the client's new generator.
    check("delete answers a Status", (gone["status"] if isinstance(gone, dict) else gone.status) == "Success", gone)
    client.ApiextensionsV1Api().delete_custom_resource_definition("gears.py.example.com")
    core.delete_namespace("pyt")
    # The next client makes it anew.
    check("the namespace goes", until_gone(core))
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
