/// The command line: arena's commands, and Muster's own that talk to a cluster.
///
/// main/ hands over every command that it does not own itself. Called through a link named `arena`
/// the program names itself so in its texts; everything else is the same.
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

/// One command as `--help`, the man page and the completions list it.
struct CommandInfo {
  std::string name;
  std::string summary;
  std::vector<std::string> aliases;
};

/// The commands that run() understands, in the order of the help page.
std::vector<CommandInfo> commands();

/// True when run() knows the first word (a name or an alias, or a hidden command such as
/// __complete).
bool is_command(const std::string& word);

/// The commands of main/, so that help pages, suggestions and completions show all of them
/// together.
void add_foreign_commands(std::vector<CommandInfo> foreign);

/// The help page of the whole program: `muster --help`.
std::string root_help(const std::string& program);

/// The completion script for bash, zsh or fish; empty for another shell. Calls `PROGRAM __complete
/// WORD…`.
std::string completion_script(const std::string& shell, const std::string& program);

/// Runs the command line and returns the exit code: 0 good, 1 an error, and with --wait 3 for a job
/// that failed and 4 for one that was not ready in time.
int run(int argc, char** argv);

}  // namespace muster::cli
