/// The rules that Volcano keeps in its webhook, so that a Job that could only fail is refused.
#pragma once

#include "controllers/common/field.h"

namespace muster::controllers::vcjob {

/// `old_job` null on create. Whether its queue exists is not asked: it may come later.
Verdict validate(const json::Value& job, const json::Value* old_job);

}  // namespace muster::controllers::vcjob
