/// OpenAPI documents made from the table: /openapi/v3 per group-version, and the bytes of
/// /openapi/v2.
#pragma once

#include "kube/crd/crd.h"
#include "kube/schema/schema.h"

namespace muster::kube {

/// The v3 document of one group-version: schemas and, per kind, paths whose PATCH has
/// fieldValidation.
json::Value openapi_v3(const Schema& schema,
                       std::string_view group,
                       std::string_view version,
                       const std::vector<Crd>& crds);

/// The v2 document of everything, as the protobuf that kubectl up to 1.28 reads.
std::string openapi_v2(const Schema& schema, const std::vector<Crd>& crds);

/// "kubeflow.org" + "v1" + "PyTorchJob" = "org.kubeflow.v1.PyTorchJob".
std::string crd_schema_name(const Crd& crd, const CrdVersion& version);
/// What a type (field empty) or its field is for; empty when nobody has written it down.
std::string_view description_of(std::string_view type, std::string_view field);

}  // namespace muster::kube
