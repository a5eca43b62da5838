#include "portal/jobs/order.h"

#include <algorithm>
#include <array>

namespace muster::portal {

void IdOrder::add(Slot slot) {
  new_.push_back(slot);
  if (new_.size() >= kNewMax) settle();
}

void IdOrder::remove(Slot slot) {
  if (const auto at = std::find(new_.begin(), new_.end(), slot); at != new_.end()) {
    new_.erase(at);
    return;
  }
  const auto at = std::lower_bound(
      sorted_.begin(), sorted_.end(), slot, [this](Slot a, Slot b) { return less(a, b); });
  if (at != sorted_.end() && *at == slot) sorted_.erase(at);
}

const std::vector<Slot>& IdOrder::slots() {
  settle();
  return sorted_;
}

/// The place of each is searched for, and what is between two places is moved as a whole: a merge
/// would compare all of them.
void IdOrder::settle() {
  if (new_.empty()) return;
  const auto order = [this](Slot a, Slot b) { return less(a, b); };
  std::sort(new_.begin(), new_.end(), order);
  std::vector<Slot> merged;
  merged.reserve(sorted_.size() + new_.size());
  auto from = sorted_.begin();
  for (const Slot slot : new_) {
    const auto place = std::lower_bound(from, sorted_.end(), slot, order);
    merged.insert(merged.end(), from, place);
    merged.push_back(slot);
    from = place;
  }
  merged.insert(merged.end(), from, sorted_.end());
  sorted_ = std::move(merged);
  new_.clear();
}

namespace {

/// One byte at a time, the least first. A byte that all have in common costs one look.
template <typename Key>
void sort_by(std::vector<SortItem>& items, std::vector<SortItem>& room, Key key) {
  std::array<std::array<std::uint32_t, 256>, 8> counts{};
  for (const SortItem& item : items) {
    for (std::size_t byte = 0; byte < 8; ++byte) ++counts[byte][key(item) >> byte * 8 & 255];
  }
  for (std::size_t byte = 0; byte < 8; ++byte) {
    auto& count = counts[byte];
    if (count[key(items.front()) >> byte * 8 & 255] == items.size()) continue;
    std::uint32_t sum = 0;
    for (std::uint32_t& one : count) {
      const std::uint32_t here = one;
      one = sum;
      sum += here;
    }
    for (const SortItem& item : items) room[count[key(item) >> byte * 8 & 255]++] = item;
    items.swap(room);
  }
}

}  // namespace

void sort_stably(std::vector<SortItem>& items) {
  if (items.size() < 2) return;
  std::vector<SortItem> room(items.size());
  sort_by(items, room, [](const SortItem& item) { return item.low; });
  sort_by(items, room, [](const SortItem& item) { return item.high; });
}

}  // namespace muster::portal
