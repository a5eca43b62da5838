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
/// Who writes waits for the commit under way and for their own, and a commit takes as long as it has
/// writes: so of one user only so many writes are under way at a time while there are others.
///
/// Long lists, which take the loop slice by slice, are made two at a time, one for each user, and
/// of one user only so many lie in memory and wait to be sent. Costs are rough: of a request by its
/// verb, of an answer by its size. Components of this process do not come here; they go first.
/// Everything runs on the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/env.h"

namespace muster::apiserver {

class Shares {
  struct Flow;

 public:
  /// About ten microseconds of the loop.
  using Cost = std::int64_t;
  /// Of an answer: it is written and encrypted.
  static Cost cost_of_bytes(std::size_t bytes) { return static_cast<Cost>(bytes / 4096); }

  struct Asked {
    Cost cost = 0;
    bool writes = false;
  };

  explicit Shares(Env& env) : env_(env) {}
  Shares(const Shares&) = delete;

  /// Held by a request until it is answered.
  class Turn {
   public:
    Turn(Shares& shares, Flow* writer) : shares_(&shares), writer_(writer) {}
    Turn(Turn&& other) noexcept
        : shares_(other.shares_), writer_(std::exchange(other.writer_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (writer_ != nullptr) shares_->wrote(*writer_);
    }

   private:
    Shares* shares_;
    Flow* writer_;  // null: it reads
  };
  /// Nothing: wait().
  [[nodiscard]] std::optional<Turn> goes_now(const std::string& user, Asked asked);
  /// Returns when it is its turn; nothing if too many requests of the user wait already.
  Task<std::optional<Turn>> wait(std::string user, Asked asked);
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
  [[nodiscard]] std::size_t waiting() const;

 private:
  /// Virtual time: grows with what is done for whoever has had least.
  using Tag = std::int64_t;
  struct Waiter {
    Flow* flow = nullptr;
    Cost cost = 0;
    std::shared_ptr<Signal> turn;
  };
  struct Flow {
    Tag finish = 0;  // of the last request
    std::size_t waiting = 0;
    int writes = 0;                        // under way, or in the queue
    std::deque<Waiter> held;               // further ones
    int long_making = 0, long_unsent = 0;  // the latter includes the former
  };
  /// By tag, then by arrival.
  using Queue = std::map<std::pair<Tag, std::uint64_t>, Waiter>;

  Flow& flow_of(const std::string& user);
  /// The tag of a request that arrives now.
  Tag tag(Flow& flow, Cost cost);
  void queue(Waiter waiter);
  void wrote(Flow& flow);
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
