/// The annotation muster.dev/expected-start of groups that wait: "2026-11-16T11:05Z 10:20/14:40
/// learned", for whoever reads objects and asks nobody.
///
/// Written again only when the middle has moved by more than a quarter of what remains, at most every
/// five minutes a group and twenty a second in all, and behind bindings. What rests on nothing is not
/// written, and what was written before is taken away. On the loop.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "answers/live/live.h"
#include "base/env.h"
#include "base/gate.h"
#include "client/client.h"

namespace muster::answers {

/// The annotation's value; absent: nothing can be told.
std::optional<std::string> expected_start_text(const Start& start);

class ExpectedStarts {
 public:
  struct Options {
    /// Sets the annotation of a gang, or takes it away.
    std::function<Task<void>(std::string gang, std::optional<std::string> value)> write;
    /// Bindings are under way; null: never.
    std::function<bool()> must_wait;
    int per_second = 20;
    Duration rest = std::chrono::minutes(5);
  };
  ExpectedStarts(Env& env, Options options)
      : env_(env), options_(std::move(options)), gate_(env), closing_(env.make_signal()) {}

  /// Writes what of it is new; an outlook that comes while one is being written replaces it.
  void note(OutlookPtr outlook);
  Task<void> stop();
  [[nodiscard]] std::int64_t writes() const { return writes_; }

 private:
  struct Told {
    Time p50, at;  // p50 zero: nothing is written
  };
  Task<void> work();
  Task<void> write_all(OutlookPtr outlook);
  [[nodiscard]] bool is_due(const Forecast& forecast, Time now) const;

  Env& env_;
  Options options_;
  OutlookPtr next_;
  bool working_ = false;
  std::map<std::string, Told> told_;  // by gang; those that wait no more are forgotten
  Gate gate_;
  std::unique_ptr<Signal> closing_;
  std::int64_t writes_ = 0;
};

/// Writes through the API; pods without a group carry none.
std::function<Task<void>(std::string, std::optional<std::string>)> write_annotations(
    client::Client& client);

}  // namespace muster::answers
