#include "kube/kinds/rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/validate.h"

namespace muster::kube {

using json::Value;

void validate_labels(const Value& labels, const std::string& field, Causes& causes) {
  for (const auto& member : json::as_object(labels)) {
    const std::string_view key = member.key();
    if (!check_label_key(key).empty()) {
      for (const std::string& problem : qualified_name_problems(key))
        causes.invalid(field, quoted(key), problem);
    }
    const std::string_view value = json::as_string(member.value());
    const std::string problem = check_label_value(value);
    if (!problem.empty()) causes.invalid(field, quoted(value), problem);
  }
}

void validate_label_selector(const Value& selector, const std::string& field, Causes& causes) {
  validate_labels(json::at(selector, "matchLabels"), field + ".matchLabels", causes);
  const json::Array& expressions = json::array_at(selector, "matchExpressions");
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const std::string here = fmt::format("{}.matchExpressions[{}]", field, i);
    const std::string_view op = json::string_at(expressions[i], "operator");
    const std::size_t values = json::array_at(expressions[i], "values").size();
    if (op == "In" || op == "NotIn") {
      if (values == 0)
        causes.required(here + ".values", "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (values > 0)
        causes.forbidden(here + ".values",
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
      causes.invalid(here + ".operator", quoted(op), "not a valid selector operator");
    }
    const std::string_view key = json::string_at(expressions[i], "key");
    for (const std::string& problem : qualified_name_problems(key))
      causes.invalid(here + ".key", quoted(key), problem);
    for (const Value& value : json::array_at(expressions[i], "values")) {
      causes.check(
          here + ".values", json::as_string(value), check_label_value(json::as_string(value)));
    }
  }
}

void validate_enum(const Value& value,
                   std::string field,
                   const std::vector<std::string_view>& supported,
                   Causes& causes,
                   bool required) {
  const std::string_view text = json::as_string(value);
  if (text.empty()) {
    if (required) causes.required(std::move(field));
    return;
  }
  if (std::find(supported.begin(), supported.end(), text) == supported.end())
    causes.not_supported(std::move(field), text, supported);
}

void validate_range(
    const Value& value, std::string field, std::int64_t low, std::int64_t high, Causes& causes) {
  if (value.is_null()) return;
  const std::int64_t number = json::as_int(value);
  if (number < low || number > high)
    causes.invalid(std::move(field),
                   json::dump(value),
                   fmt::format("must be between {} and {}, inclusive", low, high));
}

void validate_non_negative(const Value& value, std::string field, Causes& causes) {
  if (json::as_int(value) < 0)
    causes.invalid(std::move(field), json::dump(value), "must be greater than or equal to 0");
}

void immutable(const Value& updated, const Value& live, std::string field, Causes& causes) {
  if (!json::equal(updated, live))
    causes.invalid(std::move(field), shown(updated), "field is immutable");
}

void validate_int_or_percent(const Value& value, const std::string& field, Causes& causes) {
  if (value.is_null()) return;
  if (value.is_int64()) {
    if (value.get_int64() < 0)
      causes.invalid(field, json::dump(value), "must be greater than or equal to 0");
    return;
  }
  const std::string_view text = json::as_string(value);
  const bool percent = text.size() > 1 && text.ends_with('%') &&
                       parse_int(text.substr(0, text.size() - 1)).value_or(-1) >= 0;
  if (!percent) {
    causes.invalid(
        field,
        shown(value),
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
  } else if (parse_int(text.substr(0, text.size() - 1)).value_or(0) > 100) {
    causes.invalid(field, shown(value), "must not be greater than 100%");
  }
}

}  // namespace muster::kube
