/// A table that grows without moving what is in it: rows in pages of a fixed number.
///
/// A vector of half a million rows that doubles copies hundreds of megabytes in the middle of one
/// decision and needs both copies for a while. Here growing costs the same at any size, and a
/// reference to a row stays good.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace muster::engine {

/// Makes a row as it was when it was made, without a second one to move from.
template <typename T>
void renew(T& row) {
  std::destroy_at(&row);
  std::construct_at(&row);
}

template <typename T>
class Pages {
 public:
  Pages() = default;
  Pages(const Pages& other) : size_(other.size_) {
    pages_.reserve(other.pages_.size());
    for (const std::vector<T>& page : other.pages_) {
      // Room for a whole page, too: rows of the last one must not move when more come.
      std::vector<T>& mine = pages_.emplace_back();
      mine.reserve(kRows);
      mine.insert(mine.end(), page.begin(), page.end());
    }
  }
  Pages(Pages&& other) noexcept
      : pages_(std::move(other.pages_)), size_(std::exchange(other.size_, 0)) {}
  Pages& operator=(Pages other) noexcept {
    pages_.swap(other.pages_);
    std::swap(size_, other.size_);
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return pages_[i / kRows][i % kRows]; }
  [[nodiscard]] T& operator[](std::size_t i) { return pages_[i / kRows][i % kRows]; }
  [[nodiscard]] T& back() { return pages_.back().back(); }

  T& emplace_back() {
    if (size_ % kRows == 0) pages_.emplace_back().reserve(kRows);
    ++size_;
    return pages_.back().emplace_back();
  }
  /// It never shrinks.
  void grow_to(std::size_t size) {
    while (size_ < size) emplace_back();
  }

  /// Each row in its order, as a range.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Pages& pages, std::size_t at) : pages_(&pages), at_(at) {}
    const T& operator*() const { return (*pages_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Pages* pages_ = nullptr;
    std::size_t at_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size_}; }

 private:
  static constexpr std::size_t kRows = 256;

  std::vector<std::vector<T>> pages_;  ///< Each with room for kRows, all but the last full.
  std::size_t size_ = 0;
};

}  // namespace muster::engine
