"""The machines of the course on OpenPAI: a master without GPUs and two workers with one each."""

NODES = "".join(
    f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status:
  capacity: {{cpu: "4", memory: 8Gi, pods: "110", nvidia.com/gpu: "{gpus}"}}
  allocatable: {{cpu: "4", memory: 8Gi, pods: "110", nvidia.com/gpu: "{gpus}"}}
---
"""
    for name, gpus in (("hostname-bob", 0), ("hostname-carol", 1), ("hostname-dan", 1))
)
