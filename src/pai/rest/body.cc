#include "pai/rest/body.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "pai/people/records.h"
#include "pai/rest/api.h"

namespace muster::pai::rest {
namespace {

/// a=1&b=2, as browsers and OpenPAI's SDK send a login.
Answer<json::Value> read_form(std::string_view text) {
  json::Object object;
  for (const std::string& pair : split_nonempty(text, '&')) {
    const std::size_t equals = pair.find('=');
    const auto name = percent_decode(pair.substr(0, equals), true);
    const auto value =
        percent_decode(equals == std::string::npos ? std::string() : pair.substr(equals + 1), true);
    if (!name || !value) return refuse(bad_parameters("The form has a broken % escape."));
    object[*name] = *value;
  }
  return json::Value(std::move(object));
}

}  // namespace

Answer<json::Value> read_body(const net::Request& request) {
  const std::string type = to_lower(request.headers.get("Content-Type"));
  if (request.body.empty()) return json::Value();
  if (type.starts_with("application/x-www-form-urlencoded")) return read_form(request.body);
  if (type.starts_with("text/")) return json::Value();  // a job: its route reads the text
  auto parsed = json::parse(request.body);
  if (!parsed)
    return refuse(bad_parameters(fmt::format("The body is not JSON: {}", parsed.error().message)));
  return std::move(*parsed);
}

Members::Members(const json::Value& object) : object_(object) {
  if (!object.is_object()) complain("wanted a JSON object");
}

const json::Value* Members::find(std::string_view name) const {
  const json::Value& value = json::at(object_, name);
  return value.is_null() ? nullptr : &value;
}

void Members::complain(std::string what) {
  if (wrong_.empty()) wrong_ = std::move(what);
}

std::string Members::text(std::string_view name) {
  auto found = maybe_text(name);
  if (!found) complain(fmt::format("\"{}\" is required", name));
  return found.value_or("");
}

std::optional<std::string> Members::maybe_text(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) complain(fmt::format("\"{}\" must be a string", name));
  return json::text(*value);
}

std::optional<bool> Members::maybe_bool(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->as_bool();
  if (value->is_string() && (*value == "true" || *value == "false")) return *value == "true";
  complain(fmt::format("\"{}\" must be a boolean", name));
  return false;
}

std::optional<std::vector<std::string>> Members::maybe_texts(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const json::Array& array = json::as_array(*value);
  bool right = value->is_array();
  for (const json::Value& each : array) right = right && each.is_string();
  if (!right) complain(fmt::format("\"{}\" must be an array of strings", name));
  return strings_of(*value);
}

std::optional<json::Object> Members::maybe_object(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) complain(fmt::format("\"{}\" must be an object", name));
  return json::as_object(*value);
}

Answer<void> Members::done() const {
  if (!wrong_.empty()) return refuse(bad_parameters(wrong_));
  return {};
}

}  // namespace muster::pai::rest
