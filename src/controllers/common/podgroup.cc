#include "controllers/common/podgroup.h"

#include <algorithm>
#include <map>

#include "base/quantity.h"
#include "controllers/common/objects.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers {
namespace {

using Sum = std::map<std::string, Quantity>;

void add(Sum& sum, const json::Value& resources, int times, const json::Value* skip = nullptr) {
  for (const auto& [name, amount] : json::as_object(resources)) {
    if (skip != nullptr && json::as_object(*skip).contains(name)) continue;
    const auto text =
        amount.is_string() ? std::string(json::as_string(amount)) : json::dump(amount);
    const auto quantity = parse_quantity(text);
    if (!quantity) continue;
    const std::string key(std::string_view(name.data(), name.size()));
    auto& total = sum.try_emplace(key, *quantity - *quantity).first->second;
    for (int i = 0; i < times; ++i) total = total + *quantity;
  }
}

json::Value to_json(const Sum& sum) {
  json::Object object;
  for (const auto& [name, quantity] : sum) object[name] = quantity.text();
  return object;
}

struct Ranked {
  const ReplicaSpec* replica;
  std::int64_t priority;
  std::size_t position;
};

/// Highest priority first; equal ones stay in the order given, which has the master or launcher
/// first.
std::vector<Ranked> by_priority(const std::vector<ReplicaSpec>& replicas, const View& view) {
  std::vector<Ranked> ranked;
  for (const auto& replica : replicas) {
    const auto name = json::string_at(*replica.pod_template, "spec", "priorityClassName");
    ranked.push_back(
        {&replica, name.empty() ? 0 : view.priority_of(name).value_or(0), ranked.size()});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.position < b.position;
  });
  return ranked;
}

}  // namespace

std::string_view podgroup_kind(Gang gang) {
  return gang == Gang::kVolcano ? kinds::kVolcanoPodGroup : kinds::kPluginsPodGroup;
}

json::Value min_resources(const std::vector<ReplicaSpec>& replicas,
                          int min_member,
                          const View& view) {
  Sum sum;
  int left = min_member;
  for (const auto& ranked : by_priority(replicas, view)) {
    const int taken = std::min(left, ranked.replica->replicas);
    if (taken <= 0) continue;
    left -= taken;
    for (const auto& container :
         json::array_at(*ranked.replica->pod_template, "spec", "containers")) {
      const auto& requests = json::at(container, "resources", "requests");
      add(sum,
          json::as_object(requests).empty() ? json::at(container, "resources", "limits") : requests,
          taken);
    }
  }
  return to_json(sum);
}

json::Value min_resources_merged(const std::vector<ReplicaSpec>& replicas,
                                 int min_member,
                                 const View& view) {
  if (min_member == 0) return nullptr;
  auto ranked = by_priority(replicas, view);
  int total = 0;
  for (const auto& entry : ranked) total += entry.replica->replicas;
  if (ranked.size() == 2 && ranked[0].priority == ranked[1].priority &&
      ranked[0].replica->type == "Worker")
    std::swap(ranked[0], ranked[1]);
  Sum sum;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const bool cut = i + 1 == ranked.size() && ranked.size() > 1 && total > min_member;
    const int times = cut ? std::max(0, min_member - 1) : ranked[i].replica->replicas;
    for (const auto& container :
         json::array_at(*ranked[i].replica->pod_template, "spec", "containers")) {
      const auto& requests = json::at(container, "resources", "requests");
      add(sum, requests, times);
      add(sum, json::at(container, "resources", "limits"), times, &requests);
    }
  }
  return to_json(sum);
}

void sync_podgroup(Plan& plan,
                   const json::Value& job,
                   const PodGroupSpec& spec,
                   const json::Value& annotations,
                   const View& view,
                   Gang gang) {
  const auto kind = podgroup_kind(gang);
  json::Object wanted{{"minMember", spec.min_member}};
  if (gang == Gang::kVolcano) {
    if (!spec.queue.empty()) wanted["queue"] = spec.queue;
    if (!spec.priority_class.empty()) wanted["priorityClassName"] = spec.priority_class;
  } else if (!spec.timeout_s.is_null()) {
    wanted["scheduleTimeoutSeconds"] = spec.timeout_s;
  }
  if (!spec.min_resources.is_null()) wanted["minResources"] = spec.min_resources;

  const auto* found = view.find(kind, name_of(job));
  if (found == nullptr) {
    auto group = make_child(job,
                            (gang == Gang::kVolcano ? kube::resources::kPodGroups
                                                    : kube::resources::kSchedulerPluginsPodGroups)
                                .api_version(),
                            "PodGroup",
                            name_of(job));
    for (const auto& [key, value] : json::as_object(annotations)) {
      // kubectl's record of the manifest it applied is about the job, not about the group.
      if (key == kube::names::kubernetes::kLastApplied) continue;
      json::make_object(group, {"metadata", "annotations"})[key] = value;
    }
    group.as_object()["spec"] = std::move(wanted);
    plan.actions.push_back(create(kind, std::move(group)));
    return;
  }
  const auto& current = json::at(*found, "spec");
  json::Object changes;
  for (const std::string_view key :
       {"minMember", "queue", "priorityClassName", "scheduleTimeoutSeconds"}) {
    const auto& now = json::at(current, key);
    const auto* want = wanted.if_contains(key);
    if (want != nullptr && !json::equal(now, *want)) changes[key] = *want;
    // A queue that somebody else chose for the group stays: only what was ours is taken back.
    if (want == nullptr && !now.is_null() && key != "queue" && gang == Gang::kVolcano)
      changes[key] = nullptr;
  }
  const auto* want_resources = wanted.if_contains("minResources");
  const auto& now_resources = json::at(current, "minResources");
  if (want_resources != nullptr && !json::equal(now_resources, *want_resources)) {
    changes["minResources"] = map_patch(now_resources, *want_resources);
  } else if (want_resources == nullptr && !now_resources.is_null()) {
    changes["minResources"] = nullptr;
  }
  if (!changes.empty())
    plan.actions.push_back(patch(kind, name_of(job), json::Object{{"spec", std::move(changes)}}));
}

bool pods_must_wait(const json::Value& job, const View& view, Gang gang) {
  if (gang != Gang::kVolcano) return false;
  const auto* group = view.find(kinds::kVolcanoPodGroup, name_of(job));
  if (group == nullptr) return true;
  const auto phase = json::string_at(*group, "status", "phase");
  return phase.empty() || phase == "Pending";
}

}  // namespace muster::controllers
