/// A set of node ids with first() and next() in a few instructions: a bitmap with two summary
/// levels, each bit of which says that a word below is not empty. Holds up to 262,144 nodes.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "engine/model/ids.h"

namespace muster::engine {

class NodeSet {
 public:
  void resize(std::size_t nodes) {
    words_.resize((nodes + 63) / 64);
    groups_.resize((words_.size() + 63) / 64);
    tops_.resize((groups_.size() + 63) / 64);
  }
  void insert(std::uint32_t i) {
    words_[i >> 6] |= bit(i);
    groups_[i >> 12] |= bit(i >> 6);
    tops_[i >> 18] |= bit(i >> 12);
  }
  void erase(std::uint32_t i) {
    if ((words_[i >> 6] &= ~bit(i)) != 0) return;
    if ((groups_[i >> 12] &= ~bit(i >> 6)) != 0) return;
    tops_[i >> 18] &= ~bit(i >> 12);
  }
  [[nodiscard]] bool contains(std::uint32_t i) const { return (words_[i >> 6] & bit(i)) != 0; }
  /// The least member >= from; Id::kNone when there is none.
  [[nodiscard]] std::uint32_t next(std::uint32_t from) const {
    if ((from >> 6) < words_.size()) {
      const std::uint64_t rest = words_[from >> 6] & (~std::uint64_t{0} << (from & 63));
      if (rest != 0) return (from & ~63U) + lowest(rest);
    }
    std::uint32_t word = (from >> 6) + 1;
    if ((word >> 6) < groups_.size()) {
      const std::uint64_t rest = groups_[word >> 6] & (~std::uint64_t{0} << (word & 63));
      if (rest != 0) return first_of_word((word & ~63U) + lowest(rest));
    }
    std::uint32_t group = (word >> 6) + 1;
    if ((group >> 6) < tops_.size()) {
      const std::uint64_t rest = tops_[group >> 6] & (~std::uint64_t{0} << (group & 63));
      if (rest != 0) return first_of_group((group & ~63U) + lowest(rest));
    }
    for (std::uint32_t top = (group >> 6) + 1; top < tops_.size(); ++top) {
      if (tops_[top] != 0) return first_of_group(top * 64 + lowest(tops_[top]));
    }
    return NodeId::kNone;
  }
  [[nodiscard]] std::uint32_t first() const { return next(0); }

 private:
  static std::uint64_t bit(std::uint32_t i) { return std::uint64_t{1} << (i & 63); }
  static std::uint32_t lowest(std::uint64_t w) {
    return static_cast<std::uint32_t>(std::countr_zero(w));
  }
  [[nodiscard]] std::uint32_t first_of_word(std::uint32_t word) const {
    return word * 64 + lowest(words_[word]);
  }
  [[nodiscard]] std::uint32_t first_of_group(std::uint32_t group) const {
    return first_of_word(group * 64 + lowest(groups_[group]));
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> groups_;
  std::vector<std::uint64_t> tops_;
};

}  // namespace muster::engine
