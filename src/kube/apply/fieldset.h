/// A set of field paths, as managedFields stores it: a tree whose edges are "f:name", "k:{keys}",
/// "v:value".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace muster::kube {

struct FieldSet {
  bool member = false;  // the path itself is in the set
  std::map<std::string, FieldSet> children;

  static FieldSet from_json(const json::Value& fields_v1);
  /// As fieldsV1, in JSON text.
  [[nodiscard]] std::string text() const;

  /// No member anywhere (children without members do not count).
  [[nodiscard]] bool empty() const;
  [[nodiscard]] const FieldSet* find(const std::string& element) const;
  void add(const FieldSet& other);
  void add(FieldSet&& other);
  void subtract(const FieldSet& other);
  [[nodiscard]] FieldSet intersect(const FieldSet& other) const;
  /// Drops branches that hold no member.
  void tidy();
  bool operator==(const FieldSet&) const = default;

  /// Every member as Kubernetes prints a path: .spec.containers[name="a"].image
  [[nodiscard]] std::vector<std::string> paths() const;
};

/// One step as it is printed: ".name", "[name=\"a\",port=80]", "[=\"x\"]".
std::string element_text(std::string_view element);

}  // namespace muster::kube
