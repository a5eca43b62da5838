/// The built-in kinds of Kubernetes 1.37 as one table: fields, types, field numbers, merge keys,
/// list types, resources, verbs and columns. It drives protobuf bodies, unknown-field checks,
/// strategic merge, server-side apply, OpenAPI, discovery and Table headers. Embedded in the
/// binary, parsed once at start.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/meta.h"

namespace muster::kube {

struct Type;

/// The scalars that a check tells apart; kOther is any further text.
enum class Scalar : std::uint8_t {
  kString,
  kBytes,
  kBoolean,
  kInt32,
  kInt64,
  kDouble,
  kAny,
  kOther
};

/// What a field holds: a scalar ("string", "integer:int32", "boolean", "string:byte", "number",
/// "object" …), a message (`type` set), a list or a map of those.
struct FieldType {
  enum class Shape : std::uint8_t { kScalar, kMessage, kList, kMap } shape = Shape::kScalar;
  std::string scalar;            // for kScalar
  Scalar kind = Scalar::kOther;  // the same, to look at
  /// For kMessage; also the named scalar (Quantity, Time …) of a kScalar.
  const Type* type = nullptr;
  std::shared_ptr<const FieldType> element;  // for kList and kMap
};

struct Field {
  std::string name;
  FieldType type;
  bool required = false;
  /// Go writes a plain field in protobuf even when it is zero, but a pointer only when it is set. The
  /// JSON form leaves plain zeros out, and a pointer's zero means something ("replicas: 0").
  bool pointer = false;
  std::string patch_strategy, merge_key;  // strategic merge
  std::string list_type, map_type;        // server-side apply: atomic, set, map / granular, atomic
  std::vector<std::string> list_map_keys;
  std::vector<int> proto;  // field number, or path of numbers
  json::Value default_value;
  std::vector<std::string> enumeration;
  std::size_t ordinal = 0;  // its place among the fields of its type
};

/// Named types whose JSON form is not the struct that their protobuf form is.
enum class Special : std::uint8_t {
  kNone,
  kQuantity,
  kTime,
  kMicroTime,
  kIntOrString,
  kRawExtension,
  kFieldsV1,
  kJson,
  kPropsOrBool,
  kPropsOrArray,
  kPropsOrStrings
};

struct Type {
  std::string name;  // "io.k8s.api.core.v1.Pod"
  Special special = Special::kNone;
  std::string scalar;  // for named scalars: "string", "string:date-time", "any", "object"
  std::vector<Gvk> gvks;
  std::map<std::string, Field, std::less<>> fields;
  /// At the first proto number: the field (several for flattened messages).
  std::vector<std::vector<const Field*>> by_number;
  std::string map_type;
  /// Fields by a hash of their names, a power of two of places, each field in the first that was
  /// free.
  std::vector<const Field*> by_hash;
  [[nodiscard]] const Field* find(std::string_view field) const;
  /// The Go name: "PodSpec".
  [[nodiscard]] std::string_view short_name() const;
};

struct Column {
  std::string name, type, format, description;
  int priority = 0;
  std::string json_path;  // CRDs
};

struct Subresource {
  std::string name, group, version, kind;
  std::vector<std::string> verbs;
};

struct ResourceInfo {
  std::string group, version, plural, singular, kind;
  bool namespaced = true;
  std::vector<std::string> verbs, short_names, categories;
  std::vector<Subresource> subresources;
  std::vector<Column> columns;
  [[nodiscard]] Gvk gvk() const { return {group, version, kind}; }
  [[nodiscard]] const Subresource* find_subresource(std::string_view subresource) const;
};

class Schema {
 public:
  /// The embedded table. Parsed on first use.
  static const Schema& builtin();

  [[nodiscard]] const Type* find_type(std::string_view name) const;
  [[nodiscard]] const Type* find_type(const Gvk& gvk) const;
  [[nodiscard]] const std::vector<ResourceInfo>& resources() const { return resources_; }
  [[nodiscard]] const std::map<std::string, Type, std::less<>>& types() const { return types_; }

 private:
  friend struct SchemaLoader;
  std::map<std::string, Type, std::less<>> types_;
  std::map<Gvk, const Type*> by_gvk_;
  std::vector<ResourceInfo> resources_;
};

/// Checks a body against its type: unknown fields are listed as paths
/// ("spec.containers[0].imagee"), a value of the wrong JSON type is an error in Go's words ("json:
/// cannot unmarshal string into Go struct field …").
Result<std::vector<std::string>> check_fields(const Type& type, const json::Value& object);
/// The same for one member of it.
Result<std::vector<std::string>> check_member(const Type& type,
                                              const json::Value& object,
                                              std::string_view key);
/// Removes fields the type does not know.
void drop_unknown_fields(const Type& type, json::Value& object);

}  // namespace muster::kube
