"""A real `mpirun -np 4` over real sshd across three pods, an MPIJob, and training with
workers that share memory. Numbers are those of the acceptance list that docs/security.md sums up.

The ranks call libmpi through ctypes, so no compiler and no mpi4py is needed.
"""
import base64
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import Muster  # noqa: E402
from agent_checks import Cluster, pod, tally  # noqa: E402
from work_checks import ddp, loader, mpijob  # noqa: E402

RANK = """
import ctypes, socket
mpi = ctypes.CDLL('libmpi.so.40', mode=ctypes.RTLD_GLOBAL)
world = ctypes.addressof(ctypes.c_char.in_dll(mpi, 'ompi_mpi_comm_world'))
int_t = ctypes.addressof(ctypes.c_char.in_dll(mpi, 'ompi_mpi_int'))
sum_op = ctypes.addressof(ctypes.c_char.in_dll(mpi, 'ompi_mpi_op_sum'))
p = ctypes.c_void_p
mpi.MPI_Init(None, None)
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(p(world), ctypes.byref(rank)); mpi.MPI_Comm_size(p(world), ctypes.byref(size))
mine = ctypes.c_int(10 ** rank.value)
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, p(int_t), p(sum_op), p(world))
print('rank', rank.value, 'of', size.value, 'on', socket.gethostname(), 'sum', total.value, flush=True)
mpi.MPI_Finalize()
"""


def check_25_mpirun_over_sshd(c):
    keys = pathlib.Path(tempfile.mkdtemp(prefix="muster-keys-", dir=c.muster.data))
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
    data = {
        k: base64.b64encode((keys / f).read_bytes()).decode()
        for k, f in (("host", "host"), ("id", "user"), ("authorized_keys", "user.pub"))
    }
    c.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ssh"}, "data": data},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "mpi"},
            "data": {"rank.py": RANK, "hostfile": "".join(f"m-{i}.mpi slots={2 if i == 0 else 1}\n" for i in range(3))},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "mpi"},
            "spec": {"clusterIP": "None", "selector": {"job": "mpi"}, "ports": [{"port": 22}]},
        },
    )
    mounts = {
        "volumeMounts": [
            {"name": "ssh", "mountPath": "/etc/muster-mpi-ssh"},
            {"name": "mpi", "mountPath": "/etc/muster-mpi"},
        ]
    }
    volumes = [
        {"name": "ssh", "secret": {"secretName": "ssh", "defaultMode": 0o400}},
        {"name": "mpi", "configMap": {"name": "mpi"}},
    ]
    sshd = "exec /usr/sbin/sshd -D -e -h /etc/muster-mpi-ssh/host -o AuthorizedKeysFile=/etc/muster-mpi-ssh/authorized_keys -o StrictModes=no -o UsePAM=no -o PidFile=none"
    for i in range(3):
        c.create(
            pod(
                f"m-{i}",
                sshd,
                metadata={"labels": {"job": "mpi"}},
                hostname=f"m-{i}",
                subdomain="mpi",
                container=mounts,
                volumes=volumes,
                nodeName=f"node-{i}",
            )
        )
    for i in range(3):
        c.ready(f"m-{i}")
    ssh = "ssh -i /etc/muster-mpi-ssh/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    command = f"mpirun -np 4 --hostfile /etc/muster-mpi/hostfile --mca plm_rsh_agent '{ssh}' --mca btl self,tcp --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 python3 /etc/muster-mpi/rank.py"
    done = c.muster.kubectl("exec", "m-0", "--", "sh", "-c", command, check=False, timeout=120)
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("rank"))
    hosts = ["m-0", "m-0", "m-1", "m-2"]
    wanted = [f"rank {i} of 4 on {hosts[i]} sum 1111" for i in range(4)]
    assert lines == wanted, f"wanted {wanted}\n{done.stdout}\n{done.stderr}"
    print("\n".join(lines))


def check_25_an_mpijob(c):
    mpijob(c, {"image": "mpi"})


def made(name, command, env, metadata=None):
    return pod(name, metadata=metadata or {}, container={"command": command, "env": env})


def check_26_torch_trains_on_two_pods(c):
    ddp(c, made)


def check_26_workers_share_two_gibibytes(c):
    loader(c, made)


def main():
    cases, counted = [], Checks()
    if os.geteuid() != 0:
        counted.skip("mpi", "not root, so pods have no network of their own for sshd")
    elif shutil.which("mpirun") and os.path.exists("/usr/sbin/sshd"):
        cases += [check_25_mpirun_over_sshd, check_25_an_mpijob]
    else:
        counted.skip("mpi", "openmpi-bin or openssh-server is not installed")
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0:
        cases += [check_26_torch_trains_on_two_pods, check_26_workers_share_two_gibibytes]
    else:
        counted.skip("torch", "python3-torch is not installed")
    with Muster() as muster:
        wanted = [case for case in cases if not sys.argv[1:] or any(word in case.__name__ for word in sys.argv[1:])]
        status = tally([(case, Cluster(muster)) for case in wanted], counted)
    sys.exit(status)


if __name__ == "__main__":
    main()
