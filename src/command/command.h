/// Commands as data: a program is a few sections of commands, a command has flags, texts, perhaps
/// commands below it, and a function. Dispatch, help pages, the manual and the completions are made
/// from it, so a room that offers a command writes down what it is and nothing else.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command/console.h"
#include "command/flags.h"

namespace muster::command {

struct Call;

/// Returns the exit code.
using Run = std::function<int(Call&)>;

struct Command {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string arguments = {};  // "JOB", "[NODE…]"
  std::string summary = {};    // one line
  std::string details = {};    // the rest of the help text
  std::string examples = {};
  std::vector<Flag> flags = {};
  std::vector<Command> children = {};
  Run run = {};
  bool hidden = false;
  Completes completes = Completes::kNothing;  // positionals
  std::vector<std::string> words = {};        // for kWords
};

/// Commands that stand together in the help page.
struct Section {
  std::string title;         // "Jobs"
  std::string manual_title;  // "COMMANDS"
  std::vector<Command> commands;
  std::vector<Flag> flags = {};  // of each of its commands
  /// A wrong command line exits with 2, and words that mean nothing are refused. Otherwise as arena
  /// does: 1, and they are ignored.
  bool strict = false;
};

struct Program {
  std::string name;  // as it was called: "muster" or "arena"
  std::string about;
  std::vector<Section> sections;

  /// Those of all sections, for words before a command is known.
  [[nodiscard]] std::vector<Flag> shared_flags() const;
  /// By name or alias; nullptr when there is none. `section` is told whose it is.
  [[nodiscard]] const Command* find(const std::string& word, const Section** section) const;
};

/// One call of a command.
struct Call {
  const Program& program;
  const Command& command;
  std::string path;  // "muster up"
  Values& values;
  Console& console;

  /// Says that the command line asks for what there is not; the exit code.
  int misused(std::string_view what) const;
  /// Says what went wrong; the exit code.
  int failed(std::string_view what) const;
};

/// By name or alias; nullptr when there is none.
const Command* find_child(const std::vector<Command>& commands, const std::string& word);
/// Those that people are told of.
std::vector<std::string> names_of(const std::vector<Command>& commands, bool aliases_too);

/// `man` and `completion bash|zsh|fish`.
Command man_command();
Command completion_command();

}  // namespace muster::command
