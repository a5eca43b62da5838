/// From words to a command and its values, apart from running it, so that tests can take the same
/// way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/command.h"

namespace muster::command {

struct Located {
  const Section* section = nullptr;  // of the command
  const Command* command = nullptr;  // the deepest that the words name
  std::string path;                  // "submit mpijob"
  std::vector<std::string> rest;     // all words that are not command words
  std::string unknown;               // the first word that should have been a command and is none
};
Located locate(const Program& program, const std::vector<std::string>& words);

/// Help pages and unknown commands; the exit code when that was the answer.
std::optional<int> answer_without_running(Console& console,
                                          const Program& program,
                                          const Located& found);
/// Flag errors, --help, missing arguments; the exit code when that was the answer.
std::optional<int> check_call(Console& console,
                              const Program& program,
                              const Located& found,
                              Result<Values>& values);

/// Runs the command line and returns the exit code: 0 good, 1 an error, others as the command says.
int run(const Program& program, std::vector<std::string> words);

}  // namespace muster::command
