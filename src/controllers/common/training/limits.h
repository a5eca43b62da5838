/// How long and how often a training job may try, and how long it is kept when it has ended.
#pragma once

#include "controllers/common/training/pass.h"

namespace muster::controllers {

bool past_backoff_limit(const Pass& pass);
/// Says when to look again while there is time.
bool past_deadline(Pass& pass);
/// Deletes a job whose time to live after its end is over, or says when to look again.
void apply_ttl(Pass& pass);

}  // namespace muster::controllers
