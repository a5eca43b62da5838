/// The garbage collector: objects whose owners are gone go too, owners deleted in the foreground
/// wait for their dependents, and orphaning strips owner references.
///
/// It works from an index kept up to date with each published change, owner uid -> dependents, so a
/// deletion costs work in proportion to its dependents. Owners are found by what references say of
/// them and told by their uid.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "apiserver/core.h"
#include "kube/meta.h"

namespace muster::apiserver {

class GarbageCollector {
 public:
  explicit GarbageCollector(Core& core) : core_(core) {}

  void observe(Collection& collection, const Change& change);
  /// Builds the indexes from the loaded image and starts the worker.
  void start();

 private:
  struct Ref {
    std::string storage, key;
    auto operator<=>(const Ref&) const = default;
  };
  static constexpr Duration kRetryFirst = std::chrono::seconds(1);
  static constexpr Duration kRetryMost = std::chrono::seconds(30);

  /// Notes whose dependent it is.
  void index(const Ref& ref, const json::Value& object, bool present);
  void enqueue(Ref ref);
  Task<void> work();
  Task<void> visit(Ref ref);
  /// False: a write failed, and is worth another try.
  Task<bool> collect_absent_owners(const Ref& ref,
                                   const StoredPtr& stored,
                                   const ResourcePtr& resource);
  Task<bool> foreground(const StoredPtr& stored, const ResourcePtr& resource);
  Task<bool> orphan(const StoredPtr& stored, const ResourcePtr& resource);
  /// With back-off: no change may ever lead here again.
  void try_again(const Ref& ref);
  [[nodiscard]] StoredPtr find(const Ref& ref);
  /// What a reference of an object of this namespace means.
  struct Owner {
    Ref ref;
    StoredPtr live;     // null: there is no such object
    bool known = true;  // false: there is no such kind, so nobody can tell
  };
  [[nodiscard]] Owner find_owner(const kube::OwnerReference& owner, std::string_view ns) const;

  Core& core_;
  std::unordered_map<std::string, std::set<Ref>> dependents_;
  /// Owners whose deletion was seen, the last so many: their kind may be gone as well.
  std::set<std::string> gone_;
  std::deque<std::string> gone_order_;
  std::deque<Ref> queue_;
  std::set<Ref> queued_;
  std::unique_ptr<Signal> wake_;
  std::set<Ref> failed_;
  Duration retry_delay_ = kRetryFirst;
  std::unique_ptr<Timer> retry_timer_;
};

}  // namespace muster::apiserver
