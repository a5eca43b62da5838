#include "controllers/podgc/controller.h"

#include "base/log.h"
#include "controllers/common/objects.h"
#include "controllers/podgc/plan.h"

namespace muster::controllers::podgc {
namespace {

/// A node that is made again under its name keeps its pods.
constexpr Duration kQuarantine = std::chrono::seconds(10);

std::string node_of(const json::Value& pod) { return json::text_at(pod, "spec", "nodeName"); }

}  // namespace

Controller::Controller(Env& env, client::Client& client, Caches& caches)
    : env_(env), client_(client), caches_(caches) {
  queue_ = client::make_work_queue(
      env, [this](std::string key) { return work(std::move(key)); }, client::WorkQueueOptions{});
  caches_.on_change(kinds::kNode, [this](const auto& old_object, const auto& new_object) {
    // Only a node that goes, or comes back in time, is news here.
    if (!old_object || !new_object) queue_->add(name_of(new_object ? *new_object : *old_object));
  });
  caches_.on_change(kinds::kPod, [this](const auto& old_object, const auto& new_object) {
    pod_changed(old_object, new_object);
  });
}

void Controller::pod_changed(const client::ObjectPtr& old_object,
                             const client::ObjectPtr& new_object) {
  const auto before = old_object ? node_of(*old_object) : "";
  const auto after = new_object ? node_of(*new_object) : "";
  if (new_object && is_lost(*new_object) && !(old_object && is_lost(*old_object)))
    queue_->add(after);
  if (before == after) return;
  const auto key = client::key_of(new_object ? *new_object : *old_object);
  if (!before.empty()) {
    auto& on_node = pods_[before];
    on_node.erase(key);
    if (on_node.empty()) pods_.erase(before);
  }
  if (after.empty()) return;
  pods_[after].insert(key);
  if (!caches_.find(kinds::kNode, after)) queue_->add(after);
}

Task<Result<void>> Controller::work(std::string name) {
  const auto found = pods_.find(name);
  const bool there = caches_.find(kinds::kNode, name) != nullptr;
  if (there || found == pods_.end()) missing_.erase(name);
  if (found == pods_.end()) co_return Result<void>{};
  if (!there) {
    const auto since = missing_.try_emplace(name, env_.now()).first->second;
    if (const auto due = since + kQuarantine; env_.now() < due) {
      queue_->add_after(name, due - env_.now());
      co_return Result<void>{};
    }
  }
  const auto keys = found->second;
  for (const auto& key : keys) {
    // While the others went, the node may have come back, and the pod may be another one.
    const auto pod = caches_.find(kinds::kPod, key);
    const bool back = caches_.find(kinds::kNode, name) != nullptr;
    if (!pod || !goes_with(*pod, name, back)) continue;
    log::info("controllers", "node {} is gone: deleting pod {}", name, key);
    const auto gone = co_await remove(pod);
    if (!gone) co_return gone;
  }
  co_return Result<void>{};
}

Task<Result<void>> Controller::remove(client::ObjectPtr pod) {
  const auto ns = namespace_of(*pod), name = name_of(*pod);
  if (!is_lost(*pod)) {
    const auto patched = co_await client_.patch(client::resources::kPods,
                                                ns,
                                                name,
                                                "status",
                                                client::PatchType::kMerge,
                                                lost_status(*pod, env_.now()));
    // Gone, or another one of its name by now.
    if (!patched &&
        (patched.error().code == Code::kNotFound || patched.error().code == Code::kConflict))
      co_return Result<void>{};
    if (!patched) co_return fail(patched.error());
  }
  client::DeleteOptions options;
  options.uid = uid_of(*pod);
  options.grace_s = 0;
  const auto removed = co_await client_.remove(client::resources::kPods, ns, name, options);
  if (!removed && removed.error().code != Code::kNotFound &&
      removed.error().code != Code::kConflict)
    co_return removed;
  co_return Result<void>{};
}

}  // namespace muster::controllers::podgc
