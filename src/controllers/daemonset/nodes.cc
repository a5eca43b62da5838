#include "controllers/daemonset/nodes.h"

#include <algorithm>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "kube/names.h"

namespace muster::controllers::daemonset {
namespace {

bool tolerates(const json::Value& toleration, const json::Value& taint) {
  const auto effect = json::string_at(toleration, "effect");
  if (!effect.empty() && effect != json::string_at(taint, "effect")) return false;
  const auto key = json::string_at(toleration, "key");
  if (!key.empty() && key != json::string_at(taint, "key")) return false;
  if (json::string_at(toleration, "operator") == "Exists") return true;
  return !key.empty() && json::string_at(toleration, "value") == json::string_at(taint, "value");
}

bool tolerated(const json::Value& pod_spec, const json::Value& node, bool no_execute_only) {
  for (const auto& taint : json::array_at(node, "spec", "taints")) {
    const auto effect = json::string_at(taint, "effect");
    if (effect == "PreferNoSchedule" || (no_execute_only && effect != "NoExecute")) continue;
    const auto& tolerations = json::array_at(pod_spec, "tolerations");
    if (std::none_of(tolerations.begin(), tolerations.end(), [&](const auto& each) {
          return tolerates(each, taint);
        }))
      return false;
  }
  return true;
}

bool holds(const json::Value& requirement, const json::Value& labels) {
  const auto key = json::string_at(requirement, "key"),
             op = json::string_at(requirement, "operator");
  const auto& found = json::at(labels, key);
  const auto& values = json::array_at(requirement, "values");
  const bool listed =
      found.is_string() && std::any_of(values.begin(), values.end(), [&](const auto& each) {
        return json::as_string(each) == json::as_string(found);
      });
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return found.is_string();
  if (op == "DoesNotExist") return !found.is_string();
  const auto have = parse_int(json::as_string(found));
  const auto want = values.empty() ? std::nullopt : parse_int(json::as_string(values[0]));
  if (!have || !want) return false;
  return op == "Gt" ? *have > *want : op == "Lt" && *have < *want;
}

bool term_holds(const json::Value& term, const json::Value& node) {
  const json::Value fields = json::Object{{"metadata.name", name_of(node)}};
  const auto& by_label = json::array_at(term, "matchExpressions");
  const auto& by_field = json::array_at(term, "matchFields");
  if (by_label.empty() && by_field.empty()) return false;
  return std::all_of(
             by_label.begin(),
             by_label.end(),
             [&](const auto& each) { return holds(each, json::at(node, "metadata", "labels")); }) &&
         std::all_of(by_field.begin(), by_field.end(), [&](const auto& each) {
           return holds(each, fields);
         });
}

bool wanted_here(const json::Value& pod_spec, const json::Value& node) {
  if (const auto name = json::string_at(pod_spec, "nodeName");
      !name.empty() && name != name_of(node))
    return false;
  for (const auto& [key, value] : json::object_at(pod_spec, "nodeSelector")) {
    if (label_of(node, key) != json::as_string(value) ||
        !json::at(node, "metadata", "labels", std::string_view(key)).is_string())
      return false;
  }
  const auto& required = json::at(
      pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  if (!required.is_object()) return true;
  const auto& terms = json::array_at(required, "nodeSelectorTerms");
  return std::any_of(
      terms.begin(), terms.end(), [&](const auto& term) { return term_holds(term, node); });
}

}  // namespace

Verdict judge(const json::Value& pod_spec, const json::Value& node) {
  if (!wanted_here(pod_spec, node)) return {};
  return {tolerated(pod_spec, node, false), tolerated(pod_spec, node, true)};
}

void add_tolerations(json::Value& pod) {
  struct Taint {
    std::string_view key, effect;
  };
  static constexpr Taint kTaints[] = {{kube::names::kubernetes::kNotReady, "NoExecute"},
                                      {kube::names::kubernetes::kUnreachable, "NoExecute"},
                                      {kube::names::kubernetes::kDiskPressure, "NoSchedule"},
                                      {kube::names::kubernetes::kMemoryPressure, "NoSchedule"},
                                      {kube::names::kubernetes::kPidPressure, "NoSchedule"},
                                      {kube::names::kubernetes::kUnschedulable, "NoSchedule"},
                                      {kube::names::kubernetes::kNetworkUnavailable, "NoSchedule"}};
  const bool host = json::bool_at(pod, "spec", "hostNetwork");
  auto& list = array_at(pod, {"spec", "tolerations"});
  for (const auto& taint : kTaints) {
    if (taint.key.ends_with("network-unavailable") && !host) continue;
    json::Value wanted =
        json::Object{{"key", taint.key}, {"operator", "Exists"}, {"effect", taint.effect}};
    if (std::none_of(
            list.begin(), list.end(), [&](const auto& each) { return json::equal(each, wanted); }))
      list.push_back(std::move(wanted));
  }
}

}  // namespace muster::controllers::daemonset
