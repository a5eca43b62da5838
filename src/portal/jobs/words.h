/// Texts that many rows share, as small numbers. Kept for as long as the index lives: there are as
/// many as users, queues and namespaces.
#pragma once

#include <algorithm>
#include <deque>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "portal/jobs/row.h"

namespace muster::portal {

class Words {
 public:
  Words() { number(""); }
  /// 0 is the empty text.
  Word number(std::string_view text) {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    const Word fresh = static_cast<Word>(texts_.size());
    texts_.emplace_back(text);
    numbers_.emplace(texts_.back(), fresh);
    return fresh;
  }
  [[nodiscard]] const std::string& text(Word word) const { return texts_[word]; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }
  /// The place of each in the order of their texts.
  [[nodiscard]] std::vector<std::uint64_t> ranks() const {
    std::vector<Word> order(texts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](Word a, Word b) { return texts_[a] < texts_[b]; });
    std::vector<std::uint64_t> ranks(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) ranks[order[i]] = i;
    return ranks;
  }

 private:
  std::deque<std::string> texts_;  // never moves: numbers_ looks into it
  std::unordered_map<std::string_view, Word> numbers_;
};

}  // namespace muster::portal
