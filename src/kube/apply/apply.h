/// Server-side apply and the book-keeping behind it (metadata.managedFields).
#pragma once

#include <optional>

#include "base/time.h"
#include "kube/schema/schema.h"

namespace muster::kube {

/// How lists and maps of one kind are merged and owned. Built-ins take it from their Type, custom
/// resources from their CRD's schema (x-kubernetes-list-type and -map-keys).
class Shape {
 public:
  enum class ListKind { kAtomic, kSet, kMap };
  virtual ~Shape() = default;
  /// The shape of a member, or nullptr for unknown (lists below are atomic, maps granular).
  [[nodiscard]] virtual const Shape* member(std::string_view name) const = 0;
  [[nodiscard]] virtual const Shape* item() const = 0;
  [[nodiscard]] virtual ListKind list_kind() const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& list_keys() const = 0;
  [[nodiscard]] virtual bool atomic_map() const = 0;
  /// A field that the type declares, in contrast to a key of a map. Keys are owned by themselves
  /// ("." in the set).
  [[nodiscard]] virtual bool declares(std::string_view) const { return false; }
  /// A field that an empty object of the kind already holds (Go's plain structs): creating it is
  /// nobody's change.
  [[nodiscard]] virtual bool always_there(std::string_view) const { return false; }
};
const Shape& shape_of(const Type& type);  // lives as long as the schema

struct ApplyRequest {
  std::string manager;
  std::string api_version;
  std::string subresource;  // "" or "status"
  bool force = false;
  Time now;
};

/// `live` null: the object is created. The result carries managedFields; Conflict lists every field
/// and its owner.
Result<json::Value> apply(const Shape* shape,
                          const std::optional<json::Value>& live,
                          const json::Value& applied,
                          const ApplyRequest& request);

/// After a create, update or patch by `manager`: recomputes managedFields of `updated` from what
/// changed since `live` (absent: all of it). A manager without a name leaves managedFields alone.
void track_update(const Shape* shape,
                  const json::Value* live,
                  json::Value& updated,
                  const ApplyRequest& request);

}  // namespace muster::kube
