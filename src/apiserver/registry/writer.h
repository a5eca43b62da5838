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
  /// An update on its way from what was asked for to what is stored.
  struct Draft {
    const Resource& resource;
    const json::Value& live;
    const WriteOptions& options;
    Time now;
    json::Value next;
    bool status_alone = false;
    /// Who owns which fields is noted when the object is on its way to the disk.
    bool track_later = false;
    bool changed = true;  // differs from the live object in more than its managers
  };
  /// The steps that need the draft alone, in their order; they may run on a worker.
  static Result<void> begin_update(Draft& draft);
  static void prepare(Draft& draft);
  static Result<void> finish_update(Draft& draft);
  static bool tracks(const Draft& draft);
  /// What is left to be done of it on the store's thread; null: nothing.
  static Image::Finish tracking(ResourcePtr resource, kube::ObjectPtr live, const Draft& draft);
  void admit(Draft& draft) const;
  Result<void> apply_rules(const Draft& draft) const;
  /// All steps of an update, with what admission and addresses are to it in between; beside the loop
  /// as far as they can be.
  Result<void> make_update(Draft& draft) const;
  Task<Result<void>> make_update_beside(Draft& draft) const;
  /// What a dry run answers with.
  Task<StoredPtr> unstored(const Resource& resource,
                           std::string key,
                           json::Value object,
                           Revision revision,
                           const WriteOptions& options);

  Core& core_;
};

/// True when nothing holds the object back any more.
bool may_go(const json::Value& object);
/// base cut to 58 characters and five of the safe alphabet.
std::string generate_name(Env& env, std::string_view base);
/// The name a write in the cluster's own housekeeping is made under.
inline constexpr std::string_view kOwnManager = "kube-controller-manager";

}  // namespace muster::apiserver
