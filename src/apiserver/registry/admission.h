/// What Kubernetes' default admission plugins do to new objects: service accounts, priorities,
/// tolerations, limit ranges, default storage class, and the checks that go with them.
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

class Admission {
 public:
  explicit Admission(Core& core) : core_(core) {}
  /// True for a pod whose service account "default" is still to be made:
  /// Namespaces::ensure_contents() first.
  [[nodiscard]] bool awaits_account(const Resource& resource,
                                    const std::string& ns,
                                    const json::Value& object) const;
  Result<void> create(const Resource& resource,
                      const std::string& ns,
                      json::Value& object,
                      const User& user,
                      std::vector<std::string>* warnings);
  /// What an update of a pod must keep: tolerations that every pod has.
  void update_pod(json::Value& pod) { tolerations(pod); }

 private:
  Result<void> service_account(const Resource& resource, const std::string& ns, json::Value& pod);
  Result<void> pod_priority(const Resource& resource, json::Value& pod);
  Result<void> group_priority(const Resource& resource, json::Value& group);
  Result<void> runtime_class(const Resource& resource, const json::Value& pod);
  void tolerations(json::Value& pod);
  Result<void> claim(const Resource& resource, json::Value& claim);
  /// The named class, or the global default for an empty name (null if there is none).
  [[nodiscard]] StoredPtr priority_class(std::string_view name) const;

  Core& core_;
};

}  // namespace muster::apiserver
