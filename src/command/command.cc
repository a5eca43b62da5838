#include "command/command.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::command {

const Command* find_child(const std::vector<Command>& commands, const std::string& word) {
  for (const Command& command : commands) {
    if (command.name == word ||
        std::find(command.aliases.begin(), command.aliases.end(), word) != command.aliases.end())
      return &command;
  }
  return nullptr;
}

std::vector<std::string> names_of(const std::vector<Command>& commands, bool aliases_too) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.hidden) continue;
    names.push_back(command.name);
    if (aliases_too) names.insert(names.end(), command.aliases.begin(), command.aliases.end());
  }
  return names;
}

int Call::misused(std::string_view what) const {
  console.err(fmt::format("Error: {}\nRun '{} --help' for usage.\n", what, path));
  return 2;
}

int Call::failed(std::string_view what) const {
  console.err(fmt::format("{}: {}\n", path, what));
  return 1;
}

std::vector<Flag> Program::shared_flags() const {
  std::vector<Flag> all;
  for (const Section& section : sections)
    all.insert(all.end(), section.flags.begin(), section.flags.end());
  return all;
}

const Command* Program::find(const std::string& word, const Section** section) const {
  for (const Section& each : sections) {
    const Command* found = find_child(each.commands, word);
    if (found == nullptr) continue;
    *section = &each;
    return found;
  }
  return nullptr;
}

}  // namespace muster::command
