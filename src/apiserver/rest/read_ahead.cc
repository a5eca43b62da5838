#include "apiserver/rest/read_ahead.h"

#include <fmt/core.h>

#include "apiserver/rest/negotiate.h"
#include "json/yaml.h"
#include "kube/resources.h"
#include "kube/schema/protobuf.h"

namespace muster::apiserver {

enum class Language { kJson, kYaml, kProtobuf, kOther };

/// What was read on a worker; lies in Call::ahead.
struct ReadAhead {
  Language language = Language::kOther;
  bool taken = false;
  std::vector<std::string> duplicates;
  Result<json::Value> value;
};

namespace {

Language language_of(std::string_view type) {
  if (type.empty() || type == "application/json" || type.ends_with("+json")) return Language::kJson;
  if (type == "application/yaml" || type == "application/x-yaml" || type.ends_with("+yaml"))
    return Language::kYaml;
  if (type == "application/vnd.kubernetes.protobuf") return Language::kProtobuf;
  return Language::kOther;
}

Error too_many_values(std::size_t most) {
  Error error;
  error.code = Code::kTooLarge;
  error.message = fmt::format(
      "Request entity too large: wanted at most {} values in one object, found more; split it",
      most);
  return error;
}

/// True if the JSON text may hold more values than allowed: each but the first stands behind one of
/// these, outside of strings.
bool too_many(std::string_view text, std::size_t most) {
  std::size_t marks = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',' || c == '[' || c == '{') {
      ++marks;
    }
  }
  return marks > most;
}

bool too_many(const json::Value& value, std::size_t most, std::size_t* seen) {
  if (++*seen > most) return true;
  if (const json::Array* array = value.if_array()) {
    for (const json::Value& item : *array) {
      if (too_many(item, most, seen)) return true;
    }
  } else if (const json::Object* object = value.if_object()) {
    for (const auto& member : *object) {
      if (too_many(member.value(), most, seen)) return true;
    }
  }
  return false;
}

Result<json::Value> read_json(std::string_view text,
                              std::size_t most,
                              std::vector<std::string>* duplicates,
                              json::Storage storage = {}) {
  if (text.size() >= kReadAheadFrom && too_many(text, most)) return fail(too_many_values(most));
  return json::parse(text, duplicates, std::move(storage));
}

/// kubectl's YAML is JSON nearly always, and JSON is read ten times faster. A key that is given
/// twice is an error in YAML alone.
Result<json::Value> read_yaml(std::string_view text, std::size_t most) {
  if (text.starts_with('{')) {
    std::vector<std::string> duplicates;
    auto value = read_json(text, most, &duplicates);
    if (value ? duplicates.empty() : value.error().code == Code::kTooLarge) return value;
  }
  auto value = json::parse_yaml_one(text, most);
  if (!value && value.error().code == Code::kTooLarge) return fail(too_many_values(most));
  return value;
}

Result<json::Value> read_protobuf(std::string_view text, std::size_t most) {
  auto value = kube::decode_protobuf(kube::Schema::builtin(), text);
  std::size_t seen = 0;
  if (value && text.size() >= kReadAheadFrom && too_many(*value, most, &seen))
    return fail(too_many_values(most));
  return value;
}

/// Null when the body is still to be read. Whoever asks first gets the value itself.
ReadAhead* read_already(const Call& call, Language language) {
  ReadAhead* const ahead = call.ahead.get();
  if (ahead == nullptr || ahead->language != language || ahead->taken) return nullptr;
  ahead->taken = true;
  return ahead;
}

}  // namespace

Task<void> read_ahead(Core& core, Call& call) {
  if (call.request.body.size() < kReadAheadFrom) co_return;
  const auto ahead = std::make_shared<ReadAhead>();
  ahead->language = language_of(media_type(call.request));
  if (ahead->language == Language::kOther) co_return;
  const std::string_view body = call.request.body;
  const bool definition = call.resource->storage == kube::collections::kCustomResourceDefinitions;
  const std::size_t most = definition ? kDefinitionValuesMax : kValuesMax;
  std::function<void()> work = [ahead, body, most] {
    if (ahead->language == Language::kJson)
      ahead->value = read_json(body, most, &ahead->duplicates);
    else
      ahead->value =
          ahead->language == Language::kYaml ? read_yaml(body, most) : read_protobuf(body, most);
  };
  co_await core.env.run_on_worker(std::move(work));
  call.ahead = ahead;
}

bool is_large(const Call& call) {
  // Of an object from this process nobody knows the size; those of jobs may hold thousands of tasks.
  constexpr std::size_t kMany = 4000;
  std::size_t seen = 0;
  if (call.object && call.resource->custom()) return too_many(*call.object, kMany, &seen);
  return call.request.body.size() >= kReadAheadFrom;
}

Result<json::Value> json_body(const Call& call, std::vector<std::string>* duplicates) {
  ReadAhead* ahead = read_already(call, Language::kJson);
  if (ahead == nullptr)
    return read_json(call.request.body, kValuesMax, duplicates, call.memory.storage());
  if (duplicates != nullptr) *duplicates = std::move(ahead->duplicates);
  return std::move(ahead->value);
}

Result<json::Value> yaml_body(const Call& call) {
  ReadAhead* ahead = read_already(call, Language::kYaml);
  return ahead == nullptr ? read_yaml(call.request.body, kValuesMax) : std::move(ahead->value);
}

Result<json::Value> protobuf_body(const Call& call) {
  ReadAhead* ahead = read_already(call, Language::kProtobuf);
  return ahead == nullptr ? read_protobuf(call.request.body, kValuesMax) : std::move(ahead->value);
}

}  // namespace muster::apiserver
