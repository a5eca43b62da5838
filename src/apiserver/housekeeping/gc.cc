#include "apiserver/housekeeping/gc.h"

#include <algorithm>

#include "apiserver/registry/finalizers.h"
#include "apiserver/registry/writer.h"
#include "base/log.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

/// Whether a write was made, or there is nothing left to write.
template <typename T>
bool ended(const std::string& what, const Result<T>& done) {
  if (done || done.error().code == Code::kNotFound || done.error().code == Code::kConflict)
    return true;
  log::warn("apiserver", "gc of {}: {}", what, done.error().message);
  return false;
}

constexpr std::size_t kGoneMax = 10'000;

/// Whether the object may have a member of this name; false: it has none.
bool says(const Stored& stored, std::string_view name) {
  const Bytes text = stored.object.find_text();
  return !text || text->find(name) != std::string::npos;
}

}  // namespace

void GarbageCollector::index(const Ref& ref, const json::Value& object, bool present) {
  for (const json::Value& owner : json::array_at(object, "metadata", "ownerReferences")) {
    const std::string owner_uid = json::text_at(owner, "uid");
    if (present) {
      dependents_[owner_uid].insert(ref);
    } else if (const auto found = dependents_.find(owner_uid); found != dependents_.end()) {
      found->second.erase(ref);
      if (found->second.empty()) dependents_.erase(found);
    }
  }
}

void GarbageCollector::enqueue(Ref ref) {
  if (!queued_.insert(ref).second) return;
  queue_.push_back(std::move(ref));
  if (wake_) wake_->notify();
}

void GarbageCollector::observe(Collection& collection, const Change& change) {
  if (collection.storage() == "events") return;  // they own nothing and nothing owns them
  const json::Value& after = change.after->object;
  const auto owners = [](const json::Value& object) -> const json::Value& {
    return json::at(object, "metadata", "ownerReferences");
  };
  const bool owners_changed =
      !change.before || !json::equal(owners(change.before->object), owners(after));
  // Nearly every change: the same object with the same owners, and here to stay.
  if (!owners_changed && !change.deleted && !kube::is_deleting(after) &&
      kube::uid_of(change.before->object) == kube::uid_of(after))
    return;
  const Ref ref{collection.storage(), change.after->key};
  if (change.before) index(ref, change.before->object, false);
  if (change.deleted) {
    const std::string uid(kube::uid_of(after));
    if (const auto found = dependents_.find(uid); found != dependents_.end()) {
      for (const Ref& dependent : found->second) enqueue(dependent);
      if (gone_.insert(uid).second) gone_order_.push_back(uid);
      if (gone_order_.size() > kGoneMax) {
        gone_.erase(gone_order_.front());
        gone_order_.pop_front();
      }
    }
    // Owners that wait in the foreground for this one look again.
    for (const kube::OwnerReference& owner : kube::owners_of(after)) {
      if (Owner found = find_owner(owner, change.after->ns()); found.live)
        enqueue(std::move(found.ref));
    }
    return;
  }
  index(ref, after, true);
  const bool deleting = kube::is_deleting(after);
  const bool owned = !json::as_array(owners(after)).empty();
  const bool ours =
      deleting && (has_finalizer(after, kube::names::kubernetes::kForegroundDeletion) ||
                   has_finalizer(after, kube::names::kubernetes::kOrphan));
  if (ours || (owned && owners_changed)) enqueue(ref);
}

void GarbageCollector::start() {
  for (const auto& [storage, collection] : core_.image.collections()) {
    if (storage == "events") continue;
    for (const auto& [key, stored] : collection->objects()) {
      // Most objects have no owner and stay: their text tells, and needs not be read.
      if (!says(*stored, "ownerReferences") && !says(*stored, "deletionTimestamp")) continue;
      const Ref ref{storage, key};
      index(ref, stored->object, true);
      const bool owned = !json::array_at(stored->object, "metadata", "ownerReferences").empty();
      if (owned || kube::is_deleting(stored->object)) enqueue(ref);
    }
  }
  wake_ = core_.env.make_signal();
  core_.env.spawn(work());
}

StoredPtr GarbageCollector::find(const Ref& ref) {
  return core_.image.collection(ref.storage).find(ref.key);
}

GarbageCollector::Owner GarbageCollector::find_owner(const kube::OwnerReference& owner,
                                                     std::string_view ns) const {
  const auto slash = owner.api_version.find('/');
  const bool core_group = slash == std::string::npos;
  const kube::Gvk gvk{core_group ? "" : owner.api_version.substr(0, slash),
                      core_group ? owner.api_version : owner.api_version.substr(slash + 1),
                      owner.kind};
  ResourcePtr resource = core_.resources.find_kind(gvk);
  if (!resource || !resource->stored) {
    // A version that is not served any more: the objects are there still.
    for (const ResourcePtr& each : core_.resources.stored()) {
      if (each->info.group == gvk.group && each->info.kind == gvk.kind) resource = each;
    }
  }
  if (!resource) return {.ref = {}, .live = nullptr, .known = false};
  // An owner in another namespace does not count: it cannot be what was meant.
  Ref ref{resource->storage, resource->key(ns, owner.name)};
  StoredPtr live = core_.image.collection(ref.storage).find(ref.key);
  if (!live || kube::uid_of(live->object) != owner.uid) return {};
  return {std::move(ref), std::move(live)};
}

Task<void> GarbageCollector::work() {
  const Gate::Pass pass(core_.gate);
  const Gate::Sleeper sleeper(core_.gate, *wake_);
  while (!core_.gate.closed()) {
    if (queue_.empty()) {
      co_await wake_->wait(Duration::zero());
      continue;
    }
    // A batch runs concurrently so that its deletions share commits.
    constexpr std::size_t kBatch = 64;
    std::vector<Ref> batch;
    while (!queue_.empty() && batch.size() < kBatch) {
      batch.push_back(std::move(queue_.front()));
      queue_.pop_front();
      queued_.erase(batch.back());
    }
    if (batch.size() == 1) {
      co_await visit(batch.front());
      continue;
    }
    const auto left = std::make_shared<std::size_t>(batch.size());
    const std::shared_ptr<Signal> done = core_.env.make_signal();
    for (const Ref& ref : batch) {
      core_.env.spawn([](GarbageCollector* self,
                         Ref each,
                         std::shared_ptr<std::size_t> count,
                         std::shared_ptr<Signal> signal) -> Task<void> {
        const Gate::Pass inner(self->core_.gate);
        co_await self->visit(std::move(each));
        if (--*count == 0) signal->notify();
      }(this, ref, left, done));
    }
    co_await done->wait(Duration::zero());
  }
}

Task<void> GarbageCollector::visit(Ref ref) {
  const StoredPtr stored = find(ref);
  if (!stored) co_return;
  const ResourcePtr resource = core_.resources.by_storage(ref.storage);
  if (!resource) co_return;
  bool done = true;
  if (!kube::is_deleting(stored->object)) {
    done = co_await collect_absent_owners(ref, stored, resource);
  } else {
    if (has_finalizer(stored->object, kube::names::kubernetes::kForegroundDeletion))
      done = co_await foreground(stored, resource);
    if (has_finalizer(stored->object, kube::names::kubernetes::kOrphan)) {
      const bool orphaned = co_await orphan(stored, resource);
      done = done && orphaned;
    }
  }
  if (done)
    retry_delay_ = kRetryFirst;
  else
    try_again(ref);
}

void GarbageCollector::try_again(const Ref& ref) {
  failed_.insert(ref);
  if (retry_timer_) return;
  retry_timer_ = core_.env.after(retry_delay_, [this] {
    retry_timer_.reset();
    retry_delay_ = std::min(retry_delay_ * 2, kRetryMost);
    for (const Ref& each : std::exchange(failed_, {})) enqueue(each);
  });
}

Task<bool> GarbageCollector::collect_absent_owners(const Ref& ref,
                                                   const StoredPtr& stored,
                                                   const ResourcePtr& resource) {
  const auto owners = kube::owners_of(stored->object);
  if (owners.empty()) co_return true;
  std::vector<std::string> absent;
  std::size_t waiting = 0;
  for (const kube::OwnerReference& owner : owners) {
    const Owner found = find_owner(owner, stored->ns());
    // Of a kind that this server does not have nobody knows, as in Kubernetes: what it owns stays.
    if (!found.live && (found.known || gone_.contains(owner.uid))) {
      absent.push_back(owner.uid);
    } else if (found.live && kube::is_deleting(found.live->object) &&
               has_finalizer(found.live->object, kube::names::kubernetes::kForegroundDeletion)) {
      ++waiting;
    }
  }
  if (absent.empty() && waiting < owners.size()) co_return true;
  if (absent.size() + waiting < owners.size()) {
    // Some owner lives on: only the dangling references go.
    WriteOptions options;
    options.subresource = "internal";
    const auto trimmed = co_await core_.writer->update(
        resource,
        std::string(stored->ns()),
        std::string(stored->name()),
        [&absent](const json::Value& live) -> Result<json::Value> {
          json::Value next = live;
          json::Array kept;
          for (const json::Value& owner : json::array_at(live, "metadata", "ownerReferences")) {
            if (std::find(absent.begin(), absent.end(), json::string_at(owner, "uid")) ==
                absent.end())
              kept.push_back(owner);
          }
          json::make(next, {"metadata", "ownerReferences"}) = std::move(kept);
          return next;
        },
        options);
    co_return ended(ref.storage + "/" + ref.key, trimmed);
  }
  DeleteRequest request;
  request.uid = std::string(kube::uid_of(stored->object));
  const bool has_dependents = dependents_.contains(request.uid);
  request.propagation = waiting > 0 && has_dependents ? "Foreground" : "Background";
  const auto removed = co_await core_.writer->remove(
      resource, std::string(stored->ns()), std::string(stored->name()), request);
  co_return ended(ref.storage + "/" + ref.key, removed);
}

Task<bool> GarbageCollector::foreground(const StoredPtr& stored, const ResourcePtr& resource) {
  const std::string uid(kube::uid_of(stored->object));
  std::set<Ref> dependents;
  if (const auto found = dependents_.find(uid); found != dependents_.end())
    dependents = found->second;
  bool blocked = false;
  for (const Ref& dependent : dependents) {
    const StoredPtr live = find(dependent);
    if (!live) continue;
    for (const kube::OwnerReference& owner : kube::owners_of(live->object)) {
      if (owner.uid == uid && owner.block_owner_deletion) blocked = true;
    }
    if (!kube::is_deleting(live->object)) enqueue(dependent);
  }
  if (blocked) co_return true;
  const bool dropped = co_await drop_finalizer(
      core_, resource, stored, std::string(kube::names::kubernetes::kForegroundDeletion));
  co_return dropped;
}

Task<bool> GarbageCollector::orphan(const StoredPtr& stored, const ResourcePtr& resource) {
  const std::string uid(kube::uid_of(stored->object));
  std::set<Ref> dependents;
  if (const auto found = dependents_.find(uid); found != dependents_.end())
    dependents = found->second;
  for (const Ref& dependent : dependents) {
    const StoredPtr live = find(dependent);
    const ResourcePtr kind = core_.resources.by_storage(dependent.storage);
    if (!live || !kind) continue;
    WriteOptions options;
    options.subresource = "internal";
    const auto stripped = co_await core_.writer->update(
        kind,
        std::string(live->ns()),
        std::string(live->name()),
        [&uid](const json::Value& object) -> Result<json::Value> {
          json::Value next = object;
          json::Array kept;
          for (const json::Value& owner : json::array_at(object, "metadata", "ownerReferences")) {
            if (json::string_at(owner, "uid") != uid) kept.push_back(owner);
          }
          if (kept.empty()) {
            json::remove(next, {"metadata", "ownerReferences"});
          } else {
            json::make(next, {"metadata", "ownerReferences"}) = std::move(kept);
          }
          return next;
        },
        options);
    // With a reference left it would be taken for garbage once its owner is gone.
    if (!ended(dependent.key, stripped)) co_return false;
  }
  const bool dropped = co_await drop_finalizer(
      core_, resource, stored, std::string(kube::names::kubernetes::kOrphan));
  co_return dropped;
}

}  // namespace muster::apiserver
