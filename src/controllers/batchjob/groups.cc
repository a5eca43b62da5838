#include "controllers/batchjob/groups.h"

#include <fmt/core.h>

#include <algorithm>

#include "controllers/common/native_kinds.h"
#include "controllers/common/objects.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers::batchjob {
namespace {

constexpr std::size_t kNameMost = 253;

/// FNV-1a of the text, its decimal digits in the letters that Kubernetes deems safe.
std::string short_hash(std::string_view text) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  std::string out;
  for (const char digit : std::to_string(hash))
    out += kLetters[static_cast<std::size_t>(digit) % kLetters.size()];
  return out;
}

const json::Value& controller_of(const json::Value& object) {
  for (const auto& owner : json::array_at(object, "metadata", "ownerReferences")) {
    if (json::bool_at(owner, "controller")) return owner;
  }
  return json::null_value();
}

std::string group_name(const std::string& workload, const std::string& group_template) {
  auto name =
      fmt::format("{}-{}-{}", workload, group_template, short_hash(workload + group_template));
  if (name.size() > kNameMost) name.resize(kNameMost);
  return name;
}

std::int64_t min_count(const json::Value& job) {
  const auto parallelism = json::as_int(json::at(job, "spec", "parallelism"), 1);
  return json::as_int(json::at(job, "spec", "scheduling", "schedulingPolicy", "gang", "minCount"),
                      std::max<std::int64_t>(1, parallelism));
}

/// What a template and the group made of it share.
json::Object group_spec(const json::Value& job) {
  const json::Value& scheduling = json::at(job, "spec", "scheduling");
  json::Object spec;
  if (json::at(scheduling, "schedulingPolicy", "gang").is_object()) {
    spec["schedulingPolicy"] = json::Object{{"gang", json::Object{{"minCount", min_count(job)}}}};
  } else {
    spec["schedulingPolicy"] = json::Object{{"basic", json::Object{}}};
  }
  for (const std::string_view field :
       {"schedulingConstraints", "disruptionMode", "resourceClaims"}) {
    if (!json::at(scheduling, field).is_null()) spec[field] = json::at(scheduling, field);
  }
  const json::Value& pod = json::at(job, "spec", "template", "spec");
  for (const std::string_view field : {"priorityClassName", "preemptionPolicy"}) {
    if (!json::string_at(pod, field).empty()) spec[field] = json::at(pod, field);
  }
  return spec;
}

json::Value make_workload(const json::Value& job,
                          const std::string& name,
                          const std::string& group_template) {
  json::Value workload =
      make_child(job, kube::resources::kNativePodGroups.api_version(), "Workload", name);
  json::make(workload, {"spec", "controllerRef"}) =
      json::Object{{"apiGroup", "batch"}, {"kind", "Job"}, {"name", name_of(job)}};
  json::Object entry = group_spec(job);
  entry["name"] = group_template;
  json::make(workload, {"spec", "podGroupTemplates"}) = json::Array{std::move(entry)};
  return workload;
}

/// From a template of the workload: the job's own, or one of the parent that hands its groups on.
json::Value make_group(const json::Value& job,
                       const json::Value& workload,
                       const json::Value& from) {
  const std::string entry = json::text_at(from, "name");
  json::Value group = make_child(job,
                                 kube::resources::kNativePodGroups.api_version(),
                                 "PodGroup",
                                 group_name(name_of(workload), entry));
  auto owner = owner_reference(workload, kube::resources::kNativePodGroups.api_version());
  for (const std::string_view field : {"controller", "blockOwnerDeletion"})
    owner.as_object().erase(field);
  owner.as_object()["kind"] = "Workload";
  array_at(group, {"metadata", "ownerReferences"}).push_back(std::move(owner));
  json::Object spec = json::as_object(from);
  spec.erase("name");
  for (auto it = spec.begin(); it != spec.end();)
    it = it->value().is_null() ? spec.erase(it) : it + 1;
  spec["workloadRef"] = json::Object{{"workloadName", name_of(workload)}, {"templateName", entry}};
  group.as_object()["spec"] = std::move(spec);
  return group;
}

Action announced(std::string_view kind,
                 json::Value object,
                 std::string reason,
                 const std::string& what,
                 const json::Value& job) {
  const std::string name = name_of(object);
  auto action = create(kind, std::move(object));
  action.events.push_back({false,
                           std::move(reason),
                           fmt::format("Created {} {} for Job {}", what, name, name_of(job))});
  return action;
}

/// The workload of the job's parent, whose templates the job may use.
const json::Value* parents_workload(const json::Value& owner, const View& view) {
  for (const auto* workload : view.all(kinds::kWorkload)) {
    const json::Value& by = json::at(*workload, "spec", "controllerRef");
    if (json::string_at(by, "kind") == json::string_at(owner, "kind") &&
        json::string_at(by, "name") == json::string_at(owner, "name")) {
      return workload;
    }
  }
  return nullptr;
}

JobGroup delegated(const json::Value& job, const View& view, bool started, Plan& plan) {
  const auto wanted = annotation_of(job, kube::names::kubernetes::kGroupTemplate);
  if (wanted.empty()) return {};
  const auto* workload = parents_workload(controller_of(job), view);
  if (workload == nullptr) return {!started, ""};
  const auto name = group_name(name_of(*workload), wanted);
  if (view.find(kinds::kNativePodGroup, name) != nullptr) return {false, name};
  if (started) return {};
  for (const auto& entry : json::array_at(*workload, "spec", "podGroupTemplates")) {
    if (json::string_at(entry, "name") != wanted) continue;
    plan.actions.push_back(announced(kinds::kNativePodGroup,
                                     make_group(job, *workload, entry),
                                     "PodGroupCreated",
                                     "PodGroup",
                                     job));
    return {true, ""};
  }
  plan.events.push_back(
      {true,
       "FailedWorkloadCompilation",
       fmt::format("Workload {} has no template {}", name_of(*workload), wanted)});
  return {true, ""};
}

/// A gang follows parallelism (or its own minCount) up and down; nobody is evicted for it.
void follow_count(const json::Value& job,
                  const json::Value& workload,
                  const json::Value& group,
                  Plan& plan) {
  const json::Value& there = json::at(group, "spec", "schedulingPolicy", "gang", "minCount");
  const auto wanted = min_count(job);
  if (!there.is_number() || json::as_int(there) == wanted) return;
  json::Array templates = json::array_at(workload, "spec", "podGroupTemplates");
  for (auto& entry : templates)
    json::make(entry, {"schedulingPolicy", "gang", "minCount"}) = wanted;
  json::Value change = json::Object{};
  json::make(change, {"spec", "podGroupTemplates"}) = std::move(templates);
  plan.actions.push_back(patch(kinds::kWorkload, name_of(workload), std::move(change)));
  json::Value count = json::Object{};
  json::make(count, {"spec", "schedulingPolicy", "gang", "minCount"}) = wanted;
  plan.actions.push_back(patch(kinds::kNativePodGroup, name_of(group), std::move(count)));
}

}  // namespace

JobGroup plan_group(const json::Value& job, const View& view, bool started, Plan& plan) {
  if (json::at(job, "spec", "template", "spec", "schedulingGroup").is_object()) return {};
  if (!controller_of(job).is_null()) return delegated(job, view, started, plan);
  if (!json::at(job, "spec", "scheduling").is_object()) return {};
  const auto workload_name =
      fmt::format("{}-{}", name_of(job), short_hash("(types.UID)" + uid_of(job)));
  const auto group_template = name_of(job) + "-pgt-0";
  const auto* workload = view.find(kinds::kWorkload, workload_name);
  const auto* group = view.find(kinds::kNativePodGroup, group_name(workload_name, group_template));
  if (workload != nullptr && group != nullptr) {
    follow_count(job, *workload, *group, plan);
    return {false, name_of(*group)};
  }
  // Whoever deleted them wanted it so: pods made later go without.
  if (started) return {};
  if (workload == nullptr) {
    auto action = announced(kinds::kWorkload,
                            make_workload(job, workload_name, group_template),
                            "WorkloadCreated",
                            "Workload",
                            job);
    action.failed_reason = "FailedWorkloadCreate";
    action.failed_prefix = "Error creating Workload: ";
    plan.actions.push_back(std::move(action));
  } else {
    json::Object entry = group_spec(job);
    entry["name"] = group_template;
    auto action = announced(kinds::kNativePodGroup,
                            make_group(job, *workload, json::Value(entry)),
                            "PodGroupCreated",
                            "PodGroup",
                            job);
    action.failed_reason = "FailedPodGroupCreate";
    action.failed_prefix = "Error creating PodGroup: ";
    plan.actions.push_back(std::move(action));
  }
  return {true, ""};
}

}  // namespace muster::controllers::batchjob
