/// What the training-operator's webhook says to a PyTorchJob as it was sent, before defaults.
#pragma once

#include "controllers/common/field.h"

namespace muster::controllers::pytorchjob {

/// `old_job` null on create.
Verdict validate(const json::Value& job, const json::Value* old_job);

}  // namespace muster::controllers::pytorchjob
