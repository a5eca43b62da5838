/// When what waits starts, as it was foretold last: for rows, pages and the Gantt. Asked for while
/// somebody looks at something that waits, and not otherwise. On the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "answers/live/live.h"
#include "base/env.h"
#include "base/gate.h"
#include "base/result.h"
#include "base/task.h"
#include "portal/jobs/row.h"

namespace muster::portal {

class Forecasts {
 public:
  using Ask = std::function<Task<Result<answers::OutlookPtr>>()>;
  Forecasts(Env& env, Ask ask) : env_(env), ask_(std::move(ask)), gate_(env) {}

  /// False: nothing is foretold here.
  [[nodiscard]] bool offered() const { return static_cast<bool>(ask_); }
  /// Somebody looks: soon there will be new ones, if those at hand are old.
  void want();
  /// Grows with each new set.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Of a group or pod "ns/name"; null: nothing is known of it.
  [[nodiscard]] const answers::Forecast* find(const std::string& key) const;
  /// What was found for the row in this slot when it had this version; looked for once a set. Many
  /// who look at the same list ask for the same rows four times a second.
  template <typename Look>
  const answers::Forecast* remembered(Slot slot, std::uint64_t row, Look look) {
    if (memo_.size() <= slot) memo_.resize(slot + 1);
    Memo& memo = memo_[slot];
    if (memo.set != version_ || memo.row != row) memo = {version_, row, look()};
    return memo.found;
  }
  /// How long its owner says that it lasts; zero: not said.
  [[nodiscard]] Duration declared(const answers::Forecast& forecast) const;

  std::function<void()> on_change;
  Task<void> stop();

 private:
  Task<void> renew();

  /// How often is asked at most while somebody looks; who answers may have rested longer.
  static constexpr Duration kEvery = std::chrono::seconds(5);

  struct Book {
    answers::OutlookPtr outlook;
    std::unordered_map<std::string, const answers::Forecast*> jobs;
  };

  struct Memo {
    std::uint64_t set = 0, row = 0;
    const answers::Forecast* found = nullptr;
  };
  std::vector<Memo> memo_;  // by slot

  Env& env_;
  Ask ask_;
  Gate gate_;
  std::shared_ptr<const Book> book_;
  std::uint64_t version_ = 0;
  Duration asked_{};
  bool asking_ = false, ever_ = false;
};

/// What a list shows of a wait, with times in milliseconds; 0: absent.
struct Told {
  std::int32_t place = 0, of = 0;
  Millis start = 0, low = 0, high = 0;
  answers::Basis basis = answers::Basis::kNone;
};
Told told_of(const answers::Forecast& forecast);
/// Changes when what is told has moved by more than anybody cares about from so far away.
std::uint64_t mark_of(const Told& told, Millis now);

}  // namespace muster::portal
