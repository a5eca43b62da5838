/// Volcano's Queue as an object that opens and closes. Pure: what a queue's state becomes.
///
///   Open --CloseQueue--> Closing (it has groups) or Closed (it has none)
///   Closing --the last group goes--> Closed
///   Closing, Closed, Unknown --OpenQueue--> Open
///
/// Closing a queue closes those below it and marks them; opening it opens exactly the marked ones.
/// The root stays open, and nothing opens below a closed queue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controllers/common/objects.h"
#include "kube/names.h"

namespace muster::controllers::queue {

struct Counts {
  int pending = 0, inqueue = 0, running = 0, unknown = 0, completed = 0;
  [[nodiscard]] int total() const { return pending + inqueue + running + unknown + completed; }
  void add(std::string_view phase, int n);
};

struct Decision {
  std::string state;
  std::string refused;  ///< Why the action was not taken; empty: it was (or there was none).
  std::vector<std::string> close;  ///< Children to mark and close.
  std::vector<std::string> open;   ///< Marked children to open.
};

/// `action`: "OpenQueue", "CloseQueue" or empty. `queues`: all of them.
Decision decide(const json::Value& queue,
                const Objects& queues,
                const Counts& counts,
                std::string_view action);

}  // namespace muster::controllers::queue
