/// The gangs of one bucket in the order in which they may fill gaps beside a reservation: of the
/// highest priority, the shortest first, and of two that last equally long the one that ranks
/// first.
///
/// How long a gang lasts is what its owner declared, or what others like it took. The latter
/// changes from arrival to arrival, though gangs of one kind are as long as each other as far as
/// anybody knows: they stand together, in their order, with the shortest length that was thought of
/// one of them. If each stood for itself, those who come after short runs have ended would be taken
/// for shorter than those of their own kind who have waited longer, and overtake all of them.
///
/// Example: A and B of one kind wait and were thought to take 50 minutes, then short runs of that
/// kind end, and C of the same kind is thought to take 10. The order is A, B, C, all of them with
/// 10 minutes, and before D, which declares 20.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "engine/model/ids.h"
#include "engine/muster/rank.h"

namespace muster::engine {

class Digest;

/// Always: `order_` holds every gang whose length was declared and the first of each kind of
/// others; no kind is empty.
class FillOrder {
 public:
  /// Priority negated, how long it takes, rank, gang.
  using Entry = std::tuple<std::int64_t, std::int64_t, Rank, GangId>;
  struct Length {
    std::int64_t us = 0;
    std::uint64_t kind =
        0;  ///< Gangs of the same kind are thought to take equally long; zero: declared.
  };

  void insert(const Rank& rank, GangId gang, const Length& length);
  /// As it was inserted. False: it was not there.
  [[nodiscard]] bool erase(const Rank& rank, GangId gang, const Length& length);
  [[nodiscard]] const Entry& first() const { return *order_.begin(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Its tables agree; walks all of them.
  [[nodiscard]] bool consistent() const;
  void digest(Digest& digest) const;

 private:
  struct Alike {
    std::set<std::pair<Rank, GangId>> gangs;
    std::map<std::int64_t, std::int32_t>
        lengths;  ///< And how many of them were thought to take so long.
    [[nodiscard]] Entry first() const;
  };

  std::set<Entry> order_;
  std::map<std::uint64_t, Alike> alike_;  ///< By kind.
  std::size_t size_ = 0;
};

}  // namespace muster::engine
