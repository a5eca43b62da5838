#include "command/flags.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "command/console.h"

namespace muster::command {
namespace {

bool is_true(std::string_view text) {
  return text == "true" || text == "1" || text == "t" || text == "T" || text == "TRUE" ||
         text == "True";
}
bool is_false(std::string_view text) {
  return text == "false" || text == "0" || text == "f" || text == "F" || text == "FALSE" ||
         text == "False";
}

}  // namespace

class FlagParser {
 public:
  FlagParser(const std::vector<Flag>& own, const std::vector<Flag>& shared) {
    for (const Flag& flag : own) add(flag);
    for (const Flag& flag : shared) add(flag);
  }

  Result<Values> parse(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (word == "--") {
        values_.args.insert(
            values_.args.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        values_.args.push_back(word);
        continue;
      }
      const Result<void> taken = word[1] == '-' ? take_long(words, i) : take_short(words, i);
      if (!taken) return fail(taken.error());
      if (values_.help) return std::move(values_);
    }
    std::vector<std::string> missing;
    for (const Flag* flag : order_) {
      if (flag->required && !values_.given(flag->name)) missing.push_back(quoted(flag->name));
      values_.values_.try_emplace(flag->name,
                                  flag->type == FlagType::kList
                                      ? std::vector<std::string>{}
                                      : std::vector<std::string>{flag->value});
    }
    if (!missing.empty())
      return fail(Code::kInvalid, fmt::format("required flag(s) {} not set", join(missing, ", ")));
    return std::move(values_);
  }

 private:
  void add(const Flag& flag) {
    if (!by_name_.emplace(flag.name, &flag).second) return;
    order_.push_back(&flag);
    for (const std::string& old : flag.deprecated) by_old_name_.emplace(old, &flag);
    if (flag.shorthand != 0) by_letter_.emplace(flag.shorthand, &flag);
  }

  Result<void> take_long(const std::vector<std::string>& words, std::size_t& i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name.empty() || name[0] == '-')
      return fail(Code::kInvalid, fmt::format("bad flag syntax: {}", word));
    const auto found = by_name_.find(name);
    const Flag* flag = found == by_name_.end() ? nullptr : found->second;
    if (flag == nullptr) {
      if (const auto old = by_old_name_.find(name); old != by_old_name_.end()) {
        flag = old->second;
        values_.warnings.push_back(fmt::format(
            "Flag --{} has been deprecated, please use --{} instead", name, flag->name));
      }
    }
    if (flag == nullptr) {
      if (name == "help") {
        values_.help = true;
        return {};
      }
      return unknown(name);
    }
    if (equals != std::string::npos)
      return set(*flag, fmt::format("--{}", name), word.substr(equals + 1));
    if (flag->type == FlagType::kBool) return set(*flag, name, "true");
    if (!flag->bare.empty()) return set(*flag, name, flag->bare);
    if (i + 1 >= words.size())
      return fail(Code::kInvalid, fmt::format("flag needs an argument: --{}", name));
    return set(*flag, fmt::format("--{}", name), words[++i]);
  }

  Result<void> take_short(const std::vector<std::string>& words, std::size_t& i) {
    const std::string& word = words[i];
    for (std::size_t at = 1; at < word.size(); ++at) {
      const auto found = by_letter_.find(word[at]);
      if (found == by_letter_.end()) {
        if (word[at] == 'h') {
          values_.help = true;
          return {};
        }
        return fail(Code::kInvalid,
                    fmt::format("unknown shorthand flag: '{}' in {}", word[at], word));
      }
      const Flag& flag = *found->second;
      const std::string shown = fmt::format("-{}, --{}", flag.shorthand, flag.name);
      const std::string rest = word.substr(at + 1);
      if (!rest.empty() && rest[0] == '=') return set(flag, shown, rest.substr(1));
      if (flag.type == FlagType::kBool || (!flag.bare.empty() && rest.empty())) {
        const Result<void> done =
            set(flag, shown, flag.type == FlagType::kBool ? "true" : flag.bare);
        if (!done) return done;
        continue;
      }
      if (!rest.empty()) return set(flag, shown, rest);
      if (i + 1 >= words.size()) {
        return fail(Code::kInvalid,
                    fmt::format("flag needs an argument: '{}' in {}", word[at], word));
      }
      return set(flag, shown, words[++i]);
    }
    return {};
  }

  Result<void> unknown(const std::string& name) {
    std::vector<std::string> names;
    for (const Flag* flag : order_) names.push_back(flag->name);
    const auto near = nearest(name, names);
    return fail(Code::kInvalid,
                near ? fmt::format("unknown flag: --{}, did you mean --{}?", name, *near)
                     : fmt::format("unknown flag: --{}", name));
  }

  Result<void> set(const Flag& flag, const std::string& shown, std::string value) {
    const auto bad = [&](std::string_view why) {
      return fail(
          Code::kInvalid,
          fmt::format("invalid argument {} for \"{}\" flag: {}", quoted(value), shown, why));
    };
    switch (flag.type) {
      case FlagType::kBool:
        if (!is_true(value) && !is_false(value)) {
          return bad(fmt::format("strconv.ParseBool: parsing {}: invalid syntax", quoted(value)));
        }
        value = is_true(value) ? "true" : "false";
        break;
      case FlagType::kInt: {
        const auto number = parse_int(value);
        if (!number)
          return bad(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", quoted(value)));
        if (*number > INT32_MAX || *number < INT32_MIN) {
          return bad(
              fmt::format("strconv.ParseInt: parsing {}: value out of range", quoted(value)));
        }
        break;
      }
      case FlagType::kDuration:
        if (const auto parsed = parse_duration(value); !parsed) return bad(parsed.error().message);
        break;
      case FlagType::kString:
      case FlagType::kList:
        break;
    }
    std::vector<std::string>& slot = values_.values_[flag.name];
    if (flag.type != FlagType::kList) slot.clear();
    slot.push_back(std::move(value));
    values_.given_.insert(flag.name);
    return {};
  }

  std::vector<const Flag*> order_;
  std::map<std::string, const Flag*, std::less<>> by_name_, by_old_name_;
  std::map<char, const Flag*> by_letter_;
  Values values_;
};

std::string Values::text(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() || found->second.empty() ? "" : found->second.back();
}

int Values::number(std::string_view flag) const {
  return static_cast<int>(parse_int(text(flag)).value_or(0));
}

Duration Values::duration(std::string_view flag) const {
  const auto parsed = parse_duration(text(flag));
  return parsed ? *parsed : Duration{0};
}

const std::vector<std::string>& Values::list(std::string_view flag) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(flag);
  return found == values_.end() ? kNone : found->second;
}

Result<Values> parse_flags(const std::vector<Flag>& own,
                           const std::vector<Flag>& shared,
                           const std::vector<std::string>& words) {
  return FlagParser(own, shared).parse(words);
}

std::string type_word(const Flag& flag) {
  if (!flag.value_name.empty()) return flag.value_name;
  switch (flag.type) {
    case FlagType::kString:
      return "string";
    case FlagType::kBool:
      return "";
    case FlagType::kInt:
      return "int";
    case FlagType::kList:
      return "stringArray";
    case FlagType::kDuration:
      return "duration";
  }
  return "";
}

std::string flag_usages(const std::vector<Flag>& flags) {
  std::vector<std::pair<std::string, std::string>> lines;
  int widest = 0;
  std::vector<const Flag*> sorted;
  for (const Flag& flag : flags) {
    if (!flag.hidden) sorted.push_back(&flag);
  }
  std::sort(
      sorted.begin(), sorted.end(), [](const Flag* a, const Flag* b) { return a->name < b->name; });
  for (const Flag* flag : sorted) {
    std::string left = flag->shorthand != 0
                           ? fmt::format("  -{}, --{}", flag->shorthand, flag->name)
                           : fmt::format("      --{}", flag->name);
    if (const std::string word = type_word(*flag); !word.empty()) {
      left += flag->bare.empty() ? " " + word : fmt::format("[={}]", word);
    }
    std::string right = flag->help;
    const bool shows = flag->type == FlagType::kString
                           ? !flag->value.empty()
                           : !flag->value.empty() && flag->value != "0" && flag->value != "false" &&
                                 flag->value != "0s";
    if (shows)
      right += flag->type == FlagType::kString ? fmt::format(" (default {})", quoted(flag->value))
                                               : fmt::format(" (default {})", flag->value);
    widest = std::max(widest, display_width(left));
    lines.emplace_back(std::move(left), std::move(right));
  }
  std::string out;
  for (const auto& [left, right] : lines) {
    out += left;
    out.append(static_cast<std::size_t>(widest - display_width(left) + 3), ' ');
    out += right + "\n";
  }
  return out;
}

}  // namespace muster::command
