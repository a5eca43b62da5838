/// What the files of kinds print the cells of their rows with.
#pragma once

#include <string>
#include <utility>

#include "base/time.h"
#include "json/json.h"
#include "kube/meta.h"

namespace muster::kube {

/// "5m", "<unknown>" for no time.
std::string age_of(Time since, Time now);
std::string age_of(const json::Value& timestamp, Time now);
/// "<none>" for empty.
std::string or_none(std::string text);
/// {"a":"1","b":"2"} as "a=1,b=2", sorted; "<none>" when empty.
std::string labels_text(const json::Value& labels);
std::string selector_text(const json::Value& selector);

/// A number or a quantity as it stands.
std::string int_or_string(const json::Value& value);
/// object.a.b
std::int64_t number(const json::Value& object, std::string_view a, std::string_view b);
/// Names and images of the containers of a pod's spec, each joined by commas.
std::pair<std::string, std::string> containers_of(const json::Value& pod_spec);

/// The cells of a pod and the condition of a finished pod's row.
json::Array pod_cells(const json::Value& pod, Time now);
json::Value pod_row_conditions(const json::Value& pod);

}  // namespace muster::kube
