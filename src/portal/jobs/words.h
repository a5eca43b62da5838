/// Texts that many rows share, as small numbers. Kept for as long as the index lives: there are as
/// many as users, queues and namespaces.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

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

 private:
  std::deque<std::string> texts_;  // never moves: numbers_ looks into it
  std::unordered_map<std::string_view, Word> numbers_;
};

}  // namespace muster::portal
