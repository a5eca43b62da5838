/// Flags of the commands that main/ owns: --name value, --name=value, and switches.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster {

struct FlagSpec {
  std::string name;  // "data"
  std::string* text = nullptr;
  bool* on = nullptr;  // a switch
};

/// Reads argv[first…]; an unknown flag or a stray word is an error that says what would be right.
Result<void> parse_flags(int argc, char** argv, int first, const std::vector<FlagSpec>& flags);

}  // namespace muster
