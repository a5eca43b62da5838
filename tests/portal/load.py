"""Many nodes, jobs and changes for the portal's tests and its benchmark."""
import http.client
import json
import pathlib
import selectors
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from muster import ROOT  # noqa: E402
from visitor import Visitor  # noqa: E402


def seed(muster, jobs, nodes, gpus=8, seconds="60,600,3600,36000"):
    """`seconds`: how long jobs run, one of them."""
    program = str(ROOT / "tools" / "portal_seed")
    sizes = ["--jobs", str(jobs), "--nodes", str(nodes), "--gpus", str(gpus), "--seconds", seconds]
    subprocess.run([program, "--data", str(muster.data), *sizes], check=True, stdout=subprocess.DEVNULL)


def connected(muster):
    """A connection to the API server's own socket, and the headers of an administrator."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(muster.data / "api.sock"))
    return connection, {"Authorization": f"Bearer {muster.admin_token()}", "Content-Type": "application/json"}


def cordon(muster, arguments):
    """ "125 on": the first 125 nodes of tools/portal_seed are cordoned, all at once: a change of 1,000 GPUs on the map."""
    count, on = int(arguments.split()[0]), arguments.split()[1] == "on"
    connection, head = connected(muster)
    head = {**head, "Content-Type": "application/merge-patch+json"}
    for number in range(count):
        name = f"r{number // 16:02}-n{number % 16:02}"
        body = json.dumps({"spec": {"unschedulable": on or None}})
        connection.request("PATCH", f"/api/v1/nodes/{name}", body, head)
        connection.getresponse().read()
    connection.close()


def sleepers(muster, first, end, prefix):
    """Jobs PREFIX-FIRST to PREFIX-(END-1), of alice and bob by turns of three; each is said to run for an hour."""
    connection, head = connected(muster)
    template = {
        "metadata": {"annotations": {"muster.dev/hollow-duration": "3600s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    for i in range(first, end):
        labels = {"arena.kubeflow.org/username": "alice" if i % 3 else "bob"}
        job = {
            "metadata": {"name": f"{prefix}-{i}", "labels": labels},
            "spec": {"backoffLimit": 0, "template": template},
        }
        connection.request("POST", "/apis/batch/v1/namespaces/default/jobs", json.dumps(job), head)
        answer = connection.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()
    connection.close()


class Churn:
    """Makes and deletes single pods, so many changes a second, until it is told to stop."""

    def __init__(self, muster):
        self.muster, self.over, self.threads, self.made = muster, threading.Event(), [], 0
        self.more = threading.Condition()

    def start(self, arguments):
        rate = int(arguments)
        self.over.clear()
        self.threads = [threading.Thread(target=self.run, args=(i, rate / 4), daemon=True) for i in range(4)]
        for thread in self.threads:
            thread.start()

    def wait(self, count):
        """Until it has made so many more."""
        with self.more:
            wanted = self.made + count
            self.more.wait_for(lambda: self.made >= wanted, timeout=60)

    def stop(self, _):
        self.over.set()
        for thread in self.threads:
            thread.join()
        return self.made

    def run(self, number, rate):
        connection, head = connected(self.muster)
        container = {"name": "main", "image": "busybox"}
        begun, count = time.monotonic(), 0
        while not self.over.is_set():
            name = f"churn-{number}-{count // 2:05}"
            if count % 2 == 0:
                meta = {"name": name, "labels": {"user": "churn"}}
                pod = {"metadata": meta, "spec": {"containers": [container], "schedulerName": "nobody"}}
                connection.request("POST", "/api/v1/namespaces/default/pods", json.dumps(pod), head)
            else:
                gone = json.dumps({"gracePeriodSeconds": 0})
                connection.request("DELETE", f"/api/v1/namespaces/default/pods/{name}", gone, head)
            connection.getresponse().read()
            count += 1
            with self.more:
                self.made += 1
                self.more.notify_all()
            ahead = begun + count / rate - time.monotonic()
            if ahead > 0:
                self.over.wait(ahead)


def cpu_s(muster):
    """Processor seconds that it has used so far, by the kernel's clock of the process."""
    return time.clock_gettime(~muster.process.pid << 3 | 2)


def memory_mib(muster):
    for line in pathlib.Path(f"/proc/{muster.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0


def open_tabs(muster, count):
    """So many live lists of all jobs, thirty to a session."""
    tabs = []
    for i in range(count):
        if i % 30 == 0:
            person = Visitor(muster.portal)
            person.sign_in(muster.admin_token())
        tab = person.live()
        tab.say({"sub": 1, "topic": "jobs", "query": {"sort": "-submitted"}, "window": [0, 100]})
        tab.say({"sub": 2, "topic": "counts"})
        tabs.append(tab)
    for tab in tabs:
        tab.hear(lambda message: message.get("sub") == 2)
    return tabs


class Listener(threading.Thread):
    """Reads what all tabs are told, as fast as it comes."""

    def __init__(self, tabs):
        super().__init__(daemon=True)
        self.tabs, self.over, self.bytes = tabs, threading.Event(), 0

    def run(self):
        with selectors.DefaultSelector() as sockets:
            for tab in self.tabs:
                sockets.register(tab.socket, selectors.EVENT_READ)
            while not self.over.is_set():
                for key, _ in sockets.select(0.2):
                    self.bytes += len(key.fileobj.recv(262144))


def cost_of_portals(muster, count, seconds, settle=lambda _: None):
    """What so many open portals cost, at rest and under 200 changes a second: shares of a core in percent, what each is
    told and what memory each takes beside what the first one has begun; `settle` waits until that is there."""
    churn = Churn(muster)

    def share():
        used, begun = cpu_s(muster), time.monotonic()
        time.sleep(seconds)
        return (cpu_s(muster) - used) / (time.monotonic() - begun) * 100

    churn.start("200")
    churn.wait(400)
    alone = share()
    churn.stop("")
    tabs = open_tabs(muster, 1)
    settle(muster)
    before = memory_mib(muster)  # what the changes by themselves have left is in it
    tabs += open_tabs(muster, count - 1)
    listener = Listener(tabs)
    listener.start()
    rest = share()
    churn.start("200")
    churn.wait(400)
    heard = listener.bytes
    together = share()
    rate = (listener.bytes - heard) / seconds / count / 1000
    churn.stop("")
    memory = (memory_mib(muster) - before) / count
    listener.over.set()
    listener.join()
    for tab in tabs:
        tab.socket.close()
    return {
        "at rest": rest,
        "changes alone": alone,
        "with changes": max(0.0, together - alone),
        "kB/s": rate,
        "MiB": max(0.0, memory),
    }
