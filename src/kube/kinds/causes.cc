#include "kube/kinds/causes.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::kube {

void Causes::required(std::string field, std::string_view detail) {
  list_.push_back(
      {"FieldValueRequired",
       detail.empty() ? std::string("Required value") : fmt::format("Required value: {}", detail),
       std::move(field)});
}

void Causes::invalid(std::string field, std::string_view value, std::string_view detail) {
  list_.push_back({"FieldValueInvalid",
                   detail.empty() ? fmt::format("Invalid value: {}", value)
                                  : fmt::format("Invalid value: {}: {}", value, detail),
                   std::move(field)});
}

void Causes::not_supported(std::string field,
                           std::string_view value,
                           const std::vector<std::string_view>& supported) {
  std::vector<std::string> names;
  for (const std::string_view name : supported) names.push_back(quoted(name));
  list_.push_back(
      {"FieldValueNotSupported",
       fmt::format("Unsupported value: {}: supported values: {}", quoted(value), join(names, ", ")),
       std::move(field)});
}

void Causes::duplicate(std::string field, std::string_view value) {
  list_.push_back(
      {"FieldValueDuplicate", fmt::format("Duplicate value: {}", value), std::move(field)});
}

void Causes::not_found(std::string field, std::string_view value) {
  list_.push_back({"FieldValueNotFound", fmt::format("Not found: {}", value), std::move(field)});
}

void Causes::forbidden(std::string field, std::string_view detail) {
  list_.push_back({"FieldValueForbidden", fmt::format("Forbidden: {}", detail), std::move(field)});
}

void Causes::too_long(std::string field, std::size_t bytes_max) {
  list_.push_back({"FieldValueTooLong",
                   fmt::format("Too long: may not be more than {} bytes", bytes_max),
                   std::move(field)});
}

void Causes::too_many(std::string field, std::size_t have, std::size_t most) {
  list_.push_back(
      {"FieldValueTooMany",
       fmt::format("Too many: {}: must have at most {} item{}", have, most, most == 1 ? "" : "s"),
       std::move(field)});
}

void Causes::check(std::string field, std::string_view text, std::string_view problem) {
  if (!problem.empty()) invalid(std::move(field), quoted(text), problem);
}

void Causes::add(std::vector<Cause> causes) {
  for (Cause& cause : causes) list_.push_back(std::move(cause));
}

std::string shown(const json::Value& value) {
  if (value.is_string()) return quoted(json::as_string(value));
  return json::dump(value);
}

}  // namespace muster::kube
