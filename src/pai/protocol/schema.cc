#include "pai/protocol/schema.h"

#include <fmt/core.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace muster::pai {
namespace {

bool is_whole(const json::Value& value) {
  return value.is_int64() || value.is_uint64() ||
         (value.is_double() && std::floor(value.get_double()) == value.get_double());
}

bool has_type(const json::Value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") return is_whole(value);
  if (type == "boolean") return value.is_bool();
  return type == "null" && value.is_null();
}

std::size_t letters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Where a check stands: in the value as Ajv writes paths (`.taskRoles['a-b'].instances`), in the
/// schema as a JSON pointer.
struct Place {
  std::string data, schema = "#";

  [[nodiscard]] Place at(std::string_view key, std::string_view keyword) const {
    static const RE2 kPlain("[a-zA-Z$_][a-zA-Z$_0-9]*");
    std::string below =
        RE2::FullMatch(key, kPlain)
            ? fmt::format("{}.{}", data, key)
            : fmt::format(
                  "{}['{}']", data, replace_all(replace_all(key, "\\", "\\\\"), "'", "\\'"));
    return {std::move(below), schema + "/" + std::string(keyword)};
  }
  [[nodiscard]] Place at(std::size_t index) const {
    return {fmt::format("{}[{}]", data, index), schema + "/items"};
  }
};

class Check {
 public:
  explicit Check(json::Array& errors) : errors_(errors) {}

  // NOLINTNEXTLINE(misc-no-recursion): a schema is a finite tree.
  void look(const json::Value& value, const json::Value& schema, const Place& place) {
    if (const json::Value& type = json::at(schema, "type"); !type.is_null()) {
      if (!of_types(value, type)) {
        const std::string wanted = type.is_string() ? json::text(type) : words_of(type);
        return say(place, "type", {{"type", wanted}}, fmt::format("should be {}", wanted));
      }
    }
    if (const json::Value& allowed = json::at(schema, "enum"); allowed.is_array()) {
      const auto& values = allowed.get_array();
      if (std::none_of(values.begin(), values.end(), [&](const json::Value& each) {
            return json::equal(each, value);
          }))
        say(place,
            "enum",
            {{"allowedValues", allowed}},
            "should be equal to one of the allowed values");
    }
    if (value.is_string()) look_at_text(json::as_string(value), schema, place);
    if (value.is_number()) look_at_number(value, schema, place);
    if (value.is_array()) look_at_items(value.get_array(), schema, place);
    if (value.is_object()) look_at_members(value.get_object(), schema, place);
    look_at_branches(value, schema, place);
  }

 private:
  static bool of_types(const json::Value& value, const json::Value& type) {
    if (type.is_string()) return has_type(value, json::as_string(type));
    const json::Array& types = json::as_array(type);
    return std::any_of(types.begin(), types.end(), [&](const json::Value& each) {
      return has_type(value, json::as_string(each));
    });
  }

  static std::string words_of(const json::Value& types) {
    std::vector<std::string> words;
    for (const json::Value& each : json::as_array(types)) words.push_back(json::text(each));
    return join(words, ",");
  }

  void say(const Place& place, std::string_view keyword, json::Object params, std::string message) {
    errors_.push_back(json::Object{{"keyword", keyword},
                                   {"dataPath", place.data},
                                   {"schemaPath", fmt::format("{}/{}", place.schema, keyword)},
                                   {"params", std::move(params)},
                                   {"message", std::move(message)}});
  }

  void look_at_text(std::string_view text, const json::Value& schema, const Place& place) {
    const auto most = json::as_int(json::at(schema, "maxLength"), -1);
    if (most >= 0 && letters_of(text) > static_cast<std::size_t>(most))
      say(place,
          "maxLength",
          {{"limit", most}},
          fmt::format("should NOT be longer than {} characters", most));
    const std::string pattern = json::text_at(schema, "pattern");
    if (!pattern.empty() && !RE2::PartialMatch(text, RE2(pattern)))
      say(place,
          "pattern",
          {{"pattern", pattern}},
          fmt::format("should match pattern \"{}\"", pattern));
  }

  void look_at_number(const json::Value& value, const json::Value& schema, const Place& place) {
    const double number = value.to_number<double>();
    const auto limit = [&](const char* keyword, const char* sign, bool broken) {
      if (!json::at(schema, keyword).is_number() || !broken) return;
      const auto bound = json::int_at(schema, keyword);
      say(place,
          keyword,
          {{"comparison", sign}, {"limit", bound}, {"exclusive", false}},
          fmt::format("should be {} {}", sign, bound));
    };
    limit("minimum", ">=", number < static_cast<double>(json::int_at(schema, "minimum")));
    limit("maximum", "<=", number > static_cast<double>(json::int_at(schema, "maximum")));
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void look_at_items(const json::Array& items, const json::Value& schema, const Place& place) {
    const auto least = json::int_at(schema, "minItems");
    if (items.size() < static_cast<std::size_t>(least))
      say(place,
          "minItems",
          {{"limit", least}},
          fmt::format("should NOT have fewer than {} items", least));
    const json::Value& each = json::at(schema, "items");
    for (std::size_t i = 0; each.is_object() && i < items.size(); ++i)
      look(items[i], each, place.at(i));
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void look_at_members(const json::Object& members, const json::Value& schema, const Place& place) {
    const auto least = json::int_at(schema, "minProperties");
    if (members.size() < static_cast<std::size_t>(least))
      say(place,
          "minProperties",
          {{"limit", least}},
          fmt::format("should NOT have fewer than {} properties", least));
    for (const json::Value& key : json::array_at(schema, "required")) {
      if (!members.contains(json::as_string(key)))
        say(place,
            "required",
            {{"missingProperty", key}},
            fmt::format("should have required property '{}'", json::as_string(key)));
    }
    const json::Object& known = json::object_at(schema, "properties");
    const json::Value& others = json::at(schema, "additionalProperties");
    const std::string names = json::text_at(schema, "propertyNames", "pattern");
    for (const auto& member : members) {
      const std::string_view key = member.key();
      if (!names.empty() && !RE2::PartialMatch(key, RE2(names))) {
        say({place.data, place.schema + "/propertyNames"},
            "pattern",
            {{"pattern", names}},
            fmt::format("should match pattern \"{}\"", names));
        say(place,
            "propertyNames",
            {{"propertyName", key}},
            fmt::format("property name '{}' is invalid", key));
      }
      if (const auto found = known.find(key); found != known.end()) {
        look(member.value(), found->value(), place.at(key, fmt::format("properties/{}", key)));
      } else if (others.is_object()) {
        look(member.value(), others, place.at(key, "additionalProperties"));
      } else if (others.is_bool() && !others.get_bool()) {
        say(place,
            "additionalProperties",
            {{"additionalProperty", key}},
            "should NOT have additional properties");
      }
    }
  }

  /// The schema of a member of a union is told by one of its properties ("switch": {"on": "type",
  /// "cases": {…}}), so that an error is about what was meant.
  // NOLINTNEXTLINE(misc-no-recursion)
  void look_at_branches(const json::Value& value, const json::Value& schema, const Place& place) {
    const json::Value& branches = json::at(schema, "switch");
    if (!branches.is_object() || !value.is_object()) return;
    const json::Value& chosen =
        json::at(branches, "cases", json::string_at(value, json::string_at(branches, "on")));
    if (chosen.is_object()) look(value, chosen, place);
  }

  json::Array& errors_;
};

constexpr std::string_view kSchema = R"JSON({
"type": "object",
"required": ["protocolVersion", "name", "type", "taskRoles"],
"additionalProperties": false,
"properties": {
  "protocolVersion": {"type": ["string", "number"], "enum": [2, "2"]},
  "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]+$", "maxLength": 255},
  "type": {"type": "string", "enum": ["job"]},
  "version": {"type": ["string", "number"]},
  "contributor": {"type": "string"},
  "description": {"type": "string"},
  "prerequisites": {"type": "array", "minItems": 1, "items": {
    "type": "object",
    "required": ["name", "type"],
    "properties": {
      "protocolVersion": {"type": ["string", "number"], "enum": [2, "2"]},
      "name": {"type": "string"},
      "type": {"type": "string", "enum": ["data", "script", "dockerimage", "output"]},
      "version": {"type": ["string", "number"]},
      "contributor": {"type": "string"},
      "description": {"type": "string"}
    },
    "switch": {"on": "type", "cases": {
      "dockerimage": {
        "required": ["uri"],
        "additionalProperties": false,
        "properties": {
          "protocolVersion": {}, "name": {}, "type": {}, "version": {}, "contributor": {}, "description": {},
          "uri": {"type": "string"},
          "auth": {"type": "object", "additionalProperties": false, "properties": {
            "username": {"type": "string"}, "password": {"type": "string"}, "registryuri": {"type": "string"}}}}},
      "data": {"properties": {
        "uri": {"type": ["array", "string"], "items": {"type": "string"}},
        "plugin": {"type": "string"}, "require": {"type": "array", "items": {"type": "string"}}}},
      "script": {"properties": {
        "uri": {"type": "string"},
        "plugin": {"type": "string"}, "require": {"type": "array", "items": {"type": "string"}}}},
      "output": {"properties": {
        "uri": {"type": "string"},
        "plugin": {"type": "string"}, "require": {"type": "array", "items": {"type": "string"}}}}}}}},
  "parameters": {"type": "object"},
  "secrets": {"type": "object"},
  "jobRetryCount": {"type": "integer", "minimum": 0},
  "taskRoles": {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
    "additionalProperties": {
      "type": "object",
      "required": ["dockerImage", "resourcePerInstance", "commands"],
      "additionalProperties": false,
      "properties": {
        "instances": {"type": "integer", "minimum": 1, "maximum": 10000},
        "completion": {"type": "object", "additionalProperties": false, "properties": {
          "minFailedInstances": {"type": ["integer", "null"], "minimum": -1},
          "minSucceededInstances": {"type": ["integer", "null"], "minimum": -1}}},
        "taskRetryCount": {"type": "integer", "minimum": -2},
        "dockerImage": {"type": "string"},
        "data": {"type": "string"},
        "output": {"type": "string"},
        "script": {"type": "string"},
        "prerequisites": {"type": "array", "items": {"type": "string"}},
        "extraContainerOptions": {"type": "object", "additionalProperties": false, "properties": {
          "shmMB": {"type": "integer", "minimum": 0, "maximum": 2147483647},
          "infiniband": {"type": "boolean"}}},
        "resourcePerInstance": {
          "type": "object",
          "required": ["cpu", "memoryMB", "gpu"],
          "additionalProperties": false,
          "properties": {
            "cpu": {"type": "integer", "minimum": 0, "maximum": 2147483647},
            "memoryMB": {"type": "integer", "minimum": 0, "maximum": 2147483647},
            "gpu": {"type": "integer", "minimum": 0, "maximum": 2147483647},
            "ports": {"type": "object", "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
              "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1000}}}},
        "commands": {"type": "array", "minItems": 1, "items": {"type": "string"}}}}},
  "deployments": {"type": "array", "minItems": 1, "items": {
    "type": "object",
    "required": ["name", "taskRoles"],
    "additionalProperties": false,
    "properties": {
      "name": {"type": "string"},
      "version": {"type": ["string", "number"]},
      "contributor": {"type": "string"},
      "description": {"type": "string"},
      "taskRoles": {"type": "object", "minProperties": 1, "additionalProperties": {
        "type": "object", "additionalProperties": false, "properties": {
          "preCommands": {"type": "array", "minItems": 1, "items": {"type": "string"}},
          "postCommands": {"type": "array", "minItems": 1, "items": {"type": "string"}}}}}}}},
  "defaults": {"type": "object", "properties": {
    "virtualCluster": {"type": "string"},
    "deployment": {"type": "string"}}},
  "extras": {"type": "object", "properties": {
    "submitFrom": {"type": "string"},
    "hivedScheduler": {"type": "object", "additionalProperties": false, "properties": {
      "jobPriorityClass": {"type": ["string", "null"], "enum": ["crit", "prod", "test", "oppo", null]},
      "taskRoles": {"type": "object", "minProperties": 1, "additionalProperties": {
        "type": "object", "properties": {
          "skuType": {"type": ["string", "null"]},
          "skuNum": {"type": "integer"},
          "skuNumber": {"type": "integer"},
          "pinnedCellId": {"type": ["string", "null"]},
          "affinityGroupName": {"type": ["string", "null"]}}}},
      "gangReleaseEnable": {"type": "boolean"},
      "lazyPreemptionEnable": {"type": "boolean"},
      "ignoreK8sSuggestedNodes": {"type": "boolean"}}},
    "com.microsoft.pai.runtimeplugin": {"type": "array", "items": {
      "type": "object", "required": ["plugin"], "properties": {
        "plugin": {"type": "string"},
        "parameters": {"type": "object"},
        "failurePolicy": {"type": "string", "enum": ["ignore", "fail"]}}}},
    "storages": {"type": "array", "items": {
      "type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "mountPath": {"type": "string"}}}},
    "jobStatusChangeNotification": {"type": "object", "properties": {
      "running": {"type": "boolean"}, "succeeded": {"type": "boolean"}, "stopped": {"type": "boolean"},
      "failed": {"type": "boolean"}, "retried": {"type": "boolean"}}}}}
}})JSON";

}  // namespace

json::Array schema_errors(const json::Value& value, const json::Value& schema) {
  json::Array errors;
  Check(errors).look(value, schema, {});
  return errors;
}

const json::Value& protocol_schema() {
  static const json::Value kParsed = [] {
    auto parsed = json::parse(kSchema);
    MUSTER_CHECK(parsed.has_value(), "the protocol's schema");
    return std::move(*parsed);
  }();
  return kParsed;
}

}  // namespace muster::pai
