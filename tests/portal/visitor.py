"""A visitor of the portal: HTTP and WebSocket with nothing but the standard library, so that every header can be chosen.

    visitor = Visitor(muster.portal)
    visitor.sign_in(token)
    status, headers, body = visitor.get("/api/portal/v1/jobs")
    with visitor.live() as tab:
        tab.say({"sub": 1, "topic": "jobs"})
        tab.hear(lambda message: "rows" in message)
"""
import base64
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from muster import Muster  # noqa: E402

API = "/api/portal/v1"


class PortalCluster(Muster):
    """A cluster whose portal is on the next free port; `portal` is its address."""

    def __init__(self, *args, portal="127.0.0.1:18080", **kwargs):
        super().__init__("--portal", portal, *args, **kwargs)

    @property
    def portal(self):
        return re.findall(r"portal: (\S+)", self.log())[-1]

    def admin_token(self):
        text = self.kubeconfig.read_text()
        found = re.search(r"token: (\S+)", text)
        return found.group(1).strip('"') if found else self.token_of("default", "default")

    def token_of(self, namespace, account):
        return self.kubectl("create", "token", "-n", namespace, account).stdout.strip()


class Visitor:
    def __init__(self, address, token=None, source=None):
        """`source`: the address that it comes from."""
        parts = urllib.parse.urlsplit(address)
        self.tls = parts.scheme == "https"
        self.host, self.port = parts.hostname, parts.port
        self.authority = parts.netloc
        self.cookie = None
        self.token = token
        self.source = (source, 0) if source else None

    @property
    def origin(self):
        return f"{'https' if self.tls else 'http'}://{self.authority}"

    def ask(self, method, path, body=None, headers=None, bare=False):
        """(status, headers in lower case, body). `bare`: only the headers given, and no credential."""
        unverified = ssl._create_unverified_context() if self.tls else None
        kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
        more = {"context": unverified} if self.tls else {}
        connection = kind(self.host, self.port, timeout=30, source_address=self.source, **more)
        sent = {"Host": self.authority}
        if not bare:
            if self.cookie:
                sent["Cookie"] = self.cookie
                sent["Origin"] = self.origin
            if self.token:
                sent["Authorization"] = f"Bearer {self.token}"
            if body is not None:
                sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        data = body.encode() if isinstance(body, str) else body
        if data is not None:
            sent["Content-Length"] = str(len(data))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        content = answer.read()
        found = {}
        for name, value in answer.getheaders():
            found.setdefault(name.lower(), value)
        connection.close()
        return answer.status, found, content

    def get(self, path, **kwargs):
        return self.ask("GET", path, **kwargs)

    def json(self, method, path, body=None, **kwargs):
        status, headers, content = self.ask(method, path, body, **kwargs)
        return status, json.loads(content or b"null")

    def topic(self, name, **query):
        lists = {k: ",".join(v) if isinstance(v, list) else v for k, v in query.items()}
        return self.json("GET", f"{API}/{name}?{urllib.parse.urlencode(lists)}")

    def sign_in(self, token=None, user=None, password=None):
        login = {"token": token} if token else {"user": user, "password": password}
        status, headers, content = self.ask("POST", f"{API}/session", login, {"Origin": self.origin})
        if status == 200:
            self.cookie = headers["set-cookie"].split(";")[0]
        return status, headers, json.loads(content)

    def live(self, path=f"{API}/live", headers=None):
        return Tab(self, path, headers)

    def wait(self, path, good, timeout=20):
        """The first JSON answer that is good."""
        deadline = time.monotonic() + timeout
        while True:
            status, value = self.json("GET", path)
            if status == 200 and good(value):
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"{path} is still {status} {value}")
            time.sleep(0.1)


class Refused(Exception):
    def __init__(self, status):
        super().__init__(str(status))
        self.status = status


class Tab:
    """One WebSocket, text frames of JSON."""

    def __init__(self, visitor, path, headers=None):
        self.socket = socket.create_connection((visitor.host, visitor.port), timeout=30)
        if visitor.tls:
            self.socket = ssl._create_unverified_context().wrap_socket(self.socket)
        sent = {"Host": visitor.authority, "Origin": visitor.origin, "Upgrade": "websocket", "Connection": "Upgrade"}
        sent |= {"Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version": "13"}
        if visitor.cookie:
            sent["Cookie"] = visitor.cookie
        if visitor.token:
            sent["Authorization"] = f"Bearer {visitor.token}"
            sent.pop("Origin")
        sent.update(headers or {})
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value is not None)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            piece = self.socket.recv(65536)
            if not piece:
                break
            self.buffer += piece
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        status = int(head.split()[1]) if head else 0
        if status != 101:
            self.socket.close()
            raise Refused(status)
        self.closed = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def say(self, message):
        data = message.encode() if isinstance(message, str) else json.dumps(message).encode()
        self.send(1, data)

    def send(self, opcode, data):
        mask = os.urandom(4)
        head = bytes([0x80 | opcode])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", len(data))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def take(self, count):
        while len(self.buffer) < count:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("the server has closed the connection")
            self.buffer += piece
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def frame(self):
        """(opcode, data)."""
        first, second = self.take(2)
        length = second & 127
        if length == 126:
            length = struct.unpack(">H", self.take(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.take(8))[0]
        return first & 15, self.take(length)

    def next(self, timeout=20):
        """The next message; None once the server has said goodbye (its code is in `closed`)."""
        self.socket.settimeout(timeout)
        opcode, data = self.frame()
        if opcode == 8:
            self.closed = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
            return None
        return json.loads(data) if opcode == 1 else data

    def hear(self, good, timeout=20):
        """The first message that is good; those before it are passed over."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.next(max(0.01, deadline - time.monotonic()))
            if message is None:
                raise AssertionError(f"closed with {self.closed}")
            if good(message):
                return message
