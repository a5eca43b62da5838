/// The cell allocator alone under random load, as an extender of Kubernetes' scheduler drives it:
/// asked pod by pod, in both phases, with some nodes suggested. Its tables are looked into (books.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/cells/allocator.h"
#include "world.h"

namespace muster::dst {

class AllocatorWorld final : public World {
 public:
  explicit AllocatorWorld(const Run& run);
  [[nodiscard]] std::int64_t sent() const override { return sent_; }

 private:
  struct Pod {
    engine::cells::PodRef ref;
    engine::cells::PodSpec spec;
    std::optional<engine::cells::BindInfo> bind;
  };

  std::optional<std::string> step(Random& random) override;
  [[nodiscard]] std::string describe() const;
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

  bool large_;
  engine::cells::Config config_;
  std::optional<engine::cells::CellAllocator> allocator_;
  std::vector<Pod> pods_;
  std::map<std::string, bool> health_;
  std::vector<std::string> victims_;
  std::uint64_t next_name_ = 0;
  std::int64_t sent_ = 0;
};

}  // namespace muster::dst
