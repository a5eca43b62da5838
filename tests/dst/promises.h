/// Reservations, as docs/engine.md bounds what may delay them. Of lower rank nobody starts, or gets
/// room by evictions, in the way of a reservation
///   - until `patience` after the first start that its holder was told: unless its owner's word, or what
///     8 in 10 of those like it took, ends it by the reserved start, or enough is left beside the
///     holder when those that run leave by their word or with 8 in 10 of those like them;
///   - later: unless its owner's word ends it by then, or enough is left beside the holder when only
///     those leave whose word it is.
/// A reservation that was made in this very plan was made for when one in twenty of those like them are
/// over, beside whoever had started before it; who that was is not told, so no more is asked.
/// What was learned is the engine's own history, which has tests of its own; what is made of it is
/// judged here.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model.h"

namespace muster::dst {

/// Takes the reservation's k-th node as many members as promised, with everybody gone whose word it
/// is to be by then?
bool promise_holds(const Model& model, const engine::Reservation& reservation, std::size_t k);

class Promises {
 public:
  Promises(const Model& model, const engine::Engine& engine, const engine::Config& config)
      : model_(model), engine_(engine), config_(config) {}

  /// What was before the plan.
  struct Before {
    const std::vector<engine::Reservation>& reservations;
    const std::map<std::string, Held>& held;
    const std::map<std::string, std::int32_t>& bound;
  };
  /// Before its binds are made in the model: whom the plan delays, if anybody.
  [[nodiscard]] std::optional<std::string> judge(const engine::Plan& plan, const Before& before);
  /// After its binds: what nobody waits for any more was kept.
  void forget_started();

 private:
  struct Newcomer {
    const SimPod* pod;
    std::string node;
    std::vector<std::int32_t> devices;
    bool passes;       ///< It may start whomever it delays.
    bool still_waits;  ///< Room is held for it since before; when it will end, nobody can say.
    bool newly_held;   ///< Room is held for it since this plan.
  };

  /// Of a reservation in one plan.
  struct Standing {
    bool late = false;       ///< Only words count by now.
    bool held = false;       ///< Its holder had one before.
    bool unchanged = false;  ///< It is the very one of before, and so are the other holders.
  };

  void note_first_told();
  [[nodiscard]] bool late(const engine::Reservation& r) const;
  [[nodiscard]] std::optional<std::string> judge(const engine::Plan& plan,
                                                 const Before& before,
                                                 const engine::Reservation& r,
                                                 Standing standing) const;
  [[nodiscard]] std::vector<Newcomer> newcomers(const engine::Plan& plan,
                                                const Before& before,
                                                const SimPod& holder) const;
  [[nodiscard]] bool declared(const SimPod& pod) const;
  [[nodiscard]] bool over_by(const SimPod& newcomer, Time then, Standing standing) const;
  [[nodiscard]] bool gone_by(const SimPod& pod, Time then, Standing standing) const;
  [[nodiscard]] std::optional<Duration> like_it(const std::string& gang,
                                                Duration age,
                                                std::int32_t permille) const;
  [[nodiscard]] std::optional<Time> foretold_end(const SimPod& pod, std::int32_t permille) const;

  const Model& model_;
  const engine::Engine& engine_;
  engine::Config config_;
  std::map<std::string, Time> first_told_;  ///< By holder, for as long as some of it waits.
};

}  // namespace muster::dst
