/// Pods of hollow nodes: nothing runs, but their status moves as if it did.
///
/// A pod becomes Running at once, ends after the annotation muster.dev/hollow-duration (a Go
/// duration; absent: never) with muster.dev/hollow-exit-code (absent: 0), and on deletion takes as
/// long as muster.dev/hollow-stop-duration says (absent: no time), at most its grace period. No
/// coroutine per pod: one queue of status writes that a few writers drain, one heap of times, one
/// timer.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/env.h"
#include "client/client.h"
#include "json/json.h"

namespace muster::agent {

class HollowPods {
 public:
  /// `host_ip`: the address of every node.
  HollowPods(Env& env, client::Client& client, std::string host_ip);
  void update(const client::ObjectPtr& pod);
  void removed(const std::string& uid);
  [[nodiscard]] std::size_t size() const { return pods_.size(); }
  Task<void> stop();

 private:
  enum class Phase : std::uint8_t { kStarting, kRunning, kEnded, kStopping, kGone };
  struct Hollow {
    client::ObjectPtr pod;
    Phase phase = Phase::kStarting;
    std::uint32_t number = 0;  // its address
    Time started;
    bool queued = false;
    int failures = 0;  // of the write that is due, in a row
  };
  /// What comes about at a time: a pod's next phase, or a write once more.
  struct Due {
    std::string uid;
    bool again = false;
  };
  void enqueue(const std::string& uid, Hollow& hollow);
  void schedule(Time when, Due due);
  void try_again(const std::string& uid);
  void arm();
  void on_timer();
  Task<void> write();
  Task<void> write_one(std::string uid);
  /// True: it is done, or nothing is left to do.
  Task<bool> remove(client::ObjectPtr pod);
  Task<bool> write_status(std::string uid, client::ObjectPtr pod, bool ended);

  Env& env_;
  client::Client& client_;
  const std::string host_ip_;
  std::unordered_map<std::string, Hollow> pods_;  // by uid
  std::deque<std::string> queue_;         // uids whose status must be written; each at most once
  std::multimap<std::int64_t, Due> due_;  // by time
  std::unique_ptr<Timer> timer_;
  std::int64_t timer_at_ = 0;
  int writers_ = 0;
  bool stopping_ = false;
  std::uint32_t next_number_ = 0;
  std::unique_ptr<Signal> ended_;
};

/// The status of a hollow pod, in memory of its own; `ended`: with this exit code. Pure.
json::Value hollow_status(const json::Value& pod,
                          const std::string& address,
                          const std::string& host_ip,
                          Time started,
                          Time finished,
                          bool ended,
                          int exit_code);

}  // namespace muster::agent
