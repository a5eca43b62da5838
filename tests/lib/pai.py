"""OpenPAI's REST API as a program without its client would call it, and the image of its course as a folder."""
import atexit
import http.client
import json
import pathlib
import shutil
import socket
import tempfile


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Api:
    """One client of the API, with a token or without."""

    def __init__(self, port, authorization=None, prefix="/api/v2"):
        self.port, self.authorization, self.prefix = port, authorization, prefix

    def __call__(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        if self.authorization:
            headers["Authorization"] = self.authorization
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content_Type", "application/json")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, self.prefix + path, body, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        self.headers = answer.headers
        connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def login(self, user, password):
        status, answer = self("POST", "/authn/basic/login", {"username": user, "password": password})
        assert status == 200, (status, answer)
        return Api(self.port, "Bearer " + answer["token"], self.prefix)


def is_error(answer, status, code):
    return answer[0] == status and isinstance(answer[1], dict) and answer[1].get("code") == code


def course_folder():
    """For the course's programs, gone with this test: below /opt, as on a machine on which they are installed. Pods have
    a /tmp, /home and /root of their own, and this clone may lie in one of the machine's."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lab6-", dir="/opt"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


def course_image(folder, training_s, sleep_s):
    """The course's image as a folder: a training program, and a `sleep` that does not take five minutes. The file for
    `--images` that says so."""
    program = folder / "examples" / "mnist" / "main.py"
    program.parent.mkdir(parents=True)
    program.write_text(f"import time\ntime.sleep({training_s})\nprint('trained')\n")
    (folder / "bin").mkdir()
    sleep = folder / "bin" / "sleep"
    sleep.write_text(f'#!/bin/sh\n[ "$1" = 5m ] || exec /bin/sleep "$@"\nexec /bin/sleep {sleep_s}\n')
    sleep.chmod(0o755)
    image = {
        "name": "openpai/pai.example.pytorch",
        "workingDir": str(folder),
        "env": {"PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin"},
    }
    images = folder / "images.yaml"
    images.write_text(json.dumps({"images": [image]}))
    return images
