#include "command/help.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::command {
namespace {

std::string command_lines(const std::vector<Command>& commands) {
  std::size_t widest = 0;
  for (const Command& command : commands) {
    if (!command.hidden) widest = std::max(widest, command.name.size());
  }
  std::string out;
  for (const Command& command : commands) {
    if (!command.hidden)
      out += fmt::format("  {:<{}}   {}\n", command.name, widest, command.summary);
  }
  return out;
}

}  // namespace

std::string root_help(const Program& program) {
  std::string out =
      fmt::format("{} {}\n\nUsage:\n  {} [command]\n", program.name, program.about, program.name);
  for (const Section& section : program.sections)
    out += fmt::format("\n{}:\n{}", section.title, command_lines(section.commands));
  out += fmt::format(
      "\nFlags:\n{}\nUse \"{} [command] --help\" for more information about a command.\n",
      flag_usages(program.shared_flags()),
      program.name);
  return out;
}

std::string command_help(const Command& command, const Section& section, const std::string& path) {
  const std::string program = path.substr(0, path.find(' '));
  std::string out = command.summary + "\n";
  if (!command.details.empty()) out += "\n" + command.details + "\n";
  out += "\nUsage:\n";
  if (command.run) {
    const bool has = command.arguments.starts_with("[flags]");
    out += fmt::format("  {}{}{}\n",
                       path,
                       command.arguments.empty() ? "" : " " + command.arguments,
                       has ? "" : " [flags]");
  }
  if (!command.children.empty()) out += fmt::format("  {} [command]\n", path);
  if (!command.aliases.empty())
    out += fmt::format("\nAliases:\n  {}, {}\n", command.name, join(command.aliases, ", "));
  if (!command.examples.empty())
    out += "\nExamples:\n" + replace_all(command.examples, "  muster ", "  " + program + " ");
  if (!command.children.empty()) out += "\nAvailable Commands:\n" + command_lines(command.children);
  std::vector<Flag> own = command.flags;
  own.push_back({.name = "help",
                 .shorthand = 'h',
                 .type = FlagType::kBool,
                 .value = "false",
                 .help = "help for " + command.name});
  out += "\nFlags:\n" + flag_usages(own);
  if (!section.flags.empty()) out += "\nGlobal Flags:\n" + flag_usages(section.flags);
  if (!command.children.empty())
    out +=
        fmt::format("\nUse \"{} [command] --help\" for more information about a command.\n", path);
  return out;
}

}  // namespace muster::command
