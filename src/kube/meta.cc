#include "kube/meta.h"

namespace muster::kube {
namespace {

const json::Value& metadata(const json::Value& object) { return json::at(object, "metadata"); }

Time time_member(const json::Value& object, std::string_view key) {
  const std::string_view text = json::string_at(metadata(object), key);
  if (text.empty()) return {};
  const auto time = parse_time(text);
  return time ? *time : Time{};
}

}  // namespace

Gvk gvk_of(const json::Value& object) {
  Gvk gvk;
  const std::string_view api_version = json::string_at(object, "apiVersion");
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) {
    gvk.version = api_version;
  } else {
    gvk.group = api_version.substr(0, slash);
    gvk.version = api_version.substr(slash + 1);
  }
  gvk.kind = json::string_at(object, "kind");
  return gvk;
}

std::string_view name_of(const json::Value& object) {
  return json::string_at(metadata(object), "name");
}
std::string_view namespace_of(const json::Value& object) {
  return json::string_at(metadata(object), "namespace");
}
std::string_view uid_of(const json::Value& object) {
  return json::string_at(metadata(object), "uid");
}
std::string_view resource_version_of(const json::Value& object) {
  return json::string_at(metadata(object), "resourceVersion");
}
std::string_view label(const json::Value& object, std::string_view key) {
  return json::string_at(metadata(object), "labels", key);
}
std::string_view annotation(const json::Value& object, std::string_view key) {
  return json::string_at(metadata(object), "annotations", key);
}

Time creation_time(const json::Value& object) { return time_member(object, "creationTimestamp"); }
Time deletion_time(const json::Value& object) { return time_member(object, "deletionTimestamp"); }
bool is_deleting(const json::Value& object) {
  return !json::string_at(metadata(object), "deletionTimestamp").empty();
}

std::vector<OwnerReference> owners_of(const json::Value& object) {
  std::vector<OwnerReference> owners;
  for (const json::Value& value : json::array_at(metadata(object), "ownerReferences")) {
    owners.push_back({.api_version = json::text_at(value, "apiVersion"),
                      .kind = json::text_at(value, "kind"),
                      .name = json::text_at(value, "name"),
                      .uid = json::text_at(value, "uid"),
                      .controller = json::bool_at(value, "controller"),
                      .block_owner_deletion = json::bool_at(value, "blockOwnerDeletion")});
  }
  return owners;
}

OwnerReference controller_of(const json::Value& object) {
  for (OwnerReference& owner : owners_of(object)) {
    if (owner.controller) return std::move(owner);
  }
  return {};
}

json::Value owner_reference(const json::Value& owner, bool controller, bool block_owner_deletion) {
  json::Object reference;
  reference["apiVersion"] = json::at(owner, "apiVersion");
  reference["kind"] = json::at(owner, "kind");
  reference["name"] = name_of(owner);
  reference["uid"] = uid_of(owner);
  if (controller) reference["controller"] = true;
  if (block_owner_deletion) reference["blockOwnerDeletion"] = true;
  return reference;
}

const json::Value& condition(const json::Value& object, std::string_view type) {
  for (const json::Value& value : json::array_at(object, "status", "conditions")) {
    if (json::string_at(value, "type") == type) return value;
  }
  return json::null_value();
}

bool condition_true(const json::Value& object, std::string_view type) {
  return json::string_at(condition(object, type), "status") == "True";
}

bool set_condition(json::Value& object, const Condition& wanted, Time now) {
  json::Value& list = json::make(object, {"status", "conditions"});
  if (!list.is_array()) list.emplace_array();
  const auto put = [](json::Object& into, std::string_view key, const std::string& value) {
    const json::Value* have = into.if_contains(key);
    if (have == nullptr ? value.empty() : json::as_string(*have) == value) return false;
    into[key] = value;
    return true;
  };
  for (json::Value& value : list.get_array()) {
    if (json::string_at(value, "type") != wanted.type || !value.is_object()) continue;
    json::Object& have = value.get_object();
    const bool transition = put(have, "status", wanted.status);
    bool changed = put(have, "reason", wanted.reason);
    changed = put(have, "message", wanted.message) || changed;
    if (transition) have["lastTransitionTime"] = format_time(now);
    return transition || changed;
  }
  json::Object fresh;
  fresh["type"] = wanted.type;
  fresh["status"] = wanted.status;
  fresh["lastTransitionTime"] = format_time(now);
  if (!wanted.reason.empty()) fresh["reason"] = wanted.reason;
  if (!wanted.message.empty()) fresh["message"] = wanted.message;
  list.get_array().push_back(std::move(fresh));
  return true;
}

}  // namespace muster::kube
