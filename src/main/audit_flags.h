/// The flags by which `muster up` keeps its audit log, named as kube-apiserver's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/audit/options.h"
#include "command/flags.h"

namespace muster {

std::vector<command::Flag> audit_flags();

/// Nothing where no log is wanted. Reads the policy's file.
Result<std::optional<apiserver::audit::Options>> audit_options(const command::Values& values,
                                                               const std::string& data);

}  // namespace muster
