/// Small files, read and written whole. Streams would cost several times as much, and a pod has a
/// dozen of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::agent {

/// The first `bytes_max` of it; empty when there is none.
std::string read_file(const std::string& path, std::size_t bytes_max = SIZE_MAX);
/// In place: whoever has it mounted sees the change. `mode` is set as it is, whatever the umask.
Result<void> write_file(const std::string& path, std::string_view text, mode_t mode = 0644);
/// With its parents.
Result<void> make_directory(const std::string& path);

}  // namespace muster::agent
