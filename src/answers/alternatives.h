/// What would start a waiting job now: changes that the asker may make, each tried on a copy of the
/// engine under the rules that hold. What was not tried is not said.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "answers/shapes.h"
#include "engine/engine.h"

namespace muster::answers {

/// What whoever asks may change. Nothing else is offered.
struct Asker {
  bool own_job = true;              ///< May change the job itself.
  std::int32_t workers_min = 0;     ///< Down to so many of its largest members; 0: all are needed.
  bool other_pieces = false;        ///< Its kind allows the same GPUs in more or fewer members.
  std::vector<std::string> queues;  ///< May submit there.
  std::vector<std::pair<std::string, std::int32_t>> priorities;  ///< May use these classes.
  std::vector<std::string> own_jobs;  ///< Keys of running gangs it may stop.
  bool admin = false;
};

struct AlternativesAsk {
  std::string job;  ///< Key of a gang that waits.
  Asker asker;
  std::size_t most = 5;
  std::function<bool()> go_on;  ///< Asked before each trial; null: always.
};

/// What an alternative was found with: to be said for real, event by event.
struct Tried {
  Alternative alternative;
  std::vector<engine::Event> events;
};

/// Least change first. None for a job that starts at the next decision anyway.
std::vector<Tried> try_alternatives(const engine::Engine& engine,
                                    Time now,
                                    const AlternativesAsk& ask);
std::vector<Alternative> alternatives(const engine::Engine& engine,
                                      Time now,
                                      const AlternativesAsk& ask);

}  // namespace muster::answers
