#include "scheduler/reports.h"

#include <fmt/core.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "json/text.h"
#include "kube/names.h"
#include "scheduler/translate.h"

namespace muster::scheduler {

std::string wait_message(const engine::Refusal& refusal, bool pod_in_group) {
  // A pod by itself reads exactly as kube-scheduler writes it; a gang's story starts with what the
  // gang lacks.
  const bool nodes =
      refusal.reason == engine::Reason::kNoNodeFits || refusal.reason == engine::Reason::kNeverFits;
  std::string message;
  if (nodes && !pod_in_group)
    message = engine::node_message(refusal);
  else
    message = engine::describe(refusal);
  if (nodes && pod_in_group) {
    const std::string counts = engine::node_message(refusal);
    if (message.find(counts) == std::string::npos) message += ". " + counts;
  }
  // Events and conditions hold 1 KiB.
  if (message.size() > 1024) message.resize(1024);
  return message;
}

json::Value unschedulable_patch(const engine::Refusal& refusal,
                                std::string_view message,
                                std::int64_t generation,
                                Time now) {
  json::Object condition;
  condition["type"] = "PodScheduled";
  condition["status"] = "False";
  condition["reason"] =
      refusal.reason == engine::Reason::kInvalidGroup ? "SchedulerError" : "Unschedulable";
  condition["message"] = message;
  condition["lastProbeTime"] = nullptr;
  condition["lastTransitionTime"] = format_time(now);
  if (generation > 0) condition["observedGeneration"] = generation;
  json::Value patch = json::Object{};
  json::make(patch, {"status", "conditions"}) = json::Array{std::move(condition)};
  return patch;
}

json::Value disruption_patch(std::string_view scheduler, Time now) {
  json::Object condition;
  condition["type"] = "DisruptionTarget";
  condition["status"] = "True";
  condition["reason"] = "PreemptionByScheduler";
  condition["message"] =
      fmt::format("{}: preempting to accommodate a higher priority pod", scheduler);
  condition["lastTransitionTime"] = format_time(now);
  json::Value patch = json::Object{};
  json::make(patch, {"status", "conditions"}) = json::Array{std::move(condition)};
  return patch;
}

json::Value spared_patch() {
  json::Value patch = json::Object{};
  json::make(patch, {"status", "conditions"}) =
      json::Array{json::Object{{"$patch", "delete"}, {"type", "DisruptionTarget"}}};
  return patch;
}

json::Value nomination_patch(std::string_view node) {
  json::Value patch = json::Object{};
  json::Value& field = json::make(patch, {"status", "nominatedNodeName"});
  if (node.empty())
    field = nullptr;
  else
    field = node;
  return patch;
}

std::string indexes_text(const std::vector<std::int32_t>& indexes) {
  std::string list;
  for (const std::int32_t index : indexes)
    list += (list.empty() ? "" : ",") + std::to_string(index);
  return list;
}

json::Value binding(const engine::Bind& bind, std::string_view name) {
  json::Value body = json::Object{};
  json::make(body, {"apiVersion"}) = "v1";
  json::make(body, {"kind"}) = "Binding";
  json::make(body, {"metadata", "name"}) = name;
  json::make(body, {"metadata", "uid"}) = bind.uid;
  if (!bind.devices.empty()) {
    json::make_object(body, {"metadata", "annotations"})[kube::names::kGpuIndices] =
        indexes_text(bind.devices);
  }
  json::make(body, {"target", "apiVersion"}) = "v1";
  json::make(body, {"target", "kind"}) = "Node";
  json::make(body, {"target", "name"}) = bind.node;
  return body;
}

std::string binding_text(const engine::Bind& bind, std::string_view name) {
  std::string out;
  out.reserve(256);
  const auto add = [&out](std::string_view before, std::string_view value) {
    out += before;
    json::append_string(out, value);
  };
  add(R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":)", name);
  add(R"(,"uid":)", bind.uid);
  if (!bind.devices.empty()) {
    add(R"(,"annotations":{)", kube::names::kGpuIndices);
    add(":", indexes_text(bind.devices));
    out += '}';
  }
  add(R"(},"target":{"apiVersion":"v1","kind":"Node","name":)", bind.node);
  out += "}}";
  return out;
}

std::string preempted_message(const engine::Evict& evict) {
  const std::string& whom = evict.for_whom_pod.empty() ? evict.for_whom : evict.for_whom_pod;
  if (evict.kind == engine::EvictKind::kReclaim)
    return fmt::format("reclaimed by {} on node {}", whom, evict.node);
  return fmt::format("by {} on node {}", whom, evict.node);
}

json::Value volcano_condition(bool scheduled,
                              std::string_view reason,
                              std::string_view message,
                              Time now) {
  json::Object condition;
  condition["type"] = scheduled ? "Scheduled" : "Unschedulable";
  condition["status"] = "True";
  condition["lastTransitionTime"] = format_time(now);
  condition["reason"] = reason;
  condition["message"] = message;
  return condition;
}

std::string amount_text(const engine::Amount& amount) {
  if (amount.name == "cpu") return Quantity::from_milli(amount.value).text();
  if (amount.name == "memory")
    return Quantity::from_units(amount.value, QuantityFormat::kBinarySi).text();
  return Quantity::from_units(amount.value).text();
}

}  // namespace muster::scheduler
