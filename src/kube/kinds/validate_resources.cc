#include <fmt/core.h>

#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

bool native(std::string_view name) {
  return name.find('/') == std::string_view::npos ||
         name.find(kKubernetesPrefix) != std::string_view::npos;
}

bool extended(std::string_view name) {
  return !native(name) && !name.starts_with("requests.") &&
         check_label_key(std::string("requests.").append(name)).empty();
}

bool standard_container_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
         name.starts_with("hugepages-");
}

bool quota_resource(std::string_view name) {
  static constexpr std::string_view kNames[] = {"cpu",
                                                "memory",
                                                "ephemeral-storage",
                                                "storage",
                                                "pods",
                                                "services",
                                                "replicationcontrollers",
                                                "resourcequotas",
                                                "secrets",
                                                "configmaps",
                                                "persistentvolumeclaims",
                                                "services.loadbalancers",
                                                "services.nodeports",
                                                "requests.cpu",
                                                "requests.memory",
                                                "requests.storage",
                                                "requests.ephemeral-storage",
                                                "limits.cpu",
                                                "limits.memory",
                                                "limits.ephemeral-storage"};
  for (const std::string_view known : kNames) {
    if (name == known) return true;
  }
  return name.starts_with("count/") || name.starts_with("hugepages-") ||
         name.starts_with("requests.hugepages-");
}

bool whole_number(std::string_view name) {
  return name == "pods" || name == "services" || name == "replicationcontrollers" ||
         name == "resourcequotas" || name == "secrets" || name == "configmaps" ||
         name == "persistentvolumeclaims" || name == "services.loadbalancers" ||
         name == "services.nodeports" || name.starts_with("count/") || extended(name) ||
         (name.starts_with("requests.") && extended(name.substr(9)));
}

void validate_resource_name(
    std::string_view name, const std::string& field, bool container, bool quota, Causes& causes) {
  const bool bad = !check_label_key(name).empty();
  if (bad) {
    for (const std::string& problem : qualified_name_problems(name))
      causes.invalid(field, quoted(name), problem);
  }
  if (name.find('/') == std::string_view::npos) {
    if (!bad && !quota_resource(name))
      causes.invalid(field, quoted(name), "must be a standard resource type or fully qualified");
    if (container && !standard_container_resource(name))
      causes.invalid(field, quoted(name), "must be a standard resource for containers");
    if (quota && bad) causes.invalid(field, quoted(name), "must be a standard resource for quota");
  } else if (container && !native(name) && !extended(name)) {
    causes.invalid(field, quoted(name), "doesn't follow extended resource name standard");
  }
}

Result<Quantity> quantity_of(const json::Value& value) {
  return value.is_string() ? parse_quantity(json::as_string(value))
                           : parse_quantity(json::dump(value));
}

}  // namespace

void validate_resource_list(const json::Value& list,
                            const std::string& field,
                            bool container,
                            Causes& causes) {
  for (const auto& member : json::as_object(list)) {
    const std::string_view name = member.key();
    std::string here;
    here.reserve(field.size() + name.size() + 2);
    here.append(field).append(1, '[').append(name).append(1, ']');
    validate_resource_name(name, here, container, field == "spec.hard", causes);
    const auto quantity = quantity_of(member.value());
    if (!quantity) {
      causes.invalid(here, shown(member.value()), quantity.error().message);
    } else if (quantity->is_negative()) {
      causes.invalid(here, quoted(quantity->text()), "must be greater than or equal to 0");
    } else if (whole_number(name) && !quantity->is_whole()) {
      causes.invalid(here, quoted(quantity->text()), "must be an integer");
    }
  }
}

void validate_resource_requirements(const json::Value& resources,
                                    const std::string& field,
                                    Causes& causes) {
  const json::Value& limits = json::at(resources, "limits");
  const json::Value& requests = json::at(resources, "requests");
  validate_resource_list(limits, field + ".limits", true, causes);
  validate_resource_list(requests, field + ".requests", true, causes);
  const auto has = [&](auto wanted) {
    for (const json::Value* list : {&limits, &requests}) {
      for (const auto& member : json::as_object(*list)) {
        if (wanted(std::string_view(member.key()))) return true;
      }
    }
    return false;
  };
  if (has([](std::string_view name) { return name.starts_with("hugepages-"); }) &&
      !has([](std::string_view name) { return name == "cpu" || name == "memory"; })) {
    causes.forbidden(field, "HugePages require cpu or memory");
  }
  const auto overcommit = [](std::string_view name) {
    return native(name) && !name.starts_with("hugepages-");
  };
  for (const auto& member : json::as_object(requests)) {
    const std::string_view name = member.key();
    const auto request = quantity_of(member.value());
    if (!request) continue;
    const json::Value& limit_value = json::at(limits, name);
    if (limit_value.is_null()) {
      if (!overcommit(name))
        causes.required(field + ".limits", "Limit must be set for non overcommitable resources");
      continue;
    }
    const auto limit = quantity_of(limit_value);
    if (!limit) continue;
    if (*request != *limit && !overcommit(name)) {
      causes.invalid(field + ".requests",
                     quoted(request->text()),
                     fmt::format("must be equal to {} limit of {}", name, limit->text()));
    } else if (*request > *limit) {
      causes.invalid(
          field + ".requests",
          quoted(request->text()),
          fmt::format("must be less than or equal to {} limit of {}", name, limit->text()));
    }
  }
}

namespace {

const std::set<std::string_view> kStandardQuota = {"cpu",
                                                   "memory",
                                                   "ephemeral-storage",
                                                   "requests.cpu",
                                                   "requests.memory",
                                                   "requests.storage",
                                                   "requests.ephemeral-storage",
                                                   "limits.cpu",
                                                   "limits.memory",
                                                   "limits.ephemeral-storage",
                                                   "pods",
                                                   "resourcequotas",
                                                   "services",
                                                   "replicationcontrollers",
                                                   "secrets",
                                                   "persistentvolumeclaims",
                                                   "configmaps",
                                                   "services.nodeports",
                                                   "services.loadbalancers"};

/// Whether quotas of a scope can count the resource.
bool counts_in_scope(std::string_view scope, std::string_view resource) {
  static const std::set<std::string_view> kCompute = {
      "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"};
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass")
    return resource == "persistentvolumeclaims" || resource == "requests.storage";
  return resource == "pods" || kCompute.contains(resource);
}

bool is_quota_scope(std::string_view scope) {
  static const std::set<std::string_view> kScopes = {"Terminating",
                                                     "NotTerminating",
                                                     "BestEffort",
                                                     "NotBestEffort",
                                                     "PriorityClass",
                                                     "CrossNamespacePodAffinity",
                                                     "VolumeAttributesClass"};
  return kScopes.contains(scope);
}

/// Whether the quota limits something that the scope cannot be held against.
bool beyond_scope(const json::Value& quota, std::string_view scope) {
  for (const auto& member : json::object_at(quota, "spec", "hard")) {
    if (kStandardQuota.contains(member.key()) && !counts_in_scope(scope, member.key())) return true;
  }
  return false;
}

/// A scope selector as Go prints its own struct.
std::string selector_in_go(const json::Value& selector) {
  json::Array all;
  for (const json::Value& one : json::array_at(selector, "matchExpressions"))
    all.push_back(json::Object{{"ScopeName", json::string_at(one, "scopeName")},
                               {"Operator", json::string_at(one, "operator")},
                               {"Values", json::at(one, "values")}});
  return json::dump(json::Object{{"MatchExpressions", std::move(all)}});
}

void validate_quota_scopes(const json::Value& quota, Causes& causes) {
  const json::Value& scopes = json::at(quota, "spec", "scopes");
  std::set<std::string_view> seen;
  bool beyond = false;
  for (const json::Value& scope : json::as_array(scopes)) {
    if (!is_quota_scope(json::as_string(scope)))
      causes.invalid("spec.scopes", json::dump(scopes), "unsupported scope");
    beyond = beyond || beyond_scope(quota, json::as_string(scope));
    seen.insert(json::as_string(scope));
  }
  if (beyond)
    causes.invalid("spec.scopes", json::dump(scopes), "unsupported scope applied to resource");
  for (const auto& [one, other] :
       {std::pair{"Terminating", "NotTerminating"}, std::pair{"BestEffort", "NotBestEffort"}}) {
    if (seen.contains(one) && seen.contains(other))
      causes.invalid("spec.scopes", json::dump(scopes), "conflicting scopes");
  }
}

void validate_quota_selector(const json::Value& quota, Causes& causes) {
  const std::string field = "spec.scopeSelector.matchExpressions";
  const json::Value& selector = json::at(quota, "spec", "scopeSelector");
  for (const json::Value& one : json::array_at(selector, "matchExpressions")) {
    const std::string_view scope = json::string_at(one, "scopeName");
    const std::string_view op = json::string_at(one, "operator");
    const bool has_values = !json::array_at(one, "values").empty();
    if (!is_quota_scope(scope))
      causes.invalid(field + ".scopeName", quoted(scope), "unsupported scope");
    if (beyond_scope(quota, scope))
      causes.invalid(field, selector_in_go(selector), "unsupported scope applied to resource");
    if (is_quota_scope(scope) && scope != "PriorityClass" && scope != "VolumeAttributesClass" &&
        op != "Exists")
      causes.invalid(
          field + ".operator",
          quoted(op),
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
          "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
    if (op == "In" || op == "NotIn") {
      if (!has_values)
        causes.required(
            field + ".values",
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (has_values)
        causes.invalid(
            field + ".values",
            json::dump(json::at(one, "values")),
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
    } else {
      causes.invalid(field + ".operator", quoted(op), "not a valid selector operator");
    }
  }
}

}  // namespace

void validate_quota(const json::Value& object, Causes& causes) {
  validate_resource_list(json::at(object, "spec", "hard"), "spec.hard", false, causes);
  for (const auto& member : json::object_at(object, "spec", "hard")) {
    const std::string_view name = member.key();
    if (name.find('/') != std::string_view::npos || kStandardQuota.contains(name) ||
        name.starts_with("hugepages-") || name.starts_with("requests.hugepages-"))
      continue;
    if (!check_label_key(name).empty()) continue;  // said already
    causes.invalid(
        fmt::format("spec.hard[{}]", name), quoted(name), "must be a standard resource for quota");
  }
  validate_quota_scopes(object, causes);
  validate_quota_selector(object, causes);
}

}  // namespace muster::kube
