/// How often somebody may call: so many in each window of time. Pure: time comes in.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/time.h"

namespace muster::pai::rest {

class RateLimit {
 public:
  RateLimit(std::size_t most, Duration window) : most_(most), window_(window) {}
  void set_most(std::size_t most) { most_ = most; }
  /// Zero: go ahead, counted. Else how long until the window ends.
  Duration ask(const std::string& who, Duration now);

 private:
  struct Window {
    Duration begun{};
    std::size_t count = 0;
  };
  std::size_t most_;
  Duration window_;
  std::map<std::string, Window> windows_;
};

}  // namespace muster::pai::rest
