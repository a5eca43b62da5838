/// The files of one container attempt's log: those rotated away, oldest first, then the current
/// one.
#pragma once

#include <string>
#include <vector>

namespace muster::agent {

/// `path` is the current one, which is last, whether it exists or not.
std::vector<std::string> log_files(const std::string& path);
/// The one that follows the file open as `fd`, whatever its name is by now; empty: it is the last that
/// something was written to.
std::string next_log_file(const std::string& path, int fd);

}  // namespace muster::agent
