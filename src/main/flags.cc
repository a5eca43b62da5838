#include "main/flags.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster {

Result<void> parse_flags(int argc, char** argv, int first, const std::vector<FlagSpec>& flags) {
  std::vector<std::string> names;
  for (const FlagSpec& flag : flags) names.push_back(flag.name);
  for (int i = first; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--"))
      return fail(Code::kBadRequest,
                  fmt::format("unexpected argument \"{}\"; flags begin with --", word));
    const auto equals = word.find('=');
    const std::string name(
        word.substr(2, equals == std::string_view::npos ? std::string_view::npos : equals - 2));
    const FlagSpec* found = nullptr;
    for (const FlagSpec& flag : flags) {
      if (flag.name == name) found = &flag;
    }
    if (found == nullptr) {
      const auto near = nearest(name, names);
      return fail(Code::kBadRequest,
                  fmt::format("unknown flag --{}{}",
                              name,
                              near ? fmt::format("; did you mean --{}?", *near)
                                   : std::string("; see --help")));
    }
    if (found->on != nullptr) {
      *found->on = equals == std::string_view::npos || word.substr(equals + 1) != "false";
      continue;
    }
    if (equals != std::string_view::npos) {
      *found->text = std::string(word.substr(equals + 1));
    } else if (i + 1 < argc) {
      *found->text = argv[++i];
    } else {
      return fail(Code::kBadRequest, fmt::format("--{} needs a value", name));
    }
  }
  return {};
}

}  // namespace muster
