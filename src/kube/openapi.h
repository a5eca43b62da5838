/// OpenAPI documents made from the table: /openapi/v3 per group-version, and the bytes of /openapi/v2.
#pragma once

#include "kube/crd.h"
#include "kube/schema.h"

namespace muster::kube {

/// The v3 document of one group-version: schemas and, per kind, paths whose PATCH has fieldValidation.
json::Value openapi_v3(const Schema& schema, std::string_view group, std::string_view version, const std::vector<Crd>& crds);

}  // namespace muster::kube
