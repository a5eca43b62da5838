/// One seed: a cluster, its users and what happens to it, until all is at rest again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "checks.h"

namespace muster::bottle {

struct RunOptions {
  std::uint64_t seed = 1;
  int steps = 120;
  std::string broken;  // the check whose opposite is done
  bool tell = false;   // everything as it happens
  bool pods = false;   // told: each change of a pod, too
};

struct Outcome {
  std::optional<Violation> violation;
  std::deque<std::string> story;  // its end
  std::uint64_t events = 0, digest = 0, seen = 0, actions = 0;
  std::int64_t virtual_s = 0;
  std::map<std::string, std::uint64_t> faults;
};

Outcome run(const RunOptions& options);

/// Where a run keeps the small files of its pods while it lasts; `process` is whose run it is.
std::string folder_of(std::int64_t process);

/// The names of the checks that --break can set off.
const std::vector<std::string>& breakable();

}  // namespace muster::bottle
