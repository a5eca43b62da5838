/// Small helpers of the row printers.
#pragma once

#include <string>

#include "base/time.h"
#include "json/json.h"

namespace muster::kube {

/// "5m", "<unknown>" for no time.
std::string age_of(Time since, Time now);
std::string age_of(const json::Value& timestamp, Time now);
/// "<none>" for empty.
std::string or_none(std::string text);
/// {"a":"1","b":"2"} as "a=1,b=2", sorted; "<none>" when empty.
std::string labels_text(const json::Value& labels);
std::string selector_text(const json::Value& selector);

/// The cells of a pod and a node, and a finished pod's row condition.
json::Array pod_cells(const json::Value& pod, Time now);
json::Value pod_row_conditions(const json::Value& pod);
json::Array node_cells(const json::Value& node, Time now);

}  // namespace muster::kube
