/// The hidden command that answers the scripts of `completion`.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/submit/trainer.h"
#include "cli/view/fetch.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

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
  const bool fixed_words = what == Completes::kWords || what == Completes::kTypes;
  if (!fixed_words && !session.connected()) co_return words;
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
  std::vector<Flag> shared;          // of its section, or of all
  const Flag* wants_value = nullptr;
  Words positionals;
  std::string ns;
};

const Flag* find_flag(const Place& place, const std::string& word) {
  const auto in = [&](const std::vector<Flag>& flags) -> const Flag* {
    for (const Flag& flag : flags) {
      if (word == "--" + flag.name ||
          (flag.shorthand != 0 && word == fmt::format("-{}", flag.shorthand)))
        return &flag;
    }
    return nullptr;
  };
  if (place.command != nullptr) {
    if (const Flag* own = in(place.command->flags)) return own;
  }
  return in(place.shared);
}

/// Goes down by a word that names a command.
bool step(const command::Program& program, const std::string& word, Place& place) {
  const command::Section* section = nullptr;
  const Command* found = place.command == nullptr
                             ? program.find(word, &section)
                             : command::find_child(place.command->children, word);
  if (section != nullptr) place.shared = section->flags;
  if (found != nullptr) place.command = found;
  return found != nullptr;
}

Place place_of(const command::Program& program, const Words& words) {
  Place place;
  place.shared = program.shared_flags();
  bool below = true;  // a further word may name a command
  for (const std::string& word : words) {
    if (place.wants_value != nullptr) {
      if (place.wants_value->name == "namespace") place.ns = word;
      place.wants_value = nullptr;
    } else if (word.starts_with("-")) {
      const Flag* flag = find_flag(place, word);
      if (flag != nullptr && flag->type != FlagType::kBool && flag->bare.empty())
        place.wants_value = flag;
      if (word.starts_with("--namespace=")) place.ns = word.substr(12);
    } else if (below && step(program, word, place)) {
      below = !place.command->children.empty();
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

Words flag_words(const Place& place) {
  Words words;
  const auto add = [&](const std::vector<Flag>& flags) {
    for (const Flag& flag : flags) {
      if (!flag.hidden)
        words.push_back("--" + flag.name +
                        (flag.type == FlagType::kBool || !flag.bare.empty() ? "" : "="));
    }
  };
  if (place.command != nullptr) add(place.command->flags);
  add(place.shared);
  words.emplace_back("--help");
  std::sort(words.begin(), words.end());
  return words;
}

Words command_words(const command::Program& program) {
  Words words;
  for (const command::Section& section : program.sections) {
    const Words more = command::names_of(section.commands, false);
    words.insert(words.end(), more.begin(), more.end());
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
  const Place place = place_of(call.program, words);
  if (!place.ns.empty()) session.ns = place.ns;
  const std::string job = place.positionals.empty() ? "" : place.positionals[0];
  Words found;
  std::string prefix = last, head;
  if (place.wants_value != nullptr) {
    found =
        co_await candidates(session, place.wants_value->completes, place.wants_value->words, job);
  } else if (const std::size_t equals = last.find('=');
             last.starts_with("--") && equals != std::string::npos) {
    const Flag* flag = find_flag(place, last.substr(0, equals));
    if (flag != nullptr) found = co_await candidates(session, flag->completes, flag->words, job);
    head = value_only ? "" : last.substr(0, equals + 1);
    prefix = last.substr(equals + 1);
  } else if (last.starts_with("-")) {
    found = flag_words(place);
  } else if (place.command == nullptr) {
    found = command_words(call.program);
  } else if (!place.command->children.empty()) {
    found = command::names_of(place.command->children, false);
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

}  // namespace muster::cli
