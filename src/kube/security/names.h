/// Names of who may use what, and of what is written down about requests. Apart from kube/names.h,
/// which every room includes.
#pragma once

#include <string_view>

namespace muster::kube::names::access {

/// In the annotations of an audit event: "allow" or "forbid", and by which rule.
inline constexpr std::string_view kDecision = "authorization.k8s.io/decision";
inline constexpr std::string_view kReason = "authorization.k8s.io/reason";
/// The group of SubjectAccessReviews.
inline constexpr std::string_view kAuthorization = "authorization.k8s.io";
/// What the `audit` level of a namespace found in a pod.
inline constexpr std::string_view kAuditViolations = "pod-security.kubernetes.io/audit-violations";

/// A body was too long for the line and is left out.
inline constexpr std::string_view kTruncated = "audit.k8s.io/truncated";

/// On a Queue: "vision,speech", the namespaces whose jobs may use it when queues are closed; "*"
/// for all.
inline constexpr std::string_view kAllowedNamespaces = "muster.dev/allowed-namespaces";
/// The verb of whoever may use a queue or virtual cluster.
inline constexpr std::string_view kUse = "use";
/// Virtual clusters are no objects; in roles they are resources of this group.
inline constexpr std::string_view kVirtualClusterGroup = "muster.dev";
inline constexpr std::string_view kVirtualClusters = "virtualclusters";

}  // namespace muster::kube::names::access
