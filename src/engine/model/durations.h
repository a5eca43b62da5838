/// How long work like this took before: the estimate where nobody gave one.
///
/// Keyed by queue and class of pods; keeps the last few durations and answers with the longest of
/// them, so that a reservation made on it is seldom late. Unknown until two have been seen.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "engine/model/ids.h"

namespace muster::engine {

class Digest;

class Durations {
 public:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

  void learn(TenantId tenant, ClassId cls, std::int64_t us) {
    Past& p = past_[{tenant, cls}];
    p.last[p.seen++ % p.last.size()] = us;
  }
  [[nodiscard]] std::int64_t estimate(TenantId tenant, ClassId cls) const {
    const auto it = past_.find({tenant, cls});
    if (it == past_.end() || it->second.seen < 2) return kUnknown;
    const auto n = std::min<std::size_t>(it->second.seen, it->second.last.size());
    return *std::max_element(it->second.last.begin(),
                             it->second.last.begin() + static_cast<std::ptrdiff_t>(n));
  }

  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  struct Past {
    std::array<std::int64_t, 5> last{};
    std::size_t seen = 0;
  };
  std::map<std::pair<TenantId, ClassId>, Past> past_;
};

}  // namespace muster::engine
