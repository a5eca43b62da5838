#!/usr/bin/env python3
"""Pages, headers, names, origins, sessions: what the portal answers to strangers and to people who have signed in."""
import gzip
import http.client
import json
import re
import subprocess
import sys
import time

import visitor as portal
from visitor import API, PortalCluster, Refused, Visitor

sys.path.insert(0, str(portal.pathlib.Path(__file__).resolve().parents[1] / "lib"))
from checks import Checks  # noqa: E402
from muster import binary, kubectls  # noqa: E402

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
check = Checks()


def pages(muster):
    guest = Visitor(muster.portal)
    for path in ("/", "/jobs/x", "/jobs/default/pytorchjob/a/logs"):
        status, headers, body = guest.get(path)
        check(f"[1] GET {path} is a page", status == 200 and "text/html" in headers["content-type"], (status, headers))
        check(f"[1] {path}: no-cache", headers.get("cache-control") == "no-cache", headers)
        check(f"[1] {path}: the policy byte for byte", headers.get("content-security-policy") == POLICY, headers)
        text = body.decode()
        inline = re.search(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\son[a-z]+=|\sstyle=", text, re.I)
        check(f"[1] {path}: nothing inline", not inline, inline)
    assets = sorted(set(re.findall(r'(?:src|href)="(/assets/[^"]+)"', text)))
    for asset in assets:
        packed(guest, asset)
    if not assets:
        check.skip("[2] assets", "this program was built without Node")
    words = ["--server", muster.portal, "--kubeconfig", "/dev/null", "get", "pods"]
    said = subprocess.run([kubectls()[0][1], *words], capture_output=True, text=True).stderr
    check("kubectl without a kubeconfig is told so", "export KUBECONFIG" in said, said)
    status, _, body = guest.get("/assets/none-such.js")
    expected = (404,) if assets else (404, 200)
    check("[2] an unknown asset is not found", status in expected, (status, body[:80]))


def packed(guest, asset):
    plain = guest.get(asset, headers={"Accept-Encoding": "identity"})
    zipped = guest.get(asset, headers={"Accept-Encoding": "gzip"})
    brotli = guest.get(asset, headers={"Accept-Encoding": "gzip, br"})
    kinds = [answer[1].get("content-encoding") for answer in (plain, zipped, brotli)]
    check(f"[2] {asset}: immutable", "immutable" in plain[1].get("cache-control", ""), plain[1])
    check(f"[2] {asset}: as asked for", kinds == [None, "gzip", "br"], kinds)
    check(f"[2] {asset}: gzip is the same", gzip.decompress(zipped[2]) == plain[2], zipped[1])
    # Python has no decoder for it, Node has.
    decode = (
        "process.stdin.toArray().then((all) => process.stdout.write(zlib.brotliDecompressSync(Buffer.concat(all))))"
    )
    decoded = subprocess.run(["node", "-e", decode], input=brotli[2], capture_output=True)
    check(f"[2] {asset}: br is the same", decoded.stdout == plain[2], decoded.stderr[-300:])
    for encoding, answer in (("identity", plain), ("gzip", zipped), ("gzip, br", brotli)):
        again = guest.get(asset, headers={"Accept-Encoding": encoding, "If-None-Match": answer[1]["etag"]})
        check(f"[2] {asset}: 304 for its ETag as {encoding}", again[0] == 304 and again[2] == b"", again[:2])


def headers_everywhere(muster, admin):
    guest = Visitor(muster.portal)
    seen = {
        "page": guest.get("/"),
        "api": admin.get(f"{API}/counts"),
        "401": guest.get(f"{API}/counts"),
        "404": admin.get(f"{API}/nothing"),
        "400": guest.ask("POST", f"{API}/session", "{"),
        "421": guest.get("/", headers={"Host": "evil.example"}),
    }
    for what, (status, headers, _) in seen.items():
        wanted = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin"}
        wanted |= {"cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin"}
        missing = {name: headers.get(name) for name, value in wanted.items() if headers.get(name) != value}
        check(f"[3] {what}: security headers", not missing, (status, missing))
        if what != "page":
            check(f"[3] {what}: no-store", headers.get("cache-control") == "no-store", headers.get("cache-control"))
    expected = {"page": 200, "api": 200, "401": 401, "404": 404, "400": 400, "421": 421}
    check(
        "each answered as it should", {k: v[0] for k, v in seen.items()} == expected, {k: v[0] for k, v in seen.items()}
    )


def origins(muster, admin):
    path, body = f"{API}/views/mine", json.dumps({"page": "/jobs", "query": "state=WAITING"})
    base = {"Cookie": admin.cookie, "Content-Type": "application/json"}

    def put(**headers):
        return admin.ask("PUT", path, body, {**base, **headers}, bare=True)[0]

    check("[6] foreign Host: 421", admin.get("/", headers={"Host": "evil.example:80"})[0] == 421)
    check("[6] foreign Origin: 403", put(Origin="http://evil.example") == 403)
    check("[6] Sec-Fetch-Site cross-site: 403", put(Origin=admin.origin, **{"Sec-Fetch-Site": "cross-site"}) == 403)
    check("[6] Sec-Fetch-Site same-site: 403", put(Origin=admin.origin, **{"Sec-Fetch-Site": "same-site"}) == 403)
    check("[6] neither: 403", put() == 403)
    check("[6] nothing was changed", admin.json("GET", f"{API}/views")[1] == [])
    check("[6] own Origin: 200", put(Origin=admin.origin) == 200)
    check("[6] Sec-Fetch-Site same-origin: 200", put(**{"Sec-Fetch-Site": "same-origin"}) == 200)
    saved = admin.json("GET", f"{API}/views")[1]
    check("the view is kept", saved == [{"name": "mine", "page": "/jobs", "query": "state=WAITING"}], saved)
    script = Visitor(muster.portal, token=muster.admin_token())
    check("[6] Bearer without Origin works", script.ask("DELETE", path)[0] == 200)
    form = admin.ask("PUT", path, "a=b", {"Content-Type": "application/x-www-form-urlencoded"})[0]
    check("[6] what a form sends is refused: 415", form == 415, form)
    only_cookie = admin.get("/rest-server/api/v2/jobs")[0]
    check("[6] REST with only a cookie: 401", only_cookie == 401, only_cookie)


def cookies(muster):
    guest = Visitor(muster.portal)
    status, headers, body = guest.sign_in(muster.admin_token())
    cookie = headers.get("set-cookie", "")
    check("[7] signing in with a token", status == 200 and body["user"] and body["admin"], (status, body))
    flags = [part.strip() for part in cookie.split(";")[1:]]
    check("[7] cookie: HttpOnly, Strict, Path=/", {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(flags), cookie)
    check("[7] plain HTTP: no Secure, plain name", "Secure" not in flags and cookie.startswith("muster="), cookie)
    check("256 bits", len(cookie.split(";")[0].split("=", 1)[1]) == 43, cookie)
    status, who = guest.json("GET", f"{API}/session")
    check("who am I", status == 200 and who["user"] == body["user"], who)
    stranger = Visitor(muster.portal).json("GET", f"{API}/session")
    check("a stranger is nobody", stranger[0] == 200 and stranger[1]["user"] is None, stranger)
    secrets = muster.kubectl("get", "secrets", "-n", "kube-system", "-o", "json").stdout
    value = cookie.split(";")[0].split("=", 1)[1]
    check("the cookie itself is kept nowhere", value not in secrets and "muster-session-" in secrets)
    wrong = Visitor(muster.portal).sign_in("not-a-token")
    check("a wrong token: 401 LoginFailed", wrong[0] == 401 and wrong[2]["code"] == "LoginFailed", wrong)
    return guest


def sockets(muster, admin):
    for what, headers, status in (
        ("foreign Origin", {"Origin": "http://evil.example"}, 403),
        ("no Origin", {"Origin": None}, 403),
        ("no session", {"Cookie": None}, 401),
    ):
        try:
            admin.live(headers=headers)
            check(f"[9] WebSocket, {what}: {status}", False, "it opened")
        except Refused as refused:
            check(f"[9] WebSocket, {what}: {status}", refused.status == status, refused.status)
    other = Visitor(muster.portal)
    other.sign_in(muster.admin_token())
    with other.live() as tab:
        hello = tab.next()
        check("hello comes first", "hello" in hello and hello["hello"]["user"], hello)
        other.ask("DELETE", f"{API}/session")
        begun = time.monotonic()
        while tab.next() is not None:
            pass
        check(
            "[9] closed with 4401 within 2 s of signing out",
            tab.closed == 4401 and time.monotonic() - begun < 2,
            tab.closed,
        )
    check("the session is over", other.get(f"{API}/counts")[0] == 401)


def endless_answers(muster, admin):
    """A watch by its path never ends: it is passed on as it comes, and not gathered in the portal."""
    for path in ("/api/v1/watch/namespaces/default/pods", "/apis/apps/v1/watch/namespaces/default/deployments"):
        connection = http.client.HTTPConnection(admin.host, admin.port, timeout=10)
        try:
            connection.request("GET", "/kube" + path, headers={"Cookie": admin.cookie})
            status = connection.getresponse().status
        except TimeoutError:
            status = "no answer"
        connection.close()
        check(f"{path} is passed on at once", status == 200, status)


def old_links(muster):
    guest = Visitor(muster.portal)
    for old, new in {
        "/home.html": "/",
        "/index.html?from=/job-list.html": "/login?next=%2Fjob-list.html",
        "/index.html?from=//evil.example": "/login?next=%2F",
        "/index.html?from=https://evil.example": "/login?next=%2F",
        "/submit.html": "/submit",
        "/submit.html?op=resubmit&type=job&user=alice&jobName=a_1": "/submit?clone=alice~a_1",
        "/job-list.html?vcName=vc1&status=Waiting&user=alice&jobPriority=prod&keyword=bert": "/jobs?vc=vc1&state=WAITING&user=alice&prio=prod&q=bert",
        "/job-detail.html?username=alice&jobName=a": "/jobs/alice~a",
        "/job-event.html?userName=alice&jobName=a": "/jobs/alice~a/events",
        "/task-attempt.html?userName=alice&jobName=a&taskRoleName=worker&taskIndex=3": "/jobs/alice~a/tasks/worker/3",
        "/user-view.html": "/admin/users",
        "/user-profile.html": "/profile",
        "/virtual-clusters.html": "/queues",
        "/cluster-view/hardware.html": "/nodes",
        "/cluster-view/services.html": "/admin/services",
    }.items():
        status, headers, _ = guest.get(old)
        check(f"[26] {old}", status == 302 and headers.get("location") == new, (status, headers.get("location")))


def restart(muster, kept, ended):
    """Sessions survive; those that were ended do not."""
    muster.kill()
    muster.start()
    kept_after, ended_after = Visitor(muster.portal), Visitor(muster.portal)
    kept_after.cookie, ended_after.cookie = kept.cookie, ended.cookie
    check("a session survives kill -9", kept_after.get(f"{API}/counts")[0] == 200)
    check("an ended one does not come back", ended_after.get(f"{API}/counts")[0] == 401)


def tls():
    """Beyond this machine there is TLS, and without a certificate there is a refusal that names the flag."""
    with PortalCluster("--hollow", portal="0.0.0.0:18443", nodes=1) as muster:
        guest = Visitor(muster.portal)
        check("[7] https beyond this machine", guest.tls, muster.portal)
        _, headers, _ = guest.sign_in(muster.admin_token())
        cookie = headers.get("set-cookie", "")
        flags = {part.strip() for part in cookie.split(";")[1:]}
        check("[7] TLS: __Host-muster", cookie.startswith("__Host-muster="), cookie)
        check("[7] TLS: all flags", {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= flags, cookie)
        refused = subprocess.run(
            [binary(), "run", "--kubeconfig", str(muster.kubeconfig), "--portal", "0.0.0.0:18543"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        said = refused.stderr + refused.stdout
        check(
            "[7] plain HTTP for others is refused and names the flag",
            refused.returncode != 0 and "--portal-plain-http" in said,
            said,
        )


with PortalCluster("--hollow", nodes=2) as muster:
    admin = cookies(muster)
    pages(muster)
    headers_everywhere(muster, admin)
    origins(muster, admin)
    sockets(muster, admin)
    endless_answers(muster, admin)
    old_links(muster)
    ended = Visitor(muster.portal)
    ended.sign_in(muster.admin_token())
    ended.ask("DELETE", f"{API}/session")
    restart(muster, admin, ended)
tls()
sys.exit(check.close())
