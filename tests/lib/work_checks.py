"""Workloads that must run in every kind of pod as on a plain machine: MPI over sshd, torch over gloo, large shared memory. The callers
say what a pod of their kind looks like.

    mpijob(c, {"image": IMAGE})
    ddp(c, lambda name, command, **more: pod(...))
"""
from agent_checks import equal, until

# No setting for the runtime, the users or the network: as the operator's own examples have it.
WORKERS = 2


def mpijob(c, container, spec=None):
    """An MPIJob (v2beta1): sshd in the workers, mpirun in the launcher, to its end."""

    def replicas(count, command):
        main = {"name": "mpi", **container, **({"command": command} if command else {})}
        return {
            "replicas": count,
            "restartPolicy": "Never",
            "template": {"spec": {**(spec or {}), "containers": [main]}},
        }

    show = ["mpirun", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"]
    c.create(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {"name": "walk"},
            "spec": {
                "slotsPerWorker": 1,
                "runPolicy": {"cleanPodPolicy": "None"},
                "mpiReplicaSpecs": {"Launcher": replicas(1, show), "Worker": replicas(WORKERS, None)},
            },
        }
    )

    def ended():
        conditions = c.get("mpijobs.v2beta1.kubeflow.org", "walk").get("status", {}).get("conditions", [])
        return [one["type"] for one in conditions if one["status"] == "True" and one["type"] in ("Succeeded", "Failed")]

    found = until("the MPIJob to end", ended, 120)
    selector = "training.kubeflow.org/job-name=walk,training.kubeflow.org/job-role=launcher"
    text = c.muster.kubectl("logs", "-l", selector, "--tail=-1").stdout
    equal((found, sorted(line for line in text.splitlines() if line.startswith("rank"))), (
        ["Succeeded"],
        [f"rank {i} of {WORKERS} on walk-worker-{i}" for i in range(WORKERS)],
    ))  # fmt: skip
    c.muster.kubectl("delete", "mpijobs.v2beta1.kubeflow.org", "walk")


DDP = """
import torch, torch.distributed as d
d.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
x = torch.randn(64, 8, generator=torch.Generator().manual_seed(d.get_rank()))
best, losses = torch.optim.SGD(model.parameters(), 0.1), []
for step in range(30):
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    best.zero_grad(); loss.backward(); best.step(); losses.append(loss.item())
weights = [torch.empty(8) for _ in range(d.get_world_size())]
d.all_gather(weights, model.module.weight.detach()[0])
print("same weights" if torch.equal(*weights) else weights, "learns" if losses[-1] < losses[0] / 10 else losses)
"""


def ddp(c, make):
    """torch's DistributedDataParallel over gloo in two pods that find each other by name."""
    labels = {"job": "ddp"}
    c.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "ddp"},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {**labels, "rank": "0"},
                "ports": [{"port": 23456}],
            },
        }
    )
    for rank in range(2):
        env = {"MASTER_ADDR": "ddp", "MASTER_PORT": "23456", "WORLD_SIZE": "2", "RANK": str(rank)}
        env |= {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
        c.create(
            make(
                f"ddp-{rank}",
                ["/usr/bin/python3", "-c", DDP],
                metadata={"labels": {**labels, "rank": str(rank)}},
                env=[{"name": k, "value": v} for k, v in env.items()],
            )
        )
    for rank in range(2):
        p = c.phase(f"ddp-{rank}", "Succeeded", "Failed", timeout=180)
        equal((p["status"]["phase"], c.logs(f"ddp-{rank}")), ("Succeeded", "same weights learns\n"))


LOADER = """
import os, torch
from torch.utils.data import DataLoader, Dataset
whole = torch.zeros(2 << 30, dtype=torch.uint8).share_memory_()  # 2 GiB in /dev/shm
whole[-1] = 7
class Rows(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((1 << 18,), float(i))
total = sum(batch[:, 0].sum().item() for batch in DataLoader(Rows(), batch_size=4, num_workers=8, prefetch_factor=4))
room = os.statvfs("/dev/shm")
print(int(total), int(whole[-1]), room.f_blocks * room.f_frsize >= 2 << 30)
"""


def loader(c, make):
    """A DataLoader with eight workers beside 2 GiB of shared memory."""
    env = [{"name": "OMP_NUM_THREADS", "value": "1"}]
    c.create(make("loader", ["/usr/bin/python3", "-c", LOADER], env=env))
    p = c.phase("loader", "Succeeded", "Failed", timeout=180)
    equal((p["status"]["phase"], c.logs("loader").splitlines()[-1]), ("Succeeded", "2016 7 True"))
