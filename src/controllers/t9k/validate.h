/// The rules of a T9k MPIJob (batch.tensorstack.dev/v1beta1).
#pragma once

#include "controllers/common/field.h"

namespace muster::controllers::t9k {

/// `old_job` null on create.
Verdict validate(const json::Value& job, const json::Value* old_job);

}  // namespace muster::controllers::t9k
