/// What create and update do to an object of a kind: defaults, fields only the server writes,
/// rules. Built-in kinds take it from kube/kinds/validate.h, custom resources from their CRD's
/// schema.
#pragma once

#include <vector>

#include "apiserver/registry/resources.h"
#include "base/time.h"
#include "json/json.h"

namespace muster::apiserver {

void apply_defaults(const Resource& resource, json::Value& object);
void prepare_create(const Resource& resource, json::Value& object, Time now);
void prepare_update(const Resource& resource, json::Value& updated, const json::Value& live);
void prepare_status_update(const Resource& resource, json::Value& updated, const json::Value& live);
std::vector<Cause> check_create(const Resource& resource, const json::Value& object);
std::vector<Cause> check_update(const Resource& resource,
                                const json::Value& updated,
                                const json::Value& live);

/// Equal but for managedFields and resourceVersion.
bool same_content(const json::Value& a, const json::Value& b);
/// managedFields equal but for times.
bool same_managers(const json::Value& a, const json::Value& b);

}  // namespace muster::apiserver
