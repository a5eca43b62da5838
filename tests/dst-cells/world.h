/// One random cluster with its load, driven by numbered events. An event draws from its own
/// generator, so any subset of the events can be replayed: that is how a failure is minimised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/cells/allocator.h"

namespace muster::dst {

/// A random forest of cells, split among virtual clusters so that it fits.
engine::cells::Config random_config(Random& random, bool large);
/// The same with something changed: a share moved, a node renamed, a virtual cluster gone or grown.
engine::cells::Config changed_config(const engine::cells::Config& config, Random& random);

class World {
 public:
  World(std::uint64_t seed, bool large);
  /// Applies event number `i`; what is wrong afterwards, or "".
  std::string apply(std::uint64_t i);
  std::string describe() const;
  bool verbose = false;

 private:
  struct Pod {
    engine::cells::PodRef ref;
    engine::cells::PodSpec spec;
    std::optional<engine::cells::BindInfo> bind;
  };

  void add_job(Random& random);
  std::string schedule(Random& random);
  void remove_pod(std::size_t index);
  void remove_some(Random& random);
  void toggle_node(Random& random);
  std::string restart(Random& random, bool change);
  /// Every virtual cluster asks for all it was promised, at once and with the highest priority, and
  /// gets it.
  std::string claim_everything() const;
  std::string check(Random& random);
  void say(const std::string& text) const;

  std::uint64_t seed_;
  bool large_;
  engine::cells::Config config_;
  std::optional<engine::cells::CellAllocator> allocator_;
  std::vector<Pod> pods_;
  std::map<std::string, bool> health_;
  std::vector<std::string> victims_;
  std::uint64_t next_name_ = 0;
};

}  // namespace muster::dst
