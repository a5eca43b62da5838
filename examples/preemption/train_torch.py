"""Distributed training that survives preemption. It saves after every epoch and when asked to stop, and continues at the step where
the last run stopped: the result is that of a run without interruption.

    python3 train_torch.py CHECKPOINT EPOCHS [SECONDS_PER_STEP]

The operator sets MASTER_ADDR, RANK and WORLD_SIZE. CHECKPOINT is on a volume that all ranks see. Data are made from (epoch, step, rank);
with a real data set, save the sampler's position instead.
"""
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist

STEPS = 20
file, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0

cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
rank, device = dist.get_rank(), torch.device("cuda" if cuda else "cpu")
torch.set_num_threads(1)
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(device)
model = torch.nn.parallel.DistributedDataParallel(network)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
told = torch.zeros(1, device=device)


def told_to_stop(*_):
    """Kubernetes sends SIGTERM and waits for terminationGracePeriodSeconds."""
    told.fill_(1)


def save(epoch, step):
    """Rank 0 writes beside the file first: a checkpoint that is cut off in the middle must not replace a whole one."""
    if rank == 0:
        beside = file.with_suffix(".new")
        with open(beside, "wb") as out:
            state = {"model": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({"epoch": epoch, "step": step, **state}, out)
            out.flush()
            os.fsync(out.fileno())
        beside.rename(file)


def batch(epoch, step):
    torch.manual_seed((epoch * STEPS + step) * dist.get_world_size() + rank)
    x = torch.randn(64, 16)
    return x.to(device), torch.sin(x.sum(1, keepdim=True)).to(device)


signal.signal(signal.SIGTERM, told_to_stop)
epoch, step = 0, 0
if file.exists():
    state = torch.load(file, map_location=device)
    epoch, step = state["epoch"], state["step"]
    network.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
print(f"starts at epoch {epoch}, step {step}", flush=True)
while epoch < epochs:
    while step < STEPS:
        # SIGTERM does not reach all ranks at the same moment: they agree on the step after which all of them stop.
        stop = told.clone()
        dist.all_reduce(stop, op=dist.ReduceOp.MAX)
        if stop.item():
            save(epoch, step)
            print(f"told to stop in epoch {epoch}, step {step}, saved", flush=True)
            sys.exit(1)
        x, y = batch(epoch, step)
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        time.sleep(seconds)
    epoch, step = epoch + 1, 0
    save(epoch, step)
    print(f"epoch {epoch} ended, loss {loss.item():.4f}", flush=True)
print(f"done after {epoch} epochs, first weight {network[0].weight[0, 0].item():.6f}", flush=True)
