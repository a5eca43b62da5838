/// Numbers of jobs kept in an order: one is added, removed or found by its rank in a few hundred
/// steps however many there are, and a page is read off in its own length. They lie in blocks of some
/// hundreds, which are cut in two when they grow and dropped when they are empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace muster::pai {

class Ranked {
 public:
  /// Strict and total: of two different numbers exactly one is before the other.
  using Before = std::function<bool(std::uint32_t, std::uint32_t)>;
  explicit Ranked(Before before) : before_(std::move(before)) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Not in it yet.
  void insert(std::uint32_t slot);
  /// In it, and what the order looks at is as it was when it was added.
  void erase(std::uint32_t slot);

  /// Tells those of rank `from` and behind, until `told` says false. `backwards`: the last has rank 0.
  void walk(std::size_t from, bool backwards, const std::function<bool(std::uint32_t)>& told) const;

 private:
  /// The block that has, or would have, the number.
  [[nodiscard]] std::size_t block_of(std::uint32_t slot) const;

  static constexpr std::size_t kBlockMax = 512;
  Before before_;
  std::size_t size_ = 0;
  std::vector<std::vector<std::uint32_t>> blocks_;  // none of them empty
};

}  // namespace muster::pai
