/// Who may use which queue and virtual cluster.
///
/// A queue with the annotation muster.dev/allowed-namespaces is for jobs of those namespaces. Of
/// the others everybody may use every one, as in Volcano, unless `muster up --queue-access closed`:
/// then nobody may use any but the queue "default". Whoever holds the verb `use` on a queue
/// (queues.scheduling.volcano.sh, queues.scheduler.tensorstack.dev) or virtual cluster
/// (virtualclusters.muster.dev), in the namespace of the job or in all, may use it whatever else is
/// said.
///
/// It is asked of whoever writes the name: into a pod, a PodGroup, or anything that becomes pods,
/// at its creation and when the name is changed. What Muster's controllers make of it is theirs to
/// make.
#pragma once

#include "apiserver/registry/guard.h"
#include "kube/security/tenants.h"

namespace muster::apiserver {

/// Forbidden with the reason and what would help.
[[nodiscard]] Result<void> may_use(Core& core,
                                   const User& user,
                                   const std::string& ns,
                                   const kube::TenantName& tenant);

/// Kinds in which a queue, virtual cluster or priority class is named.
[[nodiscard]] bool names_tenants(const Resource& resource);
[[nodiscard]] Result<void> guard_tenants(Core& core, const GuardedWrite& write);

/// Kubernetes' own priority classes, which go before everybody's work, are for kube-system and
/// for namespaces that have a ResourceQuota with the scope PriorityClass for them.
[[nodiscard]] Result<void> guard_priority(Core& core, const GuardedWrite& write);

}  // namespace muster::apiserver
