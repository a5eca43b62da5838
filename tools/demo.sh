#!/bin/bash
# A new user's first minute: a cluster with one GPU, a medium job that has it, a critical one that takes it, what
# happened and why; then the portal of a larger one. Everything lives in a temporary folder and is gone at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
muster=${MUSTER:-$PWD/build/muster}
[ -x "$muster" ] || { echo "demo: no $muster, run make build first" >&2; exit 1; }

home=$(mktemp -d -t muster-demo-XXXXXX)
export MUSTER_HOME=$home KUBECONFIG=$home/kubeconfig HOME=$home
server= second=
finish() {
  for one in $server $second; do kill "$one" 2>/dev/null || true; wait "$one" 2>/dev/null || true; done
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 130' INT TERM

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[90m' off=$'\e[0m'; else bold= dim= off=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
show() { printf '%s$ muster %s%s\n' "$dim" "$*" "$off"; "$muster" "$@"; }
# Waits until a job is in one of the states given; fails after a minute.
until_job() {
  local job=$1 state; shift
  for _ in $(seq 300); do
    state=$("$muster" get "$job" -o json 2>/dev/null | sed -n 's/^    "status": "\(.*\)",/\1/p')
    for want in "$@"; do [ "$state" = "$want" ] && return 0; done
    sleep 0.2
  done
  echo "demo: $job is $state and should be $*" >&2
  "$muster" explain "$job" || true
  tail -5 "$home/log" >&2
  return 1
}

# Waits until the explanation of a job has a word; fails after a minute.
until_explained() {
  local job=$1 word=$2 said=
  for _ in $(seq 300); do
    said=$("$muster" explain "$job" 2>&1) && [[ $said == *"$word"* ]] && return 0
    sleep 0.2
  done
  printf 'demo: the explanation of %s should say "%s":\n%s\n' "$job" "$word" "$said" >&2
  return 1
}

say "A cluster of one node with one GPU, in a temporary folder"
"$muster" up --data "$home" --listen 127.0.0.1:0 --nodes 1 --gpus 1 >"$home/log" 2>&1 &
server=$!
for _ in $(seq 150); do
  grep -q ready "$home/log" 2>/dev/null && [ -s "$home/kubeconfig" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$home/log" >&2; exit 1; }
  sleep 0.1
done
grep -q ready "$home/log" || { echo "demo: the cluster is not ready after 15 s:" >&2; cat "$home/log" >&2; exit 1; }
show top node

say "Two priorities: critical above medium"
for class in critical:1100000 medium:1000000; do
  "$muster" priority create "${class%%:*}" --value="${class##*:}"
done

say "A medium job takes the GPU"
show submit pytorch --name=medium --priority=medium --gpus=1 --image=demo "echo training; sleep 600"
until_job medium RUNNING
show get medium
show top node -d

say "A critical job needs one too, and there is only one"
show submit pytorch --name=critical --priority=critical --gpus=1 --image=demo "echo training; sleep 600"
until_job critical RUNNING
until_job medium FAILED
show get critical

say "What became of the medium one, and why"
show get medium
until_explained medium Preempted
show explain medium

say "A third that is no more important than the second waits, and says for what"
show submit pytorch --name=third --priority=critical --gpus=1 --on-preempt=requeue --image=demo "sleep 600"
until_explained third "Insufficient nvidia.com/gpu"
show explain third

say "The critical one goes, and the third starts"
show delete critical
until_job third RUNNING
show list

say "The same in a browser: twelve nodes with two hundred jobs of eight people"
"$muster" up --data "$home/portal" --listen 127.0.0.1:0 --hollow --nodes 1 --gpus 8 >"$home/portal-log" 2>&1 &
second=$!
for _ in $(seq 150); do
  grep -q ready "$home/portal-log" 2>/dev/null && break
  kill -0 "$second" 2>/dev/null || { cat "$home/portal-log" >&2; exit 1; }
  sleep 0.1
done
tools/portal_seed --data "$home/portal" --jobs 200 --nodes 12
address=$(sed -n 's/.*portal: \(http[^ ]*\).*/\1/p' "$home/portal-log" | tail -1)
password=$(cat "$home/portal/admin-password")
[ -n "$address" ] || { echo "demo: no portal in this program:" >&2; cat "$home/portal-log" >&2; exit 1; }
echo "$address as admin, password $password"
if [ -t 0 ] && [ -t 1 ]; then
  command -v xdg-open >/dev/null && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && (xdg-open "$address" >/dev/null 2>&1 || true)
  read -r -p "Look around; Enter ends the demo. " _
else
  # Nobody looks: it is enough that the portal answers and has the jobs.
  python3 - "$address" "$password" <<'PYTHON'
import http.cookiejar, json, sys, time, urllib.request
address, password = sys.argv[1].rstrip("/"), sys.argv[2]
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
def ask(path, body=None):
    head = {"Content-Type": "application/json", "Origin": address}
    request = urllib.request.Request(address + "/api/portal/v1" + path, json.dumps(body).encode() if body else None, head)
    return json.load(browser.open(request))
ask("/session", {"user": "admin", "password": password})
for _ in range(100):
    if ask("/jobs")["total"] >= 200:
        break
    time.sleep(0.1)
else:
    sys.exit("demo: the portal does not show the jobs")
PYTHON
fi

say "That was it; the clusters and all their data go now."
