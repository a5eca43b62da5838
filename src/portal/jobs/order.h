/// How a hundred thousand rows come into order without holding the loop: rows are kept in the order
/// of their ids and in that of their names as they come, and any other order is made of the first by
/// sorting numbers stably.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "portal/jobs/row.h"

namespace muster::portal {

/// All slots in one order. Those that have just come are put in their places many at a time.
class KeptOrder {
 public:
  /// `less` of two slots that are in it; no two are equal.
  explicit KeptOrder(std::function<bool(Slot, Slot)> less) : less_(std::move(less)) {}

  void add(Slot slot);
  /// While it still compares as it did.
  void remove(Slot slot);
  const std::vector<Slot>& slots();

 private:
  static constexpr std::size_t kNewMax = 256;
  void settle();

  std::function<bool(Slot, Slot)> less_;
  std::vector<Slot> sorted_, new_;
};

/// A row with what it is sorted by.
struct SortItem {
  std::uint64_t key = 0;
  Slot slot = 0;
};
/// Items that are equal stay in the order in which they came.
void sort_stably(std::vector<SortItem>& items);

}  // namespace muster::portal
