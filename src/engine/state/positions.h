/// Places in a node's table of devices, in the order in which they were given out.
///
/// A pod has as many as it has devices, seldom more than eight, and every bind and every end of a
/// pod makes and drops such a list: so few need no memory of their own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace muster::engine {

class Positions {
 public:
  using value_type = std::uint16_t;

  Positions() = default;
  Positions(std::initializer_list<value_type> positions) {
    for (const value_type position : positions) push_back(position);
  }
  Positions(const Positions& other)
      : size_(other.size_),
        few_(other.few_),
        many_(other.many_ ? std::make_unique<Many>(*other.many_) : nullptr) {}
  Positions(Positions&& other) noexcept
      : size_(std::exchange(other.size_, 0)), few_(other.few_), many_(std::move(other.many_)) {}
  Positions& operator=(const Positions& other) { return *this = Positions(other); }
  Positions& operator=(Positions&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    few_ = other.few_;
    many_ = std::move(other.many_);
    return *this;
  }
  ~Positions() = default;

  void push_back(value_type position) {
    if (size_ >= kFew) [[unlikely]] {
      push_to_many(position);
    } else {
      few_[size_] = position;
    }
    ++size_;
  }
  void clear() {
    size_ = 0;
    many_.reset();
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const value_type* begin() const { return many_ ? many_->data() : few_.data(); }
  [[nodiscard]] const value_type* end() const { return begin() + size_; }
  [[nodiscard]] value_type operator[](std::size_t i) const { return begin()[i]; }
  bool operator==(const Positions& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  static constexpr std::size_t kFew = 8;
  using Many = std::vector<value_type>;

  [[gnu::noinline]] void push_to_many(value_type position) {
    if (!many_) many_ = std::make_unique<Many>(few_.begin(), few_.end());
    many_->push_back(position);
  }

  std::uint32_t size_ = 0;
  std::array<value_type, kFew> few_{};
  std::unique_ptr<Many> many_;  ///< All of them, once there were more.
};

}  // namespace muster::engine
