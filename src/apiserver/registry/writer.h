/// Every change of an object goes through here, whoever asks: REST handlers, the garbage collector,
/// namespace deletion. It holds the order of steps that Kubernetes' registry has: admission,
/// preparation, validation, field ownership, optimistic concurrency, finalizers, then the store.
#pragma once

#include <functional>
#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

class Writer {
 public:
  explicit Writer(Core& core) : core_(core) {}

  /// `object` in the version of `resource`, defaults applied.
  Task<Result<StoredPtr>> create(ResourcePtr resource,
                                 std::string ns,
                                 json::Value object,
                                 WriteOptions options,
                                 const User& user,
                                 std::vector<std::string>* warnings);

  /// Computes the next state from the live one (both in the version of `resource`); runs under the
  /// key's lock.
  using Compute = std::function<Result<json::Value>(const json::Value& live)>;
  Task<Result<StoredPtr>> update(ResourcePtr resource,
                                 std::string ns,
                                 std::string name,
                                 Compute compute,
                                 WriteOptions options);

  Task<Result<Deleted>> remove(ResourcePtr resource,
                               std::string ns,
                               std::string name,
                               DeleteRequest request);

 private:
  /// What an update stores, and whether that differs from the live object in more than its
  /// managers.
  struct Next {
    json::Value object;
    bool changed = true;
  };
  Result<Next> finish_update(const Resource& resource,
                             json::Value next,
                             const json::Value& live,
                             const WriteOptions& options);
  StoredPtr unstored(const Resource& resource,
                     std::string key,
                     json::Value object,
                     Revision revision) const;

  Core& core_;
};

/// True when nothing holds the object back any more.
bool may_go(const json::Value& object);
/// base cut to 58 characters and five of the safe alphabet.
std::string generate_name(Env& env, std::string_view base);
/// The name a write in the cluster's own housekeeping is made under.
inline constexpr std::string_view kOwnManager = "kube-controller-manager";

}  // namespace muster::apiserver
