/// What server-side apply owns in parts, by the shape of the kind: maps by their members, lists by
/// their items where the kind names keys; the rest as a whole.
#pragma once

#include <map>
#include <string>

#include "kube/apply/apply.h"

namespace muster::kube {

/// Objects are not deeper than this; what is, is left alone.
inline constexpr int kApplyDepthMax = 200;

/// Shapes may be null: nothing is known of the value.
inline const Shape* member_of(const Shape* shape, std::string_view key) {
  return shape == nullptr ? nullptr : shape->member(key);
}
inline bool granular_list(const Shape* shape, const json::Value& value) {
  return value.is_array() && shape != nullptr && shape->list_kind() != Shape::ListKind::kAtomic;
}
inline bool granular_map(const Shape* shape, const json::Value& value) {
  return value.is_object() && !(shape != nullptr && shape->atomic_map());
}

/// "k:{…}" or "v:…" of a list's item, empty when the item has none of the keys.
std::string item_element(const Shape& shape, const json::Value& item);
/// Large lists are looked up by element, not searched again for each item.
std::map<std::string, const json::Value*> by_element(const Shape& shape, const json::Array& list);

}  // namespace muster::kube
