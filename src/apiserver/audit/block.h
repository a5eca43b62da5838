/// Lines in memory that begins where pages do, as writes past the page cache want it, and lies in
/// large pages where there are many lines: each page has to be pinned for such a write.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace muster::apiserver::audit {

class Block {
 public:
  /// What addresses, offsets in a file and sizes are multiples of in writes past the page cache.
  static constexpr std::size_t kAlignment = 4096;

  Block() = default;
  Block(Block&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Block();

  [[nodiscard]] std::string_view view() const { return {memory_, size_}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] char* data() { return memory_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  void clear() { size_ = 0; }
  void append(std::string_view text) {
    reserve(size_ + text.size());
    if (!text.empty()) std::memcpy(memory_ + size_, text.data(), text.size());
    size_ += text.size();
  }
  void reserve(std::size_t bytes) {
    if (bytes > capacity_) grow(bytes);
  }
  /// What was written behind the end, into reserved room.
  void set_size(std::size_t size) { size_ = size; }
  /// Spaces before the end of the last line, where JSON may have them.
  void lengthen(std::size_t bytes);

 private:
  void grow(std::size_t bytes);

  char* memory_ = nullptr;  // mapped
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace muster::apiserver::audit
