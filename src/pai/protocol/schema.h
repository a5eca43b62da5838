/// The protocol's JSON schema and the part of JSON Schema (draft 7) that it is written in. Errors are
/// in the words and form of Ajv 6, which OpenPAI's server answers with.
#pragma once

#include "json/json.h"

namespace muster::pai {

/// Every violation, in the order of the schema:
/// [{"keyword":"required","dataPath":"","schemaPath":"#/required",
///   "params":{"missingProperty":"name"},"message":"should have required property 'name'"}]
json::Array schema_errors(const json::Value& value, const json::Value& schema);

/// Of a job, version 2.
const json::Value& protocol_schema();

}  // namespace muster::pai
