/// Which devices come free on each node when, by what is known now: kept from decision to decision.
///
/// When a pod ends follows from the pod, its gang and what runs like it took, each somewhere else in
/// memory, and a search for a place in the future (Forecast) asks for every pod of the cluster. Most
/// answers are the same as last time. So they are kept by node, two cache lines each, and worked out
/// again where the state's logs say that something happened, where the answer changes with the time,
/// and after a run has ended that teaches something.
///
/// Every end teaches, and then the answers of all nodes have changed whose pods declare nothing. What
/// such an answer follows from is kept here, too: when the pod's gang began, and what kind it is of.
/// The new answer is found without looking at pods and gangs again.
///
/// A search looks for the few nodes that come free first. When each may have room for so many devices
/// is one number, and these numbers lie beside each other: of a thousand nodes the rest is not read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "engine/model/history.h"
#include "engine/model/ids.h"
#include "engine/state/state.h"

namespace muster::engine {

struct Desk;

class Departures {
 public:
  class alignas(64) Leavers {
   public:
    /// The end of a pod here is what others like it took.
    [[nodiscard]] bool estimated() const { return estimated_; }
    /// Thousandths of devices that may be free by then, at most.
    [[nodiscard]] std::int64_t devices_by(Time then) const;
    /// When each of the node's pods leaves, in their order; empty: not all of them are kept here.
    [[nodiscard]] std::span<const Time> ends() const {
      return whole_ ? std::span(ends_).first(count_) : std::span<const Time>();
    }

   private:
    friend class Departures;
    static constexpr std::size_t kKept = 8;

    static constexpr std::uint32_t kTold = ~std::uint32_t{0};

    /// When so many thousandths may be free at the earliest; kNever: not as far as is known.
    [[nodiscard]] Time first_with(std::int64_t amount) const;

    std::int32_t devices_ = 0;  ///< Thousandths of all the node has.
    std::uint8_t count_ = 0;
    bool estimated_ = false;
    bool many_ = false;   ///< More pods have devices than are kept here: any of them may leave.
    bool whole_ = false;  ///< All pods of the node are kept here.
    std::array<std::int32_t, kKept> taken_{};
    std::array<Time, kKept> ends_{};
    // To find the answer again, until something happens on the node:
    Time told_until_;     ///< What is no estimate stays the same until then.
    bool again_ = false;  ///< All that is one follows from the two tables below.
    std::array<std::uint32_t, kKept> kind_{};  ///< In kinds_; kTold: it is no estimate.
    std::array<Time, kKept> began_{};
  };

  Departures() = default;
  // What can be worked out again is no part of a copy.
  Departures(const Departures&) {}
  Departures& operator=(const Departures&) {
    forget_all(0);
    return *this;
  }
  ~Departures() = default;

  /// Must be called before the reads below, after any change of the state or the clock.
  void catch_up(Desk& desk);
  [[nodiscard]] const Leavers& at(Desk& desk, NodeId node);

  /// Nodes by when each may have so many thousandths of devices free; of use until catch_up().
  [[nodiscard]] std::size_t amount(std::int64_t milli);
  /// kNow, or no earlier than this; kNever: not as far as is known.
  [[nodiscard]] Time soonest(Desk& desk, std::size_t amount, NodeId node) {
    const Time kept = amounts_[amount].soonest[node.index()];
    return kept != kUnknown ? kept : find_soonest(desk, amount, node);
  }
  /// The same by node, as far as it is kept: before kNow where it is not.
  [[nodiscard]] std::span<const Time> soonest(std::size_t amount) const {
    return amounts_[amount].soonest;
  }
  static constexpr Time kNow{INT64_MIN + 1};
  /// As of those who leave the node; after soonest() only.
  [[nodiscard]] bool estimated(NodeId node) const { return estimated_[node.index()] != 0; }

  /// Stops the program when something kept differs from what the pods say.
  void check(Desk& desk);

 private:
  /// Of the pods that say nothing about their ends; numbered in the order in which they were met.
  struct Kind {
    RunKind kind;
    History::Levels levels{};
    std::uint64_t version = ~std::uint64_t{0};  ///< Of the history's levels when these were found.
  };
  /// So many more than can be on nodes: with more of them all is worked out anew.
  static constexpr std::size_t kKindsGone = 4096;

  struct Worked {
    Leavers leavers;
    Time good_until;
    bool asked = false;  ///< And until the history learns something.
  };
  /// One amount, for all nodes.
  struct Amount {
    std::int64_t milli = 0;
    std::vector<Time> soonest;  ///< By node; kUnknown: to be worked out.
  };
  /// Work asks for whole devices, most of it for one of a few numbers of them.
  static constexpr std::size_t kAmounts = 16;
  static constexpr Time kUnknown{INT64_MIN};

  Worked work_out(Desk& desk, NodeId node);
  void forget_all(std::size_t nodes);
  void forget(std::size_t node);
  void changed(NodeId node);
  Time estimate_again(const Desk& desk, Leavers& kept);
  std::uint32_t number_of(const RunKind& kind);
  [[gnu::noinline]] Time find_soonest(Desk& desk, std::size_t amount, NodeId node);
  [[nodiscard]] static Time soonest_of(const State& state,
                                       NodeId node,
                                       const Leavers& leavers,
                                       std::int64_t milli);

  std::vector<Leavers> nodes_;
  // By node, too: what is read of all of them in every search.
  std::vector<Time> good_until_;
  std::vector<std::uint8_t> asked_, estimated_;
  std::vector<Amount> amounts_;
  std::size_t next_amount_ = 0;  ///< To be given up for another, once there are kAmounts.
  std::vector<Kind> kinds_;
  /// By a hash of the kind; looked up, never iterated.
  std::unordered_map<std::uint64_t, std::uint32_t> kind_numbers_;
  std::uint64_t cursor_ = 0;  ///< In the state's log.
  std::uint64_t tenants_seen_ = 0;
  std::uint64_t taught_ = 0;
  Time now_;
};

}  // namespace muster::engine
