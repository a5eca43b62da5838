/// What pods, and the templates that become pods, may ask for.
///
/// Pod Security: a namespace with the label pod-security.kubernetes.io/enforce has that level, as
/// in Kubernetes, for every pod in it whoever makes it. One without has the level of `muster up
/// --pod-security` (baseline) for everybody but the cluster's administrators. There the template of
/// a workload is held to the level when somebody writes it, and the pods that Muster's own
/// controllers make of it are trusted: they act for whoever wrote the template, and could not tell
/// an administrator's from anybody else's. kube-system has no such default.
///
/// Annotations by which the scheduler hands out devices are the scheduler's to write: with a
/// binding, or by one who may bind pods.
#pragma once

#include "apiserver/registry/guard.h"

namespace muster::apiserver {

/// Pods and kinds with pod templates that Muster's controllers turn into pods.
[[nodiscard]] bool makes_pods(const Resource& resource);
[[nodiscard]] Result<void> guard_pods(Core& core, const GuardedWrite& write);
/// The labels of a namespace can be read; existing pods that would violate them are warned of.
[[nodiscard]] Result<void> guard_namespace(Core& core, const GuardedWrite& write);

}  // namespace muster::apiserver
