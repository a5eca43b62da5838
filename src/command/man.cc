#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "command/help.h"

namespace muster::command {
namespace {

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
  if (command.run) {
    out += fmt::format(
        ".SS \"{}{}\"\n{}.\n",
        roff(path),
        command.arguments.empty() ? "" : " " + replace_all(roff(command.arguments), "\"", ""),
        roff(command.summary));
    if (!command.aliases.empty())
      out += fmt::format("Also called {}.\n", roff(join(command.aliases, ", ")));
    if (!command.details.empty()) out += roff(command.details) + "\n";
    man_flags(out, command.flags);
    if (!command.examples.empty())
      out += ".PP\nExamples:\n.PP\n.nf\n" + roff(command.examples) + ".fi\n";
  }
  for (const Command& child : command.children) man_command(out, child, path + " " + child.name);
}

}  // namespace

std::string man_page(const Program& program) {
  std::string out =
      ".\\\" Made by `muster man`.\n.TH MUSTER 1\n.SH NAME\nmuster, arena \\- run training jobs on shared GPUs\n.SH SYNOPSIS\n.B muster\n.I command\n[\\fIflags\\fR] [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\nMuster places training jobs as whole gangs on GPUs under queues and priorities, and says why a job waits.\n"
      "Called through a link named \\fBarena\\fR it takes arena's command lines.\n.SH \"GLOBAL FLAGS\"\n";
  man_flags(out, program.shared_flags());
  for (const Section& section : program.sections) {
    out += fmt::format(".SH \"{}\"\n", section.manual_title);
    for (const Command& command : section.commands) man_command(out, command, command.name);
  }
  out +=
      ".SH \"EXIT STATUS\"\n.TP\n0\nSuccess, also when deleting a job that does not exist.\n.TP\n1\nAn error; one line on standard error says which.\n.TP\n2\nWrong usage of a cluster command.\n.TP\n3\nThe job followed with \\-\\-wait or \\-\\-watch has failed.\n"
      ".TP\n4\nThe job followed with \\-\\-wait was not ready before \\-\\-timeout.\n.PP\n\\fBattach\\fR exits as the command it ran.\n"
      ".SH ENVIRONMENT\n.TP\nKUBECONFIG\nThe cluster to use.\n.TP\nMUSTER_HOME\nWhere \\fBmuster up\\fR keeps its data and kubeconfig; ~/.muster unless set.\n.TP\nARENA_CONFIG\nA file of key=value lines (namespace, imagePullSecrets) instead of ~/.arena/config.\n"
      ".TP\nNO_COLOR\nNo colours, even on a terminal.\n";
  return out;
}

Command man_command() {
  Command made;
  made.name = "man";
  made.summary = "Print the manual page (troff)";
  made.run = [](Call& call) {
    call.console.out(man_page(call.program));
    return 0;
  };
  return made;
}

}  // namespace muster::command
