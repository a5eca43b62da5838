/// Table answers: columns and cells as kubectl prints them.
#pragma once

#include "base/time.h"
#include "kube/schema/schema.h"

namespace muster::kube {

/// {"cells":[…],"conditions":…}; the caller adds "object". Cells follow `resource.columns`; kinds
/// without a row printer, and custom resources, use each column's json_path (dates as ages).
json::Value table_row(const ResourceInfo& resource, const json::Value& object, Time now);
json::Value column_definitions(const ResourceInfo& resource);

/// Kubernetes' JSONPath subset of printer columns: .a.b, [0], [-1:], ['x'],
/// [?(@.type=="Ready")].status, escapes.
std::vector<json::Value> json_path(const json::Value& object, std::string_view path);

/// The STATUS and READY cells of a pod, for the CLI too.
std::string pod_status_text(const json::Value& pod);

}  // namespace muster::kube
