#include "portal/jobs/order.h"

#include <algorithm>
#include <array>

namespace muster::portal {

void KeptOrder::add(Slot slot) {
  new_.push_back(slot);
  if (new_.size() >= kNewMax) settle();
}

void KeptOrder::remove(Slot slot) {
  if (const auto at = std::find(new_.begin(), new_.end(), slot); at != new_.end()) {
    new_.erase(at);
    return;
  }
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), slot, less_);
  if (at != sorted_.end() && *at == slot) sorted_.erase(at);
}

const std::vector<Slot>& KeptOrder::slots() {
  settle();
  return sorted_;
}

/// The place of each is searched for, and what is between two places is moved as a whole: a merge
/// would compare all of them.
void KeptOrder::settle() {
  if (new_.empty()) return;
  std::sort(new_.begin(), new_.end(), less_);
  std::vector<Slot> merged;
  merged.reserve(sorted_.size() + new_.size());
  auto from = sorted_.begin();
  for (const Slot slot : new_) {
    const auto place = std::lower_bound(from, sorted_.end(), slot, less_);
    merged.insert(merged.end(), from, place);
    merged.push_back(slot);
    from = place;
  }
  merged.insert(merged.end(), from, sorted_.end());
  sorted_ = std::move(merged);
  new_.clear();
}

/// One byte at a time, the least first. A byte that all have in common costs one look.
void sort_stably(std::vector<SortItem>& items) {
  if (items.size() < 2) return;
  std::vector<SortItem> room(items.size());
  std::array<std::array<std::uint32_t, 256>, 8> counts{};
  for (const SortItem& item : items) {
    for (std::size_t byte = 0; byte < 8; ++byte) ++counts[byte][item.key >> byte * 8 & 255];
  }
  for (std::size_t byte = 0; byte < 8; ++byte) {
    auto& count = counts[byte];
    if (count[items.front().key >> byte * 8 & 255] == items.size()) continue;
    std::uint32_t sum = 0;
    for (std::uint32_t& one : count) {
      const std::uint32_t here = one;
      one = sum;
      sum += here;
    }
    for (const SortItem& item : items) room[count[item.key >> byte * 8 & 255]++] = item;
    items.swap(room);
  }
}

}  // namespace muster::portal
