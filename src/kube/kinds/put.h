/// How the files of kinds fill in what an object leaves out.
#pragma once

#include "json/json.h"

namespace muster::kube {

inline void put(json::Object& object, std::string_view key, json::Value value) {
  json::Value& have = object[key];
  if (have.is_null()) have = std::move(value);
}

/// Empty counts as absent, as it does for Go's strings.
inline void put_text(json::Object& object, std::string_view key, std::string_view text) {
  json::Value& value = object[key];
  if (json::as_string(value).empty()) value = text;
}

/// The member as an object, made if need be.
inline json::Object& object_at(json::Object& object, std::string_view key) {
  json::Value& value = object[key];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

/// The member if it is an object.
inline json::Object* find(json::Object& object, std::string_view key) {
  json::Value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

/// Calls `fn` with each object of a list.
template <typename Fn>
void each(json::Object& object, std::string_view key, Fn fn) {
  json::Value* list = object.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (json::Value& item : list->get_array()) {
    if (item.is_object()) fn(item.get_object());
  }
}

/// A member as it was, or no longer there.
inline void keep_member(json::Value& updated, const json::Value& live, std::string_view key) {
  const json::Value& value = json::at(live, key);
  if (value.is_null())
    json::remove(updated, {key});
  else
    json::make(updated, {key}) = value;
}

}  // namespace muster::kube
