"""The conformance checks that need no running pod: named lists of kubectl command lines.

Each check runs in order in one namespace of one server. {data} is this folder's data, {ns} the namespace. A line that
starts with `json` sends a raw request: `json METHOD PATH [BODY]`, one that starts with `sh` runs in a shell in which
k is kubectl. Numbers are those of the wire specification.
"""

# A child of the config map `owner`, whose owner is deleted with a cascade; what is left is told once nothing more
# will change.
OWNED = """sh k create cm owner -o name 2>/dev/null; uid=$(k get cm owner -o jsonpath='{{{{.metadata.uid}}}}');
k create -f - <<END
{{{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{{{"name": "child-{0}", "ownerReferences": [{{{{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "$uid", "blockOwnerDeletion": true}}}}]}}}}}}}}
END
k delete cm owner --cascade={0}
[ {0} = orphan ] || k wait --for=delete cm/child-{0} --timeout=60s 2>&1 | sed s/.condition.met//
k get cm child-{0} -o jsonpath='{{{{.metadata.ownerReferences}}}}'; k delete cm child-{0} --ignore-not-found"""

# A watch that is there before an object comes, changes and goes; each change is awaited before the next. kubectl's
# own log tells when the server has answered the watch.
WATCHED = """sh out=$(mktemp); : > $out.log; lines() {{{{ for i in $(seq 400); do [ $(wc -l < $out) -ge $1 ] && return; sleep 0.05; done; echo "no line $1"; }}}}
[ {1} = before ] && k create -f {{data}}/seen.yaml > /dev/null
k {0} -v=6 > $out 2> $out.log &
for i in $(seq 400); do grep -qE 'watch=true.*(200 OK|status="200)' $out.log && break; sleep 0.05; done
[ {1} = after ] && k create -f {{data}}/seen.yaml > /dev/null
lines 2; k annotate cm seen a=b > /dev/null; lines 3; k delete cm seen > /dev/null; lines 4
kill $!; wait $! 2>/dev/null; cat $out; rm -f $out $out.log"""

CHECKS = [
    ("1 version", ["get --raw /version"]),
    ("2 readyz", ["get --raw /readyz", "get --raw /healthz", "get --raw /livez"]),
    ("5 unknown resource", ["get foos"]),
    ("8 can-i", ["auth can-i create pods", "auth can-i --list --namespace {ns}", "auth whoami"]),
    ("11 empty namespace", ["get pods", "get pods -o name", "get cm -l x=none"]),
    ("38 create", ["create -f {data}/pod.yaml", "create -f {data}/pod.yaml"]),
    ("12 get pods", ["get pods", "get pods -o wide", "get pods -A", "get pods --show-labels -L app"]),
    ("14 get -o yaml", ["get pod web-0 -o yaml", "get pod web-0 -o yaml --show-managed-fields"]),
    ("14b get -o json", ["get pod web-0 -o json"]),
    ("15 get -o name", ["get pods -o name"]),
    ("16 not found", ["get pod nosuch", "get pod nosuch --ignore-not-found"]),
    (
        "17 label selectors",
        [
            "get pods -l 'app=web,!x,app in (web,y)'",
            "get pods -l app!=web",
            "get pods -l 'a in'",
            "get pods -l app=web,tier=be",
        ],
    ),
    (
        "18 field selectors",
        [
            "get pods --field-selector status.phase=Pending,spec.nodeName!=x -o name",
            "get pods --field-selector spec.foo=1",
            "get cm --field-selector data.a=1",
        ],
    ),
    (
        "20 output forms",
        [
            "get pods --sort-by=.metadata.name",
            "get pods -o custom-columns=N:.metadata.name,S:.spec.schedulerName",
            "get pods -o jsonpath={{.items[*].spec.containers[*].name}}",
        ],
    ),
    ("21 two kinds", ["get pods,serviceaccounts"]),
    ("26 get all", ["get all"]),
    (
        "39 unknown fields",
        [
            "create -f {data}/pod-unknown.yaml",
            "create -f {data}/pod-unknown.yaml --validate=warn",
            "create -f {data}/pod-unknown.yaml --validate=false",
            "delete pod unknown-fields --now",
        ],
    ),
    ("40 invalid pod", ["create -f {data}/pod-invalid.yaml"]),
    ("42 dry run", ["create -f {data}/cm1.yaml --dry-run=server -o yaml", "get cm conf"]),
    ("43 unknown kind", ["create -f {data}/nomatch.yaml"]),
    (
        "44 typed creates",
        [
            "create ns typed-ns",
            "create cm typed --from-literal=a=1",
            "create secret generic typed --from-literal=p=x",
            "create deployment typed --image=nginx",
            "create quota typed --hard=pods=100",
            "create priorityclass typed --value=7",
            "create serviceaccount typed",
            "create role typed --verb=get --resource=pods",
            "create rolebinding typed --role=typed --user=u",
            "create clusterrole typed --verb=get --resource=nodes",
            "create job typed --image=busybox",
            "create service clusterip typed --tcp=80",
            "create pdb typed --selector=a=b --min-available=1",
            "get cm,secret,sa,role,rolebinding,pdb",
            "get priorityclass typed",
            "get secret typed -o yaml",
            "get role typed -o yaml",
            "get job typed -o jsonpath={{.spec.template.spec}}",
            "get deployment typed -o jsonpath={{.spec}}",
            "get pdb typed -o yaml",
            "delete job,deployment,svc,quota typed",
            "delete ns typed-ns",
            "delete priorityclass typed",
            "delete clusterrole typed",
        ],
    ),
    ("45 missing namespace", ["create cm x -n nosuchns"]),
    (
        "46 apply",
        ["apply -f {data}/cm1.yaml", "apply -f {data}/cm1.yaml", "apply -f {data}/cm2.yaml", "get cm conf -o yaml"],
    ),
    (
        "47 apply over create",
        [
            "create cm over --from-literal=a=1",
            "apply -f {data}/over.yaml",
            "get cm over -o jsonpath={{.data}}",
            "label cm over x=y",
            "apply view-last-applied cm/over",
        ],
    ),
    (
        "50 server-side apply",
        [
            "apply --server-side -f {data}/cm1.yaml --field-manager=one --force-conflicts",
            "apply --server-side -f {data}/cm2.yaml --field-manager=two",
            "apply --server-side -f {data}/cm2.yaml --field-manager=two --force-conflicts",
            "get cm conf -o yaml",
        ],
    ),
    ("51 diff", ["diff -f {data}/cm2.yaml", "sh k diff -f {data}/cm1.yaml > /dev/null; echo $?"]),
    (
        "52 replace",
        ["replace -f {data}/cm1.yaml", "get cm conf -o jsonpath={{.data}}", "replace --force -f {data}/cm2.yaml"],
    ),
    (
        "53 several documents",
        [
            "create -f {data}/many.yaml",
            "get cm -o name",
            "delete -f {data}/many.yaml",
            "sh k create -f - < {data}/many.yaml",
            "sh k delete -f - < {data}/many.yaml",
        ],
    ),
    (
        "56 patches",
        [
            'patch pod web-0 -p \'{{"metadata":{{"labels":{{"p":"1"}}}}}}\'',
            'patch pod web-0 -p \'{{"metadata":{{"labels":{{"p":"1"}}}}}}\'',
            'patch cm conf --type=merge -p \'{{"data":{{"z":"9"}}}}\'',
            'patch cm conf --type=json -p \'[{{"op":"remove","path":"/data/z"}}]\'',
            'patch cm conf --type=json -p \'[{{"op":"test","path":"/data/a","value":"no"}}]\'',
            "get cm conf -o jsonpath={{.data}}",
        ],
    ),
    (
        "48 immutable pod",
        [
            'patch pod web-0 -p \'{{"spec":{{"restartPolicy":"Never"}}}}\'',
            'patch pod web-0 -p \'{{"spec":{{"containers":[{{"name":"main","image":"nginx:2"}}]}}}}\'',
            "get pod web-0 -o jsonpath={{.metadata.generation}}",
        ],
    ),
    (
        "58 status subresource",
        [
            'patch pod web-0 --subresource=status --type=merge -p \'{{"status":{{"message":"m"}},"spec":{{"nodeName":"x"}}}}\'',
            "get pod web-0 -o jsonpath={{.status.message}}-{{.spec.nodeName}}-{{.metadata.generation}}",
        ],
    ),
    (
        "60 label and annotate",
        [
            "label pod web-0 tier=be",
            "label pod web-0 tier=be --overwrite",
            "label pod web-0 tier-",
            "annotate pod web-0 a=b",
            "annotate pod web-0 a-",
            "label pod web-0 bad/key/x=1",
        ],
    ),
    (
        "61 conflicts",
        [
            'json PUT /api/v1/namespaces/{ns}/configmaps/conf {{"metadata":{{"name":"conf","resourceVersion":"1"}}}}',
            'json PUT /api/v1/namespaces/{ns}/configmaps/conf {{"metadata":{{"name":"other"}}}}',
            'json PUT /api/v1/namespaces/{ns}/configmaps/absent {{"metadata":{{"name":"absent"}}}}',
        ],
    ),
    ("65 delete unscheduled", ["delete pod web-0", "get pods"]),
    (
        "66 finalizers",
        [
            "create -f {data}/finalizer.yaml",
            "delete cm held --wait=false",
            "get cm held -o jsonpath={{.metadata.finalizers}}",
            'patch cm held --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'',
            "get cm held",
        ],
    ),
    ("68 delete nothing", ["delete pod -l x=none", "delete pod nosuch"]),
    ("70 delete dry run", ["delete cm conf --dry-run=server", "get cm conf -o name"]),
    (
        "crd",
        [
            "create -f {data}/crd.yaml",
            "wait --for=condition=Established crd/widgets.example.com --timeout=20s",
            "get crd widgets.example.com -o wide",
            "create -f {data}/widget.yaml",
            "get widgets",
            "get wd w1 -o yaml",
            "create -f {data}/widget-bad.yaml",
            "apply -f {data}/widget2.yaml",
            "get wd w1 -o jsonpath={{.spec}}-{{.metadata.generation}}",
            'patch widget w1 -p \'{{"spec":{{"size":5}}}}\'',
            'patch widget w1 --type=merge -p \'{{"spec":{{"size":5,"unknown":1}}}}\'',
            "get wd w1 -o jsonpath={{.spec}}-{{.metadata.generation}}",
            'patch widget w1 --type=merge --subresource=status -p \'{{"status":{{"conditions":[{{"type":"Created"}},{{"type":"Running"}}],"replicas":2}}}}\'',
            "get wd",
            "scale widget/w1 --replicas=4",
            "get wd w1 -o jsonpath={{.spec.replicas}}",
            "scale widget/w1 --current-replicas=9 --replicas=1",
            "explain widget.spec",
            "delete widget w1",
            "delete crd widgets.example.com",
            "get widgets",
        ],
    ),
    (
        "82 nodes",
        [
            "create -f {data}/node.yaml",
            'patch node n1 --type=json -p \'[{{"op":"replace","path":"/spec","value":{{}}}}]\'',
            "get node n1",
            "cordon n1",
            "cordon n1",
            "get node n1",
            "uncordon n1",
            "taint node n1 k=v:NoSchedule",
            "taint node n1 k=v:NoSchedule",
            "taint node n1 k-",
            "delete node n1",
        ],
    ),
    (
        "81 scale deployment",
        [
            "create -f {data}/deploy.yaml",
            "scale deploy/web --replicas=3",
            "get deploy web -o jsonpath={{.spec.replicas}}-{{.metadata.generation}}",
            "get deploy web -o jsonpath={{.spec}}",
            "delete deploy web",
        ],
    ),
    ("quota", ["create -f {data}/quota.yaml", "get quota q", "delete quota q"]),
    ("pdb", ["create -f {data}/pdb.yaml", "get pdb ev", "delete pdb ev"]),
    (
        "native groups",
        [
            "create -f {data}/podgroup.yaml",
            "get podgroups.scheduling.k8s.io g -o yaml",
            "get podgroups.scheduling.k8s.io",
            "create -f {data}/podgroup-bad.yaml",
            'patch podgroups.scheduling.k8s.io g --type=merge -p \'{{"spec":{{"schedulingPolicy":{{"gang":{{"minCount":3}}}}}}}}\'',
            "get podgroups.scheduling.k8s.io g -o jsonpath={{.spec.schedulingPolicy.gang.minCount}}",
        ],
    ),
    ("55 explain", ["explain pods.spec.schedulerName", "explain deployment.spec.strategy"]),
    (
        "errors",
        [
            "json POST /api/v1/namespaces/{ns}/configmaps {{",
            'json POST /api/v1/namespaces/{ns}/configmaps {{"kind":"Pod","apiVersion":"v1"}}',
            'json POST /api/v1/namespaces/{ns}/configmaps {{"metadata":{{}}}}',
            'json POST /api/v1/pods {{"metadata":{{"name":"x"}}}}',
            "json GET /api/v1/nosuch",
            "json GET /apis/nosuch/v1/x",
            "json GET /api/v1/namespaces/{ns}/pods?resourceVersion=abc",
            "json GET /api/v1/namespaces/{ns}/pods?limit=x",
            "json GET /api/v1/namespaces/{ns}/pods?continue=zzz",
            'json POST /api/v1/namespaces/{ns}/pods {{"metadata":{{"name":"t"}},"spec":{{"hostNetwork":"yes","containers":[]}}}}',
            "json GET /api/v1/namespaces/{ns}/pods?resourceVersionMatch=Exact",
            "json DELETE /api/v1/namespaces/{ns}/pods/nosuch",
            "json GET /api/v1/namespaces/{ns}/pods?watch=true&resourceVersionMatch=NotOlderThan",
            "json GET /api/v1/namespaces/{ns}/pods?sendInitialEvents=true",
            'json POST /api/v1/namespaces/{ns}/configmaps {{"metadata":{{"name":"rv","labels":{{"a b":"c"}}}}}}',
            'json POST /api/v1/namespaces/{ns}/configmaps?dryRun=Some {{"metadata":{{"name":"rv"}}}}',
            'json POST /api/v1/namespaces/{ns}/configmaps?fieldValidation=Maybe {{"metadata":{{"name":"rv"}}}}',
            'json POST /api/v1/namespaces/{ns}/pods {{"metadata":{{"name":"p"}},"spec":{{"priorityClassName":"nosuch","containers":[{{"name":"a","image":"b"}}]}}}}',
            'json POST /api/v1/namespaces/{ns}/pods {{"metadata":{{"name":"p"}},"spec":{{"serviceAccountName":"nosuch","containers":[{{"name":"a","image":"b"}}]}}}}',
        ],
    ),
    (
        "45 terminating namespace",
        [
            "create ns ending",
            "create -f {data}/finalizer.yaml -n ending",
            "delete ns ending --wait=false",
            "get ns ending",
            "create cm late -n ending",
            'patch cm held -n ending --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'',
            "sh k wait --for=delete ns/ending --timeout=60s 2>&1 | grep -vE 'condition met|no matching'",
            "get ns ending",
        ],
    ),
    (
        "67 cascades",
        ["create cm owner", OWNED.format("background"), OWNED.format("orphan"), OWNED.format("foreground")],
    ),
    (
        "28 get -w",
        [
            WATCHED.format("get cm seen -w", "before"),
            WATCHED.format("get cm -w --output-watch-events -l app=seen", "after"),
            WATCHED.format("get cm -w --watch-only -l app=seen", "after"),
        ],
    ),
    ("69 delete namespace", ["create ns going", "create cm inside -n going", "delete ns going", "get ns going"]),
    (
        "3 api-resources",
        [
            "api-resources --api-group=batch",
            "api-resources --api-group=apps --no-headers",
            "api-resources --api-group=policy -o name",
            "api-resources --api-group=coordination.k8s.io --verbs=watch",
        ],
    ),
    ("4 group versions", ["get --raw /apis/batch", "get --raw /apis/apps", "get --raw /apis/nosuch"]),
    ("6 bad token", ["--token=not-a-token get pods"]),
    (
        "7 forbidden",
        [
            "--as=alice get pods",
            "--as=alice get pods -A",
            "--as=alice get nodes",
            "--as=alice auth can-i create pods",
            "--as=alice create cm x --from-literal=a=b",
        ],
    ),
    ("19 chunks", ["get sa,cm --chunk-size=1 -o name", "get pods --chunk-size=1"]),
    ("41 generateName", ["create -f {data}/generate.yaml"]),
    (
        "54 edit",
        [
            "create cm edited --from-literal=a=edit-me",
            "edit cm edited",
            "get cm edited -o jsonpath={{.data}}",
            "edit cm edited",
        ],
    ),
    (
        "59 strategic directives",
        [
            "create deployment dirs --image=nginx",
            'patch deploy dirs -p \'{{"spec":{{"strategy":{{"$retainKeys":["type"],"type":"Recreate"}}}}}}\'',
            "get deploy dirs -o jsonpath={{.spec.strategy}}",
            'patch deploy dirs -p \'{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"b","image":"b"}},{{"name":"nginx","$patch":"delete"}}]}}}}}}}}\'',
            "get deploy dirs -o jsonpath={{.spec.template.spec.containers[*].name}}",
            'patch deploy dirs -p \'{{"spec":{{"template":{{"spec":{{"$setElementOrder/containers":[{{"name":"c"}},{{"name":"b"}}],"containers":[{{"name":"c","image":"c"}}]}}}}}}}}\'',
            "get deploy dirs -o jsonpath={{.spec.template.spec.containers[*].name}}",
            'patch deploy dirs -p \'{{"metadata":{{"labels":{{"$patch":"replace","only":"me"}}}}}}\'',
            "get deploy dirs -o jsonpath={{.metadata.labels}}",
            'patch deploy dirs -p \'{{"metadata":{{"finalizers":["a.b/c","d.e/f"]}}}}\'',
            'patch deploy dirs -p \'{{"metadata":{{"$deleteFromPrimitiveList/finalizers":["a.b/c"]}}}}\'',
            "get deploy dirs -o jsonpath={{.metadata.finalizers}}",
            'patch deploy dirs --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'',
            "delete deploy dirs",
        ],
    ),
    (
        "32 watch ends",
        [
            "get --raw /api/v1/namespaces/{ns}/configmaps?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dtyped",
            "get --raw /api/v1/namespaces/{ns}/pods?watch=true&timeoutSeconds=1&labelSelector=none%3Dnone",
        ],
    ),
    (
        "37 WatchList",
        [
            "get --raw /api/v1/namespaces/{ns}/configmaps?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dtyped&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        ],
    ),
    (
        "63 terminating",
        [
            "create -f {data}/bound.yaml",
            "get pod bound -o wide",
            "delete pod bound --grace-period=30 --wait=false",
            "get pod bound",
            "get pod bound -o jsonpath={{.metadata.deletionGracePeriodSeconds}}-{{.metadata.generation}}",
        ],
    ),
    ("64 force", ["delete pod bound --force --grace-period=0", "get pod bound"]),
    (
        "79 wait",
        [
            "create -f {data}/bound.yaml",
            "wait --for=condition=Ready pod/bound --timeout=1s",
            'patch pod bound --subresource=status --type=merge -p \'{{"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True"}}]}}}}\'',
            "wait --for=condition=Ready pod/bound --timeout=5s",
            "get pod bound",
        ],
    ),
    (
        "80 wait for",
        [
            "wait --for=jsonpath={{.status.phase}}=Running pod/bound --timeout=5s",
            "wait --for=delete pod/nosuch --timeout=1s",
        ],
    ),
    (
        "114 generation",
        [
            'patch pod bound -p \'{{"spec":{{"containers":[{{"name":"main","image":"nginx:3"}}]}}}}\'',
            "get pod bound -o jsonpath={{.metadata.generation}}",
        ],
    ),
    (
        "87 events",
        [
            'json POST /api/v1/namespaces/{ns}/events {{"metadata":{{"name":"e1"}},"involvedObject":{{"kind":"Pod","namespace":"{ns}","name":"bound","apiVersion":"v1"}},'
            '"reason":"Tried","message":"it was tried","type":"Normal","source":{{"component":"test"}},"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","count":3}}',
            "get events --field-selector involvedObject.name=bound,reason=Tried",
            "get events --field-selector involvedObject.name=bound,reason=Tried -o wide",
        ],
    ),
    (
        "103 waits",
        [
            "wait --for=create cm/over --timeout=5s",
            "wait --for=jsonpath={{.data.a}}=2 --for=jsonpath={{.metadata.name}}=over cm/over --timeout=5s",
            "wait --for=create cm/nosuch --timeout=1s",
            "sh k wait --for=delete cm/over --timeout=2s 2>&1 | grep ^error",
        ],
    ),
    (
        "115 resize",
        [
            "create -f {data}/resize.yaml",
            'patch pod resize --subresource=resize -p \'{{"spec":{{"containers":[{{"name":"main","image":"other","resources":{{"requests":{{"cpu":"150m"}}}}}}]}}}}\'',
            "get pod resize -o jsonpath={{.spec.containers[0].image}}-{{.spec.containers[0].resources}}-{{.metadata.generation}}",
            'patch pod resize --subresource=resize -p \'{{"spec":{{"containers":[{{"name":"main","resources":{{"requests":{{"nvidia.com/gpu":"1"}},"limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}}\'',
            "delete pod resize",
        ],
    ),
    (
        "87 kubectl events",
        ["sh k events --for pod/bound | grep -v Scheduled", "events --for pod/bound --types=Warning"],
    ),
    (
        "112 describe pods",
        [
            "sh k describe pod bound | grep -v '^Annotations'",
            "sh k describe pods | grep -c '^Name:'",
            "describe node nosuch",
        ],
    ),
    ("86 describe", ["describe cm over", "describe secret typed", "describe sa typed", "describe role typed"]),
    (
        "88 rollout",
        [
            "create -f {data}/deploy.yaml",
            "rollout history deploy/nosuch",
            "rollout pause deploy/web",
            "rollout pause deploy/web",
            "rollout resume deploy/web",
            "delete deploy web",
        ],
    ),
    (
        "78 exec unscheduled",
        ["create -f {data}/pod.yaml", "exec web-0 -- true", "attach web-0", "logs web-0", "port-forward pod/web-0 1:1"],
    ),
    ("62 delete bound", ["delete pod bound --grace-period=0 --force", "delete pod web-0"]),
]
