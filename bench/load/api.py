"""A server's REST API over one connection that is kept, for benchmarks in Python: nothing but the standard library."""
import http.client
import json
import re
import ssl


class Api:
    def __init__(self, address, headers=(), context=None):
        """`context`: of TLS; None: plain HTTP."""
        self.headers = {"Content-Type": "application/json", **dict(headers)}
        more = {"context": context} if context else {}
        kind = http.client.HTTPSConnection if context else http.client.HTTPConnection
        self.connection = kind(address, timeout=60, **more)

    @classmethod
    def of(cls, kubeconfig):
        """As the first user of a kubeconfig of ours asks its first cluster."""
        text = kubeconfig.read_text()
        server, token = (re.search(rf'\b{key}: *"?([^"\s,}}]+)', text).group(1) for key in ("server", "token"))
        bearer = {"Authorization": f"Bearer {token}"}
        return cls(server.removeprefix("https://"), bearer, ssl._create_unverified_context())

    def ask(self, method, path, body=None):
        """(status, body). What the world does is an OSError; the next question begins anew."""
        try:
            self.connection.request(method, path, json.dumps(body) if body else None, self.headers)
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise OSError(f"{method} {path}: {error!r}") from error

    def create(self, path, body):
        status, said = self.ask("POST", path, body)
        if status not in (201, 409):
            raise RuntimeError(f"POST {path}: {status} {said[:500]}")
