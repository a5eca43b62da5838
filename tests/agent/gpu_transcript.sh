#!/usr/bin/env bash
# What docs/gpu.md shows, played on a machine with a real GPU, as root and without a network: pods on the machine's own files, of an image, and
# of a container runtime, then by a description of the Container Device Interface. Needs python3 with torch. Every part prints its output and goes on
# when something fails; everything that was started is stopped. About three minutes.
#
#   tests/agent/gpu_transcript.sh pack FILE.tar.xz   on the machine that built muster: muster, kubectl, containerd, runc, plugins, busybox
#   tests/agent/gpu_transcript.sh FILE.tar.xz        on the machine with the GPU, in the same source tree
set -u
cd "$(dirname "$0")/../.." || exit 1

pack() {
  local at out
  out=$(realpath "$1") at=$(mktemp -d)
  mkdir "$at/bin" "$at/lib" "$at/cni"
  for program in containerd containerd-shim-runc-v2 ctr runc busybox; do cp "$(PATH=$PATH:/usr/sbin command -v $program)" "$at/bin/"; done
  local kubectl
  kubectl=$(python3 -c 'import sys; sys.path.insert(0, "tests/lib"); import muster; print([p for v, p in muster.kubectls() if v != "1.37"][0])')
  cp "$kubectl" "$at/bin/kubectl"
  strip -o "$at/bin/muster" "${MUSTER:-build/muster}"
  for plugin in bridge host-local loopback; do cp /usr/lib/cni/$plugin "$at/cni/"; done
  # Libraries that another distribution may not have; the C library is that machine's own.
  ldd "$at"/bin/muster "$at"/bin/runc | awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc..)\.so/ {print $3}' |
    sort -u | xargs -I{} cp -L {} "$at/lib/"
  tar -C "$at" -cf - bin lib cni | xz -T1 --lzma2=preset=5,dict=128MiB > "$out"
  rm -rf "$at"
  ls -l "$out"
}
if [ "${1:-}" = pack ]; then pack "$2"; exit; fi

work=$(mktemp -d /tmp/gpu-transcript-XXXXXX)
chmod 755 "$work"
tar -C "$work" -xJf "${1:?the packed programs}" || exit 1
added=()
finish() {
  for data in "$work"/data-*; do
    [ -d "$data" ] && timeout 40 "$work/muster" down --data "$data" >/dev/null 2>&1
    # A muster that does not end in time is ended with what it started.
    for pid in $(pgrep -f -- "--data $data"); do kill -9 "$pid" 2>/dev/null; done
    [ -f "$data/containerd/pid" ] && kill "$(cat "$data/containerd/pid")" 2>/dev/null
  done
  for path in "${added[@]}"; do rm -f "$path"; done
  grep -o "$work[^ ]*" /proc/mounts | sort -r | while read -r place; do umount -l "$place" 2>/dev/null; done
  rmdir /opt/cni/bin /opt/cni 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT

# Where containerd and muster look for them.
mkdir -p /opt/cni/bin /usr/local/sbin
give() { if [ ! -e "$2" ]; then cp "$1" "$2" && added+=("$2"); fi; }
for program in containerd containerd-shim-runc-v2 ctr runc busybox; do
  command -v $program >/dev/null || give "$work/bin/$program" "/usr/local/sbin/$program"
done
for plugin in "$work"/cni/*; do give "$plugin" "/opt/cni/bin/$(basename "$plugin")"; done
export PATH=$PATH:/usr/local/sbin
cat > "$work/muster" <<END
#!/bin/sh
LD_LIBRARY_PATH=$work/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec $work/bin/muster "\$@"
END
chmod +x "$work/muster"

show() { printf '$ %s\n' "$*"; timeout 100 "$@" 2>&1; }
muster() { timeout 100 "$work/muster" "$@" 2>&1; }
kubectl() { timeout 100 "$work/bin/kubectl" "$@" 2>&1; }
part() { printf '\n=== %s (%s s)\n' "$*" $SECONDS; }
up() {  # NAME FLAG...: a cluster of that name
  data=$work/data-$1; shift
  export KUBECONFIG=$data/kubeconfig MUSTER_HOME=$data
  printf '$ muster up --listen 127.0.0.1:0 --detach %s\n' "$*"
  muster up --listen 127.0.0.1:0 --detach --portal none --data "$data" "$@"
}
down() { muster down --data "$data" >/dev/null; tail -n 400 "$data/muster.log" 2>/dev/null | grep -E 'WARN|ERROR|warn|error' | cut -c1-300 | sort -u | head -20; }
wait_for() {  # POD...: until each has ended, 40 s at most; what holds it up
  local until=$((SECONDS + ${PATIENCE:-40})) name
  while [ $SECONDS -lt $until ] && kubectl get pods "$@" -o jsonpath='{.items[*].status.phase}' | grep -qE 'Pending|Running'; do sleep 0.5; done
  for name in "$@"; do
    [ "$(kubectl get pod "$name" -o jsonpath='{.status.phase}')" = Succeeded ] || kubectl describe pod "$name" | sed -n '/^Events/,$p' | cut -c1-400
  done
}
logs() { printf '$ kubectl logs %s\n' "$1"; kubectl logs "$1"; }

python=$(command -v python3)
cat > "$work/train.py" <<'END'
import os, time
print("uid_map", open("/proc/self/uid_map").read().split())
print("NVIDIA_VISIBLE_DEVICES", os.environ["NVIDIA_VISIBLE_DEVICES"], "CUDA_VISIBLE_DEVICES", os.environ["CUDA_VISIBLE_DEVICES"])
print("files", *sorted(n for n in os.listdir("/dev") if "nvidia" in n))
import torch
print("torch", torch.__version__, "devices", torch.cuda.device_count(), torch.cuda.get_device_name(0))
x = torch.randn(4096, 64, pin_memory=True).to("cuda", non_blocking=True)
y = (x.sum(1, keepdim=True) > 0).float()
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
best = torch.optim.Adam(model.parameters(), 0.005)
for step in range(200):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x), y)
    best.zero_grad(), loss.backward(), best.step()
    if step % 50 == 0 or step == 199: print("step", step, "loss", round(loss.item(), 4), flush=True)
END
cat > "$work/none.py" <<'END'
import os, subprocess
print("NVIDIA_VISIBLE_DEVICES", os.environ["NVIDIA_VISIBLE_DEVICES"], "files", *sorted(n for n in os.listdir("/dev") if "nvidia" in n))
import torch
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
print("devices", torch.cuda.device_count(), "available", torch.cuda.is_available())
END

# pods KIND IMAGE CLASS: train and second want the GPU, one after the other; nogpu asks for none and tries all the same.
pods() {
  python3 - "$work" "$1" "$2" "$3" "$python" <<'END'
import json, os, sys
work, kind, image, runtime_class, python = sys.argv[1:]
prefix = os.path.realpath(os.path.join(os.path.dirname(python), "..", ".."))
def pod(name, command, gpus, volumes):
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": command}]}
    main = spec["containers"][0]
    if gpus:
        main["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    if runtime_class:
        spec["runtimeClassName"] = runtime_class
    paths = {"/scripts": work + "/scripts", **({prefix: prefix} if volumes and prefix != "/" else {})}
    spec["volumes"] = [{"name": f"v{i}", "hostPath": {"path": p}} for i, p in enumerate(paths.values())]
    main["volumeMounts"] = [{"name": f"v{i}", "mountPath": p, "readOnly": True} for i, p in enumerate(paths)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
of_image = image != "host"
smi = "ls /dev | grep nvidia | tr '\\n' ' '; echo; echo $LD_LIBRARY_PATH; nvidia-smi -L"
items = [
    pod(f"{kind}-train", [python, "/scripts/train.py"], 1, of_image),
    pod(f"{kind}-nogpu", [python, "/scripts/none.py"], 0, of_image),
    pod(f"{kind}-second", ["sh", "-c", smi], 1, False),
]
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
END
}
mkdir "$work/scripts"; cp "$work"/*.py "$work/scripts/"; chmod 755 "$work/scripts"

play() {  # KIND IMAGE CLASS
  pods "$1" "$2" "$3" > "$work/pods.json"
  show "$work/bin/kubectl" create -f "$work/pods.json" | sed "s|$work/bin/||; s|$work/||"
  wait_for "$1-train" "$1-nogpu" "$1-second"
  printf '$ kubectl get pods -o wide\n'; kubectl get pods -o wide
  logs "$1-train"; logs "$1-nogpu"; logs "$1-second"
  kubectl delete pod --all --now >/dev/null
}

# An image with what this machine's python needs and nothing of the driver: its libraries are found by ldd.
image() {
  mkdir -p "$1"
  python3 - "$1/gpu.tar" "$python" <<'END'
import glob, os, subprocess, sys
sys.path.insert(0, "tests/lib")
from images import busybox, write_archive
archive, python = sys.argv[1:]
files = {**busybox(), "usr/": None, "usr/bin/": None, "lib/": None, "lib64/": None}
for name in "tr head tail sort ps".split():
    files[f"bin/{name}"] = ("link", "busybox")
def library(path):
    files.setdefault(path.lstrip("/"), (0o755, open(path, "rb").read()))
seen, base = set(), subprocess.run([python, "-c", "import sys, sysconfig, torch, os; print(os.path.realpath(sys.executable)); print(sysconfig.get_paths()['stdlib']); print(os.path.dirname(torch.__file__)); print(sys.prefix)"], capture_output=True, text=True).stdout.split()
program, stdlib, torch, prefix = base
wanted = [program, *glob.glob(f"{stdlib}/lib-dynload/*.so"), *glob.glob(f"{torch}/lib/*.so*")]
for path in filter(os.path.exists, ["/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"]):
    wanted.append(path)
out = subprocess.run(["ldd", *wanted], capture_output=True, text=True).stdout
for word in out.split():
    if word.startswith("/") and not word.endswith(":") and os.path.exists(word):
        place = os.path.normpath(word)
        if "nvidia" in place.lower() or "libcuda.so" in place or place.startswith(os.path.dirname(prefix) + "/"):
            continue
        library(place)
for name in ("libnss_files.so.2", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libm.so.6", "libz.so.1"):
    for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"):
        if os.path.exists(f"{folder}/{name}"):
            library(f"{folder}/{name}")
outer = os.path.realpath(os.path.join(os.path.dirname(python), "..", ".."))
path = python
while os.path.islink(path):  # python3 -> python3.12
    target = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    if not path.startswith(outer + "/"):
        files[path.lstrip("/")] = ("link", target)
    path = target
if not program.startswith(outer + "/") or outer == "/":
    library(program)
    for folder, _, names in os.walk(stdlib):
        if "/test" in folder or "__pycache__" in folder or "site-packages" in folder or "dist-packages" in folder:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                library(path)
write_archive(archive, "docker.io/library/gpu:1", [files], {"Env": ["PATH=/usr/bin:/bin"]})
print(f"an image of {os.path.getsize(archive) >> 20} MiB, {len(files)} files, none of the driver")
END
}

# A python whose own files are below a home is shown in pods on the machine's files.
shown=()
base=$(python3 -c 'import sys; print(sys.base_prefix)')
case $base in /root/*|/home/*)
  printf 'host: {show: ["%s"]}\n' "$base" > "$work/images.yaml"
  shown=(--images "$work/images.yaml");;
esac

part "the machine"
show uname -r
show nvidia-smi -L
show ls /etc/cdi /var/run/cdi
show python3 -c 'import sys, torch; print(sys.executable, sys.version.split()[0], torch.__version__)'
ls -d /usr/local/nvidia/lib* /usr/lib/x86_64-linux-gnu/libcuda* 2>/dev/null

part "pods on this machine's files"
up host "${shown[@]}" && { kubectl get nodes -L nvidia.com/gpu.product,nvidia.com/gpu.count,muster.dev/gpu-simulated; play host host ""; }
down

part "pods of an image, and of a container runtime"
image "$work/data-image/images"
if up image --image-source containerd; then
  PATIENCE=70 play image docker.io/library/gpu:1 ""  # the first of it are unpacked
  part "pods of containerd and runc"
  kubectl get runtimeclass
  play cri docker.io/library/gpu:1 cri
fi
down

part "the same by a description"
mkdir -p "$work/cdi"
if command -v nvidia-ctk >/dev/null; then
  show nvidia-ctk cdi generate --output="$work/cdi/nvidia.yaml" | tail -3
else
  # As nvidia-ctk writes it: nodes, libraries of a version, and a hook for their other names.
  python3 - "$work/cdi/nvidia.yaml" <<'END'
import glob, os, sys
nodes = [p for p in sorted(glob.glob("/dev/nvidia*")) if not os.path.isdir(p)]
single = [p for p in nodes if p[len("/dev/nvidia"):].isdigit()]
places = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu"]
files = []
for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4"):
    found = [os.path.realpath(f"{p}/{name}") for p in places if os.path.exists(f"{p}/{name}")]
    files += found[:1]
smi = [p for p in ("/usr/local/nvidia/bin/nvidia-smi", "/usr/bin/nvidia-smi") if os.path.exists(p)]
with open(sys.argv[1], "w") as out:
    out.write("cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n")
    for path in single:
        out.write(f'- name: "{path[len("/dev/nvidia"):]}"\n  containerEdits:\n    deviceNodes:\n    - path: {path}\n')
    out.write("containerEdits:\n  deviceNodes:\n" + "".join(f"  - path: {p}\n" for p in nodes if p not in single))
    out.write("  mounts:\n" + "".join(f"  - {{hostPath: {p}, containerPath: /usr/lib64/{os.path.basename(p)}, options: [ro, nosuid, nodev, bind]}}\n" for p in files))
    out.write("".join(f"  - {{hostPath: {p}, containerPath: /usr/bin/nvidia-smi, options: [ro, nosuid, nodev, bind]}}\n" for p in smi[:1]))
    out.write("  hooks:\n  - {hookName: createContainer, path: /usr/bin/nvidia-cdi-hook, args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib64]}\n")
END
fi
show head -40 "$work/cdi/nvidia.yaml" | sed "s|$work/||"
mkdir -p "$work/data-cdi"; mv "$work/data-image/images" "$work/data-cdi/" 2>/dev/null
if up cdi --image-source containerd --cdi-spec-dirs "$work/cdi" "${shown[@]}"; then
  for kind in host image cri; do
    class=$kind; [ $kind = image ] && class=""
    pods "$kind" docker.io/library/gpu:1 "$class" > "$work/pods.json"
    [ $kind = host ] && pods host host host > "$work/pods.json"
    kubectl create -f "$work/pods.json" >/dev/null
    wait_for "$kind-train" "$kind-nogpu" "$kind-second"
    logs "$kind-train"; logs "$kind-nogpu"; logs "$kind-second"
    kubectl delete pod --all --now >/dev/null
  done
fi
down
part "done"
