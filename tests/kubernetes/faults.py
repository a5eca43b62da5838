#!/usr/bin/env python3
"""What goes wrong in real clusters, done to `muster run`: leaders and API servers killed, a slow etcd, a server that
is too busy, watches that expire, a lease whose holder has another clock, other schedulers.

    tests/kubernetes/faults.py [ROUNDS]     leaders killed in the middle of a gang (default 3)
"""
import os
import pathlib
import signal
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
import real_kubernetes  # noqa: E402
from checks import Checks, skip_all, until  # noqa: E402
from deployed import Deployed  # noqa: E402

check = Checks()


def gang(cluster, name, count, gpus=1):
    cluster.group(name, count)
    for i in range(count):
        cluster.pod(f"{name}-{i}", gpus, group=name, labels={"gang": name})


def bound_of(cluster, name):
    return sum(1 for p in cluster.pods(f"gang={name}") if p["spec"].get("nodeName"))


def lease_holder(cluster):
    lease = cluster.real.api("GET", "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster", check=False)
    return (lease or {}).get("spec", {}).get("holderIdentity", "")


def leaders_killed(cluster, rounds):
    """kill -9 of the leader as soon as the first pod of a gang is bound: the other completes it."""
    left, killed_in_the_middle, size = [], 0, 240
    replicas = [cluster.start("--leader-elect") for _ in range(2)]
    for i in range(rounds):
        name = f"kill{i}"
        until(lambda: any(f"_{p.pid}_" in lease_holder(cluster) for p in replicas))
        leader = next((p for p in replicas if f"_{p.pid}_" in lease_holder(cluster)), None)
        if leader is None:
            left.append((name, "nobody leads"))
            break
        cluster.group(name, size)
        for k in range(size - 1):
            cluster.pod(f"{name}-{k}", 0, group=name, labels={"gang": name})
        watch = cluster.real.open(
            f"/api/v1/namespaces/default/pods?watch=true&fieldSelector=spec.nodeName%21%3D&labelSelector=gang%3D{name}&timeoutSeconds=60"
        )
        cluster.pod(f"{name}-last", 0, group=name, labels={"gang": name})
        watch.readline()  # the first one is bound
        leader.send_signal(signal.SIGKILL)
        watch.close()
        leader.wait()
        killed_in_the_middle += 0 < bound_of(cluster, name) < size
        replicas[replicas.index(leader)] = cluster.start("--leader-elect")
        if not until(lambda: bound_of(cluster, name) == size):
            left.append((name, bound_of(cluster, name)))
        cluster.clear()
    print(f"      {killed_in_the_middle} of {rounds} leaders died while their gang was partly bound")
    check(f"{rounds} leaders killed, every gang ends whole", not left, left)
    check("some died in the middle of one", killed_in_the_middle)
    cluster.stop()


def server_killed(cluster):
    """A storm of gangs while the API server is killed and started again, twice."""
    real = cluster.real
    process = cluster.start()
    names = [f"storm{i}" for i in range(8)]
    made = []

    def storm():
        for name in names:
            for attempt in range(200):
                try:
                    real.api(
                        "POST",
                        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
                        {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}},
                        check=False,
                    )
                    for i in range(4):
                        real.api(
                            "POST",
                            "/api/v1/namespaces/default/pods",
                            check=False,
                            body={
                                "metadata": {"name": f"{name}-{i}", "labels": {"gang": name}},
                                "spec": {
                                    "schedulerName": "muster",
                                    "schedulingGroup": {"podGroupName": name},
                                    "terminationGracePeriodSeconds": 0,
                                    "containers": [
                                        {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
                                    ],
                                },
                            },
                        )
                    made.append(name)
                    break
                except (RuntimeError, OSError):
                    time.sleep(0.05)

    writer = threading.Thread(target=storm)
    writer.start()
    for _ in range(2):
        until(lambda: any(p["spec"].get("nodeName") for p in cluster.pods()), every=0.005)
        real.kill("kube-apiserver")
        real.start_apiserver()
    writer.join()
    whole = lambda: all(bound_of(cluster, name) == 4 for name in names)  # noqa: E731
    check(
        "API server killed twice in a storm of gangs: all end bound",
        until(whole, 120),
        lambda: {n: bound_of(cluster, n) for n in names},
    )
    used = {}
    for pod in cluster.pods():
        node = pod["spec"].get("nodeName")
        used[node] = used.get(node, 0) + 1
    check("no node holds more than it has", all(count <= 16 for count in used.values()), used)
    # A binding is refused when the pod has a node already, so "once" is the server's own word; nothing of ours may
    # have tried to move one.
    check("and nothing was evicted for it", "evicted" not in cluster.log())
    check("muster run lives on", process.poll() is None)
    cluster.stop()
    cluster.clear()


def watches_expire(cluster):
    """etcd forgets: a stopped process comes back to watches that cannot go on (410) and must list again."""
    real = cluster.real
    process = cluster.start()
    cluster.pod("before")
    until(lambda: cluster.bound("before"))
    process.send_signal(signal.SIGSTOP)
    cluster.remove_pod("before")
    for i in range(4):
        cluster.pod(f"meanwhile-{i}", 4)
    for i in range(30):
        real.api("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"churn-{i}"}})
    # A new API server has an empty watch cache, and etcd is compacted under it: the old versions are gone for good.
    real.kill("kube-apiserver")
    compact(real)
    real.start_apiserver()
    process.send_signal(signal.SIGCONT)
    check(
        "after an expired watch what happened meanwhile is seen",
        until(lambda: sum(1 for p in cluster.pods() if p["spec"].get("nodeName")) == 4),
        lambda: cluster.log()[-2000:],
    )
    cluster.stop()
    cluster.clear()


def compact(real):
    """Through etcd's JSON gateway."""
    import base64
    import json
    import urllib.request

    def call(path, body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{real.etcd_port}/v3/{path}", data=json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    revision = call("kv/range", {"key": base64.b64encode(b"/").decode(), "limit": 1})["header"]["revision"]
    call("kv/compaction", {"revision": revision, "physical": True})


def slow_storage(cluster):
    """etcd stopped for moments at a time: requests take seconds, nothing is lost and nothing is bound twice."""
    process = cluster.start()
    etcd = cluster.real.processes["etcd"]
    gang(cluster, "slow", 12)
    for _ in range(4):
        etcd.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        etcd.send_signal(signal.SIGCONT)
        time.sleep(0.3)
    check(
        "a gang is bound whole through a slow etcd",
        until(lambda: bound_of(cluster, "slow") == 12, 90),
        lambda: cluster.log()[-2000:],
    )
    check("muster run lives on", process.poll() is None)
    cluster.stop()
    cluster.clear()


def foreign_clock(cluster):
    """A lease of somebody whose clock is years ahead lapses by our own clock; one that is renewed is left alone,
    however old it looks."""
    path = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
    cluster.real.api("DELETE", f"{path}/muster", check=False)

    def spec(time_text, n):
        return {
            "holderIdentity": "somebody",
            "leaseDurationSeconds": 3,
            "acquireTime": time_text,
            "renewTime": time_text,
            "leaseTransitions": n,
        }

    cluster.real.api("POST", path, {"metadata": {"name": "muster"}, "spec": spec("2001-01-01T00:00:00.000000Z", 0)})
    cluster.start("--leader-elect")
    for i in range(12):
        cluster.real.api("PATCH", f"{path}/muster", {"spec": spec(f"2001-01-01T00:00:{i:02}.000000Z", 0)})
        time.sleep(0.5)
    check(
        "a holder whose clock is decades behind keeps its lease while it renews",
        lease_holder(cluster) == "somebody",
        lease_holder(cluster),
    )
    cluster.real.api("PATCH", f"{path}/muster", {"spec": spec("2049-01-01T00:00:00.000000Z", 0)})
    check(
        "one whose clock is ahead loses it once it stops",
        until(lambda: lease_holder(cluster) not in ("somebody", ""), 30),
        lease_holder(cluster),
    )
    cluster.stop()


def busy_server(cluster):
    """A server with room for few requests answers 429 with Retry-After; everything is bound all the same."""
    process = cluster.start()
    cluster.group("crowd", 16)
    for i in range(16):
        cluster.pod(f"crowd-{i}", 1, group="crowd", labels={"gang": "crowd"})
    for i in range(150):
        cluster.pod(f"single-{i}", 0, labels={"gang": "single"})
    check(
        "a crowd is bound through a server that is too busy",
        until(lambda: bound_of(cluster, "crowd") == 16 and bound_of(cluster, "single") == 150, 120),
        lambda: (bound_of(cluster, "crowd"), bound_of(cluster, "single"), cluster.log()[-1500:]),
    )
    refused = [line for line in open(cluster.real.audit_log) if '"code":429' in line]
    check("and it was too busy at times", refused, "no 429 in the audit log")
    check("muster run lives on", process.poll() is None)
    cluster.stop()


def others(cluster):
    """Pods of other schedulers are not touched, and what they hold is counted."""
    cluster.start()
    cluster.pod("theirs", 3, scheduler="somebody-else")
    cluster.real.api(
        "POST",
        "/api/v1/namespaces/default/pods/theirs/binding",
        {"metadata": {"name": "theirs"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n0"}},
    )
    cluster.pod("unplaced", 1, scheduler="somebody-else")
    for i in range(4):
        cluster.pod(f"ours-{i}", 4)
    whole = lambda: [p["metadata"]["name"] for p in cluster.pods() if p["spec"].get("nodeName")]  # noqa: E731
    until(lambda: len(whole()) == 4)
    condition = lambda: [
        c
        for p in cluster.pods()
        if not p["spec"].get("nodeName") and p["metadata"]["name"].startswith("ours")
        for c in p["status"].get("conditions", [])
    ]  # noqa: E731
    check(
        "what another scheduler bound is counted: three whole nodes are left for four pods",
        until(lambda: condition() and len(whole()) == 4),
        whole,
    )
    check("the pod that nobody placed is left alone", not cluster.bound("unplaced"))
    cluster.stop()
    cluster.clear()


def main():
    if not real_kubernetes.available():
        skip_all(real_kubernetes.MISSING)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("ROUNDS", "3"))
    with real_kubernetes.RealKubernetes(groups=True) as real:
        cluster = Deployed(real)
        cluster.install()
        for i in range(4):
            cluster.add_node(f"n{i}")
        others(cluster)
        for i in range(4):
            real.api(
                "PATCH",
                f"/api/v1/nodes/n{i}/status",
                {"status": {"capacity": {"nvidia.com/gpu": "16"}, "allocatable": {"nvidia.com/gpu": "16"}}},
            )
        leaders_killed(cluster, rounds)
        foreign_clock(cluster)
        server_killed(cluster)
        slow_storage(cluster)
        watches_expire(cluster)
        if check.failed:
            print(cluster.log()[-3000:])
    with real_kubernetes.RealKubernetes(
        groups=True, audit=True, apiserver_args=["--max-requests-inflight=4", "--max-mutating-requests-inflight=3"]
    ) as real:
        cluster = Deployed(real)
        cluster.install()
        for i in range(2):
            cluster.add_node(f"n{i}", {"nvidia.com/gpu": "16"})
        busy_server(cluster)
    return check.close()


if __name__ == "__main__":
    sys.exit(main())
