#include "controllers/nodes/plan.h"

#include <algorithm>
#include <array>
#include <string>

#include "kube/meta.h"
#include "kube/names.h"

namespace muster::controllers::nodes {
namespace {

using json::at;

struct Wanted {
  std::string_view key, effect;
};

constexpr std::array<std::string_view, 6> kOurs = {kube::names::kubernetes::kNotReady,
                                                   kube::names::kubernetes::kUnreachable,
                                                   kube::names::kubernetes::kUnschedulable,
                                                   kube::names::kubernetes::kMemoryPressure,
                                                   kube::names::kubernetes::kDiskPressure,
                                                   kube::names::kubernetes::kPidPressure};

std::vector<Wanted> wanted_taints(const json::Value& node, std::string_view ready) {
  std::vector<Wanted> out;
  const auto pressed = [&](std::string_view type) {
    return json::string_at(kube::condition(node, type), "status") == "True";
  };
  if (pressed("MemoryPressure")) out.push_back({kOurs[3], "NoSchedule"});
  if (pressed("DiskPressure")) out.push_back({kOurs[4], "NoSchedule"});
  if (pressed("PIDPressure")) out.push_back({kOurs[5], "NoSchedule"});
  if (json::bool_at(node, "spec", "unschedulable")) out.push_back({kOurs[2], "NoSchedule"});
  if (ready == "False" || ready == "Unknown") {
    for (const std::string_view effect : {"NoSchedule", "NoExecute"})
      out.push_back({kOurs[ready == "False" ? 0 : 1], effect});
  }
  return out;
}

json::Value unknown_conditions(const json::Value& node, Time now) {
  json::Array out = json::array_at(node, "status", "conditions");
  for (auto& item : out) {
    const auto type = json::string_at(item, "type");
    if (type != "Ready" && type != "MemoryPressure" && type != "DiskPressure" &&
        type != "PIDPressure")
      continue;
    auto& object = item.as_object();
    object["status"] = "Unknown";
    object["reason"] = "NodeStatusUnknown";
    object["message"] = "Kubelet stopped posting node status.";
    object["lastTransitionTime"] = format_time(now);
  }
  return json::Object{{"status", json::Object{{"conditions", std::move(out)}}}};
}

bool tolerates(const json::Value& toleration, const json::Value& taint) {
  const auto effect = json::string_at(toleration, "effect");
  const auto key = json::string_at(toleration, "key");
  const bool exists = json::as_string(at(toleration, "operator"), "Equal") == "Exists";
  if (!effect.empty() && effect != json::string_at(taint, "effect")) return false;
  if (key.empty()) return exists;
  return key == json::string_at(taint, "key") &&
         (exists || json::string_at(toleration, "value") == json::string_at(taint, "value"));
}

}  // namespace

NodePlan plan_node(const json::Value& node, bool silent, Time now) {
  NodePlan plan;
  const auto& condition = kube::condition(node, "Ready");
  std::string ready(json::string_at(condition, "status"));
  if (ready.empty()) return plan;
  if (silent && ready != "Unknown") {
    plan.status = unknown_conditions(node, now);
    ready = "Unknown";
  }
  const auto wanted = wanted_taints(node, ready);
  json::Array taints;
  bool changed = false;
  for (const auto& taint : json::array_at(node, "spec", "taints")) {
    const auto key = json::string_at(taint, "key");
    const auto effect = json::string_at(taint, "effect");
    const bool ours = std::find(kOurs.begin(), kOurs.end(), key) != kOurs.end();
    const bool stays = !ours || std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& one) {
      return one.key == key && one.effect == effect;
    });
    stays ? taints.push_back(taint) : void(changed = true);
  }
  for (const auto& one : wanted) {
    const bool there = std::any_of(taints.begin(), taints.end(), [&](const json::Value& taint) {
      return json::string_at(taint, "key") == one.key &&
             json::string_at(taint, "effect") == one.effect;
    });
    if (there) continue;
    changed = true;
    taints.push_back(
        json::Object{{"key", one.key}, {"effect", one.effect}, {"timeAdded", format_time(now)}});
  }
  if (changed)
    plan.spec = json::Object{
        {"spec",
         json::Object{
             {"taints", taints.empty() ? json::Value() : json::Value(std::move(taints))}}}};
  return plan;
}

std::optional<Time> eviction_time(const json::Value& node, const json::Value& pod, Time now) {
  std::optional<Time> soonest;
  for (const auto& taint : json::array_at(node, "spec", "taints")) {
    if (json::string_at(taint, "effect") != "NoExecute") continue;
    const auto added = parse_time(json::string_at(taint, "timeAdded"));
    bool tolerated = false;
    std::optional<std::int64_t> seconds;
    for (const auto& toleration : json::array_at(pod, "spec", "tolerations")) {
      if (!tolerates(toleration, taint)) continue;
      tolerated = true;
      if (const auto& limit = at(toleration, "tolerationSeconds"); !limit.is_null())
        seconds = std::min(seconds.value_or(json::as_int(limit)), json::as_int(limit));
    }
    if (tolerated && !seconds) continue;
    const auto end = tolerated ? (added ? *added : now) +
                                     std::chrono::seconds(std::max<std::int64_t>(0, *seconds))
                               : now;
    soonest = soonest ? std::min(*soonest, end) : end;
  }
  return soonest;
}

}  // namespace muster::controllers::nodes
