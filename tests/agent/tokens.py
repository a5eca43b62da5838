"""Tokens of running pods are renewed before they end, in the file that the pod reads."""
import base64
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from agent_checks import check, equal, pod, run, until  # noqa: E402
from muster import Muster  # noqa: E402

LIFETIME_S = 8
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def claims(token):
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def accepted(c, token):
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = json.loads(c.muster.kubectl("create", "-o", "json", "-f", "-", input=json.dumps(body)).stdout)
    return answer["status"].get("authenticated", False)


@check
def a_running_pod_finds_a_new_token_before_the_old_one_ends(c):
    c.create(pod("holder", "exec sleep 1000"))
    started = c.running("holder")["status"]["containerStatuses"][0]["containerID"]

    def read():
        return c.muster.kubectl("exec", "holder", "--", "cat", TOKEN).stdout

    first = read()
    equal(claims(first)["exp"] - claims(first)["iat"], LIFETIME_S)
    equal(accepted(c, first), True)
    second = until("another token", lambda: next((token for token in [read()] if token != first), None))
    assert claims(second)["iat"] < claims(first)["exp"], "the pod was without a token that counts"
    equal(claims(second)["kubernetes.io"]["pod"]["name"], "holder")
    until("the first one is refused", lambda: not accepted(c, first))
    assert time.time() >= claims(first)["exp"], "refused too early"
    third = read()
    equal(accepted(c, third), True)
    equal(c.running("holder")["status"]["containerStatuses"][0]["containerID"], started)  # the container is the same


if __name__ == "__main__":
    run(lambda: Muster("--service-account-max-token-expiration", f"{LIFETIME_S}s"))
