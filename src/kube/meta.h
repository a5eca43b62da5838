/// Metadata of any object, read off its JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/json.h"

namespace muster::kube {

struct Gvk {
  std::string group;
  std::string version;
  std::string kind;
  auto operator<=>(const Gvk&) const = default;
  [[nodiscard]] std::string api_version() const {
    return group.empty() ? version : group + "/" + version;
  }
};

/// From apiVersion and kind; empty fields when absent.
Gvk gvk_of(const json::Value& object);
std::string_view name_of(const json::Value& object);
std::string_view namespace_of(const json::Value& object);
std::string_view uid_of(const json::Value& object);
std::string_view resource_version_of(const json::Value& object);
std::string_view label(const json::Value& object, std::string_view key);
std::string_view annotation(const json::Value& object, std::string_view key);
/// Zero when absent.
Time creation_time(const json::Value& object);
Time deletion_time(const json::Value& object);
bool is_deleting(const json::Value& object);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false, block_owner_deletion = false;
};
std::vector<OwnerReference> owners_of(const json::Value& object);
/// The owner with controller: true, or an empty reference.
OwnerReference controller_of(const json::Value& object);
json::Value owner_reference(const json::Value& owner, bool controller, bool block_owner_deletion);

/// status.conditions: find by type (null_value if absent), and set: transition time changes with
/// the status only.
const json::Value& condition(const json::Value& object, std::string_view type);
bool condition_true(const json::Value& object, std::string_view type);
struct Condition {
  std::string type, status, reason, message;
};
/// True when anything changed.
bool set_condition(json::Value& object, const Condition& condition, Time now);

}  // namespace muster::kube
