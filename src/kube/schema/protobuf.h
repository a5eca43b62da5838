/// Protobuf bodies ("k8s\\0" envelope) of the built-in kinds, as JSON.
#pragma once

#include "kube/schema/schema.h"

namespace muster::kube {

/// A third of a pod that few readers want.
enum class ManagedFields : std::uint8_t { kKeep, kLeaveOut };

/// The object with apiVersion and kind set.
Result<json::Value> decode_protobuf(const Schema& schema,
                                    std::string_view body,
                                    ManagedFields managed = ManagedFields::kKeep);

}  // namespace muster::kube
