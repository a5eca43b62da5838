#include "command/dispatch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "base/strings.h"
#include "command/help.h"

namespace muster::command {
namespace {

/// True when the word is a flag that takes the next word as its value.
bool takes_next(const Command* command, const std::vector<Flag>& shared, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  const auto in = [&](const std::vector<Flag>& flags) -> const Flag* {
    for (const Flag& flag : flags) {
      const bool old = word.starts_with("--") &&
                       std::find(flag.deprecated.begin(), flag.deprecated.end(), word.substr(2)) !=
                           flag.deprecated.end();
      if (old || word == "--" + flag.name ||
          (flag.shorthand != 0 && word == std::string{'-', flag.shorthand}))
        return &flag;
    }
    return nullptr;
  };
  const Flag* flag = command == nullptr ? nullptr : in(command->flags);
  if (flag == nullptr) flag = in(shared);
  return flag != nullptr && flag->type != FlagType::kBool && flag->bare.empty();
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  std::vector<std::string> near;
  for (const std::string& name : names) {
    if (name.starts_with(word) && word.size() >= 2) near.push_back(name);
  }
  if (near.empty()) {
    if (const auto closest = nearest(word, names)) near.push_back(*closest);
  }
  if (near.empty()) return "";
  return "\nDid you mean this?\n\t" + join(near, "\n\t") + "\n";
}

std::string unknown_command(const std::string& word,
                            const std::string& path,
                            const std::vector<std::string>& names) {
  return fmt::format("Error: unknown command \"{}\" for \"{}\"\n{}\nRun '{} --help' for usage.\n",
                     word,
                     path,
                     did_you_mean(word, names),
                     path);
}

bool wants_help(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--help" || word == "-h";
  });
}

}  // namespace

Located locate(const Program& program, const std::vector<std::string>& words) {
  Located found;
  const std::vector<Flag> shared = program.shared_flags();
  bool below = true;  // a further word may name a command
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" || !below) {
      found.rest.insert(
          found.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (word.size() > 1 && word[0] == '-') {
      found.rest.push_back(word);
      if (takes_next(found.command, shared, word) && i + 1 < words.size())
        found.rest.push_back(words[++i]);
      continue;
    }
    const Command* child = found.command == nullptr ? program.find(word, &found.section)
                                                    : find_child(found.command->children, word);
    if (child == nullptr) {
      found.unknown = word;
      found.rest.push_back(word);
      below = false;
      continue;
    }
    found.path += (found.path.empty() ? "" : " ") + child->name;
    found.command = child;
    below = !child->children.empty();
  }
  return found;
}

std::optional<int> answer_without_running(Console& console,
                                          const Program& program,
                                          const Located& found) {
  if (found.command == nullptr) {
    if (found.unknown.empty()) {
      console.out(root_help(program));
      return 0;
    }
    std::vector<std::string> names;
    for (const Section& section : program.sections) {
      const auto more = names_of(section.commands, true);
      names.insert(names.end(), more.begin(), more.end());
    }
    console.err(unknown_command(found.unknown, program.name, names));
    return 1;
  }
  if (found.command->run) return std::nullopt;
  const std::string path = program.name + " " + found.path;
  if (!found.unknown.empty() && !wants_help(found.rest)) {
    console.err(unknown_command(found.unknown, path, names_of(found.command->children, true)));
    return found.section->strict ? 2 : 1;
  }
  console.out(command_help(*found.command, *found.section, path));
  return 0;
}

std::optional<int> check_call(Console& console,
                              const Program& program,
                              const Located& found,
                              Result<Values>& values) {
  const std::string path = program.name + " " + found.path;
  const int misuse = found.section->strict ? 2 : 1;
  if (!values) {
    console.err(
        fmt::format("Error: {}\nRun '{} --help' for usage.\n", values.error().message, path));
    return misuse;
  }
  for (const std::string& warning : values->warnings) console.err(warning + "\n");
  if (values->help) {
    console.out(command_help(*found.command, *found.section, path));
    return 0;
  }
  if (const std::string level = values->text("loglevel");
      !level.empty() && !console.set_level(level)) {
    console.error(fmt::format("unknown loglevel {}, wanted debug, info, warn or error", level));
    return misuse;
  }
  const std::string& arguments = found.command->arguments;
  if (found.section->strict && arguments.empty() && !values->args.empty()) {
    console.err(fmt::format(
        "Error: unexpected argument \"{}\"; flags begin with --\nRun '{} --help' for usage.\n",
        values->args[0],
        path));
    return misuse;
  }
  const bool wants_name = !arguments.empty() && arguments[0] != '[';
  const bool wants_command =
      arguments == "[flags] \"command\"" && values->text("dry-run") != "true";
  if (values->args.empty() && (wants_name || wants_command)) {
    console.out(command_help(*found.command, *found.section, path));
    console.error(wants_command
                      ? "please set the training command"
                      : fmt::format("please set the {}",
                                    arguments.starts_with("JOB") ? "job name" : arguments));
    return misuse;
  }
  return std::nullopt;
}

int run(const Program& program, std::vector<std::string> words) {
  Console console = Console::standard();
  if (words == std::vector<std::string>{"--version"}) words = {"version", "--short"};
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const Located found = locate(program, words);
  if (const auto code = answer_without_running(console, program, found)) return *code;
  Result<Values> values = parse_flags(found.command->flags, found.section->flags, found.rest);
  if (const auto code = check_call(console, program, found, values)) return *code;
  Call call{program, *found.command, program.name + " " + found.path, *values, console};
  const int code = found.command->run(call);
  console.progress("");
  std::fflush(stdout);
  return code;
}

}  // namespace muster::command
