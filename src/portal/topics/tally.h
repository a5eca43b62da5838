/// Sums over all nodes and jobs that many tabs show. Made once for all of them, and in a large
/// cluster no more often than takes a twentieth of a core.
#pragma once

#include <map>
#include <string>

#include "base/env.h"
#include "json/json.h"
#include "portal/cluster/nodes.h"
#include "portal/jobs/index.h"

namespace muster::portal {

/// What the jobs of a queue or virtual cluster wait for and hold.
struct Share {
  std::int64_t waiting = 0, waiting_gpus = 0, running = 0;
  std::int64_t oppo_gpus = 0, oppo_cpu_milli = 0, oppo_memory = 0;
};

class Tally {
 public:
  Tally(Env& env, const JobIndex& jobs, const Nodes& nodes)
      : env_(env), jobs_(jobs), nodes_(nodes) {}

  /// Grows when the sums were made anew; makes them so if it is time.
  std::uint64_t version();
  /// `nodes`, `gpus`, `freeBySize` and `alerts` of Counts (web/src/shapes/cluster.ts).
  [[nodiscard]] const json::Object& sums() const { return sums_; }
  [[nodiscard]] Share queue(Word queue) const;
  [[nodiscard]] Share vc(Word vc) const;

 private:
  void make();
  void count_nodes();
  void count_shares();
  [[nodiscard]] json::Array alerts() const;

  Env& env_;
  const JobIndex& jobs_;
  const Nodes& nodes_;
  std::uint64_t seen_ = 0, version_ = 0;
  Duration made_{}, took_{};
  json::Object sums_;
  std::map<Word, Share> queues_, vcs_;
};

}  // namespace muster::portal
