/// What is kept of the past is bounded by time, number and size: events for an hour, the newest
/// 10,000 of them at most and 16 MiB of their text; the store's history for five minutes, 100,000
/// changes at most and 64 MiB. A day of churn leaves no more than its first hour.
///
/// Events go in the order in which they were last seen; a change tells which of them is due, so a
/// look costs what it removes. On the loop.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apiserver/core.h"

namespace muster::apiserver {

/// Of changes: up to which one the store may forget them.
class HistoryMarks {
 public:
  /// Notes how many bytes had been written up to a revision.
  void note(Time now, Revision revision, std::uint64_t bytes) {
    marks_.push_back({now, revision, bytes});
  }
  /// The newest revision of which no bound needs the history any more; 0: none.
  Revision take_forgettable();

 private:
  struct Mark {
    Time time;
    Revision revision = 0;
    std::uint64_t bytes = 0;
  };
  std::deque<Mark> marks_;
};

class Events {
 public:
  explicit Events(Core& core) : core_(core) {}
  void start();
  void observe(const Collection& collection, const Change& change);

 private:
  struct Known {
    Time seen;
    std::size_t bytes = 0;
  };
  void know(const Stored& event);
  void forget(const std::string& key);
  [[nodiscard]] bool too_many() const;
  /// The oldest, a batch of them: those that are over their time, and those that are too many.
  [[nodiscard]] std::vector<std::string> due(Time now) const;
  Task<void> keep_bounds();
  Task<bool> remove_due();

  Core& core_;
  std::unique_ptr<Signal> wake_;
  std::set<std::pair<Time, std::string>> by_age_;
  std::unordered_map<std::string, Known> known_;
  std::size_t bytes_ = 0;
  std::uint64_t written_ = 0;  // bytes of all changes so far
  HistoryMarks history_;
};

}  // namespace muster::apiserver
