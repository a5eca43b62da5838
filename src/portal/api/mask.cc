#include "portal/api/mask.h"

#include "base/strings.h"
#include "kube/names.h"

namespace muster::portal {
namespace {

constexpr std::string_view kMask = "******";

bool is_secret(std::string_view name) {
  const std::string lower = to_lower(name);
  for (const std::string_view word : {"password",
                                      "passwd",
                                      "secret",
                                      "token",
                                      "credential",
                                      "private",
                                      "apikey",
                                      "api_key",
                                      "access_key"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

/// References to Secrets are no secrets: "secretName", "secretKeyRef".
bool is_reference(std::string_view key) {
  return key.ends_with("Name") || key.ends_with("Ref") || key.ends_with("name") ||
         key.starts_with("automount");
}

void hide_values(json::Value& variables) {
  if (!variables.is_array()) return;
  for (json::Value& variable : variables.get_array()) {
    if (!json::at(variable, "value").is_null()) json::make(variable, {"value"}) = kMask;
  }
}

void mask(json::Value& value, Environment environment, int depth) {
  if (depth > 64) {
    value = nullptr;
    return;
  }
  if (value.is_array()) {
    for (json::Value& one : value.get_array()) mask(one, environment, depth + 1);
    return;
  }
  if (!value.is_object()) return;
  json::Object& object = value.get_object();
  const bool variable = object.contains("name") && object.contains("value") &&
                        is_secret(json::string_at(value, "name"));
  if (environment == Environment::kHidden) {
    object.erase("annotations");
    if (json::Value* variables = object.if_contains("env")) hide_values(*variables);
  }
  for (auto& member : object) {
    if (variable && member.key() == "value")
      member.value() = kMask;
    else if (member.value().is_string() && is_secret(member.key()) && !is_reference(member.key()))
      member.value() = kMask;
    else
      mask(member.value(), environment, depth + 1);
  }
}

}  // namespace

json::Value masked(const json::Value& object, Environment environment) {
  json::Value copy = object;
  json::remove(copy, {"metadata", "managedFields"});
  json::remove(copy, {"metadata", "annotations", kube::names::kubernetes::kLastApplied});
  mask(copy, environment, 0);
  return copy;
}

}  // namespace muster::portal
