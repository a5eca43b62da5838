"""What a pod without an image can see of the machine, and what it can do to it. Numbers are those of the acceptance list that
docs/agent.md ("What a pod can and cannot do") sums up.

    python3 tests/security/host_pods.py [NAME…]      only the checks whose name contains a NAME
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, host_folder, output, pod, run, terminated, until  # noqa: E402
from muster import Muster, binary  # noqa: E402


def canary(folder):
    path = pathlib.Path(tempfile.mkdtemp(prefix=".muster-canary-", dir=folder)) / "secret"
    path.write_text("canary")
    return path


def remove(*paths):
    for path in paths:
        shutil.rmtree(path.parent, ignore_errors=True)


@check
def check_1_secrets_of_the_cluster_are_not_there(c):
    files = ["pki/admin.token", "pki/ca.key", "pki/sa.key", "kubeconfig", "muster.db", "muster.db-wal"]
    for name in files:
        assert (c.muster.data / name).exists(), name
    script = "".join(f"cat {c.muster.data}/{name} >/dev/null 2>&1 && echo read {name}; " for name in files)
    equal(output(c, "secrets", script + "true"), "")
    equal(output(c, "secrets-privileged", script + "true", container={"securityContext": {"privileged": True}}), "")


@check
def check_2_no_socket_of_muster_can_be_reached(c):
    program = "import glob,os,socket\nfor p in %r:\n  for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):\n    s = socket.socket(socket.AF_UNIX, kind)\n    try: s.connect(p); print('reached', p)\n    except OSError: pass\nprint('tried')"
    c.create(pod("neighbour", "exec sleep 1000"))
    uid = c.running("neighbour")["metadata"]["uid"]
    paths = [f"{c.muster.data}/{name}" for name in ("api.sock", "agent/keeper.sock", f"agent/run/{uid}/shim.sock")]
    for path in paths:
        assert os.path.exists(path), path
    # By a short name: a path in a data folder may be too long for a socket's address.
    equal(output(c, "caller", None, container={"command": ["python3", "-c", program % paths]}), "tried\n")
    c.muster.kubectl("delete", "pod", "neighbour", "--force")


@check
def check_3_nor_secrets_of_the_machine(c):
    places = [canary("/root"), canary("/home"), canary("/var/log")]
    try:
        script = "".join(f"cat {p} 2>/dev/null; " for p in places)
        script += "grep -v '^[^:]*:\\*:' /etc/shadow; for f in /etc/ssh/ssh_host_*_key; do cat $f | md5sum | cut -d' ' -f1; done; true"
        seen = output(c, "machine", script).split()
    finally:
        remove(*places)
    keys = [
        subprocess.run(["md5sum", str(key)], capture_output=True, text=True).stdout.split()[0]
        for key in pathlib.Path("/etc/ssh").glob("ssh_host_*_key")
    ]
    assert "canary" not in seen and not set(seen) & set(keys), seen
    hashes = [line.split(":")[1] for line in pathlib.Path("/etc/shadow").read_text().splitlines()]
    assert not [word for word in seen if word in hashes and len(word) > 4], seen


@check
def check_4_the_machine_is_never_changed(c):
    before = pathlib.Path("/usr/bin/env").read_bytes()
    script = "touch /etc/muster-x /usr/muster-x /muster-x /var/lib/muster-x; rm -f /usr/bin/env; echo broken > /bin/sh; mkdir -p /new/place; true"
    output(c, "vandal", script)
    equal(pathlib.Path("/usr/bin/env").read_bytes(), before)
    assert "broken" not in pathlib.Path("/bin/sh").read_bytes()[:100].decode(errors="replace")
    for path in ("/etc/muster-x", "/usr/muster-x", "/muster-x", "/var/lib/muster-x", "/new"):
        assert not os.path.exists(path), path


@check
def check_5_containers_and_restarts_do_not_see_each_others_writes(c):
    look = "ls /tmp/mine /var/tmp/mine /root/mine /run/mine /etc/mine /dev/shm/mine 2>/dev/null"
    write = "touch /tmp/mine /var/tmp/mine /root/mine /run/mine /etc/mine"
    c.create(pod("restarts", f"{look}; {write}; exit 1", restartPolicy="OnFailure"))
    c.wait("restarts", lambda p: p and p["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1)
    until("the second attempt ends", lambda: c.get("pod", "restarts")["status"]["containerStatuses"][0]["lastState"])
    equal(c.logs("restarts", "--previous") + c.logs("restarts"), "")
    both = pod("pair", f"{write}; echo ready; exec sleep 1000")
    both["spec"]["containers"].append({"name": "other", "image": "x", "command": ["sh", "-c", "exec sleep 1000"]})
    c.create(both)
    until(
        "the first has written", lambda: "ready" in c.muster.kubectl("logs", "pair", "-c", "main", check=False).stdout
    )
    c.running("pair")
    equal(c.muster.kubectl("exec", "pair", "-c", "other", "--", "sh", "-c", look, check=False).stdout, "")
    c.muster.kubectl("delete", "pod", "pair", "restarts", "--force")


@check
def check_6_nothing_is_left_of_a_pod(c):
    before = set(os.listdir("/")) | {f"/run/{name}" for name in os.listdir("/run")}
    c.create(
        pod(
            "gone",
            "mkdir -p /some/where /opt/muster-x; dd if=/dev/zero of=/tmp/big bs=1M count=3 2>/dev/null; exec sleep 1000",
            container={"volumeMounts": [{"name": "v", "mountPath": "/muster-mount/deep"}]},
            volumes=[{"name": "v", "emptyDir": {}}],
        )
    )
    uid = c.running("gone")["metadata"]["uid"]
    c.muster.kubectl("delete", "pod", "gone", "--now")
    c.gone("gone")
    for place in ("pods", "run"):
        until("its files are removed", lambda: not list((c.muster.data / "agent" / place).glob(f"{uid}*")))
    equal((set(os.listdir("/")) | {f"/run/{name}" for name in os.listdir("/run")}) - before, set())
    assert not [line for line in open("/proc/self/mounts") if uid in line]


@check
def check_7_a_host_path_does_not_show_the_data_folder(c):
    volume = lambda path: {
        "volumes": [{"name": "h", "hostPath": {"path": path}}],
        "container": {"volumeMounts": [{"name": "h", "mountPath": "/h"}]},
    }
    inside = str(c.muster.data).lstrip("/")
    equal(output(c, "above", f"ls -A /h/{inside}; test -d /h/usr/bin && echo seen", **volume("/")), "seen\n")
    parent = str(c.muster.data.parent)
    equal(
        output(c, "parent", f"ls -A /h/{c.muster.data.name}; ls -A /h | wc -l | grep -vc '^0'", **volume(parent)), "1\n"
    )
    for i, path in enumerate((str(c.muster.data), str(c.muster.data / "pki"), f"/proc/self/root{c.muster.data}")):
        c.create(pod(f"inside-{i}", "ls /h", **volume(path)))
        message = c.wait_event(f"inside-{i}", "FailedMount")[2]
        assert "is in the data folder of muster, which pods may not see" in message, message
        c.muster.kubectl("delete", "pod", f"inside-{i}", "--force")


@check
def check_12_no_way_to_other_namespaces(c):
    tries = [
        "mount -t tmpfs x /mnt",
        "umount /proc/sys",
        "unshare -m true",
        "unshare -U true",
        "nsenter -t 1 -m true",
        "mknod /tmp/disk b 254 0",
        "mount -o remount,rw /sys",
        "mount --bind / /mnt",
    ]
    script = "".join(f"{one} >/dev/null 2>&1 && echo did {one.replace(' ', '_')}; " for one in tries) + "echo tried"
    equal(output(c, "ways", script), "tried\n")


@check
def check_13_system_calls_are_filtered_unless_asked_otherwise(c):
    show = "grep Seccomp: /proc/self/status | cut -f2"
    equal(output(c, "filtered", show), "2\n")
    equal(
        output(c, "unfiltered", show, container={"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), "0\n"
    )
    equal(output(c, "unfiltered-pod", show, securityContext={"seccompProfile": {"type": "Unconfined"}}), "0\n")
    equal(output(c, "unfiltered-privileged", show, container={"securityContext": {"privileged": True}}), "0\n")
    equal(output(c, "filtered-user", show, securityContext={"runAsUser": 4711}), "2\n")
    c.create(pod("execed", "exec sleep 1000"))
    c.running("execed")
    equal(c.muster.kubectl("exec", "execed", "--", "sh", "-c", show).stdout, "2\n")
    c.muster.kubectl("delete", "pod", "execed", "--force")


@check
def check_13_a_profile_of_the_node_counts(c):
    """Below DATA/seccomp, in the format of the Open Container Initiative."""
    folder = c.muster.data / "seccomp" / "team"
    folder.mkdir(parents=True)
    rule = {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}
    (folder / "no-mkdir.json").write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}))
    (folder / "wrong.json").write_text('{"defaultAction": "SCMP_ACT_MAYBE"}')

    def profile(name):
        return {"seccompProfile": {"type": "Localhost", "localhostProfile": f"team/{name}.json"}}

    script = "grep Seccomp: /proc/self/status | cut -f2; LC_ALL=C mkdir /tmp/x 2>&1; touch /tmp/y && echo touched"
    said = "mkdir: cannot create directory '/tmp/x': Permission denied"
    equal(output(c, "profiled", script, securityContext=profile("no-mkdir")), f"2\n{said}\ntouched\n")
    for name, problem in (("wrong", "wanted SCMP_ACT_ALLOW"), ("absent", "No such file or directory")):
        c.create(pod(f"profile-{name}", "true", securityContext=profile(name)))
        waiting = c.wait(
            f"profile-{name}",
            lambda p: p
            and p["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("message"),
            what="refusal",
        )
        message = waiting["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
        assert problem in message and f"team/{name}.json" in message, message
        c.muster.kubectl("delete", "pod", f"profile-{name}", "--force")


@check
def check_14_refused_calls_say_so(c):
    calls = {
        "keyctl": 250,
        "bpf": 321,
        "perf_event_open": 298,
        "io_uring_setup": 425,
        "open_by_handle_at": 304,
        "userfaultfd": 323,
        "add_key": 248,
        "setns": 308,
        "clone3": 435,
        "of_the_future": 600,
    }
    if os.uname().machine != "x86_64":
        return
    program = f"import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\nfor name, number in {calls!r}.items():\n  r = libc.syscall(number, 0, 0, 0, 0, 0)\n  print(name, errno.errorcode.get(ctypes.get_errno()) if r < 0 else 'allowed')"
    lines = dict(
        line.split()
        for line in output(c, "calls", None, container={"command": ["python3", "-c", program]}).splitlines()
    )
    equal(lines, {**{name: "EPERM" for name in calls}, "clone3": "ENOSYS", "of_the_future": "ENOSYS"})


@check
def check_14_programs_of_all_kinds_start(c):
    """With the machine's C library, one of their own, or none; those of Go, which make threads by themselves, too."""
    kinds = {"python3": "--version", "perl": "-v", "busybox": "true", "ctr": "--version", "java": "-version"}
    there = [name for name in kinds if shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")]
    script = "".join(f"{name} {kinds[name]} >/dev/null 2>&1 && echo {name}; " for name in there)
    script += (
        "python3 -c 'import threading; t = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()'"
    )
    equal(output(c, "kinds", script).split(), [*there, "thread"])
    assert {"python3", "busybox", "ctr"} <= set(there), there


@check
def check_15_no_rights_beyond_those_given(c):
    text = output(
        c,
        "setuid",
        "cp /bin/cat /tmp/cat; su -s /bin/sh root -c 'id -u' </dev/null 2>/dev/null; grep NoNewPrivs /proc/self/status | cut -f2",
        securityContext={"runAsUser": 4711},
        container={"securityContext": {"allowPrivilegeEscalation": False}},
    )
    equal(text, "1\n")
    equal(
        output(
            c,
            "setuid-host",
            "su -s /bin/sh root -c 'echo became $(id -u)' </dev/null 2>/dev/null; echo tried",
            securityContext={"runAsUser": 4711},
        ),
        "tried\n",
    )


@check
def check_16_what_the_kernel_tells_and_takes(c):
    script = """for f in /proc/sysrq-trigger /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /sys/kernel/mm/ksm/run /proc/irq/default_smp_affinity; do
test ! -e $f || (echo h > $f) 2>/dev/null && test -e $f && echo wrote $f; done
find /sys -maxdepth 4 -type f -writable 2>/dev/null | while read f; do (echo 0 > $f) 2>/dev/null && echo wrote $f; done
for f in /proc/kcore /proc/timer_list /proc/keys /proc/interrupts; do test ! -e $f || head -c 10 $f; done; ls -A /sys/firmware; echo done"""
    equal(output(c, "kernel", script), "done\n")


@check
def check_17_a_container_sees_its_own_limits_alone(c):
    script = "cut -d: -f3 /proc/self/cgroup | sort -u; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; find /sys/fs/cgroup -name '*muster*' | wc -l"
    lines = output(c, "limits", script, container={"resources": {"limits": {"memory": "64Mi"}}}).split()
    assert "67108864" in lines and lines[-1] == "0", lines
    assert not [line for line in lines if "muster" in line], lines


@check
def check_18_only_three_descriptors_and_a_folder_inside(c):
    show = [
        "python3",
        "-c",
        "import os\ndef is_open(fd):\n  try: return bool(os.fstat(fd))\n  except OSError: return False\n"
        "print(os.getcwd(), [fd for fd in range(4096) if is_open(fd)])",
    ]
    equal(output(c, "descriptors", None, container={"command": show}), "/ [0, 1, 2]\n")
    c.create(pod("descriptors-exec", "exec sleep 1000"))
    c.running("descriptors-exec")
    equal(c.muster.kubectl("exec", "descriptors-exec", "--", *show).stdout, "/ [0, 1, 2]\n")
    c.muster.kubectl("delete", "pod", "descriptors-exec", "--force")


@check
def check_19_our_program_cannot_be_reached_from_a_pod(c):
    """CVE-2019-5736: the first process of a container, and an exec until it has become its command, run our program."""
    attack = "import os,time\nend = time.time() + 6\nwhile time.time() < end:\n  for p in filter(str.isdigit, os.listdir('/proc')):\n    try:\n      e = os.readlink('/proc/%s/exe' % p)\n      if 'muster' in e: os.open('/proc/%s/exe' % p, os.O_RDONLY); print('reached', e, flush=True)\n    except OSError: pass\nprint('tried')"
    c.create(pod("reacher", container={"command": ["python3", "-c", attack]}))
    c.running("reacher")
    for _ in range(20):
        c.muster.kubectl("exec", "reacher", "--", "true", check=False)
    c.phase("reacher", "Succeeded")
    equal(c.logs("reacher"), "tried\n")


@check
def check_20_devices_and_terminals_are_its_own(c):
    text = output(c, "devices", "ls /dev | sort | tr '\\n' ' '; ls /dev/pts | tr '\\n' ' '")
    equal(text, "fd full mqueue null ptmx pts random shm stderr stdin stdout termination-log tty urandom zero ptmx ")
    c.create(pod("terminal", "tty; exec sleep 1000", container={"tty": True, "stdin": True}))
    c.running("terminal")
    until("its terminal has a name", lambda: "/dev/pts/0" in c.logs("terminal"))
    equal(c.muster.kubectl("exec", "terminal", "--", "ls", "/dev/pts").stdout.split(), ["0", "ptmx"])
    c.muster.kubectl("delete", "pod", "terminal", "--force")


@check
def check_9_what_is_mounted_below_usr_is_seen_and_not_written(c):
    mounts = [line.split()[1] for line in open("/proc/self/mounts")]
    assert str(c.extra) in mounts, "the test's own mount is missing"
    equal(
        output(c, "mounted", f"cat {c.extra}/f; (echo x > {c.extra}/f) 2>/dev/null || echo refused"),
        "from a mount\nrefused\n",
    )


@check
def check_27_an_environment_below_roots_home_is_seen(c):
    equal(
        output(
            c,
            "environment",
            f"cat {c.environment}/marker; ls {c.environment}/bin; touch {c.environment}/x 2>/dev/null || echo refused",
        ),
        "venv\nrunme\nrefused\n",
    )


@check
def a_pod_has_folders_of_its_own_for_work(c):
    text = output(
        c,
        "folders",
        "echo $HOME; touch ~/x /tmp/x /var/tmp/x /run/x && echo written; test -d /run/sshd && stat -c %a /run/lock; python3 -m venv --without-pip ~/venv && ~/venv/bin/python -c 'print(1)'; env | grep -c OMPI_ALLOW",
    )
    equal(text, "/root\nwritten\n1777\n1\n2\n")


@check
def what_is_shown_does_not_hold_the_data_folder(c):
    home = pathlib.Path(tempfile.mkdtemp(prefix=".muster-home-", dir="/root"))
    try:
        program = home / "tools" / "muster"
        program.parent.mkdir()
        shutil.copy(binary(), program)
        (program.parent / "secret").write_text("beside the program")
        venv = home / "venv"
        (venv / "bin").mkdir(parents=True)
        (venv / "marker").write_text("shown\n")
        before, os.environ["MUSTER"] = os.environ.get("MUSTER"), str(program)
        shown, os.environ["VIRTUAL_ENV"] = os.environ["VIRTUAL_ENV"], str(venv)
        try:
            with Muster("--portal", "none", nodes=1, data=venv / "data") as other:
                script = f"cat {venv}/marker; ls {venv}/data; cat {venv}/data/pki/admin.token {program.parent}/secret; test -x {program} && echo program"
                other.kubectl(
                    "run", "p", "--image=b", "--restart=Never", "--command", "--", "sh", "-c", script + " 2>&1"
                )
                other.kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=40s")
                seen = other.kubectl("logs", "p").stdout
        finally:
            os.environ["VIRTUAL_ENV"] = shown
            os.environ.pop("MUSTER")
            if before is not None:
                os.environ["MUSTER"] = before
        lines = [line for line in seen.splitlines() if "No such file" not in line]
        equal(lines, ["shown", "program"])
    finally:
        subprocess.run(f"umount {home}/venv/data/agent/* 2>/dev/null; true", shell=True, check=False)
        shutil.rmtree(home, ignore_errors=True)


def make_muster():
    extra = pathlib.Path(tempfile.mkdtemp(prefix="muster-mounted-", dir="/opt"))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(extra)], check=True)
    (extra / "f").write_text("from a mount\n")
    environment = pathlib.Path(tempfile.mkdtemp(prefix=".muster-venv-", dir="/root"))
    (environment / "bin").mkdir()
    (environment / "bin" / "runme").write_text("#!/bin/sh\n")
    (environment / "marker").write_text("venv\n")
    os.environ["VIRTUAL_ENV"] = str(environment)
    import agent_checks

    agent_checks.Cluster.extra, agent_checks.Cluster.environment = extra, environment
    return Muster()


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("SKIPPED: needs root\n0 passed, 0 failed")
        sys.exit(0)
    made = make_muster()
    import agent_checks

    try:
        run(lambda: made)
    finally:
        subprocess.run(["umount", str(agent_checks.Cluster.extra)], check=False)
        agent_checks.Cluster.extra.rmdir()
        shutil.rmtree(agent_checks.Cluster.environment)
