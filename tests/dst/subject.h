/// The engine that a world reports to, and what is checked whatever it decides: the same
/// events give the same plans and digests, a clone plans byte for byte alike and leaves no trace, and
/// neither does anybody who asks for forecasts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "world.h"

namespace muster::dst {

class Subject {
 public:
  Subject(const Run& run, const engine::Config& config);

  void tell(const engine::Event& event);
  /// False: the engine refuses them, and stays as it was.
  bool configure_cells(const engine::cells::Config& config, Time now);
  /// What the engine wants. `aftermath` is what becomes of clones afterwards.
  [[nodiscard]] engine::Plan decide(Time now, const std::vector<engine::Event>& aftermath);
  /// A new one, which knows nothing yet.
  void restart(const engine::Config& config);

  [[nodiscard]] const engine::Engine& engine() const { return engine_; }
  [[nodiscard]] std::int64_t sent() const { return sent_; }
  /// What was wrong with the last decision, whatever its plan says.
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }
  /// A clone will be made at the next decision.
  [[nodiscard]] bool forks() const;

 private:
  std::optional<std::string> clone_plan(Time now,
                                        const std::vector<engine::Event>& aftermath,
                                        std::string& plan);
  void ask(Time now);

  const Run& run_;
  engine::Engine engine_;
  /// Told the same: must say the same. Now and then it is replaced by a clone, which must go on as
  /// one that was told all.
  engine::Engine twin_;
  /// Forecasts are made from the engine, and none from the twin.
  bool asked_ = false;
  bool compare_ = false;
  std::int64_t sent_ = 0;
  std::optional<std::string> failure_;
};

/// All of it: two plans that spell the same are the same.
std::string spell(const engine::Plan& plan);
void print(const engine::Plan& plan);

}  // namespace muster::dst
