/// The audit log: events from the loop, through a bounded queue, to a file that a worker writes.
///
/// A request is not acted on while the queue is full: it waits up to five seconds for room, and is
/// then refused with 429, so that nobody can hide behind a flood of other requests. Muster's own
/// components do not wait; their requests under way are few. Lines are in the file at most 50 ms
/// after the answer. What cannot be written (a full disk) is lost, counted and said in the log.
/// Everything but the worker's part runs on the loop.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/audit/event.h"
#include "apiserver/audit/options.h"

namespace muster::apiserver::audit {

class Log {
 public:
  /// Opens the file; an error says why it cannot be written.
  static Result<std::unique_ptr<Log>> open(Env& env, Options options);

  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] bool full() const;
  /// False if there is still no room after a while.
  Task<bool> wait_for_room();
  void add(const Event& event, std::unique_ptr<Bodies> bodies);
  /// Writes what is left.
  Task<void> stop();

  /// The newest lines that are in the file, oldest first; at most kTailMax, fewer if they are long.
  [[nodiscard]] std::vector<std::string> last(std::size_t count) const;
  static constexpr std::size_t kTailMax = 1000;

  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  Log(Env& env, Options options);
  void flush();
  struct Written {
    Block text;
    std::size_t count = 0;  // of lines
  };
  void wrote(const Result<void>& result, Written newest);
  void keep(Written newest);

  Env& env_;
  const Policy policy_;
  std::shared_ptr<File> file_;  // the worker's while writing_
  Phrases phrases_;
  Lines pending_;
  std::size_t writing_bytes_ = 0;
  bool writing_ = false;
  std::unique_ptr<Timer> soon_;
  std::unique_ptr<Signal> room_;
  /// The newest lines, at least kTailMax of them if there were so many; taken apart when somebody
  /// asks.
  std::deque<Written> recent_;
  std::size_t recent_lines_ = 0, recent_bytes_ = 0;
  Block spare_;  // one that is no longer needed
  std::uint64_t written_ = 0, lost_ = 0;
  Duration said_{};  // when a loss was last told of
};

}  // namespace muster::apiserver::audit
