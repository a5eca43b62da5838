#include "kube/apply/managed.h"

#include <unordered_map>

#include "json/text.h"

namespace muster::kube {
namespace {

/// Objects made from one template have the same sets; this many different ones are remembered.
constexpr std::size_t kRemembered = 2048;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
using Sets =
    std::unordered_map<std::string, std::shared_ptr<const FieldSet>, TextHash, std::equal_to<>>;

/// Null for a text that is not a JSON object.
std::shared_ptr<const FieldSet> set_of_text(std::string_view text) {
  thread_local Sets sets;
  const auto found = sets.find(text);
  if (found != sets.end()) return found->second;
  const auto value = json::parse(text);
  if (!value || !value->is_object()) return nullptr;
  if (sets.size() >= kRemembered) sets.clear();
  return sets
      .emplace(std::string(text), std::make_shared<const FieldSet>(FieldSet::from_json(*value)))
      .first->second;
}

json::Array* managers_of(json::Value& object) {
  json::Object* whole = object.if_object();
  json::Value* metadata = whole == nullptr ? nullptr : whole->if_contains("metadata");
  json::Object* members = metadata == nullptr ? nullptr : metadata->if_object();
  json::Value* managers = members == nullptr ? nullptr : members->if_contains("managedFields");
  return managers == nullptr ? nullptr : managers->if_array();
}

/// An object's text, its members' values written by `append_value(key, value)`; what is no object
/// as it is.
template <typename AppendValue>
void append_members(const json::Value& value, std::string& out, AppendValue append_value) {
  const json::Object* members = value.if_object();
  if (members == nullptr || members->empty()) {
    json::append(out, value);
    return;
  }
  char before = '{';
  for (const auto& member : *members) {
    out += before;
    before = ',';
    json::append_string(out, member.key());
    out += ':';
    append_value(member.key(), member.value());
  }
  out += '}';
}

void append_entry(const json::Value& entry, std::string& out) {
  append_members(entry, out, [&](std::string_view key, const json::Value& value) {
    if (key == "fieldsV1" && value.is_string())
      out += json::as_string(value);
    else
      json::append(out, value);
  });
}

void append_metadata(const json::Value& metadata, std::string& out) {
  append_members(metadata, out, [&](std::string_view key, const json::Value& value) {
    if (key != "managedFields" || !value.is_array() || value.get_array().empty()) {
      json::append(out, value);
      return;
    }
    char separator = '[';
    for (const json::Value& entry : value.get_array()) {
      out += separator;
      separator = ',';
      append_entry(entry, out);
    }
    out += ']';
  });
}

}  // namespace

void pack_managers(json::Value& object) {
  json::Array* managers = managers_of(object);
  if (managers == nullptr) return;
  for (json::Value& entry : *managers) {
    json::Value* fields = entry.is_object() ? entry.get_object().if_contains("fieldsV1") : nullptr;
    if (fields == nullptr) continue;
    if (fields->is_object())
      *fields = json::dump(*fields);
    else if (!fields->is_string() || set_of_text(json::as_string(*fields)) == nullptr)
      *fields = "{}";
  }
}

void unpack_managers(json::Value& object) {
  json::Array* managers = managers_of(object);
  if (managers == nullptr) return;
  for (json::Value& entry : *managers) {
    json::Value* fields = entry.is_object() ? entry.get_object().if_contains("fieldsV1") : nullptr;
    if (fields == nullptr || !fields->is_string()) continue;
    auto value = json::parse(json::as_string(*fields));
    *fields = value ? std::move(*value) : json::Value(json::Object());
  }
}

std::string object_text(const json::Value& object) {
  // The text is kept as long as the object: it is made in a place that is used again, and copied to
  // one of its own size.
  thread_local std::string out;
  out.clear();
  append_members(object, out, [&](std::string_view key, const json::Value& value) {
    if (key == "metadata")
      append_metadata(value, out);
    else
      json::append(out, value);
  });
  return out;
}

std::string metadata_text(const json::Value& metadata) {
  std::string out;
  append_metadata(metadata, out);
  return out;
}

std::shared_ptr<const FieldSet> fields_of(const json::Value& fields_v1) {
  static const auto kNone = std::make_shared<const FieldSet>();
  if (!fields_v1.is_string())
    return std::make_shared<const FieldSet>(FieldSet::from_json(fields_v1));
  auto set = set_of_text(json::as_string(fields_v1));
  return set ? set : kNone;
}

}  // namespace muster::kube
