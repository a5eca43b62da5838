// scheduling.k8s.io: Workload, PodGroup, CompositePodGroup (the generated "declarative" rules
// of 1.37).
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "kube/kinds/families.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// A union: exactly one of two members.
void exactly_one(const Value& value,
                 const std::string& field,
                 const std::vector<std::string_view>& members,
                 Causes& causes) {
  std::vector<std::string> set, all;
  for (const std::string_view member : members) {
    all.push_back(fmt::format("`{}`", member));
    const Value& is = json::at(value, member);
    if (!is.is_null() && !(is.is_array() && is.get_array().empty()) &&
        !(is.is_string() && is.get_string().empty()))
      set.emplace_back(member);
  }
  if (set.empty()) causes.invalid(field, "\"\"", "must specify one of: " + join(all, ", "));
  if (set.size() > 1)
    causes.invalid(field,
                   quoted("{" + join(set, ", ") + "}"),
                   "must specify exactly one of: " + join(all, ", "));
}

void at_least_one(const Value& holder,
                  const std::string& field,
                  std::string_view key,
                  Causes& causes) {
  const Value& value = json::at(holder, key);
  if (json::as_int(value) == 0)
    causes.required(fmt::format("{}.{}", field, key));
  else if (json::as_int(value) < 1)
    causes.invalid(
        fmt::format("{}.{}", field, key), json::dump(value), "must be greater than or equal to 1");
}

void validate_policy(const Value& spec, const std::string& field, bool composite, Causes& causes) {
  const Value& policy = json::at(spec, "schedulingPolicy");
  const std::string here = field + ".schedulingPolicy";
  exactly_one(policy, here, {"basic", "gang"}, causes);
  if (json::at(policy, "gang").is_object())
    at_least_one(
        json::at(policy, "gang"), here + ".gang", composite ? "minGroupCount" : "minCount", causes);
}

void validate_constraints(const Value& spec, const std::string& field, Causes& causes) {
  const json::Array& topology = json::array_at(spec, "schedulingConstraints", "topology");
  const std::string here = field + ".schedulingConstraints.topology";
  if (topology.size() > 1) causes.too_many(here, topology.size(), 1);
  for (std::size_t i = 0; i < topology.size(); ++i) {
    const std::string_view key = json::string_at(topology[i], "key");
    const std::string item = fmt::format("{}[{}].key", here, i);
    if (key.empty())
      causes.required(item);
    else
      causes.check(item, key, check_label_key(key));
  }
}

void validate_claims(const Value& spec, const std::string& field, Causes& causes) {
  const json::Array& claims = json::array_at(spec, "resourceClaims");
  const std::string here = field + ".resourceClaims";
  if (claims.size() > 4) causes.too_many(here, claims.size(), 4);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::string item = fmt::format("{}[{}]", here, i);
    const std::string_view name = json::string_at(claims[i], "name");
    if (name.empty())
      causes.required(item + ".name");
    else if (!names.insert(name).second)
      causes.duplicate(item, json::dump(claims[i]));
    exactly_one(claims[i], item, {"resourceClaimName", "resourceClaimTemplateName"}, causes);
  }
}

void validate_common(const Value& spec, const std::string& field, bool composite, Causes& causes) {
  validate_policy(spec, field, composite, causes);
  validate_constraints(spec, field, causes);
  if (!composite) validate_claims(spec, field, causes);
  if (json::at(spec, "disruptionMode").is_object())
    exactly_one(
        json::at(spec, "disruptionMode"), field + ".disruptionMode", {"single", "all"}, causes);
  const std::string_view name = json::string_at(spec, "priorityClassName");
  if (!name.empty()) causes.check(field + ".priorityClassName", name, check_dns_subdomain(name));
  const Value& priority = json::at(spec, "priority");
  if (json::as_int(priority) > 1'000'000'000)
    causes.invalid(
        field + ".priority", json::dump(priority), "must be less than or equal to 1000000000");
  validate_enum(json::at(spec, "preemptionPolicy"),
                field + ".preemptionPolicy",
                {"Never", "PreemptLowerPriority"},
                causes,
                false);
}

/// "null" because the generated rules do not print the value.
void frozen(const Value& now, const Value& before, std::string field, Causes& causes) {
  if (!json::equal(now, before)) causes.invalid(std::move(field), "null", "field is immutable");
}

void frozen_policy(const Value& now,
                   const Value& before,
                   const std::string& field,
                   Causes& causes) {
  for (const std::string_view variant : {"basic", "gang"}) {
    const bool is = json::at(now, variant).is_object();
    const bool was = json::at(before, variant).is_object();
    if (is && !was)
      causes.invalid(fmt::format("{}.{}", field, variant), "null", "field is immutable");
    if (!is && was)
      causes.invalid(
          fmt::format("{}.{}", field, variant), "null", "field cannot be cleared once set");
  }
}

struct TemplateWalk {
  std::set<std::string> names;
  std::set<std::string> priorities;
  bool nested = false;
};

/// Levels of composite templates below and including this one; the walk stops where it is too deep
/// anyway.
int composite_levels(const Value& composite, int limit) {
  int deepest = 0;
  if (limit > 0) {
    for (const Value& inner : json::array_at(composite, "compositePodGroupTemplates"))
      deepest = std::max(deepest, composite_levels(inner, limit - 1));
  }
  return deepest + 1;
}

constexpr int kCompositeLevelsMax = 3;  // and the PodGroup level below them makes four

void validate_templates(
    const Value& holder, const std::string& field, int depth, TemplateWalk& walk, Causes& causes) {
  const auto one = [&](std::string_view list_name, bool composite) {
    const json::Array& list = json::array_at(holder, list_name);
    const std::string here = fmt::format("{}.{}", field, list_name);
    if (list.size() > 8) causes.too_many(here, list.size(), 8);
    std::set<std::string> siblings;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string item = fmt::format("{}[{}]", here, i);
      const std::string name = json::text_at(list[i], "name");
      if (name.empty()) {
        causes.required(item + ".name");
      } else if (!siblings.insert(name).second) {
        causes.duplicate(item, json::dump(list[i]));
      } else {
        causes.check(item + ".name", name, check_dns_label(name));
        if (!walk.names.insert(name).second) causes.duplicate(item + ".name", quoted(name));
      }
      validate_common(list[i], item, composite, causes);
      walk.priorities.insert(fmt::format("{}/{}",
                                         json::string_at(list[i], "priorityClassName"),
                                         json::dump(json::at(list[i], "priority"))));
      if (!composite) continue;
      walk.nested = true;
      if (json::array_at(list[i], "podGroupTemplates").empty() &&
          json::array_at(list[i], "compositePodGroupTemplates").empty()) {
        causes.invalid(
            item,
            quoted(name),
            "must have at least one child PodGroupTemplate or CompositePodGroupTemplate");
      }
      if (depth == 1 && composite_levels(list[i], kCompositeLevelsMax) > kCompositeLevelsMax) {
        causes.invalid(item,
                       json::dump(json::at(list[i], "compositePodGroupTemplates")),
                       "maximum template hierarchy depth is 4");
      } else {
        validate_templates(list[i], item, depth + 1, walk, causes);
      }
    }
  };
  one("podGroupTemplates", false);
  one("compositePodGroupTemplates", true);
}

void frozen_templates(const Value& now,
                      const Value& before,
                      const std::string& field,
                      Causes& causes) {
  for (const std::string_view list_name : {"podGroupTemplates", "compositePodGroupTemplates"}) {
    const json::Array& list = json::array_at(now, list_name);
    const json::Array& old = json::array_at(before, list_name);
    const std::string here = fmt::format("{}.{}", field, list_name);
    std::map<std::string, const Value*> old_by_name;
    for (const Value& item : old) old_by_name[json::text_at(item, "name")] = &item;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string item = fmt::format("{}[{}]", here, i);
      const auto found = old_by_name.find(json::text_at(list[i], "name"));
      if (found == old_by_name.end()) {
        causes.forbidden(item, "item may not be added");
        continue;
      }
      ++kept;
      frozen_policy(json::at(list[i], "schedulingPolicy"),
                    json::at(*found->second, "schedulingPolicy"),
                    item + ".schedulingPolicy",
                    causes);
      for (const std::string_view key : {"schedulingConstraints",
                                         "resourceClaims",
                                         "disruptionMode",
                                         "priorityClassName",
                                         "priority",
                                         "preemptionPolicy"}) {
        frozen(json::at(list[i], key),
               json::at(*found->second, key),
               fmt::format("{}.{}", item, key),
               causes);
      }
      frozen_templates(list[i], *found->second, item, causes);
    }
    if (kept < old.size()) causes.forbidden(here, "item may not be removed");
  }
}

void validate_native_workload(const Value& object, const Value* live, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  exactly_one(spec, "spec", {"podGroupTemplates", "compositePodGroupTemplates"}, causes);
  const Value& controller = json::at(spec, "controllerRef");
  if (controller.is_object()) {
    for (const std::string_view key : {"kind", "name"}) {
      if (json::is_empty(json::at(controller, key)))
        causes.required(fmt::format("spec.controllerRef.{}", key));
    }
    const std::string_view group = json::string_at(controller, "apiGroup");
    if (!group.empty())
      causes.check("spec.controllerRef.apiGroup", group, check_dns_subdomain(group));
  }
  TemplateWalk walk;
  validate_templates(spec, "spec", 1, walk, causes);
  if (walk.priorities.size() > 1) {
    causes.invalid(
        "spec",
        "null",
        walk.nested
            ? "all priority and priorityClassName values must be identical, detected multiple values"
            : "detected multiple priority configurations");
  }
  if (live == nullptr) return;
  frozen(controller, json::at(*live, "spec", "controllerRef"), "spec.controllerRef", causes);
  frozen_templates(spec, json::at(*live, "spec"), "spec", causes);
}

void validate_native_group(const Value& object, const Value* live, bool composite, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  validate_common(spec, "spec", composite, causes);
  const Value& workload = json::at(spec, "workloadRef");
  const std::string_view parent = json::string_at(spec, "parentCompositePodGroupName");
  if (workload.is_object()) {
    const std::string_view name = json::string_at(workload, "workloadName");
    const std::string_view entry = json::string_at(workload, "templateName");
    if (name.empty())
      causes.required("spec.workloadRef.workloadName");
    else
      causes.check("spec.workloadRef.workloadName", name, check_dns_subdomain(name));
    if (entry.empty())
      causes.required("spec.workloadRef.templateName");
    else
      causes.check("spec.workloadRef.templateName", entry, check_dns_label(entry));
  } else if (composite) {
    causes.required("spec.workloadRef");
  } else if (!parent.empty()) {
    causes.required("spec.workloadRef", "must be set when parentCompositePodGroupName is set");
  }
  if (!parent.empty())
    causes.check("spec.parentCompositePodGroupName", parent, check_dns_subdomain(parent));

  std::set<std::string_view> claims;
  for (const Value& claim : json::array_at(spec, "resourceClaims"))
    claims.insert(json::string_at(claim, "name"));
  const json::Array& statuses = json::array_at(object, "status", "resourceClaimStatuses");
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const std::string_view name = json::string_at(statuses[i], "name");
    if (!claims.contains(name)) {
      causes.invalid(fmt::format("status.resourceClaimStatuses[{}].name", i),
                     quoted(name),
                     "must match the name of an entry in `spec.resourceClaims`");
    }
  }
  const json::Array& conditions = json::array_at(object, "status", "conditions");
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    for (const std::string_view key : {"type", "status", "reason", "lastTransitionTime"}) {
      if (json::is_empty(json::at(conditions[i], key)))
        causes.required(fmt::format("status.conditions[{}].{}", i, key));
    }
  }
  if (live == nullptr) return;
  const Value& before = json::at(*live, "spec");
  if (composite)
    frozen(json::at(spec, "schedulingPolicy"),
           json::at(before, "schedulingPolicy"),
           "spec.schedulingPolicy",
           causes);
  else
    frozen_policy(json::at(spec, "schedulingPolicy"),
                  json::at(before, "schedulingPolicy"),
                  "spec.schedulingPolicy",
                  causes);
  for (const std::string_view key : {"schedulingConstraints",
                                     "disruptionMode",
                                     "priorityClassName",
                                     "priority",
                                     "preemptionPolicy",
                                     "workloadRef",
                                     "parentCompositePodGroupName",
                                     "resourceClaims"}) {
    frozen(json::at(spec, key), json::at(before, key), fmt::format("spec.{}", key), causes);
  }
}

/// Written without omit-empty upstream, so they stand as null.
void fill_templates(Value& object) {
  Value& spec = json::make(object, {"spec"});
  if (!spec.is_object()) return;
  Value& templates = spec.get_object()["podGroupTemplates"];
  if (!templates.is_array()) return;
  for (Value& pod_group : templates.get_array()) {
    if (pod_group.is_object()) pod_group.get_object().emplace("schedulingConstraints", nullptr);
  }
}

void default_group(Object& object) {
  put(object_at(object, "spec"), "disruptionMode", Object{{"single", Object()}});
}

std::string policy_name(const Value& object) {
  return json::at(object, "spec", "schedulingPolicy", "gang").is_object() ? "Gang" : "Basic";
}

Array pod_group_cells(const Value& object, Time now) {
  std::string status = "Pending";
  const Value& scheduled = condition(object, "PodGroupInitiallyScheduled");
  if (scheduled.is_object())
    status = json::string_at(scheduled, "status") == "True" ? "Scheduled" : "Unschedulable";
  const Value& disrupted = condition(object, "DisruptionTarget");
  if (disrupted.is_object()) status = json::text_at(disrupted, "reason");
  return {name_of(object),
          policy_name(object),
          or_none(json::text_at(object, "spec", "workloadRef", "workloadName")),
          status,
          age_of(creation_time(object), now)};
}

Array composite_cells(const Value& object, Time now) {
  return {name_of(object),
          policy_name(object),
          or_none(json::text_at(object, "spec", "workloadRef", "workloadName")),
          age_of(creation_time(object), now)};
}

}  // namespace

void validate_job_scheduling_shape(const Value& scheduling, Causes& causes) {
  const Value& policy = json::at(scheduling, "schedulingPolicy");
  if (policy.is_object())
    exactly_one(policy, "spec.scheduling.schedulingPolicy", {"basic", "gang"}, causes);
  validate_constraints(scheduling, "spec.scheduling", causes);
  validate_claims(scheduling, "spec.scheduling", causes);
  const Value& mode = json::at(scheduling, "disruptionMode");
  if (mode.is_object())
    exactly_one(mode, "spec.scheduling.disruptionMode", {"single", "all"}, causes);
}

std::vector<KindRules> families::pod_group() {
  using namespace columns;
  return {
      {.group = groups::kScheduling,
       .kind = "Workload",
       .prepare_create = fill_templates,
       .prepare_update = [](Value& updated, const Value&) { fill_templates(updated); },
       .validate = validate_native_workload,
       .needs_version = true},
      {.group = groups::kScheduling,
       .kind = "PodGroup",
       .defaults = default_group,
       .validate = [](const Value& o,
                      const Value* live,
                      Causes& causes) { validate_native_group(o, live, false, causes); },
       .columns = {name_column(), text("Policy"), text("Workload"), text("Status"), text("Age")},
       .cells = pod_group_cells,
       .needs_version = true},
      {.group = groups::kScheduling,
       .kind = "CompositePodGroup",
       .defaults = default_group,
       .validate = [](const Value& o,
                      const Value* live,
                      Causes& causes) { validate_native_group(o, live, true, causes); },
       .columns = {name_column(), text("Policy"), text("Workload"), text("Age")},
       .cells = composite_cells,
       .needs_version = true}};
}

}  // namespace muster::kube
