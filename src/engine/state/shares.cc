#include "engine/state/shares.h"

#include <algorithm>

namespace muster::engine {

using volcano::Amounts;
using volcano::Wide;

namespace {

/// In every dimension, pods too.
bool met(const Claim& claim, std::size_t dimensions) {
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (!volcano::less_equal(claim.demand[i], claim.deserved[i])) return false;
  }
  return true;
}

}  // namespace

void water_fill(const Amounts& total, std::size_t dimensions, std::vector<Claim>& claims) {
  std::vector<Claim*> unmet;
  for (Claim& c : claims) {
    c.deserved = Amounts();
    unmet.push_back(&c);
  }
  Amounts remaining = total;
  while (!unmet.empty()) {
    Wide weights = 0;
    for (const Claim* c : unmet) weights += c->weight;
    if (weights == 0) break;
    // All queues of a round see the same remainder.
    const Amounts before = remaining;
    std::vector<Claim*> still;
    for (Claim* c : unmet) {
      const Amounts old = c->deserved;
      for (std::size_t i = 0; i < dimensions; ++i) {
        c->deserved[i] += before[i] * c->weight / weights;
        c->deserved[i] =
            std::max(std::min({c->deserved[i], c->limit[i], c->demand[i]}), c->guarantee[i]);
      }
      if (!met(*c, dimensions) && c->deserved != old) still.push_back(c);
      remaining -= c->deserved;
      remaining += old;
    }
    unmet = std::move(still);
    // Guarantees may hand out more than there is.
    for (std::size_t i = 0; i < dimensions; ++i) remaining[i] = std::max<Wide>(remaining[i], 0);
    if (volcano::is_empty(remaining) || remaining == before) break;
  }
}

}  // namespace muster::engine
