/// How long gangs last, drawn from what the engine has learned: what is learned, and what is
/// guessed, is told apart.
///
/// Runs of one level are long or short together in one course: a part of each draw is the level's,
/// the rest is the gang's own. Drawn one by one they would cancel each other out, and ranges would be
/// far too narrow.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "answers/lasting.h"
#include "answers/survival.h"
#include "engine/engine.h"

namespace muster::answers {

/// The same for the same gangs, whatever the order they became known in.
std::uint64_t seed_of(const std::vector<engine::GangView>& gangs);

class SharedDraws : public Lasting {
 public:
  struct Settings {
    std::uint64_t seed = 0;  ///< Zero: that of the gangs there are.
    /// How much of the spread is the level's, in thousandths: 0 or 600.
    std::int32_t shared = 600;
    std::int32_t draws = 40;  ///< So many are spread evenly; others are drawn alone.
  };

  /// Keeps what it needs of the engine, which may go on.
  SharedDraws(const engine::Engine& engine, Time now, Settings settings);
  SharedDraws(const engine::Engine& engine, Time now) : SharedDraws(engine, now, Settings{}) {}

  [[nodiscard]] Drawn draw(const engine::GangView& gang,
                           Duration age,
                           std::int32_t draw) const override;

 private:
  [[nodiscard]] const Survival& survival(std::uint32_t level) const;
  [[nodiscard]] const Survival& declarations(std::uint64_t user) const;
  [[nodiscard]] double share(std::uint64_t level, const std::string& gang, std::int32_t draw) const;
  /// The part of a draw that all of a level have in common.
  [[nodiscard]] std::int32_t part_of(std::uint64_t level, std::int32_t draw) const;
  [[nodiscard]] Drawn declared(const engine::GangView& gang, Duration age, double u) const;
  [[nodiscard]] Drawn learned(const engine::GangView& gang,
                              std::uint32_t level,
                              Duration age,
                              double u) const;

  std::shared_ptr<const engine::History> history_;
  std::uint64_t seed_;
  std::int32_t shared_, draws_;
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> running_;  // ages, by level
  mutable std::unordered_map<std::uint32_t, std::unique_ptr<Survival>> survivals_;  // by level
  /// By user: how long runs took, in thousandths of what was declared; empty: nothing is known.
  mutable std::unordered_map<std::uint64_t, std::unique_ptr<Survival>> declarations_;
  mutable std::unordered_map<std::uint64_t, std::vector<std::int32_t>> parts_;  // by level and draw
};

}  // namespace muster::answers
