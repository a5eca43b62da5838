/// A random world from a seed, whatever it is made of: queues under Muster's or Volcano's policy,
/// HiveD's cells through the engine, or the cell allocator alone.
///
/// Every step draws from its own generator (seed, step), so steps can be left out and the rest
/// stays what it was: that is how a failing run is made small before it is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "faults.h"

namespace muster::dst {

enum class Kind : std::uint8_t { kMuster, kVolcano, kCells, kAllocator };

struct NamedKind {
  Kind kind;
  std::string_view name;
};
const std::vector<NamedKind>& kinds();
std::string_view name_of(Kind kind);

struct Failure {
  std::int64_t step = 0;
  std::string text;
};

struct Run {
  Kind kind = Kind::kMuster;
  std::uint64_t seed = 0;
  std::int64_t steps = 400;
  std::set<std::int64_t> skipped;
  Fault fault = Fault::kNone;
  /// Count everything after every plan, so that a run with fewer steps fails as well.
  bool thorough = false;
  /// Print every event and what the plan says.
  bool trace = false;
};

class World {
 public:
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  /// What went wrong, or nothing.
  std::optional<Failure> go();
  /// Events that were told.
  [[nodiscard]] virtual std::int64_t sent() const = 0;

 protected:
  explicit World(const Run& run) : run_(run) {}
  /// Something happens, is decided upon and checked: what is wrong, or nothing.
  virtual std::optional<std::string> step(Random& random) = 0;

  const Run& run_;
};

/// `run` must outlive it.
std::unique_ptr<World> make_world(const Run& run);

}  // namespace muster::dst
