/// Completions: the scripts, and the hidden command that answers them.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/cli.h"
#include "cli/shell/commands.h"
#include "cli/submit/trainer.h"
#include "cli/view/fetch.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

constexpr const char* kBash = R"(# bash completion for PROGRAM
_PROGRAM_complete() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
  if [ ${#COMPREPLY[@]} -eq 0 ]; then
    COMPREPLY=($(compgen -f -- "$word"))
  elif [ ${#COMPREPLY[@]} -eq 1 ] && [[ "${COMPREPLY[0]}" == *= ]]; then
    compopt -o nospace
  fi
}
complete -F _PROGRAM_complete PROGRAM
)";

constexpr const char* kZsh = R"(#compdef PROGRAM
_PROGRAM_complete() {
  local -a found
  found=("${(@f)$(${words[1]} __complete -- "${(@)words[2,CURRENT-1]}" "${words[CURRENT]}" 2>/dev/null)}")
  if [ -z "${found[1]}" ]; then _files; else compadd -- "${found[@]}"; fi
}
compdef _PROGRAM_complete PROGRAM
)";

constexpr const char* kFish = R"(# fish completion for PROGRAM
function __PROGRAM_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
)";

using Words = std::vector<std::string>;

Words starting_with(const Words& words, std::string_view prefix) {
  Words out;
  for (const std::string& word : words) {
    if (word.starts_with(prefix)) out.push_back(word);
  }
  return out;
}

Task<Words> names_of(Session& session, const client::Resource& resource, std::string ns) {
  client::ListOptions options;
  options.ns = std::move(ns);
  const auto list = co_await session.cluster().list(resource, options);
  Words names;
  if (list) {
    for (const json::Value& object : list->items) names.emplace_back(kube::name_of(object));
  }
  co_return names;
}

Task<Words> candidates(Session& session, Completes what, const Words& fixed, std::string job) {
  Words words;
  switch (what) {
    case Completes::kWords:
      words = fixed;
      break;
    case Completes::kTypes:
      for (const Trainer& trainer : trainers()) {
        if (std::find(words.begin(), words.end(), trainer.type) == words.end())
          words.push_back(trainer.type);
      }
      break;
    case Completes::kJobs: {
      JobsQuery query;
      query.ns = session.ns;
      const auto jobs = co_await fetch_jobs(session, query);
      if (!jobs) break;
      for (const Job& each : (*jobs)->jobs) words.push_back(each.name);
      break;
    }
    case Completes::kInstances: {
      const auto found = co_await fetch_job(session, job, "");
      if (!found) break;
      for (const Instance& instance : (*found)->jobs[0].instances) words.push_back(instance.name);
      break;
    }
    case Completes::kNodes:
      words = co_await names_of(session, client::resources::kNodes, "");
      break;
    case Completes::kPriorities:
      words = co_await names_of(session, client::resources::kPriorityClasses, "");
      break;
    case Completes::kQueues:
      words = co_await names_of(session, client::resources::kQueues, "");
      break;
    case Completes::kNamespaces:
      words = co_await names_of(session, client::resources::kNamespaces, "");
      break;
    case Completes::kFiles:
    case Completes::kNothing:
      break;
  }
  co_return words;
}

/// Where the words before the cursor lead.
struct Place {
  const Command* command = nullptr;  // nullptr: no command word yet
  const Flag* wants_value = nullptr;
  Words positionals;
  std::string ns;
};

const Flag* find_flag(const Command* command, const std::string& word) {
  const auto in = [&](const std::vector<Flag>& flags) -> const Flag* {
    for (const Flag& flag : flags) {
      if (word == "--" + flag.name ||
          (flag.shorthand != 0 && word == fmt::format("-{}", flag.shorthand)))
        return &flag;
    }
    return nullptr;
  };
  if (command != nullptr) {
    if (const Flag* own = in(command->flags)) return own;
  }
  return in(global_flags());
}

Place place_of(const Words& words) {
  Place place;
  const std::vector<Command>* level = &registry();
  for (const std::string& word : words) {
    if (place.wants_value != nullptr) {
      if (place.wants_value->name == "namespace") place.ns = word;
      place.wants_value = nullptr;
    } else if (word.starts_with("-")) {
      const Flag* flag = find_flag(place.command, word);
      if (flag != nullptr && flag->type != FlagType::kBool && flag->bare.empty())
        place.wants_value = flag;
      if (word.starts_with("--namespace=")) place.ns = word.substr(12);
    } else if (const Command* child = level == nullptr ? nullptr : find_child(*level, word)) {
      place.command = child;
      level = child->children.empty() ? nullptr : &child->children;
    } else {
      place.positionals.push_back(word);
    }
  }
  return place;
}

/// Bash breaks words at '=': "--priority", "=", "me" is one word. True when the last word was such
/// a one.
bool join_broken_words(Words& words) {
  Words joined;
  bool last_broken = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    last_broken = words[i] == "=" && !joined.empty() && joined.back().starts_with("--");
    if (!last_broken) {
      joined.push_back(words[i]);
      continue;
    }
    joined.back() += "=";
    if (i + 1 < words.size()) joined.back() += words[++i];
  }
  words = std::move(joined);
  return last_broken;
}

Words flag_words(const Command* command) {
  Words words;
  const auto add = [&](const std::vector<Flag>& flags) {
    for (const Flag& flag : flags) {
      if (!flag.hidden)
        words.push_back("--" + flag.name +
                        (flag.type == FlagType::kBool || !flag.bare.empty() ? "" : "="));
    }
  };
  if (command != nullptr) add(command->flags);
  add(global_flags());
  words.emplace_back("--help");
  std::sort(words.begin(), words.end());
  return words;
}

Words command_words(const std::vector<Command>& level) {
  Words words;
  for (const Command& command : level) {
    if (!command.hidden) words.push_back(command.name);
  }
  return words;
}

}  // namespace

Task<int> run_complete(Invocation& call) {
  Session& session = call.session;
  Words words = call.values.args;
  const bool value_only = join_broken_words(words);
  if (words.empty()) words.emplace_back();
  const std::string last = words.back();
  words.pop_back();
  const Place place = place_of(words);
  if (!place.ns.empty()) session.ns = place.ns;
  const std::string job = place.positionals.empty() ? "" : place.positionals[0];
  Words found;
  std::string prefix = last, head;
  if (place.wants_value != nullptr) {
    found =
        co_await candidates(session, place.wants_value->completes, place.wants_value->words, job);
  } else if (const std::size_t equals = last.find('=');
             last.starts_with("--") && equals != std::string::npos) {
    const Flag* flag = find_flag(place.command, last.substr(0, equals));
    if (flag != nullptr) found = co_await candidates(session, flag->completes, flag->words, job);
    head = value_only ? "" : last.substr(0, equals + 1);
    prefix = last.substr(equals + 1);
  } else if (last.starts_with("-")) {
    found = flag_words(place.command);
  } else if (place.command == nullptr) {
    found = command_words(registry());
    for (const std::string& word : foreign_command_words()) found.push_back(word);
  } else if (!place.command->children.empty()) {
    found = command_words(place.command->children);
  } else {
    found = co_await candidates(session, place.command->completes, place.command->words, job);
  }
  std::string out;
  for (const std::string& word : starting_with(found, prefix)) {
    out += head + word + "\n";
  }
  session.console.out(out);
  co_return 0;
}

Task<int> run_completion(Invocation& call) {
  const std::string script = completion_script(call.values.args[0], call.session.program);
  if (script.empty())
    co_return call.session.failed(
        fmt::format("no completions for {}: want bash, zsh or fish", call.values.args[0]));
  call.session.console.out(script);
  co_return 0;
}

std::string completion_script(const std::string& shell, const std::string& program) {
  if (shell == "bash") return replace_all(kBash, "PROGRAM", program);
  if (shell == "zsh") return replace_all(kZsh, "PROGRAM", program);
  if (shell == "fish") return replace_all(kFish, "PROGRAM", program);
  return "";
}

}  // namespace muster::cli
