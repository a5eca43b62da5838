#include "controllers/common/conditions.h"

#include "controllers/common/objects.h"

namespace muster::controllers {

const json::Value* Conditions::find(std::string_view type) const {
  for (const auto& condition : json::array_at(status_, "conditions")) {
    if (json::string_at(condition, "type") == type) return &condition;
  }
  return nullptr;
}

bool Conditions::is_true(std::string_view type) const {
  const auto* found = find(type);
  return found != nullptr && json::string_at(*found, "status") == "True";
}

bool Conditions::has(std::string_view type) const { return find(type) != nullptr; }

std::string Conditions::reason(std::string_view type) const {
  const auto* found = find(type);
  return found == nullptr ? "" : json::text_at(*found, "reason");
}

std::string Conditions::message(std::string_view type) const {
  const auto* found = find(type);
  return found == nullptr ? "" : json::text_at(*found, "message");
}

bool Conditions::set(std::string_view type,
                     bool value,
                     std::string_view reason,
                     std::string_view message) {
  return set_at(type, value, reason, message, time_value(now_));
}

bool Conditions::set_at(std::string_view type,
                        bool value,
                        std::string_view reason,
                        std::string_view message,
                        const json::Value& time) {
  if (failed_is_final_ && is_true("Failed")) return false;
  const std::string_view status = value ? "True" : "False";
  json::Value transition = time;
  if (const auto* found = find(type);
      found != nullptr && json::string_at(*found, "status") == status) {
    if (json::string_at(*found, "reason") == reason) return false;
    transition = json::at(*found, "lastTransitionTime");
  }
  const bool ends = type == "Failed" || type == "Succeeded";
  json::Array list;
  for (const auto& condition : json::array_at(status_, "conditions")) {
    const auto other = json::string_at(condition, "type");
    if (other == type || (type == "Restarting" && other == "Running") ||
        (type == "Running" && other == "Restarting"))
      continue;
    json::Value kept = condition;
    if (ends && (other == "Running" || (!failed_is_final_ && other == "Failed")))
      kept.as_object()["status"] = "False";
    list.push_back(std::move(kept));
  }
  list.push_back(json::Object{{"type", type},
                              {"status", status},
                              {"reason", reason},
                              {"message", message},
                              {"lastUpdateTime", time},
                              {"lastTransitionTime", transition}});
  json::make_object(status_, {})["conditions"] = std::move(list);
  return true;
}

}  // namespace muster::controllers
