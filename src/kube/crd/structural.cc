#include "kube/crd/structural.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/strings.h"
#include "json/erase.h"
#include "kube/crd/pattern.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr int kDepthMax = 100;

const Type& object_meta() {
  static const Type* kType =
      Schema::builtin().find_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  return *kType;
}

std::optional<std::int64_t> integer(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  return json::as_int(value);
}

std::optional<double> number(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  return value.is_double() ? value.get_double() : static_cast<double>(json::as_int(value));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::double_:
      return value.get_double() == std::floor(value.get_double()) ? "integer" : "number";
    default:
      return "integer";
  }
}

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string number_text(double value) { return json::dump(Value(value)); }

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

SchemaNode::SchemaNode(const Value& schema, bool root, int depth) {
  const auto make = [&](const Value& inner) {
    return std::make_unique<SchemaNode>(inner, false, depth + 1);
  };
  type_ = json::text_at(schema, "type");
  format_ = json::text_at(schema, "format");
  pattern_ = json::text_at(schema, "pattern");
  resource_ = root || json::bool_at(schema, "x-kubernetes-embedded-resource");
  preserve_ = json::bool_at(schema, "x-kubernetes-preserve-unknown-fields");
  int_or_string_ = json::bool_at(schema, "x-kubernetes-int-or-string");
  nullable_ = json::bool_at(schema, "nullable");
  unique_ = json::bool_at(schema, "uniqueItems");
  exclusive_minimum_ = json::bool_at(schema, "exclusiveMinimum");
  exclusive_maximum_ = json::bool_at(schema, "exclusiveMaximum");
  minimum_ = number(json::at(schema, "minimum"));
  maximum_ = number(json::at(schema, "maximum"));
  multiple_of_ = number(json::at(schema, "multipleOf"));
  min_length_ = integer(json::at(schema, "minLength"));
  max_length_ = integer(json::at(schema, "maxLength"));
  min_items_ = integer(json::at(schema, "minItems"));
  max_items_ = integer(json::at(schema, "maxItems"));
  min_properties_ = integer(json::at(schema, "minProperties"));
  max_properties_ = integer(json::at(schema, "maxProperties"));
  for (const Value& name : json::array_at(schema, "required"))
    required_.push_back(json::text(name));
  enum_ = json::array_at(schema, "enum");
  if (json::as_object(schema).contains("default")) default_ = json::at(schema, "default");
  atomic_map_ = json::string_at(schema, "x-kubernetes-map-type") == "atomic";
  const std::string_view list = json::string_at(schema, "x-kubernetes-list-type");
  if (list == "map") list_kind_ = ListKind::kMap;
  if (list == "set") list_kind_ = ListKind::kSet;
  for (const Value& key : json::array_at(schema, "x-kubernetes-list-map-keys"))
    list_keys_.push_back(json::text(key));
  if (depth >= kDepthMax) return;
  for (const auto& property : json::object_at(schema, "properties"))
    properties_.emplace(std::string(property.key()), make(property.value()));
  const Value& additional = json::at(schema, "additionalProperties");
  if (additional.is_object()) additional_ = make(additional);
  any_additional_ = additional.is_bool() && additional.get_bool();
  if (json::at(schema, "items").is_object()) items_ = make(json::at(schema, "items"));
  if (json::at(schema, "not").is_object()) not_ = make(json::at(schema, "not"));
  for (const Value& one : json::array_at(schema, "oneOf")) one_of_.push_back(make(one));
  for (const Value& one : json::array_at(schema, "anyOf")) any_of_.push_back(make(one));
  for (const Value& one : json::array_at(schema, "allOf")) all_of_.push_back(make(one));
}

const SchemaNode* SchemaNode::child(std::string_view name) const {
  const auto found = properties_.find(name);
  return found == properties_.end() ? additional_.get() : found->second.get();
}

const Shape* SchemaNode::member(std::string_view name) const {
  if (resource_ && name == "metadata") return &shape_of(object_meta());
  return child(name);
}

bool SchemaNode::declares(std::string_view name) const {
  return properties_.contains(name) ||
         (resource_ && (name == "metadata" || name == "apiVersion" || name == "kind"));
}

void SchemaNode::prune(Value& value,
                       const std::string& path,
                       std::vector<std::string>* unknown) const {
  if (value.is_array()) {
    if (items_ == nullptr) return;
    json::Array& list = value.get_array();
    for (std::size_t i = 0; i < list.size(); ++i)
      items_->prune(list[i], fmt::format("{}[{}]", path, i), unknown);
    return;
  }
  if (!value.is_object()) return;
  json::Object& object = value.get_object();
  json::erase_members(object, [&](std::string_view key, Value& member) {
    if (resource_ && (key == "apiVersion" || key == "kind")) return false;
    if (resource_ && key == "metadata") {
      if (unknown != nullptr) {
        const auto found = check_fields(object_meta(), member);
        if (found)
          for (const std::string& field : *found)
            unknown->push_back(joined(path, "metadata." + field));
      }
      drop_unknown_fields(object_meta(), member);
      return false;
    }
    const SchemaNode* inner = child(key);
    if (inner != nullptr) inner->prune(member, joined(path, key), unknown);
    if (inner != nullptr || preserve_ || any_additional_) return false;
    if (unknown != nullptr) unknown->push_back(joined(path, key));
    return true;
  });
}

void SchemaNode::set_defaults(Value& value) const {
  if (value.is_array()) {
    if (items_ != nullptr)
      for (Value& item : value.get_array()) items_->set_defaults(item);
    return;
  }
  if (!value.is_object()) return;
  json::Object& object = value.get_object();
  for (const auto& [name, property] : properties_) {
    Value* have = object.if_contains(name);
    if (have == nullptr || (have->is_null() && !property->nullable_)) {
      // A null where none may be is as good as nothing.
      if (property->default_)
        object[name] = *property->default_;
      else if (have != nullptr)
        object.stable_erase(object.find(name));
      have = object.if_contains(name);
    }
    if (have != nullptr) property->set_defaults(*have);
  }
  if (additional_ == nullptr) return;
  for (auto& member : object) {
    if (!properties_.contains(std::string_view(member.key())))
      additional_->set_defaults(member.value());
  }
}

void SchemaNode::validate(const Value& value, const std::string& path, Causes& causes) const {
  if (value.is_null() && nullable_) return;
  bool fits = true;
  validate_type(value, path, causes, fits);
  if (!fits) return;
  if (!enum_.empty() && std::none_of(enum_.begin(), enum_.end(), [&](const Value& one) {
        return json::equal(one, value);
      })) {
    std::vector<std::string> names;
    for (const Value& one : enum_) names.push_back(shown(one));
    causes.add({"FieldValueNotSupported",
                fmt::format(
                    "Unsupported value: {}: supported values: {}", shown(value), join(names, ", ")),
                path});
  }
  if (value.is_object())
    validate_object(value, path, causes);
  else if (value.is_array())
    validate_list(value, path, causes);
  else
    validate_scalar(value, path, causes);
  validate_junctors(value, path, causes);
}

void SchemaNode::validate_type(const Value& value,
                               const std::string& path,
                               Causes& causes,
                               bool& fits) const {
  const std::string_view have = type_name(value);
  if (int_or_string_)
    fits = have == "integer" || have == "string";
  else if (type_.empty())
    fits = true;
  else
    fits = have == type_ || (type_ == "number" && have == "integer");
  if (fits) return;
  const std::string wanted = int_or_string_ ? "integer,string" : type_;
  const std::string where = path.empty() ? "<nil>" : path;
  causes.add({"FieldValueTypeInvalid",
              fmt::format("Invalid value: \"{}\": {} in body must be of type {}: \"{}\"",
                          have,
                          path,
                          wanted,
                          have),
              where});
}

void SchemaNode::validate_scalar(const Value& value,
                                 const std::string& path,
                                 Causes& causes) const {
  const auto bad = [&](const std::string& text) {
    causes.invalid(path, shown(value), fmt::format("{} in body {}", path, text));
  };
  if (value.is_number()) {
    const double is = *number(value);
    if (maximum_ && (exclusive_maximum_ ? is >= *maximum_ : is > *maximum_)) {
      bad(fmt::format("should be less than {}{}",
                      exclusive_maximum_ ? "" : "or equal to ",
                      number_text(*maximum_)));
    }
    if (minimum_ && (exclusive_minimum_ ? is <= *minimum_ : is < *minimum_)) {
      bad(fmt::format("should be greater than {}{}",
                      exclusive_minimum_ ? "" : "or equal to ",
                      number_text(*minimum_)));
    }
    if (multiple_of_ && *multiple_of_ > 0 && std::fmod(is, *multiple_of_) != 0)
      bad(fmt::format("should be a multiple of {}", number_text(*multiple_of_)));
    if (format_ == "int32" && (is > 2147483647.0 || is < -2147483648.0))
      bad("should be within the range of a 32-bit integer (int32)");
    if (format_ == "int64" && (is >= 9223372036854775808.0 || is < -9223372036854775808.0))
      bad("should be within the range of a 64-bit integer (int64)");
    return;
  }
  if (!value.is_string()) return;
  const std::string_view text = json::as_string(value);
  const auto length = static_cast<std::int64_t>(min_length_ || max_length_ ? characters(text) : 0);
  if (max_length_ && length > *max_length_)
    causes.too_long(path, static_cast<std::size_t>(*max_length_));
  if (min_length_ && length < *min_length_)
    bad(fmt::format("should be at least {} chars long", *min_length_));
  if (!pattern_.empty() && !pattern_matches(pattern_, text))
    bad(fmt::format("should match '{}'", pattern_));
  if (format_ == "date-time" && !parse_time(text))
    bad(fmt::format("must be of type date-time: {}", quoted(text)));
  if (format_ == "byte" && !base64_decode(text))
    bad(fmt::format("must be of type byte: {}", quoted(text)));
}

void SchemaNode::validate_object(const Value& value,
                                 const std::string& path,
                                 Causes& causes) const {
  const json::Object& object = value.get_object();
  for (const std::string& name : required_) {
    if (!object.contains(name)) causes.required(joined(path, name));
  }
  const auto size = static_cast<std::int64_t>(object.size());
  if (max_properties_ && size > *max_properties_)
    causes.too_many(path, object.size(), static_cast<std::size_t>(*max_properties_));
  if (min_properties_ && size < *min_properties_)
    causes.invalid(
        path,
        json::dump(value),
        fmt::format("{} in body should have at least {} properties", path, *min_properties_));
  for (const auto& member : object) {
    const std::string_view name = member.key();
    if (resource_ && (name == "metadata" || name == "apiVersion" || name == "kind")) continue;
    if (const SchemaNode* inner = child(name))
      inner->validate(member.value(), joined(path, name), causes);
  }
}

void SchemaNode::validate_list(const Value& value, const std::string& path, Causes& causes) const {
  const json::Array& list = value.get_array();
  const auto size = static_cast<std::int64_t>(list.size());
  if (max_items_ && size > *max_items_)
    causes.too_many(path, list.size(), static_cast<std::size_t>(*max_items_));
  if (min_items_ && size < *min_items_)
    causes.invalid(path,
                   json::dump(value),
                   fmt::format("{} in body should have at least {} items", path, *min_items_));
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", path, i);
    if (items_ != nullptr) items_->validate(list[i], here, causes);
    if (list_kind_ == ListKind::kMap) {
      json::Object keys;
      for (const std::string& key : list_keys_) {
        if (!json::at(list[i], key).is_null()) keys[key] = json::at(list[i], key);
      }
      if (!seen.insert(json::dump(keys)).second) causes.duplicate(here, json::dump(keys));
    } else if (list_kind_ == ListKind::kSet) {
      if (!seen.insert(json::dump(list[i])).second) causes.duplicate(here, shown(list[i]));
    } else if (unique_ && !seen.insert(json::dump(list[i])).second) {
      causes.invalid(
          path, json::dump(value), fmt::format("{} in body shouldn't contain duplicates", path));
    }
  }
}

void SchemaNode::validate_junctors(const Value& value,
                                   const std::string& path,
                                   Causes& causes) const {
  const auto fits = [&](const std::unique_ptr<SchemaNode>& node) {
    Causes inner;
    node->validate(value, path, inner);
    return inner.empty();
  };
  const auto bad = [&](std::string_view text) {
    causes.invalid(path.empty() ? "<nil>" : path, "\"\"", fmt::format("{} {}", quoted(path), text));
  };
  if (!one_of_.empty()) {
    const auto count = std::count_if(one_of_.begin(), one_of_.end(), fits);
    if (count == 0) bad("must validate one and only one schema (oneOf). Found none valid");
    if (count > 1)
      bad(fmt::format("must validate one and only one schema (oneOf). Found {} valid alternatives",
                      count));
  }
  if (!any_of_.empty() && std::none_of(any_of_.begin(), any_of_.end(), fits))
    bad("must validate at least one schema (anyOf)");
  for (const auto& one : all_of_) {
    Causes inner;
    one->validate(value, path, inner);
    if (inner.empty()) continue;
    bad("must validate all the schemas (allOf)");
    causes.add(inner.take());
  }
  if (not_ != nullptr && fits(not_)) bad("must not validate the schema (not)");
}

}  // namespace muster::kube
