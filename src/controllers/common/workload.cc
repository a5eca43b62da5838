#include "controllers/common/workload.h"

#include <algorithm>
#include <vector>

#include "controllers/common/training.h"

namespace muster::controllers {
namespace {

/// Keys in order, so that two equal values have one text.
void canonical(const json::Value& value, std::string& out) {
  if (value.is_object()) {
    std::vector<std::string_view> keys;
    for (const auto& [key, member] : value.get_object()) keys.emplace_back(key);
    std::sort(keys.begin(), keys.end());
    out += '{';
    for (const auto key : keys) {
      out.append(key).append(":");
      canonical(json::at(value, key), out);
      out += ',';
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const auto& item : value.get_array()) {
      canonical(item, out);
      out += ',';
    }
    out += ']';
  } else {
    out += json::dump(value);
  }
}

}  // namespace

json::Value status_or_empty(const json::Value& object) {
  const auto& status = json::at(object, "status");
  return status.is_object() ? status : json::Value(json::Object{});
}

json::Value pod_from_template(const json::Value& owner,
                              const json::Value& pod_template,
                              const std::string& name) {
  auto pod = make_child(owner, "v1", "Pod", name);
  auto& metadata = json::make_object(pod, {"metadata"});
  if (name.ends_with('-')) {
    metadata.erase("name");
    metadata["generateName"] = name;
  }
  for (const std::string_view field : {"labels", "annotations", "finalizers"}) {
    const auto& value = json::at(pod_template, "metadata", field);
    if (!json::is_empty(value)) metadata[field] = value;
  }
  pod.as_object()["spec"] = json::at(pod_template, "spec");
  return pod;
}

Action create_workload_pod(json::Value pod) {
  auto action = create(kinds::kPod, std::move(pod));
  action.events.push_back({false, "SuccessfulCreate", "Created pod: " + std::string(kCreatedName)});
  action.failed_reason = "FailedCreate";
  action.failed_prefix = "Error creating: ";
  return action;
}

std::string template_hash(const json::Value& pod_template) {
  std::string text;
  canonical(pod_template, text);
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";  // no vowels: no words
  std::string result;
  for (int i = 0; i < 10; ++i) {
    result += kAlphabet[hash % kAlphabet.size()];
    hash /= kAlphabet.size();
  }
  return result;
}

void set_workload_condition(json::Value& status,
                            std::string_view type,
                            bool value,
                            std::string_view reason,
                            std::string_view message,
                            Time now) {
  const std::string_view word = value ? "True" : "False";
  auto& list = array_at(status, {"conditions"});
  for (auto& entry : list) {
    if (json::string_at(entry, "type") != type) continue;
    auto& object = entry.as_object();
    if (json::string_at(entry, "status") == word && json::string_at(entry, "reason") == reason)
      return;
    if (json::string_at(entry, "status") != word) object["lastTransitionTime"] = time_value(now);
    object["status"] = word;
    object["reason"] = reason;
    object["message"] = message;
    object["lastProbeTime"] = time_value(now);
    return;
  }
  list.push_back(json::Object{{"type", type},
                              {"status", word},
                              {"lastProbeTime", time_value(now)},
                              {"lastTransitionTime", time_value(now)},
                              {"reason", reason},
                              {"message", message}});
}

bool is_available(const json::Value& pod, const json::Value& owner, Time now, Plan& plan) {
  if (!is_ready(pod) || is_deleting(pod)) return false;
  const auto least = std::chrono::seconds(json::int_at(owner, "spec", "minReadySeconds"));
  if (least.count() == 0) return true;
  for (const auto& condition : json::array_at(pod, "status", "conditions")) {
    if (json::string_at(condition, "type") != "Ready") continue;
    const auto due = time_at(json::at(condition, "lastTransitionTime")) + least;
    if (now < due) wake_after(plan, due - now);
    return now >= due;
  }
  return false;
}

}  // namespace muster::controllers
