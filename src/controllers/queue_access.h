/// Who may use which queue and virtual cluster, on a real cluster: what the embedded API server asks
/// itself (apiserver/registry/queue_access.h) is asked here of the cluster's API server, for each
/// AdmissionReview that it sends to /queues.
///
/// Kubernetes' own controllers, whose accounts are in kube-system, make pods of what others wrote
/// and are trusted; it is the Deployment or Job that is judged. Everything runs on the loop.
#pragma once

#include "client/client.h"
#include "kube/security/tenants.h"

namespace muster::controllers {

class QueueAccess {
 public:
  /// `closed`: a queue that does not name its namespaces needs the verb `use`.
  QueueAccess(client::Client& client, bool closed) : client_(client), closed_(closed) {}
  /// The `request` of a review. Forbidden with the reason; other errors if the server cannot be
  /// asked.
  Task<Result<void>> check(json::Value request);

 private:
  Task<Result<void>> may_use(const json::Value& request, kube::TenantName tenant);
  /// The names in an object, or those of the group that a pod joins.
  Task<Result<std::vector<kube::TenantName>>> wanted_by(json::Value object);
  Task<Result<bool>> holds_use(const json::Value& request, const kube::TenantName& tenant);

  client::Client& client_;
  const bool closed_;
};

}  // namespace muster::controllers
