/// Fair shares of the server between its users.
///
/// While several users send requests, each request waits for its turn before it is acted on. Next
/// is always a request of the user whose requests have cost least (start-time fair queueing: Goyal,
/// Vin and Cheng, 1996), and only as much is let go at a time as the loop does in a fraction of a
/// millisecond. A user who keeps a thousand connections busy thus gets their share and no more, and
/// everybody else waits for what is under way, never for what that user has in the queue. A user
/// alone does not wait.
///
///     queue:  flood flood flood flood … flood  me        order of arrival
///     next:   me  flood flood flood …                    I have used less
///
/// Long lists, which take the loop slice by slice, are made two at a time, one for each user, and
/// of one user only so many lie in memory and wait to be sent. Costs are rough: of a request by its
/// verb, of an answer by its size. Components of this process do not come here; they go first.
/// Everything runs on the loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/env.h"

namespace muster::apiserver {

class Shares {
 public:
  /// About ten microseconds of the loop.
  using Cost = std::int64_t;

  explicit Shares(Env& env) : env_(env) {}
  Shares(const Shares&) = delete;

  /// True: it goes now. False: wait().
  [[nodiscard]] bool goes_now(const std::string& user, Cost cost);
  /// Returns when it is its turn; false if too many requests of the user wait already.
  Task<bool> wait(std::string user, Cost cost);
  /// What turned out to have been done for the user.
  void charge(const std::string& user, Cost cost);

  /// Held by a long answer until it is sent.
  class Long {
   public:
    Long(Shares& shares, std::string user) : shares_(&shares), user_(std::move(user)) {}
    Long(Long&& other) noexcept
        : shares_(std::exchange(other.shares_, nullptr)),
          user_(std::move(other.user_)),
          made_(other.made_) {}
    Long& operator=(Long&&) = delete;
    ~Long();
    /// It only has to be sent: the next one may be made.
    void made();

   private:
    Shares* shares_;
    std::string user_;
    bool made_ = false;
  };
  /// Returns when a long answer may be made for the user.
  Task<Long> begin_long(std::string user);

  /// Requests that wait, for /metrics.
  [[nodiscard]] std::size_t waiting() const { return waiting_.size() + long_waiting_.size(); }

 private:
  /// Virtual time: grows with what is done for whoever has had least.
  using Tag = std::int64_t;
  struct Flow {
    Tag finish = 0;  // of the last request
    std::size_t waiting = 0;
    int long_making = 0, long_unsent = 0;  // the latter includes the former
  };
  struct Waiter {
    Flow* flow = nullptr;
    Cost cost = 0;
    std::shared_ptr<Signal> turn;
  };
  /// By tag, then by arrival.
  using Queue = std::map<std::pair<Tag, std::uint64_t>, Waiter>;

  Flow& flow_of(const std::string& user);
  /// The tag of a request that arrives now.
  Tag tag(Flow& flow, Cost cost);
  void begin_round();
  void next_round();
  void let_long_go();

  Env& env_;
  std::string last_user_;
  Duration several_until_{};  // a while after there was last more than one user
  Tag now_ = 0;               // of the request let go last
  std::map<std::string, Flow, std::less<>> flows_;  // by user; those that wait point into it
  Queue waiting_, long_waiting_;
  std::uint64_t arrivals_ = 0;
  Cost released_ = 0;  // in this round
  bool round_ = false;
  int long_making_ = 0;
};

}  // namespace muster::apiserver
