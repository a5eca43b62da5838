#include "apiserver/housekeeping/protection.h"

#include <algorithm>

#include "apiserver/registry/finalizers.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

bool held(const json::Value& group) {
  return has_finalizer(group, kube::names::kubernetes::kPodGroupProtection);
}

}  // namespace

void GroupProtection::start() {
  for (const auto& [key, group] :
       core_.image.collection(kube::collections::kNativePodGroups).objects()) {
    if (kube::is_deleting(group->object) && held(group->object)) consider(key);
  }
}

void GroupProtection::observe(Collection& collection, const Change& change) {
  if (collection.storage() == kube::collections::kNativePodGroups) {
    if (change.deleted || !held(change.after->object)) {
      deleting_.erase(change.after->key);
    } else if (kube::is_deleting(change.after->object)) {
      consider(change.after->key);
    }
    return;
  }
  if (deleting_.empty() || collection.storage() != "pods") return;
  if (!change.deleted && !kube::pod_finished(change.after->object)) return;
  const std::string_view group =
      json::string_at(change.after->object, "spec", "schedulingGroup", "podGroupName");
  const std::string key = std::string(change.after->ns()) + "/" + std::string(group);
  if (deleting_.contains(key)) consider(key);
}

void GroupProtection::consider(std::string key) {
  deleting_.insert(key);
  const auto slash = key.find('/');
  const std::string ns = key.substr(0, slash), name = key.substr(slash + 1);
  bool used = false;
  core_.image.collection("pods").each_in(ns, [&](const StoredPtr& pod) {
    used =
        used || (json::string_at(pod->object, "spec", "schedulingGroup", "podGroupName") == name &&
                 !kube::pod_finished(pod->object));
  });
  if (!used) core_.env.spawn(release(key));
}

Task<void> GroupProtection::release(std::string key) {
  const Gate::Pass pass(core_.gate);
  const auto signal = core_.env.make_signal();
  const Gate::Sleeper sleeper(core_.gate, *signal);
  constexpr Duration kRetryMost = std::chrono::seconds(30);
  for (Duration delay = std::chrono::seconds(1); !core_.gate.closed();
       delay = std::min(delay * 2, kRetryMost)) {
    const StoredPtr group = core_.image.collection(kube::collections::kNativePodGroups).find(key);
    if (!group) co_return;
    const bool dropped =
        co_await drop_finalizer(core_,
                                core_.resources.by_storage(kube::collections::kNativePodGroups),
                                group,
                                std::string(kube::names::kubernetes::kPodGroupProtection));
    if (dropped) co_return;
    co_await signal->wait(delay);
  }
}

}  // namespace muster::apiserver
