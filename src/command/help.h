/// Help pages in cobra's layout, and the manual page, all from the commands' data.
#pragma once

#include <string>

#include "command/command.h"

namespace muster::command {

/// The help page of the whole program: `muster --help`.
std::string root_help(const Program& program);
/// The help page of a command; `path` is "muster submit mpijob".
std::string command_help(const Command& command, const Section& section, const std::string& path);
/// In troff: what `muster man` prints and docs/muster.1 is.
std::string man_page(const Program& program);
/// The completion script for bash, zsh or fish; empty for another shell. Calls `PROGRAM __complete
/// WORD…`.
std::string completion_script(const std::string& shell, const std::string& program);

}  // namespace muster::command
