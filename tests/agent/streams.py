"""logs, exec, attach, cp and port-forward with both generations of kubectl: the oldest here speaks SPDY, the newest
WebSocket.

    python3 tests/agent/streams.py [NAME…]      only the checks whose name contains a NAME
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, host_folder, pod, run, until  # noqa: E402
from muster import Muster, kubectls  # noqa: E402

generations = kubectls()[:1] + [k for k in kubectls()[-1:] if k != kubectls()[0]]


def each(test):
    """Runs `test(c, version, kubectl)` with each generation."""

    def both(c):
        for version, path in generations:
            try:
                test(c, version, path)
            except AssertionError as error:
                raise AssertionError(f"kubectl {version}: {error}") from error

    both.__name__ = test.__name__
    return check(both)


class Terminal:
    """A kubectl on a terminal of ours."""

    def __init__(self, c, kubectl, *args, size=(24, 80)):
        self.master, slave = pty.openpty()
        self.resize(*size, fd=slave)
        self.process = subprocess.Popen(
            [kubectl, *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=c.muster.env(),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.seen = ""

    def resize(self, rows, columns, fd=None):
        fcntl.ioctl(self.master if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern, timeout=30):
        deadline = time.monotonic() + timeout
        while not re.search(pattern, self.seen):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; seen: {self.seen!r}"
            if select.select([self.master], [], [], min(left, 0.5))[0]:
                try:
                    got = os.read(self.master, 4096)
                except OSError:
                    got = b""
                assert got, f"{pattern!r} did not come before the end; seen: {self.seen!r}"
                self.seen += got.decode(errors="replace")

    def end(self, timeout=20):
        code = self.process.wait(timeout)
        os.close(self.master)
        return code


@check
def a_pod_to_talk_to(c):
    two = pod(
        "talker", "for i in 1 2 3 4 5; do echo line $i; done; exec sleep 1000", metadata={"labels": {"app": "talk"}}
    )
    two["spec"]["containers"].append(
        {"name": "other", "image": "x", "command": ["sh", "-c", "echo other line; exec sleep 1000"]}
    )
    c.create(
        two,
        pod(
            "restarted",
            "echo attempt; test -e /d/x || { touch /d/x; exit 1; }; exec sleep 1000",
            restartPolicy="Always",
            metadata={"labels": {"app": "again"}},
            container={"volumeMounts": [{"name": "d", "mountPath": "/d"}]},
            volumes=[{"name": "d", "emptyDir": {}}],
        ),
    )
    c.running("talker")
    c.wait(
        "talker", lambda p: "line 5" in c.logs("talker", "-c", "main") and c.logs("talker", "-c", "other"), what="logs"
    )
    c.wait(
        "restarted",
        lambda p: p
        and p["status"]["containerStatuses"][0]["restartCount"] == 1
        and "running" in p["status"]["containerStatuses"][0]["state"],
        what="restart",
    )


@each
def logs_with_every_flag(c, version, kubectl):
    def logs(*args):
        return c.muster.kubectl("logs", *args, kubectl=kubectl).stdout

    equal(logs("talker", "-c", "main", "--tail=2"), "line 4\nline 5\n")
    equal(logs("talker", "-c", "main", "--tail=0"), "")
    equal(logs("talker", "-c", "main", "--limit-bytes=6"), "line 1")
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z line 1\n", logs("talker", "-c", "main", "--timestamps"))
    equal(logs("talker", "-c", "main", "--since=1h").count("\n"), 5)
    equal(logs("talker", "-c", "main", "--since-time=2099-01-01T00:00:00Z"), "")
    equal(sorted(logs("talker", "--all-containers").splitlines()), [f"line {i}" for i in range(1, 6)] + ["other line"])
    equal(
        sorted(logs("-l", "app=talk", "--prefix", "--tail=1", "--all-containers").splitlines()),
        ["[pod/talker/main] line 5", "[pod/talker/other] other line"],
    )
    equal(logs("restarted", "-p"), "attempt\n")
    done = c.muster.kubectl("logs", "talker", "-c", "main", "-p", check=False, kubectl=kubectl)
    assert 'previous terminated container "main" in pod "talker" not found' in done.stderr, done
    done = c.muster.kubectl("logs", "talker", "-c", "none", check=False, kubectl=kubectl)
    assert done.returncode == 1 and "container none is not valid for pod talker" in done.stderr, done


@each
def logs_follow_to_the_end(c, version, kubectl):
    host = host_folder("muster-follow-")
    name = "chatty-" + version.replace(".", "-")
    c.create(
        pod(
            name,
            "echo one; until test -e /h/go; do sleep 0.02; done; echo two; printf three",
            container={"volumeMounts": [{"name": "h", "mountPath": "/h"}]},
            volumes=[{"name": "h", "hostPath": {"path": host}}],
        )
    )
    c.running(name)
    process = subprocess.Popen([kubectl, "logs", "-f", name], stdout=subprocess.PIPE, text=True, env=c.muster.env())
    equal(process.stdout.readline(), "one\n")
    (pathlib.Path(host) / "go").touch()
    rest, _ = process.communicate(timeout=30)
    equal((rest, process.returncode), ("two\nthree", 0))


@each
def logs_of_a_container_that_says_nothing(c, version, kubectl):
    name = "silent-" + version.replace(".", "-")
    c.create(pod(name, "exec sleep 3"))
    c.running(name)
    said = subprocess.run([kubectl, "logs", name], capture_output=True, text=True, timeout=20, env=c.muster.env())
    equal((said.returncode, said.stdout, said.stderr), (0, "", ""))
    followed = subprocess.run(
        [kubectl, "logs", "-f", name], capture_output=True, text=True, timeout=60, env=c.muster.env()
    )
    equal((followed.returncode, followed.stdout, followed.stderr), (0, "", ""))
    c.phase(name, "Succeeded")
    ended = subprocess.run([kubectl, "logs", name], capture_output=True, text=True, timeout=20, env=c.muster.env())
    equal((ended.returncode, ended.stdout), (0, ""))


@each
def exec_separates_streams_and_passes_codes(c, version, kubectl):
    done = c.muster.kubectl(
        "exec", "talker", "-c", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 3", check=False, kubectl=kubectl
    )
    assert done.stdout == "out\n" and done.stderr.startswith("err\n") and done.returncode == 3, done
    data = os.urandom(300_000).hex()
    equal(
        c.muster.kubectl("exec", "-i", "talker", "-c", "main", "--", "cat", kubectl=kubectl, input=data).stdout == data,
        True,
    )


@each
def exec_ends_with_its_client_and_waits_for_a_slow_one(c, version, kubectl):
    # Ctrl-C: the command ends, too, instead of running on unseen.
    mark = f"60{os.getpid()}"
    process = subprocess.Popen([kubectl, "exec", "talker", "-c", "main", "--", "sleep", mark], env=c.muster.env())
    until("the command runs", lambda: subprocess.run(["pgrep", "-fx", f"sleep {mark}"], capture_output=True).stdout)
    process.send_signal(signal.SIGINT)
    process.wait(10)
    until("the command ends", lambda: not subprocess.run(["pgrep", "-fx", f"sleep {mark}"], capture_output=True).stdout)
    # A reader that stops for a while (less, say) still gets everything, though the command ended long ago.
    process = subprocess.Popen(
        [kubectl, "exec", "talker", "-c", "main", "--", "head", "-c", "40000000", "/dev/zero"],
        stdout=subprocess.PIPE,
        env=c.muster.env(),
    )
    time.sleep(4)  # longer than the agent waits for output of a command that has ended; there is no event to await
    equal(len(process.stdout.read()), 40_000_000)
    equal(process.wait(20), 0)


@each
def exec_gives_a_terminal_that_follows_its_size(c, version, kubectl):
    terminal = Terminal(c, kubectl, "exec", "-it", "talker", "-c", "main", "--", "sh", size=(33, 77))
    terminal.type("stty size; tty\n")
    terminal.expect(r"33 77")
    terminal.expect(r"/dev/pts/\d+")
    terminal.resize(44, 99)
    os.killpg(terminal.process.pid, 28)  # SIGWINCH, as the terminal's owner would send
    deadline = time.monotonic() + 20
    while "44 99" not in terminal.seen and time.monotonic() < deadline:
        terminal.type("stty size\n")
        try:
            terminal.expect("44 99", 0.5)
        except AssertionError:
            pass
    terminal.expect("44 99", 0.1)
    terminal.type("exit 5\n")
    equal(terminal.end(), 5)


@each
def attach_talks_to_the_running_command(c, version, kubectl):
    name = "listener-" + version.replace(".", "-")
    c.create(
        pod(name, "read line; echo got $line; read line; echo got $line", container={"stdin": True, "stdinOnce": True}),
        pod(
            name + "-tty",
            "echo ready; read line; echo heard $line; stty size; exec sleep 1000",
            container={"stdin": True, "tty": True},
        ),
    )
    c.running(name)
    equal(c.muster.kubectl("attach", "-i", name, kubectl=kubectl, input="a\nb\n", timeout=30).stdout, "got a\ngot b\n")
    c.phase(name, "Succeeded")
    c.running(name + "-tty")
    terminal = Terminal(c, kubectl, "attach", "-it", name + "-tty", size=(20, 70))
    terminal.expect("If you don't see a command prompt, try pressing enter")
    terminal.type("hello\n")
    terminal.expect("heard hello")
    terminal.process.terminate()
    terminal.end()
    c.muster.kubectl("delete", "pod", name + "-tty", "--force")


@each
def cp_both_ways(c, version, kubectl):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-cp-", dir=c.muster.data))
    (folder / "up").mkdir()
    (folder / "up" / "a").write_bytes(os.urandom(100_000))
    (folder / "up" / "b").write_text("text\n")
    target = f"/tmp/muster-cp-{version}-{os.getpid()}"
    c.muster.kubectl("cp", str(folder / "up"), f"talker:{target}", "-c", "main", kubectl=kubectl)
    c.muster.kubectl("cp", f"talker:{target}", str(folder / "down"), "-c", "main", kubectl=kubectl)
    for name in ("a", "b"):
        equal((folder / "up" / name).read_bytes() == (folder / "down" / name).read_bytes(), True)
    c.muster.kubectl("exec", "talker", "-c", "main", "--", "rm", "-r", target, kubectl=kubectl)


@each
def port_forward_carries_connections(c, version, kubectl):
    name = "served-" + version.replace(".", "-")
    server = "import socket,threading\ns=socket.socket(); s.setsockopt(1,2,1); s.bind(('127.0.0.1',7003)); s.listen()\ndef one(c):\n d=b''\n while not d.endswith(b'.'): d+=c.recv(65536)\n c.sendall(b'echo '+d); c.close()\nwhile 1: threading.Thread(target=one,args=(s.accept()[0],)).start()"
    c.create(
        pod(
            name,
            container={
                "command": ["python3", "-c", server],
                "readinessProbe": {
                    "exec": {
                        "command": [
                            "python3",
                            "-c",
                            "import socket; s=socket.create_connection(('127.0.0.1',7003)); s.sendall(b'.')",
                        ]
                    },
                    "periodSeconds": 1,
                },
            },
        )
    )
    c.ready(name)
    process = subprocess.Popen(
        [kubectl, "port-forward", "pod/" + name, ":7003"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=c.muster.env(),
    )
    try:
        port = int(re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline()).group(1))
        for data in (b"one.", os.urandom(200_000).replace(b".", b",") + b"."):
            with socket.create_connection(("127.0.0.1", port), 10) as s:
                s.sendall(data)
                s.settimeout(20)
                got = b""
                while len(got) < 5 + len(data):
                    more = s.recv(65536)
                    if not more:
                        break
                    got += more
                equal(got == b"echo " + data, True)
    finally:
        process.terminate()
        process.wait()
    c.muster.kubectl("delete", "pod", name, "--force")


@each
def port_forward_keeps_half_closed_connections(c, version, kubectl):
    name = "counts-" + version.replace(".", "-")
    # Answers when the client has said everything, and takes its time.
    server = "import socket,time\ns=socket.socket(); s.setsockopt(1,2,1); s.bind(('127.0.0.1',7004)); s.listen()\nwhile 1:\n c,_=s.accept(); n=0\n while d:=c.recv(65536): n+=len(d)\n time.sleep(1.5); c.sendall(b'%d bytes'%n); c.close()"
    c.create(pod(name, container={"command": ["python3", "-c", server]}))
    c.running(name)
    c.wait(
        name,
        lambda p: c.muster.kubectl(
            "exec", name, "--", "sh", "-c", "grep -q :1B5C /proc/net/tcp", check=False
        ).returncode
        == 0,
        what="listens",
    )
    process = subprocess.Popen(
        [kubectl, "port-forward", "pod/" + name, ":7004"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=c.muster.env(),
    )
    try:
        port = int(re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline()).group(1))
        with socket.create_connection(("127.0.0.1", port), 10) as s:
            s.settimeout(20)
            s.sendall(b"x" * 100_000)
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while more := s.recv(100):
                answer += more
            equal(answer, b"100000 bytes")
    finally:
        process.terminate()
        process.wait()
    c.muster.kubectl("delete", "pod", name, "--force")


if __name__ == "__main__":
    run(Muster)
