/// How long work took before: one history for the engine's own estimates and for forecasts.
///
/// Every end teaches, whether the work succeeded, failed or was stopped: all of them free what was
/// held. A run that was cut off, by an eviction or with its node, teaches that such work lasts longer
/// than that. Runs are kept by level, from those that have most in common to all of the cluster; the
/// first level that knows enough answers.
///
/// Levels are found by a hash of their names, so that a run costs a lookup and five short writes.
/// Their number is bounded: those that nothing was learned about for longest are dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace muster::engine {

class Digest;

/// What a run has in common with others.
struct RunKind {
  std::uint64_t user = 0;
  std::uint64_t stem = 0;
  std::uint64_t team = 0;
  std::uint64_t shape = 0;  ///< GPUs in all, and their model.

  bool operator==(const RunKind&) const = default;
};

/// A workload's name without numbers, dates, hexadecimal runs and trailing marks: what repeated
/// submissions have in common. "resnet50-lr0.1-20261116-3f9c2" is "resnet-lr".
std::string stem_of(std::string_view name);

/// For RunKind.
std::uint64_t hash_name(std::string_view name);
std::uint64_t hash_models(const std::vector<std::string>& models);  ///< 0: any.
std::uint64_t mix_shape(std::int64_t device_milli, std::uint64_t models);

class History {
 public:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t kLevels = 5;  ///< See level_name().
  static constexpr std::size_t kRunsKept = 200;
  static constexpr std::size_t kRatiosKept = 50;
  static constexpr std::size_t kEnough = 5;
  static constexpr std::size_t kEnoughOfAll = 20;
  static constexpr std::size_t kLevelsMax = 20'000;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// The order of a level that nobody asked for while so many runs ended is made anew when somebody
  /// does; kept up run by run it would have cost more.
  static constexpr std::uint32_t kAskedWithin = 64;
  static constexpr std::uint32_t kUnsorted = ~std::uint32_t{0};

  struct Run {
    std::int64_t us = 0;
    bool ended = true;             ///< False: it was cut off, and would have taken longer.
    std::int64_t declared_us = 0;  ///< Zero: nothing was said.
    /// Somebody deleted it. What it held is free all the same; what its owner declared was neither
    /// true nor false, unless that time had passed.
    bool stopped = false;
  };

  void learn(const RunKind& kind, const Run& run);

  /// The levels of a kind, narrowest first; kNone: nothing was learned there.
  [[nodiscard]] std::array<std::uint32_t, kLevels> levels(const RunKind& kind) const;
  /// The first that has enough ended runs longer than the age; kNone: there is none.
  [[nodiscard]] std::uint32_t level_for(const RunKind& kind, std::int64_t age_us) const {
    return longer_than(kind, age_us).level;
  }
  /// The same level, and how long its ended runs that lasted longer than the age took, shortest
  /// first. Good until the next run is learned from.
  struct Longer {
    std::uint32_t level = kNone;
    std::span<const std::int64_t> runs;
    /// So many in a thousand of them took less; kUnknown: there are none.
    [[nodiscard]] std::int64_t quantile(std::int32_t permille) const {
      if (runs.empty()) return kUnknown;
      const auto count = static_cast<std::int64_t>(runs.size());
      return runs[static_cast<std::size_t>(std::min(count - 1, count * permille / 1000))];
    }
  };
  [[nodiscard]] Longer longer_than(const RunKind& kind, std::int64_t age_us) const;
  using Levels = std::array<std::uint32_t, kLevels>;
  /// The same for one whose levels are known. They stay what they are while levels_version() does.
  [[nodiscard]] Longer longer_than(const Levels& levels, std::int64_t age_us) const;
  [[nodiscard]] std::uint64_t levels_version() const { return levels_version_; }
  /// Of a level: how long ended runs took, shortest first.
  [[nodiscard]] std::span<const std::int64_t> ended(std::uint32_t level) const;
  /// Of a level: the last so many of them at most, in no order.
  [[nodiscard]] std::vector<std::int64_t> last_ended(std::uint32_t level, std::size_t most) const;
  /// Of a level: how long all runs took, the last one first; below zero: cut off after that.
  [[nodiscard]] std::vector<std::int64_t> latest(std::uint32_t level) const;
  /// Its name: runs of the same level have the same.
  [[nodiscard]] std::uint64_t name_of(std::uint32_t level) const { return levels_[level].name; }

  /// How long runs took in thousandths of what was declared, in no order, below zero: cut off after
  /// that; the user's, or else everybody's; empty: too few have ended.
  [[nodiscard]] std::span<const std::int32_t> ratios(std::uint64_t user) const;

  /// The engine's estimate for work that has run for `age_us`, in all: the quantile (permille) of
  /// those runs of its level that lasted longer. kUnknown: nothing like it has ended.
  [[nodiscard]] std::int64_t estimate(const RunKind& kind,
                                      std::int64_t age_us,
                                      std::int32_t permille) const {
    return longer_than(kind, age_us).quantile(permille);
  }

  /// Runs that taught something since the start.
  [[nodiscard]] std::uint64_t taught() const { return taught_; }

  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

  /// Until the next run is learned from, several threads may read it.
  void freshen() const;

 private:
  struct Level {
    std::uint64_t name = 0;
    std::uint64_t taught = 0;                   ///< When it last learned, in runs.
    std::vector<std::int64_t> last;             ///< A ring; below zero: cut off after that.
    std::uint32_t next = 0;                     ///< In the ring.
    mutable std::vector<std::int64_t> sorted;   ///< Ended ones, in order while they are asked for.
    mutable std::uint32_t unasked = kUnsorted;  ///< Runs kept since; kUnsorted: not in order.
    void keep(std::int64_t us);
    void replace_sorted(std::int64_t gone, std::int64_t come);
  };
  /// By name, a hash itself: one block of memory, looked up in one step.
  class Names {
   public:
    /// kNone: not there.
    [[nodiscard]] std::uint32_t find(std::uint64_t name) const;
    /// One that is not there.
    void insert(std::uint64_t name, std::uint32_t id);
    void clear() { *this = Names(); }

   private:
    struct Slot {
      std::uint64_t name = 0;
      std::uint32_t id = kNone;
    };
    void put(const Slot& slot);
    std::vector<Slot> slots_;  ///< A power of two, half of them empty at least.
    std::size_t count_ = 0;
  };
  struct Ratios {
    std::vector<std::int32_t> last;  ///< A ring; below zero: cut off after that.
    std::uint32_t next = 0;
    [[nodiscard]] bool tell(std::size_t enough) const;
  };

  /// A kind that has ended, and its levels, all of which there are: who runs now is mostly like
  /// somebody who has ended lately. Written with the rest of the history, when something is learned.
  struct Recent {
    RunKind kind;
    std::array<std::uint32_t, kLevels> levels{};
    bool known = false;
  };
  static constexpr std::size_t kRecent = 256;
  static std::size_t recent_place(const RunKind& kind);
  const Recent& levels_taught(const RunKind& kind);
  [[nodiscard]] Longer longer_in(std::uint32_t level, std::size_t rank, std::int64_t age_us) const;
  static std::array<std::uint64_t, kLevels> names_of(const RunKind& kind);
  std::uint32_t level_named(std::uint64_t name);
  void learn_ratio(std::uint64_t user, const Run& run);
  void forget_oldest();

  std::vector<Level> levels_;
  Names by_name_;
  std::vector<Recent> recent_ = std::vector<Recent>(kRecent);  ///< By a part of the kind's hash.
  std::vector<Ratios> ratios_;
  Names ratios_of_;
  std::uint64_t taught_ = 0;
  std::uint64_t levels_version_ = 0;  ///< Grows when one is made, or some are dropped.
};

/// A history that a copy shares, on whatever thread it lives, until one of the two learns.
class SharedHistory {
 public:
  SharedHistory() : own_(std::make_shared<History>()), shown_(own_) {}
  SharedHistory(const SharedHistory& other) : shown_(other.share()) {}
  SharedHistory& operator=(const SharedHistory&) = delete;
  ~SharedHistory() = default;

  [[nodiscard]] const History& get() const { return *shown_; }
  /// As it is now, for as long as it is wanted.
  [[nodiscard]] std::shared_ptr<const History> share() const {
    if (own_ != nullptr) {
      shown_->freshen();
      own_ = nullptr;
    }
    return shown_;
  }
  /// To learn with.
  [[nodiscard]] History& own() {
    if (own_ == nullptr) {
      own_ = std::make_shared<History>(*shown_);
      shown_ = own_;
    }
    return *own_;
  }

 private:
  mutable std::shared_ptr<History> own_;  ///< Null while somebody else may read it.
  std::shared_ptr<const History> shown_;
};

}  // namespace muster::engine
