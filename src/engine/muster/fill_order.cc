#include "engine/muster/fill_order.h"

namespace muster::engine {

FillOrder::Entry FillOrder::Alike::first() const {
  const auto& [rank, gang] = *gangs.begin();
  return {rank.low_priority, lengths.begin()->first, rank, gang};
}

void FillOrder::insert(const Rank& rank, GangId gang, const Length& length) {
  ++size_;
  if (length.kind == 0) {
    order_.emplace(rank.low_priority, length.us, rank, gang);
    return;
  }
  Alike& alike = alike_[length.kind];
  if (!alike.gangs.empty()) order_.erase(alike.first());
  alike.gangs.emplace(rank, gang);
  ++alike.lengths[length.us];
  order_.insert(alike.first());
}

bool FillOrder::erase(const Rank& rank, GangId gang, const Length& length) {
  if (length.kind == 0) {
    const bool gone = order_.erase({rank.low_priority, length.us, rank, gang}) == 1;
    size_ -= gone ? 1 : 0;
    return gone;
  }
  const auto found = alike_.find(length.kind);
  if (found == alike_.end()) return false;
  Alike& alike = found->second;
  const auto at = alike.gangs.find({rank, gang});
  if (at == alike.gangs.end()) return false;
  --size_;
  order_.erase(alike.first());
  alike.gangs.erase(at);
  const auto lasts = alike.lengths.find(length.us);
  if (lasts != alike.lengths.end() && --lasts->second == 0) alike.lengths.erase(lasts);
  if (alike.gangs.empty()) {
    alike_.erase(found);
  } else {
    order_.insert(alike.first());
  }
  return true;
}

bool FillOrder::consistent() const {
  std::size_t all = order_.size();
  for (const auto& [kind, alike] : alike_) {
    std::size_t lengths = 0;
    for (const auto& [us, gangs] : alike.lengths) lengths += static_cast<std::size_t>(gangs);
    if (alike.gangs.empty() || lengths != alike.gangs.size()) return false;
    if (!order_.contains(alike.first())) return false;
    all += alike.gangs.size() - 1;
  }
  return all == size_;
}

}  // namespace muster::engine
