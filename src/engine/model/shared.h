/// A value that never changes and that copies share, in one word: names, labels, what was last told.
/// An engine of a hundred thousand pods is copied in a moment because of it, and copies may live and
/// end on other threads.
///
///   Name key(pod.name);       made anew
///   Name other = key;         the same one
///   if (key->empty()) …       read like a pointer, or passed where the value is wanted
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace muster::engine {

template <typename T>
class Shared {
 public:
  Shared() = default;  ///< An empty value, which takes no memory.
  explicit Shared(const T& value) : held_(value == empty() ? nullptr : new Held{value}) {}
  explicit Shared(T&& value) : held_(value == empty() ? nullptr : new Held{std::move(value)}) {}
  Shared(const Shared& other) noexcept : held_(other.held_) {
    if (held_ != nullptr) held_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  Shared& operator=(T value) { return *this = Shared(std::move(value)); }
  ~Shared() {
    if (held_ != nullptr && held_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete held_;
  }

  /// Takes over a value; one that is equal already stays, with those who share it.
  void become(const T& value) {
    if (!(get() == value)) *this = Shared(value);
  }

  [[nodiscard]] const T& get() const { return held_ != nullptr ? held_->value : empty(); }
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  operator const T&() const { return get(); }

  bool operator==(const Shared& other) const {
    return held_ == other.held_ || get() == other.get();
  }
  bool operator==(const T& value) const { return get() == value; }

 private:
  struct Held {
    T value;
    std::atomic<std::uint32_t> owners{1};
  };
  static const T& empty() {
    static const T kEmpty{};
    return kEmpty;
  }
  Held* held_ = nullptr;
};

using Name = Shared<std::string>;

}  // namespace muster::engine
