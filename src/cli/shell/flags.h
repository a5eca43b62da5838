/// Flags as data, read the way pflag reads them, and commands as a tree of them.
///
/// `--f=v` and `--f v`; booleans take a value only with `=`; flags and positionals mix; `--` ends
/// flags; lists are one value per occurrence, commas not split. A deprecated spelling works and
/// says so. Error texts are pflag's. The same data make the help pages, the man page and the
/// completions.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "base/time.h"

namespace muster::cli {

enum class FlagType { kString, kBool, kInt, kList, kDuration };

/// What the shell can offer for a value or a positional.
enum class Completes {
  kNothing,
  kJobs,
  kTypes,
  kNodes,
  kPriorities,
  kQueues,
  kNamespaces,
  kInstances,
  kFiles,
  kWords
};

struct Flag {
  std::string name;
  char shorthand = 0;
  FlagType type = FlagType::kString;
  std::string value;  // default
  std::string help;
  std::vector<std::string> deprecated = {};  // older spellings
  /// The value of a bare `--flag` whose type is not a boolean; empty: a value is needed.
  std::string bare = {};
  bool required = false;
  bool hidden = false;
  Completes completes = Completes::kNothing;
  std::vector<std::string> words = {};  // for kWords
};

/// What a command line gave.
class Values {
 public:
  [[nodiscard]] bool given(std::string_view flag) const {
    return given_.contains(std::string(flag));
  }
  [[nodiscard]] std::string text(std::string_view flag) const;
  [[nodiscard]] bool yes(std::string_view flag) const { return text(flag) == "true"; }
  [[nodiscard]] int number(std::string_view flag) const;
  [[nodiscard]] Duration duration(std::string_view flag) const;
  [[nodiscard]] const std::vector<std::string>& list(std::string_view flag) const;
  void set(const std::string& flag, std::string value) { values_[flag] = {std::move(value)}; }

  std::vector<std::string> args;
  /// Lines such as "Flag --workingDir has been deprecated, please use --working-dir instead".
  std::vector<std::string> warnings;
  bool help = false;

 private:
  friend class FlagParser;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::set<std::string> given_;
};

class Session;
struct Command;

/// One call of a command.
struct Invocation {
  const Command& command;
  Values& values;
  Session& session;
};
using CommandFunction = Task<int> (*)(Invocation&);

struct Command {
  std::string name;
  std::vector<std::string> aliases;
  std::string arguments;  // "JOB", "[NODE…]"
  std::string summary;    // one line
  std::string details;    // the rest of the help text
  std::string examples;
  std::vector<Flag> flags;
  std::vector<Command> children;
  CommandFunction run = nullptr;
  bool needs_cluster = true;
  bool hidden = false;
  Completes completes = Completes::kNothing;  // positionals
  std::vector<std::string> words = {};        // for kWords
};

/// Parses `words` with the command's flags and the global ones. Missing required flags are an error
/// unless
/// --help was given.
Result<Values> parse_flags(const Command& command,
                           const std::vector<Flag>& global,
                           const std::vector<std::string>& words);

/// "  -o, --output string   text (default "wide")", aligned, without hidden ones.
std::string flag_usages(const std::vector<Flag>& flags);

/// The word a help page shows for the value: string, stringArray, int, duration, or nothing.
std::string type_word(const Flag& flag);

}  // namespace muster::cli
