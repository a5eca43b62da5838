#include "kubeflow_world.h"

#include <fmt/core.h>

#include "controllers/common/objects.h"
#include "controllers/common/podgroup.h"
#include "controllers/common/ssh_key.h"
#include "kube/kinds/defaults.h"

namespace muster::vectors {

using controllers::Action;
using json::Value;

namespace {

constexpr int kMostPasses = 100;

bool stays_while_deleted(const Value& pod) {
  const auto phase = controllers::phase_of(pod);
  return phase != "Succeeded" && phase != "Failed" &&
         !json::string_at(pod, "spec", "nodeName").empty();
}

}  // namespace

std::string World::full_kind(const std::string& kind) const {
  return kind == "PodGroup" ? std::string(controllers::podgroup_kind(settings_.gang)) : kind;
}

std::string World::new_uid() { return fmt::format("uid-{}", ++uids_); }

void World::create_job(Value job) {
  auto& metadata = json::make_object(job, {"metadata"});
  metadata["namespace"] = "default";
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = format_time(now_);
  job_ = std::move(job);
}

void World::patch_job(const Value& patch) { json::merge_patch(job_, patch); }

bool World::create(const std::string& kind, Value object) {
  const auto name = controllers::name_of(object);
  if (objects_[kind].contains(name)) return false;
  auto& metadata = json::make_object(object, {"metadata"});
  metadata["namespace"] = "default";
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = format_time(now_);
  if (kind == "Pod") {
    kube::default_pod_spec(json::make(object, {"spec"}), true);
    if (controllers::phase_of(object).empty())
      json::make_object(object, {"status"})["phase"] = "Pending";
  }
  if (kind == "PodGroup.scheduling.volcano.sh") {
    // The default of Volcano's own CRD.
    auto& queue = json::make(object, {"spec", "queue"});
    if (queue.is_null()) queue = "default";
  }
  if (kind == "Job") {
    auto& limit = json::make(object, {"spec", "backoffLimit"});
    if (limit.is_null()) limit = 6;
    auto& suspend = json::make(object, {"spec", "suspend"});
    if (suspend.is_null()) suspend = false;
  }
  objects_[kind][name] = std::move(object);
  return true;
}

bool World::patch(const std::string& kind, const std::string& name, const Value& patch) {
  auto& of_kind = objects_[kind];
  const auto found = of_kind.find(name);
  if (found == of_kind.end()) return false;
  json::merge_patch(found->second, patch);
  return true;
}

void World::remove(const std::string& kind, const std::string& name, bool at_once) {
  auto& of_kind = objects_[kind];
  const auto found = of_kind.find(name);
  if (found == of_kind.end()) return;
  if (kind == "Pod" && !at_once) {
    terminate_pod(name);
  } else {
    of_kind.erase(found);
  }
}

void World::terminate_pod(const std::string& name) {
  const auto found = objects_["Pod"].find(name);
  if (found == objects_["Pod"].end()) return;
  if (!stays_while_deleted(found->second)) {
    objects_["Pod"].erase(found);
    return;
  }
  json::make_object(found->second, {"metadata"})["deletionTimestamp"] =
      format_time(now_ + std::chrono::seconds(30));
}

bool World::apply(const Action& action, bool& changed) {
  Value body = action.body;
  if (action.with_ssh_key) {
    const auto key = controllers::make_ssh_key();
    if (!key) return false;
    body.as_object()["data"] =
        json::Object{{"ssh-privatekey", key->private_pem}, {"ssh-publickey", key->public_line}};
  }
  bool done = true;
  const auto* before = find(action.kind, action.name);
  const Value old = before == nullptr ? Value() : *before;
  switch (action.verb) {
    case Action::Verb::kCreate:
      done = create(action.kind, std::move(body));
      break;
    case Action::Verb::kPatch:
    case Action::Verb::kStatus:
      done = patch(action.kind, action.name, body);
      break;
    case Action::Verb::kDelete:
      remove(action.kind, action.name, action.grace_s == 0);
      break;
  }
  const auto* after = find(action.kind, action.name);
  changed = changed || !json::equal(old, after == nullptr ? Value() : *after);
  if (done) {
    events_.insert(events_.end(), action.events.begin(), action.events.end());
  } else if (!action.failed_reason.empty()) {
    events_.push_back({true, action.failed_reason, action.failed_prefix + action.name});
  }
  return done;
}

bool World::pass(bool& changed) {
  const auto plan = plan_(job_, *this, settings_, now_);
  wake_at_.reset();
  if (plan.requeue_after) wake_at_ = now_ + *plan.requeue_after;
  bool fine = true;
  for (const auto& action : plan.actions) {
    fine = apply(action, changed);
    if (!fine) break;
  }
  events_.insert(events_.end(), plan.events.begin(), plan.events.end());
  if (!fine || !plan.error.empty()) return false;
  if (plan.job_patch) patch_job(*plan.job_patch);
  if (plan.status && !json::equal(*plan.status, json::at(job_, "status"))) {
    job_.as_object()["status"] = *plan.status;
    changed = true;
  }
  if (plan.delete_job) {
    job_ = nullptr;
    changed = true;
  }
  return true;
}

bool World::settle() {
  for (int i = 0; i < kMostPasses; ++i) {
    if (job_.is_null()) return true;
    bool changed = false;
    pass(changed);
    if (!changed) return true;
  }
  return false;
}

bool World::elapse(Duration span) {
  const auto end = now_ + span;
  bool quiet = settle();
  while (wake_at_ && *wake_at_ <= end && !job_.is_null()) {
    now_ = std::max(now_, *wake_at_);
    wake_at_.reset();
    quiet = settle() && quiet;
    if (wake_at_ && *wake_at_ <= now_) break;  // it wants to be woken at once, for ever: not quiet
  }
  now_ = end;
  return quiet;
}

std::vector<const Value*> World::controlled_by(std::string_view kind, std::string_view uid) const {
  std::vector<const Value*> result;
  for (const auto* object : all(kind)) {
    for (const auto& owner : json::array_at(*object, "metadata", "ownerReferences")) {
      if (json::bool_at(owner, "controller") && json::string_at(owner, "uid") == uid)
        result.push_back(object);
    }
  }
  return result;
}

std::vector<const Value*> World::all(std::string_view kind) const {
  std::vector<const Value*> result;
  const auto found = objects_.find(std::string(kind));
  if (found == objects_.end()) return result;
  for (const auto& [name, object] : found->second) result.push_back(&object);
  return result;
}

const Value* World::find(std::string_view kind, std::string_view name) const {
  const auto of_kind = objects_.find(std::string(kind));
  if (of_kind == objects_.end()) return nullptr;
  const auto found = of_kind->second.find(std::string(name));
  return found == of_kind->second.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> World::priority_of(std::string_view name) const {
  static const std::map<std::string_view, std::int64_t> kClasses{{"test-pc", 100'000},
                                                                 {"high-priority", 1'000'000},
                                                                 {"critical", 1'100'000},
                                                                 {"medium", 1'000'000}};
  const auto found = kClasses.find(name);
  if (found == kClasses.end()) return std::nullopt;
  return found->second;
}

}  // namespace muster::vectors
