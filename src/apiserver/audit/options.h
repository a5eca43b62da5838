/// How the audit log is kept.
#pragma once

#include "apiserver/audit/file.h"
#include "apiserver/audit/policy.h"

namespace muster::apiserver::audit {

struct Options {
  Policy policy = default_policy();
  FileOptions file;
};

}  // namespace muster::apiserver::audit
