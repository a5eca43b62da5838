#include "pai/index/ranked.h"

#include <algorithm>

#include "base/result.h"

namespace muster::pai {

std::size_t Ranked::block_of(std::uint32_t slot) const {
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), slot, [this](std::uint32_t wanted, const auto& block) {
        return before_(wanted, block.front());
      });
  return after == blocks_.begin() ? 0 : static_cast<std::size_t>(after - blocks_.begin()) - 1;
}

void Ranked::insert(std::uint32_t slot) {
  ++size_;
  if (blocks_.empty()) return blocks_.push_back({slot});
  const std::size_t at = block_of(slot);
  auto& block = blocks_[at];
  block.insert(std::lower_bound(block.begin(), block.end(), slot, before_), slot);
  if (block.size() <= kBlockMax) return;
  const auto half = block.begin() + static_cast<std::ptrdiff_t>(block.size() / 2);
  std::vector<std::uint32_t> second(half, block.end());
  block.erase(half, block.end());
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(second));
}

void Ranked::erase(std::uint32_t slot) {
  MUSTER_CHECK(size_ > 0, "nothing to erase");
  const std::size_t at = block_of(slot);
  auto& block = blocks_[at];
  const auto found = std::lower_bound(block.begin(), block.end(), slot, before_);
  MUSTER_CHECK(found != block.end() && *found == slot, "a number that is not in the order");
  block.erase(found);
  --size_;
  if (block.empty()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
}

void Ranked::walk(std::size_t from,
                  bool backwards,
                  const std::function<bool(std::uint32_t)>& told) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto& block = blocks_[backwards ? blocks_.size() - 1 - i : i];
    if (from >= block.size()) {
      from -= block.size();
      continue;
    }
    for (std::size_t j = from; j < block.size(); ++j)
      if (!told(block[backwards ? block.size() - 1 - j : j])) return;
    from = 0;
  }
}

}  // namespace muster::pai
