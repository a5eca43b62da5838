#include "controllers/draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "controllers/common/caches.h"
#include "controllers/common/native_kinds.h"
#include "controllers/common/objects.h"

namespace muster::controllers {
namespace {

/// A plan that is not at rest after so many passes waits for something that only time brings.
constexpr int kPassesMax = 30;
constexpr int kDepthMax = 4;

bool is_group(std::string_view kind) {
  return kind == kinds::kVolcanoPodGroup || kind == kinds::kPluginsPodGroup ||
         kind == kinds::kT9kPodGroup || kind == kinds::kNativePodGroup;
}

/// A namespace in which there is nothing but what the draft has made.
class DraftView final : public View {
 public:
  explicit DraftView(const DraftRules& rules, std::string ns) : rules_(rules), ns_(std::move(ns)) {}

  std::map<std::string, std::map<std::string, json::Value>, std::less<>> objects;

  /// True when something changed.
  bool apply(Action& action) {
    auto& of_kind = objects[action.kind];
    switch (action.verb) {
      case Action::Verb::kCreate:
        return create(action, of_kind);
      case Action::Verb::kDelete:
        return of_kind.erase(action.name) > 0;
      case Action::Verb::kPatch:
      case Action::Verb::kStatus:
        break;
    }
    const auto found = of_kind.find(action.name);
    if (found == of_kind.end()) return false;
    json::Value next = found->second;
    json::merge_patch(next, action.body);
    if (json::equal(next, found->second)) return false;
    found->second = std::move(next);
    return true;
  }

  [[nodiscard]] std::vector<const json::Value*> controlled_by(std::string_view kind,
                                                              std::string_view uid) const override {
    std::vector<const json::Value*> out;
    for (const json::Value* object : all(kind)) {
      if (kube::controller_of(*object).uid == uid) out.push_back(object);
    }
    return out;
  }
  [[nodiscard]] std::vector<const json::Value*> all(std::string_view kind) const override {
    std::vector<const json::Value*> out;
    const auto found = objects.find(kind);
    if (found == objects.end()) return out;
    for (const auto& [name, object] : found->second) out.push_back(&object);
    return out;
  }
  [[nodiscard]] const json::Value* find(std::string_view kind,
                                        std::string_view name) const override {
    const auto of_kind = objects.find(kind);
    if (of_kind == objects.end()) return nullptr;
    const auto found = of_kind->second.find(std::string(name));
    return found == of_kind->second.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::optional<std::int64_t> priority_of(std::string_view name) const override {
    return rules_.priority_of ? rules_.priority_of(name) : std::nullopt;
  }

 private:
  bool create(Action& action, std::map<std::string, json::Value>& of_kind) {
    if (!action.body.is_object()) return false;
    const client::Resource& resource = resource_of(action.kind);
    json::Object& body = action.body.get_object();
    body["apiVersion"] = resource.api_version();
    body["kind"] = resource.kind;
    json::Object& metadata = json::make_object(action.body, {"metadata"});
    if (action.name.empty()) action.name = json::text_at(action.body, "metadata", "name");
    if (action.name.empty())
      action.name = fmt::format(
          "{}{:05}", json::string_at(action.body, "metadata", "generateName"), ++serial_);
    metadata["name"] = action.name;
    metadata["namespace"] = ns_;
    metadata["uid"] = fmt::format("draft-{:06}", ++serial_);
    metadata["creationTimestamp"] = format_time(rules_.now);
    if (action.with_ssh_key) {
      for (const char* key : {"ssh-privatekey", "ssh-publickey"})
        json::make_object(action.body, {"data"})[key] = "";
    }
    if (action.kind == kinds::kPod) json::make_object(action.body, {"status"})["phase"] = "Pending";
    // Controllers wait for it before they make pods; whether it is admitted is the engine's to say.
    if (action.kind == kinds::kVolcanoPodGroup)
      json::make_object(action.body, {"status"})["phase"] = "Inqueue";
    return of_kind.emplace(action.name, action.body).second;
  }

  const DraftRules& rules_;
  std::string ns_;
  int serial_ = 0;
};

const Kind* find_kind(const std::vector<Kind>& kinds, const json::Value& object) {
  for (const Kind& kind : kinds) {
    if (kind.resource.kind == json::string_at(object, "kind") &&
        kind.resource.api_version() == json::string_at(object, "apiVersion") &&
        (!kind.accepts || kind.accepts(object)))
      return &kind;
  }
  return nullptr;
}

/// Plans `job` until its plan is at rest, and then what that has made of kinds with a plan.
void settle(
    json::Value job, const DraftRules& rules, DraftView& view, std::string& said, int depth) {
  const Kind* kind = find_kind(rules.kinds, job);
  if (kind == nullptr || depth > kDepthMax) return;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    Plan plan = kind->plan(job, view, rules.settings, rules.now);
    bool changed = false;
    for (Action& action : plan.actions) {
      changed = view.apply(action) || changed;
      for (const Event& event : action.events) said = event.message;
    }
    for (const Event& event : plan.events) said = event.message;
    if (!plan.error.empty()) said = plan.error;
    if (plan.status && plan.error.empty() && !json::equal(*plan.status, json::at(job, "status"))) {
      job.as_object()["status"] = *plan.status;
      changed = true;
    }
    if (plan.job_patch) {
      json::Value next = job;
      json::merge_patch(next, *plan.job_patch);
      changed = changed || !json::equal(next, job);
      job = std::move(next);
    }
    if (!changed || plan.delete_job) break;
  }
  for (const std::string_view made : {kinds::kJob, kinds::kStatefulSet, kinds::kReplicaSet}) {
    std::vector<json::Value> below;
    for (const json::Value* object : view.controlled_by(made, uid_of(job)))
      below.push_back(*object);
    for (json::Value& object : below) settle(std::move(object), rules, view, said, depth + 1);
  }
}

}  // namespace

Drafted draft(const json::Value& job, const DraftRules& rules) {
  Drafted out;
  if (json::string_at(job, "kind") == kinds::kPod &&
      json::string_at(job, "apiVersion") == client::resources::kPods.api_version()) {
    out.pods.push_back(job);
    return out;
  }
  DraftView view(rules, namespace_of(job));
  settle(job, rules, view, out.said, 0);
  for (auto& [kind, objects] : view.objects) {
    for (auto& [name, object] : objects) {
      if (is_group(kind)) {
        json::remove(object, {"status"});
        out.groups.push_back(std::move(object));
      } else if (kind == kinds::kPod) {
        out.pods.push_back(std::move(object));
      }
    }
  }
  // As they would be created.
  std::sort(out.pods.begin(), out.pods.end(), [](const json::Value& a, const json::Value& b) {
    return uid_of(a) < uid_of(b);
  });
  return out;
}

const client::Resource* find_resource(const std::vector<Kind>& kinds,
                                      std::string_view api_version,
                                      std::string_view kind) {
  if (client::resources::kPods.kind == kind &&
      client::resources::kPods.api_version() == api_version)
    return &client::resources::kPods;
  for (const Kind& one : kinds) {
    if (one.resource.kind == kind && one.resource.api_version() == api_version)
      return &one.resource;
  }
  return nullptr;
}

}  // namespace muster::controllers
