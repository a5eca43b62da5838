"""A real Kubernetes 1.37 control plane on loopback, for tests that compare Muster with it.

    with RealKubernetes(controllers=True, scheduler=False) as real:
        real.kubectl("get", "ns")

Built by tools/kubernetes into .cache/kubernetes; `available()` says whether it is there.
"""
import itertools
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / ".cache" / "kubernetes"

GATES = (
    "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true,"
    "WorkloadWithJob=true,PodGroupPreemptionPolicy=true"
)


PORTS = itertools.cycle(range(16))
MISSING = "no real Kubernetes here (tools/kubernetes builds it)"


def available():
    return (BIN / "kube-apiserver").exists() and (BIN / "etcd").exists()


def free_port():
    """A port for a server that is started soon. Not one that the kernel hands out: a client of a suite that runs beside
    this one could have it by then. Each process has sixteen of its own."""
    first = 12000 + os.getpid() % 1200 * 16
    for port in itertools.islice(PORTS, 16):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", first + port))
                return first + port
            except OSError:
                continue  # somebody's, or of our own
    raise RuntimeError(f"all ports from {first} to {first + 15} are taken")


def front_proxy(folder):
    """The authority and the certificate by which the API server speaks for its users."""
    run = lambda *args: subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=folder)  # noqa: E731
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("front", "other"):
        run(
            "req",
            "-x509",
            *key,
            "-days",
            "1",
            "-subj",
            f"/CN={name}-ca",
            "-keyout",
            f"{name}-ca.key",
            "-out",
            f"{name}-ca.crt",
        )
        run("req", *key, "-subj", "/CN=front-proxy-client", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signer = ("-CA", f"{name}-ca.crt", "-CAkey", f"{name}-ca.key", "-CAcreateserial", "-days", "1")
        run("x509", "-req", "-in", f"{name}.csr", *signer, "-out", f"{name}.crt")


class RealKubernetes:
    def __init__(
        self,
        controllers=False,
        scheduler=False,
        groups=False,
        scheduler_args=(),
        apiserver_args=(),
        etcd_args=(),
        audit=False,
    ):
        """`apiserver_args` and `etcd_args` go behind the others; `audit`: requests are written to self.audit_log, one
        JSON line each."""
        self.apiserver_args, self.more_etcd_args, self.audit = list(apiserver_args), list(etcd_args), audit
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="real-kubernetes-"))
        self.controllers, self.scheduler, self.groups = controllers, scheduler, groups
        self.scheduler_args = list(scheduler_args)
        self.processes = {}
        self.token = "admin-token-of-the-test"
        self.kubeconfig = self.dir / "kubeconfig"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def spawn(self, name, *args):
        log = open(self.dir / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen([str(BIN / name), *args], stdout=log, stderr=log, cwd=self.dir)

    def pass_on_users(self):
        """Before start(): the API server names its users to servers behind it, with the certificate front.crt."""
        front_proxy(self.dir)
        self.apiserver_args += [
            f"--requestheader-client-ca-file={self.dir}/front-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self.dir}/front.crt",
            f"--proxy-client-key-file={self.dir}/front.key",
        ]

    def start(self):
        self.etcd_port, peer, self.port = free_port(), free_port(), free_port()
        (self.dir / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        subprocess.run(["openssl", "genrsa", "-out", str(self.dir / "sa.key"), "2048"], check=True, capture_output=True)
        self.etcd_args = [
            "--data-dir",
            str(self.dir / "etcd"),
            "--listen-client-urls",
            f"http://127.0.0.1:{self.etcd_port}",
            "--advertise-client-urls",
            f"http://127.0.0.1:{self.etcd_port}",
            "--listen-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls",
            f"http://127.0.0.1:{peer}",
            "--initial-cluster",
            f"default=http://127.0.0.1:{peer}",
            "--log-level",
            "error",
            *self.more_etcd_args,
        ]
        self.spawn("etcd", *self.etcd_args)
        self.start_apiserver()
        self.kubeconfig.write_text(
            f"""apiVersion: v1
kind: Config
clusters: [{{name: real, cluster: {{server: "https://127.0.0.1:{self.port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: {self.token}}}}}]
contexts: [{{name: real, context: {{cluster: real, user: admin}}}}]
current-context: real
"""
        )
        if self.controllers:
            # Nodes of a test have no kubelet to keep them alive; nobody shall find them dead.
            self.start_controllers("*,-node-lifecycle-controller")
        if self.scheduler:
            self.start_scheduler()

    def start_apiserver(self):
        args = [
            "--etcd-servers",
            f"http://127.0.0.1:{self.etcd_port}",
            "--secure-port",
            str(self.port),
            "--bind-address",
            "127.0.0.1",
            "--cert-dir",
            str(self.dir / "certs"),
            "--token-auth-file",
            str(self.dir / "tokens.csv"),
            "--authorization-mode",
            "RBAC",
            "--service-account-key-file",
            str(self.dir / "sa.key"),
            "--service-account-signing-key-file",
            str(self.dir / "sa.key"),
            "--service-account-issuer",
            "https://kubernetes.default.svc",
            "--service-cluster-ip-range",
            "10.96.0.0/16",
            "--endpoint-reconciler-type",
            "none",
            "--allow-privileged=true",
            "--max-requests-inflight",
            "2000",
            "--max-mutating-requests-inflight",
            "1000",
        ]
        if self.groups:
            args += [
                "--feature-gates",
                GATES,
                "--runtime-config",
                "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true",
            ]
        if self.audit:
            self.audit_log = self.dir / "audit.log"
            policy = self.dir / "audit.yaml"
            policy.write_text(
                "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
            )
            args += ["--audit-policy-file", str(policy), "--audit-log-path", str(self.audit_log)]
        self.spawn("kube-apiserver", *args, *self.apiserver_args)
        self.wait_ready()

    def start_controllers(self, which):
        self.spawn(
            "kube-controller-manager",
            "--kubeconfig",
            str(self.kubeconfig),
            "--leader-elect=false",
            "--service-account-private-key-file",
            str(self.dir / "sa.key"),
            "--use-service-account-credentials=false",
            "--controllers",
            which,
            "--secure-port",
            "0",
            *(["--feature-gates", GATES] if self.groups else []),
        )

    def start_scheduler(self):
        self.spawn(
            "kube-scheduler",
            "--kubeconfig",
            str(self.kubeconfig),
            "--leader-elect=false",
            "--secure-port",
            "0",
            "--kube-api-qps",
            "5000",
            "--kube-api-burst",
            "5000",
            *(["--feature-gates", GATES] if self.groups else []),
            *self.scheduler_args,
        )

    def wait_ready(self, timeout=90):
        context = ssl._create_unverified_context()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{name} ended with {process.returncode}:\n" + (self.dir / f"{name}.log").read_text()[-2000:]
                    )
            try:
                request = urllib.request.Request(
                    f"https://127.0.0.1:{self.port}/readyz", headers={"Authorization": f"Bearer {self.token}"}
                )
                with urllib.request.urlopen(request, context=context, timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(
            "kube-apiserver did not become ready:\n" + (self.dir / "kube-apiserver.log").read_text()[-2000:]
        )

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()
        del self.processes[name]

    def stop(self):
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            if name in self.processes:
                self.processes[name].terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def api(self, method, path, body=None, patch="merge", check=True):
        """One request as admin, much quicker than a kubectl. The answer's JSON; None for 404 and 409 when not
        `check`."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = f"application/{patch}-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            method=method,
            headers=headers,
            data=None if body is None else json.dumps(body).encode(),
        )
        try:
            with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=120) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if not check and error.code in (404, 409):
                return None
            if error.code == 429:
                time.sleep(float(error.headers.get("Retry-After", 1)))
                return self.api(method, path, body, patch, check)
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')[:500]}") from None

    def open(self, path):
        """A stream of the server as admin, e.g. a watch."""
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        return urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=90)

    def kubectl(self, *args, check=True, kubectl=None, **kwargs):
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(self.dir),
            "KUBECTL_KUBERC": "false",
        }
        return subprocess.run(
            [str(kubectl or BIN / "kubectl"), *args],
            check=check,
            text=True,
            capture_output=True,
            env=environment,
            **kwargs,
        )
