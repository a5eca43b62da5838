/// A second engine that hears what the one that decides hears, in the same order, and so knows the
/// same: questions are put to it, and the loop is not held for them.
///
/// It is made at the first question, by a copy that the loop does not wait for, and let go when
/// nobody has asked for a while. From then on the loop only notes what it tells the engine; a worker
/// catches up. Whoever asks gets a copy of it. Who types asks again and again: for such questions the
/// next copy is made beforehand and hears the same. What the follower decides is compared with what was decided, decision by decision: a
/// difference is a bug, is logged, and the follower is made again before it answers anything.
///
/// On the loop, but for what runs on a worker; one worker at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "base/env.h"
#include "base/gate.h"
#include "base/result.h"
#include "engine/engine.h"

namespace muster::answers {

/// What a plan does, in a number.
std::uint64_t fingerprint(const engine::Plan& plan);

class Follower {
 public:
  struct Options {
    /// The engine that decides; null while there is none.
    std::function<const engine::Engine*()> engine;
    /// Copies it beside the loop and hands the copy over before anything else happens to it. Null:
    /// it is copied on the loop.
    std::function<Task<void>(std::function<void(engine::Engine)> take)> copy;
    Duration kept = std::chrono::minutes(10);   ///< Without a question.
    Duration spare = std::chrono::seconds(30);  ///< The same, of the copy that is made beforehand.
    std::size_t batch = 1000;                   ///< Steps that are caught up together.
    std::size_t most = 1'000'000;               ///< More that were not caught up: it is let go.
  };
  Follower(Env& env, Options options);

  // What happens to the engine that decides, as it happens.
  void heard(const engine::Event& event);
  void decided(Time now, const engine::Plan& plan);
  void took_cells(const engine::cells::Config& config, Time now);

  /// Will the asker soon ask again?
  enum class Again : std::uint8_t { kNo, kSoon };
  /// An engine of the asker's own that knows what the one that decides knew at the call.
  Task<Result<std::shared_ptr<engine::Engine>>> copy(Again again = Again::kNo);

  /// A copy that nobody needs any more: the answer to a question does not wait for its end.
  void free_later(std::shared_ptr<engine::Engine> copy);

  Task<void> stop();

  // For metrics and tests.
  /// The longest that a copy has kept the engine from deciding.
  [[nodiscard]] Duration held_most() const { return held_most_; }
  [[nodiscard]] std::int64_t made() const { return made_; }
  [[nodiscard]] std::int64_t differences() const { return differences_; }
  [[nodiscard]] bool follows() const { return engine_ != nullptr; }
  [[nodiscard]] bool has_spare() const { return spare_ != nullptr; }

 private:
  struct Decision {
    Time now;
    std::uint64_t plan;
  };
  struct Cells {
    engine::cells::Config config;
    Time now;
  };
  using Step = std::variant<engine::Event, Decision, Cells>;

  void note(Step step);
  Task<void> make(const engine::Engine& leader);
  void take(const engine::Engine* leader, engine::Engine copy);
  void let_go();
  Task<void> free_beside(std::shared_ptr<engine::Engine> engine);
  Task<std::shared_ptr<engine::Engine>> take_copy(std::shared_ptr<engine::Engine> of, Again again);
  Task<void> make_spare();
  Task<void> turn();
  Task<void> catch_up();
  /// False: it decided otherwise.
  static bool follow(engine::Engine& engine, const std::vector<Step>& steps);

  Env& env_;
  Options options_;
  std::shared_ptr<engine::Engine> engine_;  // null: nobody asks
  std::shared_ptr<engine::Engine> spare_;   // a copy of it that hears the same, for who asks next
  const engine::Engine* leader_ = nullptr;
  std::vector<Step> steps_;  // not caught up
  bool busy_ = false, stopped_ = false;
  std::unique_ptr<Signal> free_;
  std::unique_ptr<Timer> letting_go_, without_spare_;
  Gate gate_;
  Duration held_most_{};
  std::int64_t made_ = 0, differences_ = 0;
};

}  // namespace muster::answers
