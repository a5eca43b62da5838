/// How a hundred thousand rows come into order without holding the loop: rows are kept in the order
/// of their ids as they come, and any other order is made of that one by sorting numbers stably.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "portal/jobs/row.h"

namespace muster::portal {

/// All slots by id. Those that have just come are put in their places many at a time.
class IdOrder {
 public:
  /// `id` of a slot that is in it.
  explicit IdOrder(std::function<const std::string&(Slot)> id) : id_(std::move(id)) {}

  void add(Slot slot);
  /// By the id that it still has.
  void remove(Slot slot);
  const std::vector<Slot>& slots();

 private:
  static constexpr std::size_t kNewMax = 1024;
  void settle();
  [[nodiscard]] bool less(Slot a, Slot b) const { return id_(a) < id_(b); }

  std::function<const std::string&(Slot)> id_;
  std::vector<Slot> sorted_, new_;
};

/// A row with what it is sorted by: `low` decides where `high` does not.
struct SortItem {
  std::uint64_t high = 0, low = 0;
  Slot slot = 0;
};
/// Items that are equal stay in the order in which they came.
void sort_stably(std::vector<SortItem>& items);

}  // namespace muster::portal
