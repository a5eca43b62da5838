/// Protobuf request bodies ("k8s\0" envelope) of the built-in kinds, as JSON.
#pragma once

#include "kube/schema.h"

namespace muster::kube {

/// The object with apiVersion and kind set. `expected` helps for DeleteOptions and the like whose envelope names
/// another group.
Result<json::Value> decode_protobuf(const Schema& schema, std::string_view body);

}  // namespace muster::kube
