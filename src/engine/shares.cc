#include "engine/shares.h"

#include <algorithm>

namespace muster::engine {

using volcano::Amounts;
using volcano::Wide;

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
        c->deserved[i] += before[i] > 0 ? before[i] * c->weight / weights : 0;
        c->deserved[i] = std::min({c->deserved[i], c->limit[i], c->demand[i]});
      }
      const bool met = volcano::all_less_equal(c->demand, c->deserved) || c->deserved == old;
      for (std::size_t i = 0; i < dimensions; ++i) c->deserved[i] = std::max(c->deserved[i], c->guarantee[i]);
      if (!met) still.push_back(c);
      remaining -= c->deserved;
      remaining += old;
    }
    unmet = std::move(still);
    if (volcano::is_empty(remaining) || remaining == before) break;
  }
}

}  // namespace muster::engine
