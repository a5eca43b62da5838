"""CPU time by who used it, for what one benchmark started: muster, the benchmark's own client, pods, kernel
threads.

A control group counts everything that is started below it, however short-lived, so other work on the machine does not
disturb the figures; only kernel threads (removal of network namespaces, mostly) are the whole machine's.
"""
import atexit
import os
import pathlib
import resource

KERNEL_THREAD = 0x00200000  # PF_KTHREAD


def _ticks(stat):
    fields = stat.rsplit(")", 1)[1].split()
    return int(fields[11]), int(fields[12]), int(fields[6])


def process_s(pid):
    """User and system time of one process."""
    user, system, _ = _ticks(pathlib.Path(f"/proc/{pid}/stat").read_text())
    return user / os.sysconf("SC_CLK_TCK"), system / os.sysconf("SC_CLK_TCK")


def kernel_threads_s():
    """By pid: threads come and go, and one that went must not count as time given back."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            user, system, flags = _ticks(path.read_text())
        except OSError:
            continue
        if flags & KERNEL_THREAD:
            found[path.parent.name] = (user + system) / os.sysconf("SC_CLK_TCK")
    return found


class Group:
    """A control group that this process and all it starts from now on belong to."""

    def __init__(self, name=f"agent-bench-{os.getpid()}"):
        self.path = None
        v1 = pathlib.Path("/sys/fs/cgroup/cpuacct")
        if v1.is_dir():
            self.path, self.usage = v1 / name, "cpuacct.usage"
            homes = [self.path]
        elif pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            own = pathlib.Path("/proc/self/cgroup").read_text().strip().rsplit(":", 1)[1].lstrip("/")
            self.path, self.usage = pathlib.Path("/sys/fs/cgroup") / own / name, "cpu.stat"
            homes = [self.path, self.path / "run"]  # processes and groups of their own do not go together
        try:
            for home in homes:
                home.mkdir()
            (homes[-1] / "cgroup.procs").write_text(str(os.getpid()))
            atexit.register(self._leave, homes)
        except (OSError, UnboundLocalError):
            self.path = None

    @staticmethod
    def _leave(homes):
        try:
            (homes[0].parent / "cgroup.procs").write_text(str(os.getpid()))
            for home in reversed(homes):
                home.rmdir()
        except OSError as error:  # something still runs in it
            print(f"control group stays: {error}")

    def used_s(self):
        if self.path is None:
            return 0.0
        text = (self.path / self.usage).read_text()
        return int(text.split()[1]) / 1e6 if self.usage == "cpu.stat" else int(text) / 1e9


class Cost:
    """What was used between `with` and its end, by whom; `row(n)` says it in milliseconds for one of n."""

    def __init__(self, group, muster_pid=None):
        self.group, self.pid = group, muster_pid

    def _now(self):
        muster = process_s(self.pid) if self.pid else (0.0, 0.0)
        own = resource.getrusage(resource.RUSAGE_SELF)
        client = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "muster user": muster[0],
            "muster system": muster[1],
            "client": client.ru_utime + client.ru_stime,
            "all": self.group.used_s() - own.ru_utime - own.ru_stime,
            "kernel": kernel_threads_s(),
        }

    def __enter__(self):
        self.before = self._now()
        return self

    def __exit__(self, *_):
        after = self._now()
        before, threads = self.before, after.pop("kernel")
        self.used = {key: value - before[key] for key, value in after.items()}
        self.used["kernel"] = sum(max(0.0, used - before["kernel"].get(pid, 0.0)) for pid, used in threads.items())

    def row(self, count):
        used = {key: value * 1000 / count for key, value in self.used.items()}
        pods = used["all"] - used["muster user"] - used["muster system"] - used["client"]
        return (
            f"    processor ms each: muster {used['muster user']:.2f} user {used['muster system']:.2f} system, pods {pods:.2f}, "
            f"kernel threads {used['kernel']:.2f}, benchmark's client {used['client']:.2f}"
        )
