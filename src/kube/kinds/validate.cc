#include "kube/kinds/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr std::size_t kAnnotationBytesMax = 256 * 1024;

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

}  // namespace

std::vector<Cause> validate_create(const Kind& kind, bool namespaced, const json::Value& object) {
  Causes causes;
  metadata_rules(namespaced, object, kind.rules->name_rule, false, causes);
  if (kind.rules->validate != nullptr) kind.rules->validate(object, nullptr, causes);
  return causes.take();
}

std::vector<Cause> validate_update(const Kind& kind,
                                   bool namespaced,
                                   const json::Value& updated,
                                   const json::Value& live) {
  Causes causes;
  metadata_rules(namespaced, updated, kind.rules->name_rule, kind.type == nullptr, causes);
  metadata_update_rules(updated, live, causes);
  if (kind.rules->validate != nullptr) kind.rules->validate(updated, &live, causes);
  return causes.take();
}

std::vector<Cause> validate_metadata(bool namespaced,
                                     const json::Value& object,
                                     std::string_view name_rule) {
  Causes causes;
  metadata_rules(namespaced, object, name_rule, true, causes);
  return causes.take();
}

namespace {

/// A value of megabytes is not sent back, twice, to whoever sent it; what is wrong stands at its end.
void cut_middle(std::string& message) {
  constexpr std::size_t kMost = 16 * 1024, kEnd = 1024;
  if (message.size() <= kMost) return;
  const std::size_t left_out = message.size() - kMost;
  std::size_t from = kMost - kEnd, to = message.size() - kEnd;
  // Not within a character.
  while (from > 0 && (static_cast<unsigned char>(message[from]) & 0xC0) == 0x80) --from;
  while (to < message.size() && (static_cast<unsigned char>(message[to]) & 0xC0) == 0x80) ++to;
  message.replace(from, to - from, fmt::format(" … ({} bytes) … ", left_out));
}

}  // namespace

Error invalid(const Gvk& gvk, std::string_view name, std::vector<Cause> causes) {
  Error error;
  error.code = Code::kInvalid;
  std::vector<std::string> texts;
  std::unordered_set<std::string> said;  // there may be thousands
  for (Cause& cause : causes) {
    cut_middle(cause.message);
    std::string text = cause.field.empty() ? cause.message : cause.field + ": " + cause.message;
    if (said.insert(text).second) texts.push_back(std::move(text));
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
