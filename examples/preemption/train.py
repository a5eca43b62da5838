"""Training that survives preemption: it saves after every epoch and when asked to stop, and begins where the last run ended.

    python3 train.py CHECKPOINT EPOCHS [SECONDS_PER_EPOCH]

Linear regression in plain Python, so that it runs anywhere; train_torch.py does the same with torch on several workers.
"""
import json
import os
import pathlib
import random
import signal
import sys
import time

file, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
stop = False


def told_to_stop(*_):
    """Kubernetes sends SIGTERM and waits for terminationGracePeriodSeconds."""
    global stop
    stop = True


def save(state):
    """Into a file beside it first: a checkpoint that is cut off in the middle must not replace a whole one."""
    beside = file.with_suffix(".new")
    with open(beside, "w") as out:
        json.dump(state, out)
        out.flush()
        os.fsync(out.fileno())
    beside.rename(file)


signal.signal(signal.SIGTERM, told_to_stop)
state = json.loads(file.read_text()) if file.exists() else {"epoch": 0, "weight": 0.0}
print(f"starts at epoch {state['epoch']}", flush=True)
random.seed(state["epoch"])
while state["epoch"] < epochs:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stop:
        x = random.uniform(-1, 1)
        state["weight"] -= 0.01 * 2 * (state["weight"] * x - 3 * x) * x
        time.sleep(0.001)
    if stop:
        save(state)
        print(f"told to stop in epoch {state['epoch']}, saved", flush=True)
        sys.exit(1)
    state["epoch"] += 1
    save(state)
    print(f"epoch {state['epoch']} ended", flush=True)
print(f"done after {state['epoch']} epochs, weight {state['weight']:.1f}", flush=True)
