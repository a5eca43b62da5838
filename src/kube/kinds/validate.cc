#include "kube/kinds/validate.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr std::size_t kAnnotationBytesMax = 256 * 1024;

std::string_view name_rule_of(const Gvk& gvk) {
  if (gvk.group.empty()) {
    if (gvk.kind == "Namespace") return "namespace";
    if (gvk.kind == "Service")
      return "label";  // DNS-1123 since 1.34 (RelaxedServiceNameValidation)
  }
  if (gvk.group == groups::kRbac) return "path";
  return "subdomain";
}

std::string check_name(std::string_view rule, std::string_view name) {
  if (rule == "namespace" && name.find('.') != std::string_view::npos)
    return "must not contain dots";
  if (rule == "label" || rule == "namespace") return check_dns_label(name);
  if (rule == "label1035") return check_dns_1035_label(name);
  if (rule == "path") return check_path_segment(name);
  return check_dns_subdomain(name);
}

void validate_annotations(const Value& annotations, Causes& causes) {
  std::size_t total = 0;
  for (const auto& member : json::as_object(annotations)) {
    const std::string key(member.key());
    if (!check_label_key(to_lower(key)).empty()) {
      for (const std::string& problem : qualified_name_problems(to_lower(key)))
        causes.invalid("metadata.annotations", quoted(key), problem);
    }
    total += key.size() + json::as_string(member.value()).size();
  }
  if (total > kAnnotationBytesMax) causes.too_long("metadata.annotations", kAnnotationBytesMax);
}

void validate_owner_references(const Value& references, Causes& causes) {
  std::string controller;
  int second_controllers = 0;
  const json::Array& list = json::as_array(references);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value& reference = list[i];
    const std::string field = fmt::format("metadata.ownerReferences[{}]", i);
    const std::string_view api_version = json::string_at(reference, "apiVersion");
    if (api_version.empty()) {
      causes.required(field + ".apiVersion", "must not be empty");
    } else if (split(api_version, '/').size() > 2) {
      causes.invalid(
          field + ".apiVersion", quoted(api_version), "must be <group>/<version> or <version>");
    }
    for (const std::string_view key : {"kind", "name", "uid"}) {
      if (json::string_at(reference, key).empty())
        causes.required(fmt::format("{}.{}", field, key), "must not be empty");
    }
    if (json::string_at(reference, "kind") == "Event" &&
        (api_version == "v1" || api_version.starts_with(fmt::format("{}/", groups::kEvents)))) {
      const std::string_view slash = api_version == "v1" ? "/" : "";
      causes.invalid(
          field,
          json::dump(reference),
          fmt::format("{}{}, Kind=Event is disallowed from being an owner", slash, api_version));
    }
    if (!json::bool_at(reference, "controller")) continue;
    const std::string here = fmt::format(
        "{}/{}", json::string_at(reference, "kind"), json::string_at(reference, "name"));
    // Each of these shows the whole list, so a long one is shown for the first few only.
    if (!controller.empty() && ++second_controllers <= 8) {
      causes.invalid(
          "metadata.ownerReferences",
          json::dump(references),
          fmt::format(
              "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
              controller,
              here));
    }
    controller = here;
  }
}

/// `qualified`: Kubernetes' own kinds want a domain before the name.
void validate_finalizers(const Value& finalizers, bool qualified, Causes& causes) {
  const json::Array& list = json::as_array(finalizers);
  bool orphan = false, foreground = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view name = json::as_string(list[i]);
    const std::string field = fmt::format("metadata.finalizers[{}]", i);
    orphan = orphan || name == names::kubernetes::kOrphan;
    foreground = foreground || name == names::kubernetes::kForegroundDeletion;
    if (!check_label_key(name).empty()) {
      for (const std::string& problem : qualified_name_problems(name))
        causes.invalid("metadata.finalizers", quoted(name), problem);
    } else if (qualified && name.find('/') == std::string_view::npos &&
               name != names::kubernetes::kOrphan &&
               name != names::kubernetes::kForegroundDeletion && name != "kubernetes") {
      causes.invalid(field,
                     quoted(name),
                     "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
  if (orphan && foreground) {
    causes.invalid("metadata.finalizers",
                   json::dump(finalizers),
                   "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void metadata_rules(
    bool namespaced, const Value& object, std::string_view name_rule, bool custom, Causes& causes) {
  const Value& metadata = json::at(object, "metadata");
  const std::string_view generate_name = json::string_at(metadata, "generateName");
  const std::string_view name = json::string_at(metadata, "name");
  const std::string_view space = json::string_at(metadata, "namespace");
  if (!generate_name.empty()) {
    // A prefix may end in '-' or '.': what follows makes it whole. Too long is no error, it is cut.
    std::string sample(generate_name.substr(
        0,
        std::min<std::size_t>(generate_name.size(),
                              name_rule == "label" || name_rule == "namespace" ? 58 : 248)));
    if (sample.ends_with('-')) sample += 'a';
    causes.check("metadata.generateName", generate_name, check_name(name_rule, sample));
  }
  if (name.empty())
    causes.required("metadata.name", "name or generateName is required");
  else
    causes.check("metadata.name", name, check_name(name_rule, name));
  if (namespaced) {
    if (space.empty())
      causes.required("metadata.namespace");
    else
      causes.check("metadata.namespace", space, check_dns_label(space));
  } else if (!space.empty()) {
    causes.forbidden("metadata.namespace", "not allowed on this type");
  }
  if (json::int_at(metadata, "generation") < 0) {
    causes.invalid("metadata.generation",
                   json::dump(json::at(metadata, "generation")),
                   "must be greater than or equal to 0");
  }
  validate_labels(json::at(metadata, "labels"), "metadata.labels", causes);
  validate_annotations(json::at(metadata, "annotations"), causes);
  validate_owner_references(json::at(metadata, "ownerReferences"), causes);
  validate_finalizers(json::at(metadata, "finalizers"), !custom, causes);
}

void metadata_update_rules(const Value& updated, const Value& live, Causes& causes) {
  const Value& now = json::at(updated, "metadata");
  const Value& before = json::at(live, "metadata");
  for (const std::string_view key : {"name",
                                     "namespace",
                                     "uid",
                                     "creationTimestamp",
                                     "deletionTimestamp",
                                     "deletionGracePeriodSeconds"}) {
    const bool nothing = key != "deletionGracePeriodSeconds" &&
                         json::is_empty(json::at(now, key)) &&
                         json::is_empty(json::at(before, key));
    if (!json::equal(json::at(now, key), json::at(before, key)) && !nothing) {
      causes.invalid(
          fmt::format("metadata.{}", key), shown(json::at(now, key)), "field is immutable");
    }
  }
  if (json::int_at(now, "generation") < json::int_at(before, "generation")) {
    causes.invalid(
        "metadata.generation", json::dump(json::at(now, "generation")), "must not be decremented");
  }
  if (is_deleting(live)) {
    std::vector<std::string> added;
    const json::Array& old = json::array_at(before, "finalizers");
    for (const Value& finalizer : json::array_at(now, "finalizers")) {
      if (std::find(old.begin(), old.end(), finalizer) == old.end())
        added.push_back(quoted(json::as_string(finalizer)));
    }
    if (!added.empty()) {
      causes.forbidden(
          "metadata.finalizers",
          fmt::format(
              "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
              join(added, ", ")));
    }
  }
}

void kind_rules(const Gvk& gvk, const Value& object, const Value* live, Causes& causes) {
  const std::string& group = gvk.group;
  const std::string& kind = gvk.kind;
  if (group.empty()) {
    if (kind == "Pod") {
      // A spec that stays as it was has been found good when it came; most updates of pods are of
      // their status.
      if (live == nullptr || !json::equal(json::at(object, "spec"), json::at(*live, "spec")))
        validate_pod_spec(json::at(object, "spec"), "spec", causes);
      if (live == nullptr)
        validate_new_pod(json::at(object, "spec"), causes);
      else
        validate_pod_update(object, *live, causes);
    } else if (kind == "Service")
      validate_service(object, live, causes);
    else if (kind == "ConfigMap")
      validate_config_map(object, live, causes);
    else if (kind == "Secret")
      validate_secret(object, live, causes);
    else if (kind == "Node")
      validate_node(object, causes);
    else if (kind == "ResourceQuota")
      validate_quota(object, causes);
    else if (kind == "PersistentVolumeClaim")
      validate_claim(object, live, causes);
    else if (kind == "PersistentVolume")
      validate_volume_object(object, causes);
    else if (kind == "LimitRange")
      validate_limit_range(object, causes);
    else if (kind == "Endpoints")
      validate_endpoints(object, causes);
    else if (kind == "Event")
      validate_event(object, false, causes);
    else if (kind == "ReplicationController")
      validate_replicated(gvk, object, live, causes);
    else if (kind == "PodTemplate")
      validate_pod_spec(json::at(object, "template", "spec"), "template.spec", causes);
  } else if (group == "apps") {
    validate_replicated(gvk, object, live, causes);
  } else if (group == "batch") {
    if (kind == "Job") {
      validate_job(object, live, causes);
      if (live != nullptr) validate_job_status(object, causes);
    }
    if (kind == "CronJob") validate_cron_job(object, causes);
  } else if (group == groups::kScheduling) {
    if (kind == "PriorityClass")
      validate_priority_class(object, live, causes);
    else if (kind == "Workload")
      validate_native_workload(object, live, causes);
    else if (kind == "PodGroup")
      validate_native_group(object, live, false, causes);
    else if (kind == "CompositePodGroup")
      validate_native_group(object, live, true, causes);
  } else if (group == "policy" && kind == "PodDisruptionBudget") {
    validate_pdb(object, causes);
  } else if (group == groups::kEvents && kind == "Event") {
    validate_event(object, true, causes);
  } else if (group == groups::kCoordination && kind == "Lease") {
    validate_lease(object, causes);
  } else if (group == groups::kRbac) {
    if (kind == "Role" || kind == "ClusterRole")
      validate_role(object, kind == "ClusterRole", causes);
    else
      validate_role_binding(object, live, kind == "ClusterRoleBinding", causes);
  } else if (group == groups::kStorage && kind == "StorageClass") {
    validate_storage_class(object, causes);
  } else if (group == groups::kDiscovery && kind == "EndpointSlice") {
    validate_endpoint_slice(object, causes);
  } else if (group == "autoscaling" && kind == "HorizontalPodAutoscaler") {
    validate_autoscaler(object, causes);
  } else if (group == groups::kApiExtensions) {
    validate_crd(object, causes);
  }
}

}  // namespace

void validate_labels(const Value& labels, const std::string& field, Causes& causes) {
  for (const auto& member : json::as_object(labels)) {
    const std::string_view key = member.key();
    if (!check_label_key(key).empty()) {
      for (const std::string& problem : qualified_name_problems(key))
        causes.invalid(field, quoted(key), problem);
    }
    const std::string_view value = json::as_string(member.value());
    const std::string problem = check_label_value(value);
    if (!problem.empty()) causes.invalid(field, quoted(value), problem);
  }
}

void validate_label_selector(const Value& selector, const std::string& field, Causes& causes) {
  validate_labels(json::at(selector, "matchLabels"), field + ".matchLabels", causes);
  const json::Array& expressions = json::array_at(selector, "matchExpressions");
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const std::string here = fmt::format("{}.matchExpressions[{}]", field, i);
    const std::string_view op = json::string_at(expressions[i], "operator");
    const std::size_t values = json::array_at(expressions[i], "values").size();
    if (op == "In" || op == "NotIn") {
      if (values == 0)
        causes.required(here + ".values", "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (values > 0)
        causes.forbidden(here + ".values",
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
      causes.invalid(here + ".operator", quoted(op), "not a valid selector operator");
    }
    const std::string_view key = json::string_at(expressions[i], "key");
    for (const std::string& problem : qualified_name_problems(key))
      causes.invalid(here + ".key", quoted(key), problem);
    for (const Value& value : json::array_at(expressions[i], "values")) {
      causes.check(
          here + ".values", json::as_string(value), check_label_value(json::as_string(value)));
    }
  }
}

void validate_enum(const Value& value,
                   std::string field,
                   const std::vector<std::string_view>& supported,
                   Causes& causes,
                   bool required) {
  const std::string_view text = json::as_string(value);
  if (text.empty()) {
    if (required) causes.required(std::move(field));
    return;
  }
  if (std::find(supported.begin(), supported.end(), text) == supported.end())
    causes.not_supported(std::move(field), text, supported);
}

void validate_range(
    const Value& value, std::string field, std::int64_t low, std::int64_t high, Causes& causes) {
  if (value.is_null()) return;
  const std::int64_t number = json::as_int(value);
  if (number < low || number > high)
    causes.invalid(std::move(field),
                   json::dump(value),
                   fmt::format("must be between {} and {}, inclusive", low, high));
}

void validate_non_negative(const Value& value, std::string field, Causes& causes) {
  if (json::as_int(value) < 0)
    causes.invalid(std::move(field), json::dump(value), "must be greater than or equal to 0");
}

void immutable(const Value& updated, const Value& live, std::string field, Causes& causes) {
  if (!json::equal(updated, live))
    causes.invalid(std::move(field), shown(updated), "field is immutable");
}

std::vector<Cause> validate_create(const Gvk& gvk, bool namespaced, const json::Value& object) {
  Causes causes;
  metadata_rules(namespaced, object, name_rule_of(gvk), false, causes);
  kind_rules(gvk, object, nullptr, causes);
  return causes.take();
}

std::vector<Cause> validate_update(const Gvk& gvk,
                                   bool namespaced,
                                   const json::Value& updated,
                                   const json::Value& live) {
  Causes causes;
  metadata_rules(
      namespaced, updated, name_rule_of(gvk), Schema::builtin().find_type(gvk) == nullptr, causes);
  metadata_update_rules(updated, live, causes);
  kind_rules(gvk, updated, &live, causes);
  return causes.take();
}

std::vector<Cause> validate_metadata(bool namespaced,
                                     const json::Value& object,
                                     std::string_view name_rule) {
  Causes causes;
  metadata_rules(namespaced, object, name_rule, true, causes);
  return causes.take();
}

Error invalid(const Gvk& gvk, std::string_view name, std::vector<Cause> causes) {
  Error error;
  error.code = Code::kInvalid;
  std::vector<std::string> texts;
  for (const Cause& cause : causes) {
    std::string text = cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  }
  // Events answer as core events whichever of their two groups was asked.
  const std::string group = gvk.group == groups::kEvents ? "" : gvk.group;
  const std::string kind = group.empty() ? gvk.kind : gvk.kind + "." + group;
  error.message = fmt::format("{} {} is invalid: {}",
                              kind,
                              quoted(name),
                              texts.size() == 1 ? texts[0] : "[" + join(texts, ", ") + "]");
  error.subject.name = name;
  error.subject.group = group;
  error.subject.kind = gvk.kind;
  error.causes = std::move(causes);
  return error;
}

}  // namespace muster::kube
