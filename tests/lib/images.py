"""Images for tests, made of this machine's files without a network: archives as `docker save` writes them, and a real
registry on loopback that serves them.

    layers = [busybox(), {"etc/greeting": "hello\\n", "dir/.wh..wh..opq": ""}]
    write_archive("a.tar", "127.0.0.1:5000/a/b:1", layers, {"Cmd": ["sh"]})
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time

BUSYBOX = "/bin/busybox"
APPLETS = "sh cat echo ls id sleep env true false touch mkdir rm ln stat find sha256sum grep cut printf pwd test chmod"


def missing(*programs):
    """Why images cannot be tried here; empty: they can."""
    if os.geteuid() != 0:
        return "not root"
    absent = [p for p in programs if not shutil.which(p)]
    return f"{', '.join(absent)} not installed" if absent else ""


def busybox():
    """The files of a small system: {path: bytes, text, ("link", target), (mode, bytes) or None for a folder}."""
    files = {
        "bin/": None,
        "bin/busybox": pathlib.Path(shutil.which("busybox") or BUSYBOX).read_bytes(),
        "etc/": None,
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1001:Alice:/home/alice:/bin/sh\n",
        "etc/group": "root:x:0:\nusers:x:100:alice\nstaff:x:1001:\n",
        "tmp/": None,
        "root/": None,
        "home/alice/": None,
    }
    for name in APPLETS.split():
        files[f"bin/{name}"] = ("link", "busybox")
    return files


def layer(files):
    """One layer as an uncompressed tar: owner 0, time 0."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path.rstrip("/"))
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o1777 if path == "tmp/" else 0o755
                tar.addfile(info)
            elif isinstance(content, tuple) and content[0] == "link":
                info.type, info.linkname = tarfile.SYMTYPE, content[1]
                tar.addfile(info)
            else:
                mode = 0o755 if path.startswith("bin/") else 0o644
                mode, content = content if isinstance(content, tuple) else (mode, content)
                data = content.encode() if isinstance(content, str) else content
                info.size, info.mode = len(data), mode
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def compressed(data, how):
    if how == "gzip":
        return gzip.compress(data, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout
    return data


def write_archive(path, name, layers, config=None, compress=""):
    """An archive in OCI's layout; `layers` are dictionaries of files, or open tars, lowest first."""
    blobs, descriptors, diff_ids = {}, [], []
    media = "application/vnd.oci.image.layer.v1.tar" + (f"+{compress}" if compress else "")
    for files in layers:
        plain = layer(files) if isinstance(files, dict) else pathlib.Path(files.name).read_bytes()
        packed = compressed(plain, compress)
        diff_ids.append("sha256:" + sha256(plain))
        blobs[sha256(packed)] = packed
        descriptors.append({"mediaType": media, "digest": "sha256:" + sha256(packed), "size": len(packed)})
    image = {
        "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": config or {},
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }
    image_bytes = json.dumps(image).encode()
    blobs[sha256(image_bytes)] = image_bytes
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": "sha256:" + sha256(image_bytes),
            "size": len(image_bytes),
        },
        "layers": descriptors,
    }
    manifest_bytes = json.dumps(manifest).encode()
    blobs[sha256(manifest_bytes)] = manifest_bytes
    index = {
        "schemaVersion": 2,
        "manifests": [
            {
                "mediaType": manifest["mediaType"],
                "digest": "sha256:" + sha256(manifest_bytes),
                "size": len(manifest_bytes),
                "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
            }
        ],
    }
    with tarfile.open(path, "w") as tar:

        def add(place, data):
            info = tarfile.TarInfo(place)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        add("index.json", json.dumps(index).encode())
        for digest, data in blobs.items():
            add(f"blobs/sha256/{digest}", data)
    return "sha256:" + sha256(manifest_bytes)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Registry:
    """Debian's docker-registry on loopback. `private`: asks for this user and password, on the storage of another."""

    def __init__(self, storage=None, private=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-registry-"))
        self.storage = storage or self.folder / "storage"
        self.private = private
        self.port = free_port()
        self.name = f"127.0.0.1:{self.port}"

    def __enter__(self):
        auth = ""
        if self.private:
            users = self.folder / "htpasswd"
            subprocess.run(["htpasswd", "-Bbc", str(users), *self.private], check=True, capture_output=True)
            auth = f"auth: {{htpasswd: {{realm: muster, path: {users}}}}}\n"
        config = self.folder / "config.yml"
        config.write_text(
            "version: 0.1\nlog: {level: warn}\n"
            f"storage: {{filesystem: {{rootdirectory: {self.storage}}}}}\nhttp: {{addr: 127.0.0.1:{self.port}}}\n{auth}"
        )
        self.start(config)
        return self

    def start(self, config=None):
        self.config = config or self.config
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            ["docker-registry", "serve", str(self.config)], stdout=self.log, stderr=self.log
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.02)
        raise AssertionError("the registry does not listen")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def requests(self, word):
        return (self.folder / "log").read_text(errors="replace").count(word)


class Cutting:
    """Stands in front of a registry and hangs up in the middle of the first large answer, as a failing network does."""

    def __init__(self, registry, after=1 << 20):
        self.registry, self.after = registry, after
        self.cut = []  # what was asked for then
        self.asked = []  # the first lines of all requests, with their range
        self.lock = threading.Lock()

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        """One request of each connection: containerd opens another."""
        with client, socket.create_connection(("127.0.0.1", self.registry.port)) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(65536)
                if not more:
                    return
                head += more
            lines = [line for line in head.decode(errors="replace").split("\r\n") if not line.startswith("Connection:")]
            ranges = [line for line in lines if line.lower().startswith("range:")]
            self.asked.append((lines[0], *ranges))
            server.sendall("\r\n".join([lines[0], "Connection: close", *lines[1:]]).encode())
            sent = 0
            while data := server.recv(65536):
                client.sendall(data)
                sent += len(data)
                with self.lock:
                    if sent > self.after and not self.cut:
                        self.cut.append(lines[0])
                        return


class Pusher:
    """A containerd that only fills registries. `cri`: one as others run it, with its images for Kubernetes."""

    def __init__(self, cri=False):
        self.cri = cri
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-push-"))

    def __enter__(self):
        at = self.folder
        disabled = '"io.containerd.internal.v1.opt"' + ("" if self.cri else ', "io.containerd.grpc.v1.cri"')
        (at / "c.toml").write_text(
            f'version = 2\nroot = "{at}/root"\nstate = "{at}/state"\n'
            f"disabled_plugins = [{disabled}]\n"
            f'[grpc]\naddress = "{at}/c.sock"\n'
        )
        self.process = subprocess.Popen(
            ["containerd", "--config", str(at / "c.toml")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while self.ctr("version", check=False).returncode != 0:
            assert time.monotonic() < deadline, "containerd does not answer"
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ctr(self, *args, check=True, namespace="push"):
        return subprocess.run(
            ["ctr", "-a", f"{self.folder}/c.sock", "-n", namespace, *args],
            check=check,
            capture_output=True,
            text=True,
        )

    def push(self, name, layers, config=None, compress="", user=""):
        """Builds the image and puts it into the registry that its name begins with; its digest."""
        archive = self.folder / "image.tar"
        digest = write_archive(archive, name, layers, config, compress)
        self.ctr("images", "import", "--no-unpack", str(archive))
        login = ["--user", user] if user else []
        self.ctr("images", "push", "--plain-http", *login, name)
        return digest
