/// The roles every cluster has, as a table of text.
#include <iterator>

#include "apiserver/auth/rbac.h"
#include "kube/embedded.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kRoles = R"yaml(
kind: ClusterRole
metadata: {name: cluster-admin}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}
---
kind: ClusterRole
metadata: {name: admin}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-admin: "true"}}]}
---
kind: ClusterRole
metadata: {name: edit, labels: {rbac.authorization.k8s.io/aggregate-to-admin: "true"}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}]}
---
kind: ClusterRole
metadata: {name: view, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}]}
---
kind: ClusterRole
metadata: {name: system:aggregate-to-admin, labels: {rbac.authorization.k8s.io/aggregate-to-admin: "true"}}
rules:
- {apiGroups: [authorization.k8s.io], resources: [localsubjectaccessreviews], verbs: [create]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, roles], verbs: [create, delete, deletecollection, get, list, patch, update, watch]}
---
kind: ClusterRole
metadata: {name: system:aggregate-to-edit, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true", rbac.authorization.k8s.io/aggregate-to-admin: "true"}}
rules:
- {apiGroups: [""], resources: [pods/attach, pods/exec, pods/portforward, pods/proxy, secrets, services/proxy], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}
- {apiGroups: [""], resources: [pods, pods/attach, pods/exec, pods/portforward, pods/proxy, pods/resize, pods/ephemeralcontainers], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [""], resources: [pods/eviction], verbs: [create]}
- {apiGroups: [""], resources: [configmaps, events, persistentvolumeclaims, replicationcontrollers, replicationcontrollers/scale, secrets, serviceaccounts, services, services/proxy], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}
- {apiGroups: [apps], resources: [daemonsets, deployments, deployments/rollback, deployments/scale, replicasets, replicasets/scale, statefulsets, statefulsets/scale], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [autoscaling], resources: [horizontalpodautoscalers], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [batch], resources: [cronjobs, jobs], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [networking.k8s.io], resources: [ingresses, networkpolicies], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [create, delete, deletecollection, patch, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, delete, deletecollection, get, list, patch, update, watch]}
---
kind: ClusterRole
metadata: {name: system:aggregate-to-view, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true", rbac.authorization.k8s.io/aggregate-to-edit: "true", rbac.authorization.k8s.io/aggregate-to-admin: "true"}}
rules:
- {apiGroups: [""], resources: [configmaps, endpoints, persistentvolumeclaims, persistentvolumeclaims/status, pods, replicationcontrollers, replicationcontrollers/scale, serviceaccounts, services, services/status], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [bindings, events, limitranges, namespaces/status, pods/log, pods/status, replicationcontrollers/status, resourcequotas, resourcequotas/status], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [controllerrevisions, daemonsets, daemonsets/status, deployments, deployments/scale, deployments/status, replicasets, replicasets/scale, replicasets/status, statefulsets, statefulsets/scale, statefulsets/status], verbs: [get, list, watch]}
- {apiGroups: [autoscaling], resources: [horizontalpodautoscalers, horizontalpodautoscalers/status], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [cronjobs, cronjobs/status, jobs, jobs/status], verbs: [get, list, watch]}
- {apiGroups: [networking.k8s.io], resources: [ingresses, ingresses/status, networkpolicies], verbs: [get, list, watch]}
- {apiGroups: [policy], resources: [poddisruptionbudgets, poddisruptionbudgets/status], verbs: [get, list, watch]}
---
kind: ClusterRole
metadata: {name: system:discovery}
rules:
- {nonResourceURLs: [/api, /api/*, /apis, /apis/*, /healthz, /livez, /openapi, /openapi/*, /readyz, /version, /version/], verbs: [get]}
---
kind: ClusterRole
metadata: {name: system:basic-user}
rules:
- {apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews, selfsubjectrulesreviews], verbs: [create]}
- {apiGroups: [authentication.k8s.io], resources: [selfsubjectreviews], verbs: [create]}
---
kind: ClusterRole
metadata: {name: system:public-info-viewer}
rules:
- {nonResourceURLs: [/healthz, /livez, /readyz, /version, /version/], verbs: [get]}
---
kind: ClusterRole
metadata: {name: system:monitoring}
rules:
- {nonResourceURLs: [/metrics, /metrics/*, /livez, /readyz, /healthz], verbs: [get]}
---
kind: ClusterRole
metadata: {name: system:auth-delegator}
rules:
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
kind: ClusterRole
metadata: {name: system:kube-scheduler}
rules:
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, list, update, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods], verbs: [delete, get, list, watch]}
- {apiGroups: [""], resources: [bindings, pods/binding], verbs: [create]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch, update]}
- {apiGroups: [""], resources: [replicationcontrollers, services, namespaces], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [replicasets, statefulsets], verbs: [get, list, watch]}
- {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [persistentvolumeclaims, persistentvolumes], verbs: [get, list, patch, update, watch]}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
- {apiGroups: [storage.k8s.io], resources: [csinodes, csidrivers, csistoragecapacities, storageclasses, volumeattachments], verbs: [get, list, watch]}
- {apiGroups: [resource.k8s.io], resources: [deviceclasses, resourceslices, devicetaintrules, resourceclaims], verbs: [get, list, watch]}
- {apiGroups: [resource.k8s.io], resources: [resourceclaims, resourceclaims/status], verbs: [patch, update]}
- {apiGroups: [scheduling.k8s.io], resources: [podgroups, podgroups/status, workloads], verbs: [get, list, watch, patch, update]}
---
kind: ClusterRole
metadata: {name: system:kube-controller-manager}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
kind: ClusterRole
metadata: {name: system:node}
rules:
- {apiGroups: [""], resources: [nodes, nodes/status, pods, pods/status, events, services, configmaps, secrets, persistentvolumeclaims, persistentvolumes, endpoints], verbs: [create, delete, get, list, patch, update, watch]}
- {apiGroups: [""], resources: [pods/eviction, serviceaccounts/token], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, delete, get, patch, update]}
---
kind: ClusterRole
metadata: {name: muster-cluster-overview}
rules:
- {apiGroups: [""], resources: [nodes, namespaces, services], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods/summary], verbs: [get, list]}
- {apiGroups: [apps, batch, kubeflow.org, batch.volcano.sh, batch.tensorstack.dev, frameworkcontroller.microsoft.com], resources: ["*/summary"], verbs: [get, list]}
- {apiGroups: [metrics.k8s.io], resources: [nodes, pods], verbs: [get, list]}
- {apiGroups: [scheduling.x-k8s.io, scheduling.volcano.sh], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [scheduling.k8s.io], resources: [podgroups, compositepodgroups, workloads, priorityclasses], verbs: [get, list, watch]}
---
kind: ClusterRoleBinding
metadata: {name: cluster-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:masters}]
---
kind: ClusterRoleBinding
metadata: {name: system:discovery}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:discovery}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]
---
kind: ClusterRoleBinding
metadata: {name: system:basic-user}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:basic-user}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]
---
kind: ClusterRoleBinding
metadata: {name: system:public-info-viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:public-info-viewer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}, {apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:unauthenticated}]
---
kind: ClusterRoleBinding
metadata: {name: system:monitoring}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:monitoring}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:monitoring}]
---
kind: ClusterRoleBinding
metadata: {name: system:kube-scheduler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:kube-scheduler}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: system:kube-scheduler}]
---
kind: ClusterRoleBinding
metadata: {name: system:kube-controller-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:kube-controller-manager}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: system:kube-controller-manager}]
---
kind: ClusterRoleBinding
metadata: {name: system:node}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:nodes}]
---
kind: ClusterRoleBinding
metadata: {name: muster-pai-administrators}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "pai:admingroup"}]
---
kind: ClusterRoleBinding
metadata: {name: muster-pai-users}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: muster-cluster-overview}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "pai:default"}]
)yaml";

}  // namespace

std::vector<json::Value> default_roles() {
  auto roles = json::parse_yaml(kRoles);
  MUSTER_CHECK(roles.has_value(), roles ? "" : roles.error().message);
  for (json::Value& role : *roles) {
    role.get_object()["apiVersion"] = kube::resources::kRoles.api_version();
    json::make(role, {"metadata", "labels", kube::names::kubernetes::kBootstrapping}) =
        "rbac-defaults";
    json::make(role, {"metadata", "annotations", kube::names::kubernetes::kAutoUpdate}) = "true";
  }
  auto of_users = json::parse_yaml(kube::embedded_user_roles());
  MUSTER_CHECK(of_users.has_value(), of_users ? "" : of_users.error().message);
  std::move(of_users->begin(), of_users->end(), std::back_inserter(*roles));
  return std::move(*roles);
}

}  // namespace muster::apiserver
