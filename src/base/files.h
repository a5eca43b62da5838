/// Files as whole texts.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

Result<std::string> read_file(const std::string& path);
/// Mode 0600, replaced in one step.
Result<void> write_private(const std::string& path, const std::string& text);

}  // namespace muster
