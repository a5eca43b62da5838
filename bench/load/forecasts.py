"""What forecasts cost the cluster that they are made for: rounds by turns, without and with somebody who asks.

Forecasts are made only while somebody asks (src/answers/live). In rounds that have them an asker asks when all that waits starts,
from before the first pod of the load until after the last, as often as an open page of the portal does
(src/portal/cluster/forecasts.h). Jobs wait in every round, for one node that the first of them holds: otherwise a course would
have nothing to play.
"""
import json
import os
import statistics
import threading
import time

GROUP = "/apis/answers.muster.dev/v1"
EVERY_S = 5  # from an answer to the next question
MOST = 3.0  # per cent that forecasts may cost
NAMESPACE = "waiting"


def options(arguments):
    arguments.add_argument(
        "--forecasts",
        action="store_true",
        help="rounds by turns, without and with somebody who asks for forecasts; exit status 1 if that costs more than 3 %%",
    )
    arguments.add_argument("--waiting", type=int, default=200, help="jobs that wait in these rounds")


def fill(api, count, node, gpus, scheduler=None):
    """Jobs that each need all of one node, ten minutes each."""
    api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    # Without a controller manager nobody makes the account that pods need.
    api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    container = {"name": "main", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
        **({"schedulerName": scheduler} if scheduler else {}),
    }
    for i in range(count):
        metadata = {"name": f"w{i:04}", "annotations": {"muster.dev/expected-duration": "10m"}}
        api.create(
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        )


def figures(text):
    """muster_forecast_* of a page of metrics."""
    lines = (line.split() for line in text.decode().splitlines() if line.startswith("muster_forecast_"))
    return {name.removeprefix("muster_forecast_"): float(value) for name, value in lines}


class Asker(threading.Thread):
    """Asks `answers` (an Api) and reads the metrics of `metrics`; both may not be there yet."""

    def __init__(self, answers, metrics, path=f"{GROUP}/when"):
        super().__init__(daemon=True)
        self.api, self.metrics, self.path = answers, metrics, path
        self.first, self.over = threading.Event(), threading.Event()
        self.begun, self.answers = None, []  # (when it came, what was said)
        self.before = {}

    def run(self):
        while not self.over.is_set():
            try:
                status, body = self.api.ask("GET", self.path)
            except OSError:
                status = 503
            if status != 200:  # the scheduler is still starting
                self.over.wait(0.05)
                continue
            self.answers.append((time.monotonic(), json.loads(body)))
            self.first.set()
            self.over.wait(EVERY_S)

    def begin(self):
        """From now on sets of courses count."""
        self.begun = time.monotonic()
        try:
            self.before = figures(self.metrics.ask("GET", "/metrics")[1])
        except OSError:  # it is being started
            self.before = {}

    def end(self):
        """What was foretold since, the question under way included."""
        self.over.set()
        self.join()
        now = figures(self.metrics.ask("GET", "/metrics")[1])
        since = [said["items"] for at, said in self.answers if at >= self.begun]
        return {
            "sets": len({items[0]["asked"] for items in since if items}),
            "draws": max((item["start"]["draws"] for items in since for item in items), default=0),
            "waiting": max((len(items) for items in since), default=0),
            "courses_s": now["cpu_seconds_total"] - self.before.get("cpu_seconds_total", 0),
            "held_ms": now["engine_held_seconds"] * 1000,
            "differences": now["follower_differences_total"],
        }


def by_turns(rounds, measure):
    """measure(asked) in pairs, each in the other order than the one before: [(without, with)]. The first warms up and is thrown away
    when there are more than two."""
    pairs = []
    for i in range(rounds):
        seen = {asked: measure(asked) for asked in ((False, True) if i % 2 == 0 else (True, False))}
        pairs.append((seen[False], seen[True]))
    return pairs[1:] if rounds > 2 else pairs


HEADER = (
    "| shape | pods/s without | with forecasts | worse by %, median pair (range) | CPU s of muster without | with | "
    "sets of courses a round | courses a set | CPU s of courses a round | engine held, ms |\n" + "|---" * 10 + "|"
)


def report(shape, pairs):
    """Prints a row; what is wrong with it, in words."""
    rate = [[one["pods_per_s"] for one in side] for side in zip(*pairs)]
    cpu = [[one["cpu_s"] for one in side] for side in zip(*pairs)]
    told = [with_["told"] for _, with_ in pairs]
    worse = [100 * (1 - b / a) for a, b in zip(*rate)]
    median = statistics.median
    print(
        f"| {shape} | {median(rate[0]):.0f} | {median(rate[1]):.0f} | {median(worse):+.1f} ({min(worse):+.1f} to {max(worse):+.1f}) "
        f"| {median(cpu[0]):.2f} | {median(cpu[1]):.2f} | {median(t['sets'] for t in told)} | {median(t['draws'] for t in told)} "
        f"| {median(t['courses_s'] for t in told):.2f} | {max(t['held_ms'] for t in told):.1f} |",
        flush=True,
    )
    wrong = []
    if any(t["sets"] == 0 or t["draws"] == 0 for t in told):
        wrong.append(f"{shape}: in some round no course was played: {told}")
    if any(t["differences"] for t in told):
        wrong.append(f"{shape}: the follower differed from the engine: {told}")
    if median(worse) > MOST:
        wrong.append(f"{shape}: {median(worse):.1f} % fewer pods/s with forecasts; at most {MOST:.0f} are allowed")
    return wrong


def conclude(wrong, pairs):
    """The last lines; the exit status."""
    print(f"\n{pairs} pairs of rounds by turns; load average {os.getloadavg()[0]:.1f}, the bench's own included")
    print("\n".join(wrong) if wrong else f"within {MOST:.0f} %")
    return 1 if wrong else 0
