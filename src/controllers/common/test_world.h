/// For tests: objects in memory that plans look at and are applied to, as a server without a
/// garbage collector would.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/common/objects.h"
#include "controllers/common/plan.h"

namespace muster::controllers::testing {

class TestWorld : public View {
 public:
  json::Value job;
  std::map<std::string, std::map<std::string, json::Value>> objects;
  std::vector<Event> events;
  std::string error;  // of the last pass, as a server would have answered
  Time now = Time::from_seconds(1'700'000'000);
  Settings settings;
  Plan last;

  explicit TestWorld(std::string_view yaml) {
    auto parsed = json::parse_yaml_one(yaml);
    MUSTER_CHECK(parsed.has_value(), "the test's YAML");
    job = std::move(*parsed);
    auto& metadata = json::make_object(job, {"metadata"});
    metadata["namespace"] = "default";
    metadata["uid"] = "job-uid";
    metadata["creationTimestamp"] = format_time(now);
  }

  template <typename PlanFunction>
  void settle(PlanFunction plan) {
    for (int i = 0; i < 50; ++i) {
      if (!pass(plan)) return;
    }
    MUSTER_CHECK(false, "the controller never comes to rest");
  }

  /// True when something changed.
  template <typename PlanFunction>
  bool pass(PlanFunction plan) {
    last = plan(job, *this, settings, now);
    bool changed = false;
    for (auto& action : last.actions) changed = apply(action) || changed;
    events.insert(events.end(), last.events.begin(), last.events.end());
    if (last.status && last.error.empty() && !json::equal(*last.status, json::at(job, "status"))) {
      job.as_object()["status"] = *last.status;
      changed = true;
    }
    return changed;
  }

  bool apply(Action& action) {
    auto& of_kind = objects[action.kind];
    if (action.with_ssh_key) {
      for (const auto* key : {"ssh-privatekey", "ssh-publickey"})
        json::make_object(action.body, {"data"})[key] = "k";
    }
    if (action.verb == Action::Verb::kCreate) {
      auto& metadata = json::make_object(action.body, {"metadata"});
      if (action.name.empty())
        action.name =
            json::text_at(action.body, "metadata", "generateName") + std::to_string(++serial_);
      metadata["name"] = action.name;
      metadata["uid"] = "uid-" + std::to_string(++serial_);
      metadata["creationTimestamp"] = format_time(now);
      MUSTER_CHECK(!of_kind.contains(action.name), action.name + " is there already");
      of_kind[action.name] = action.body;
      if (action.kind == kinds::kPod)
        json::make_object(of_kind[action.name], {"status"})["phase"] = "Pending";
    } else if (action.verb == Action::Verb::kDelete) {
      auto& object = of_kind[action.name];
      if (action.kind == kinds::kPod && phase_of(object) == "Running" && action.grace_s != 0) {
        json::make_object(object, {"metadata"})["deletionTimestamp"] = format_time(now);
      } else {
        of_kind.erase(action.name);
      }
    } else {
      json::merge_patch(of_kind[action.name], action.body);
    }
    events.insert(events.end(), action.events.begin(), action.events.end());
    return true;
  }

  void phase(const std::string& pod, std::string_view value) {
    auto& object = objects["Pod"].at(pod);
    json::make_object(object, {"status"})["phase"] = value;
    json::make_object(object, {"spec"})["nodeName"] = "node-1";
    json::make_object(object, {"status"})["conditions"] = json::Array{
        json::Object{{"type", "Ready"}, {"status", value == "Running" ? "True" : "False"}}};
  }
  void all_run() {
    for (auto& [name, pod] : objects["Pod"]) phase(name, "Running");
  }
  void terminate(const std::string& pod) {
    json::make_object(objects["Pod"].at(pod), {"metadata"})["deletionTimestamp"] = format_time(now);
  }
  void vanish(const std::string& pod) { objects["Pod"].erase(pod); }
  void vanish_terminating() {
    std::erase_if(objects["Pod"], [](const auto& entry) { return is_deleting(entry.second); });
  }

  [[nodiscard]] std::string names(const std::string& kind) const {
    std::string result;
    for (const auto* object : all(kind))
      result +=
          (result.empty() ? "" : " ") + name_of(*object) + (is_deleting(*object) ? "(going)" : "");
    return result;
  }
  /// "Created=True Running=False"
  [[nodiscard]] std::string conditions() const {
    std::string result;
    for (const auto& c : json::array_at(job, "status", "conditions")) {
      result +=
          (result.empty() ? "" : " ") + json::text_at(c, "type") + "=" + json::text_at(c, "status");
    }
    return result;
  }
  [[nodiscard]] std::string phase() const { return json::text_at(job, "status", "phase"); }
  [[nodiscard]] const json::Value& pod(const std::string& name) const {
    return objects.at("Pod").at(name);
  }
  [[nodiscard]] bool recorded(std::string_view reason) const {
    for (const auto& event : events) {
      if (event.reason == reason) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<const json::Value*> controlled_by(std::string_view kind,
                                                              std::string_view uid) const override {
    std::vector<const json::Value*> result;
    for (const auto* object : all(kind)) {
      for (const auto& owner : json::array_at(*object, "metadata", "ownerReferences")) {
        if (json::bool_at(owner, "controller") && json::string_at(owner, "uid") == uid)
          result.push_back(object);
      }
    }
    return result;
  }
  [[nodiscard]] std::vector<const json::Value*> all(std::string_view kind) const override {
    std::vector<const json::Value*> result;
    const auto found = objects.find(std::string(kind));
    if (found == objects.end()) return result;
    for (const auto& [name, object] : found->second) result.push_back(&object);
    return result;
  }
  [[nodiscard]] const json::Value* find(std::string_view kind,
                                        std::string_view name) const override {
    const auto of_kind = objects.find(std::string(kind));
    if (of_kind == objects.end()) return nullptr;
    const auto found = of_kind->second.find(std::string(name));
    return found == of_kind->second.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::optional<std::int64_t> priority_of(std::string_view) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::string last_error() const override { return error; }

 private:
  int serial_ = 0;
};

/// A variable of the first container.
inline std::string env_of(const json::Value& pod, std::string_view name) {
  for (const auto& item : json::array_at(json::array_at(pod, "spec", "containers")[0], "env")) {
    if (json::string_at(item, "name") == name) return json::text_at(item, "value");
  }
  return "(none)";
}

}  // namespace muster::controllers::testing
