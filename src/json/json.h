/// The JSON value of Muster: Boost.JSON's, with the look-ups that Kubernetes objects need.
///
/// Objects keep the order of their keys (use stable_erase to remove one). Parsing limits depth and
/// refuses trailing text; duplicate keys keep the last value unless asked for.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using String = boost::json::string;

/// What the path of a look-up gives when something on the way is absent or of another type: null.
const Value& null_value();

Result<Value> parse(std::string_view text);
/// Also reports every duplicate key as a path like `spec.containers[0].name`.
Result<Value> parse(std::string_view text, std::vector<std::string>* duplicate_keys);
std::string dump(const Value& value);
/// Two-space indented, as kubectl prints.
std::string dump_pretty(const Value& value);

/// at(pod, "spec", "nodeName"): the member down the path, or null_value().
const Value& at(const Value& value, std::string_view key);
template <typename... Rest>
const Value& at(const Value& value, std::string_view key, Rest... rest) {
  return at(at(value, key), rest...);
}
/// The member down the path, made (as empty objects) where absent or null. Not for arrays.
Object& make_object(Value& value, std::initializer_list<std::string_view> path);
Value& make(Value& value, std::initializer_list<std::string_view> path);
/// Removes the member at the path, if it is there, keeping the order of the others.
void remove(Value& value, std::initializer_list<std::string_view> path);

/// Typed reads with a default for absent or of another type.
std::string_view as_string(const Value& value, std::string_view otherwise = "");
std::int64_t as_int(const Value& value, std::int64_t otherwise = 0);
bool as_bool(const Value& value, bool otherwise = false);
/// Empty object / array when it is not one.
const Object& as_object(const Value& value);
const Array& as_array(const Value& value);
inline std::string text(const Value& value) { return std::string(as_string(value)); }

/// string_at(pod, "spec", "nodeName"): as_string(at(…)), and so for the other types.
template <typename... Path>
std::string_view string_at(const Value& value, Path... path) {
  return as_string(at(value, path...));
}
template <typename... Path>
std::string text_at(const Value& value, Path... path) {
  return text(at(value, path...));
}
template <typename... Path>
std::int64_t int_at(const Value& value, Path... path) {
  return as_int(at(value, path...));
}
template <typename... Path>
bool bool_at(const Value& value, Path... path) {
  return as_bool(at(value, path...));
}
template <typename... Path>
const Object& object_at(const Value& value, Path... path) {
  return as_object(at(value, path...));
}
template <typename... Path>
const Array& array_at(const Value& value, Path... path) {
  return as_array(at(value, path...));
}

/// Equal whatever the order of object keys; 1 and 1.0 are equal.
bool equal(const Value& a, const Value& b);
/// null, "", 0, false, {} and [] .
bool is_empty(const Value& value);

/// RFC 7386.
void merge_patch(Value& target, const Value& patch);
/// RFC 6902. The target is unchanged when any operation fails.
Result<void> json_patch(Value& target, const Value& operations);
/// RFC 6901 look-up; nullptr if absent.
const Value* find_pointer(const Value& value, std::string_view pointer);

/// YAML 1.1 as Kubernetes reads it (sigs.k8s.io/yaml): the documents of a stream, empty ones
/// dropped. Errors name the line.
Result<std::vector<Value>> parse_yaml(std::string_view text);
/// One document; more than one is an error.
Result<Value> parse_yaml_one(std::string_view text);
/// Block style with sorted keys, as kubectl -o yaml prints.
std::string to_yaml(const Value& value);

}  // namespace muster::json
