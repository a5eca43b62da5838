/// Help pages in cobra's layout, and the manual page, all from the command table.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/cli.h"
#include "cli/shell/commands.h"
#include "cli/shell/session.h"

namespace muster::cli {
namespace {

std::vector<CommandInfo>& foreign() {
  static std::vector<CommandInfo> commands;
  return commands;
}

std::string command_lines(const std::vector<CommandInfo>& commands) {
  std::size_t widest = 0;
  for (const CommandInfo& command : commands) widest = std::max(widest, command.name.size());
  std::string out;
  for (const CommandInfo& command : commands)
    out += fmt::format("  {:<{}}   {}\n", command.name, widest, command.summary);
  return out;
}

std::vector<CommandInfo> infos_of(const std::vector<Command>& commands) {
  std::vector<CommandInfo> infos;
  for (const Command& command : commands) {
    if (!command.hidden) infos.push_back({command.name, command.summary, command.aliases});
  }
  return infos;
}

/// Troff reads bytes: letters beyond ASCII go by their number.
std::string plain_letters(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      out += text[i];
      continue;
    }
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    unsigned code = first & (0x3FU >> more);
    for (int k = 0; k < more && i + 1 < text.size(); ++k)
      code = code << 6 | (static_cast<unsigned char>(text[++i]) & 0x3FU);
    out += fmt::format("\\[u{:04X}]", code);
  }
  return out;
}

/// Troff: a backslash, and a dot or quote at the start of a line, must be escaped; a hyphen is a
/// minus here.
std::string roff(std::string_view text) {
  std::string out = plain_letters(replace_all(replace_all(text, "\\", "\\e"), "-", "\\-"));
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return replace_all(out, "\n.", "\n\\&.");
}

void man_flags(std::string& out, const std::vector<Flag>& flags) {
  std::vector<const Flag*> sorted;
  for (const Flag& flag : flags) {
    if (!flag.hidden) sorted.push_back(&flag);
  }
  std::sort(
      sorted.begin(), sorted.end(), [](const Flag* a, const Flag* b) { return a->name < b->name; });
  for (const Flag* flag : sorted) {
    const std::string word = type_word(*flag);
    out += ".TP\n";
    out += flag->shorthand != 0
               ? fmt::format("\\fB\\-{}\\fR, \\fB\\-\\-{}\\fR", flag->shorthand, roff(flag->name))
               : fmt::format("\\fB\\-\\-{}\\fR", roff(flag->name));
    if (!word.empty())
      out += flag->bare.empty() ? fmt::format(" \\fI{}\\fR", word)
                                : fmt::format("[=\\fI{}\\fR]", word);
    out += "\n" + roff(flag->help);
    const bool shows =
        !flag->value.empty() && flag->value != "false" && flag->value != "0" && flag->value != "0s";
    out += shows ? fmt::format(" (default {})\n", roff(flag->value)) : "\n";
  }
}

void man_command(std::string& out, const Command& command, const std::string& path) {
  if (command.hidden) return;
  if (command.run != nullptr) {
    out += fmt::format(
        ".SS \"{}{}\"\n{}.\n",
        roff(path),
        command.arguments.empty() ? "" : " " + replace_all(roff(command.arguments), "\"", ""),
        roff(command.summary));
    if (!command.aliases.empty())
      out += fmt::format("Also called {}.\n", roff(join(command.aliases, ", ")));
    if (!command.details.empty()) out += roff(command.details) + "\n";
    man_flags(out, command.flags);
  }
  for (const Command& child : command.children) man_command(out, child, path + " " + child.name);
}

}  // namespace

std::vector<CommandInfo> commands() { return infos_of(registry()); }

std::vector<std::string> foreign_command_words() {
  std::vector<std::string> words;
  for (const CommandInfo& command : foreign()) words.push_back(command.name);
  return words;
}

void add_foreign_commands(std::vector<CommandInfo> more) { foreign() = std::move(more); }

const Command* find_child(const std::vector<Command>& list, const std::string& word) {
  for (const Command& command : list) {
    if (command.name == word ||
        std::find(command.aliases.begin(), command.aliases.end(), word) != command.aliases.end())
      return &command;
  }
  return nullptr;
}

bool is_command(const std::string& word) { return find_child(registry(), word) != nullptr; }

std::string root_help(const std::string& program) {
  std::vector<CommandInfo> all = infos_of(registry());
  std::string out =
      fmt::format("{} runs training jobs on shared GPUs\n\nUsage:\n  {} [command]\n\nJobs:\n{}",
                  program,
                  program,
                  command_lines(all));
  if (!foreign().empty()) out += "\nClusters:\n" + command_lines(foreign());
  out += fmt::format(
      "\nFlags:\n{}\nUse \"{} [command] --help\" for more information about a command.\n",
      flag_usages(global_flags()),
      program);
  return out;
}

std::string command_help(const Command& command, const std::string& path) {
  const std::string program = path.substr(0, path.find(' '));
  std::string out = command.summary + "\n";
  if (!command.details.empty()) out += "\n" + command.details + "\n";
  out += "\nUsage:\n";
  if (command.run != nullptr) {
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
  if (!command.children.empty())
    out += "\nAvailable Commands:\n" + command_lines(infos_of(command.children));
  std::vector<Flag> own = command.flags;
  own.push_back({.name = "help",
                 .shorthand = 'h',
                 .type = FlagType::kBool,
                 .value = "false",
                 .help = "help for " + command.name});
  out += "\nFlags:\n" + flag_usages(own) + "\nGlobal Flags:\n" + flag_usages(global_flags());
  if (!command.children.empty())
    out +=
        fmt::format("\nUse \"{} [command] --help\" for more information about a command.\n", path);
  return out;
}

std::string man_page() {
  std::string out =
      ".\\\" Made by `muster man`.\n.TH MUSTER 1\n.SH NAME\nmuster, arena \\- run training jobs on shared GPUs\n.SH SYNOPSIS\n.B muster\n.I command\n[\\fIflags\\fR] [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\nMuster places training jobs as whole gangs on GPUs under queues and priorities, and can say why a job waits.\n"
      "Called through a link named \\fBarena\\fR it takes arena's command lines.\n.SH \"GLOBAL FLAGS\"\n";
  man_flags(out, global_flags());
  if (!foreign().empty()) {
    out += ".SH \"CLUSTER COMMANDS\"\n";
    for (const CommandInfo& command : foreign())
      out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command.name), roff(command.summary));
  }
  out += ".SH COMMANDS\n";
  for (const Command& command : registry()) man_command(out, command, command.name);
  out +=
      ".SH \"EXIT STATUS\"\n.TP\n0\nDone. Deleting a job that is not there is done too.\n.TP\n1\nAn error; one line on standard error says which.\n.TP\n3\nThe job that \\-\\-wait or \\-\\-watch followed has failed.\n"
      ".TP\n4\nThe job that \\-\\-wait followed was not ready before \\-\\-timeout.\n.PP\n\\fBattach\\fR exits as the command it ran.\n"
      ".SH ENVIRONMENT\n.TP\nKUBECONFIG\nThe cluster to use.\n.TP\nMUSTER_HOME\nWhere \\fBmuster up\\fR keeps its data and kubeconfig; ~/.muster unless set.\n.TP\nARENA_CONFIG\nA file of key=value lines (namespace, imagePullSecrets) instead of ~/.arena/config.\n"
      ".TP\nNO_COLOR\nNo colours, even on a terminal.\n";
  return out;
}

Task<int> run_man(Invocation& call) {
  call.session.console.out(man_page());
  co_return 0;
}

}  // namespace muster::cli
