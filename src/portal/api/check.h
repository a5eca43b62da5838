/// How often one person may ask what would become of a manifest.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/time.h"

namespace muster::portal {

class CheckLimit {
 public:
  /// False: too often. `now` of a clock that never goes back.
  bool allows(const std::string& user, Duration now);

 private:
  std::map<std::string, std::deque<Duration>> asked_;
};

}  // namespace muster::portal
