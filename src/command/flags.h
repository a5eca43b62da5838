/// Flags as data, read the way pflag reads them.
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
#include "base/time.h"

namespace muster::command {

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
  /// How help pages name the value, such as "FILE"; empty: by its type, as pflag does.
  std::string value_name = {};
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

/// Parses `words` with a command's own flags and those that it shares with others; where both have
/// a name, its own counts. Missing required flags are an error unless --help was given.
Result<Values> parse_flags(const std::vector<Flag>& own,
                           const std::vector<Flag>& shared,
                           const std::vector<std::string>& words);

/// "  -o, --output string   text (default "wide")", aligned, without hidden ones.
std::string flag_usages(const std::vector<Flag>& flags);

/// The word a help page shows for the value: its name, else string, stringArray, int, duration, or
/// nothing.
std::string type_word(const Flag& flag);

}  // namespace muster::command
