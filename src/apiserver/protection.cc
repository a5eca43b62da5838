#include "apiserver/protection.h"

#include <algorithm>

#include "apiserver/writer.h"
#include "base/log.h"
#include "kube/meta.h"
#include "kube/pod.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kGroups = "podgroups.scheduling.k8s.io";

bool held(const json::Value& group) {
  const json::Array& all = json::as_array(json::at(group, "metadata", "finalizers"));
  return std::any_of(all.begin(), all.end(), [](const json::Value& each) { return json::as_string(each) == kGroupFinalizer; });
}

}  // namespace

void GroupProtection::start() {
  for (const auto& [key, group] : core_.image.collection(kGroups).objects()) {
    if (kube::is_deleting(group->object) && held(group->object)) consider(key);
  }
}

void GroupProtection::observe(Collection& collection, const Change& change) {
  if (collection.storage() == kGroups) {
    if (change.deleted || !held(change.after->object)) {
      deleting_.erase(change.after->key);
    } else if (kube::is_deleting(change.after->object)) {
      consider(change.after->key);
    }
    return;
  }
  if (deleting_.empty() || collection.storage() != "pods") return;
  if (!change.deleted && !kube::pod_finished(change.after->object)) return;
  const std::string_view group = json::as_string(json::at(change.after->object, "spec", "schedulingGroup", "podGroupName"));
  const std::string key = std::string(change.after->ns()) + "/" + std::string(group);
  if (deleting_.contains(key)) consider(key);
}

void GroupProtection::consider(std::string key) {
  deleting_.insert(key);
  const auto slash = key.find('/');
  const std::string ns = key.substr(0, slash), name = key.substr(slash + 1);
  bool used = false;
  core_.image.collection("pods").each_in(ns, [&](const StoredPtr& pod) {
    used = used || (json::as_string(json::at(pod->object, "spec", "schedulingGroup", "podGroupName")) == name && !kube::pod_finished(pod->object));
  });
  if (!used) core_.env.spawn(release(ns, name));
}

Task<void> GroupProtection::release(std::string ns, std::string name) {
  const TaskGuard guard(core_);
  WriteOptions options;
  options.subresource = "internal";
  const ResourcePtr resource = core_.resources.get("scheduling.k8s.io", "v1beta1", "podgroups");
  const auto done = co_await core_.writer->update(
      resource, ns, name,
      [](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        json::Array kept;
        for (const json::Value& each : json::as_array(json::at(live, "metadata", "finalizers"))) {
          if (json::as_string(each) != kGroupFinalizer) kept.push_back(each);
        }
        if (kept.empty()) {
          json::remove(next, {"metadata", "finalizers"});
        } else {
          json::make(next, {"metadata", "finalizers"}) = std::move(kept);
        }
        return next;
      },
      options);
  if (!done && done.error().code != Code::kNotFound) log::warn("apiserver", "pod group {}/{}: {}", ns, name, done.error().message);
}

}  // namespace muster::apiserver
