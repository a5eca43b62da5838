/// Ids of requests in the audit log. No allocation, and a draw of random bytes for many at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::apiserver::audit {

/// A short text, kept where it is.
class Id {
 public:
  /// What a client may call its request; longer is no id.
  static constexpr std::size_t kMax = 64;
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }
  void set(std::string_view text);
  /// A random UUID (RFC 9562, version 4).
  void draw();

 private:
  std::uint8_t size_ = 0;
  std::array<char, kMax> text_;  // uninitialised past `size_`
};

}  // namespace muster::apiserver::audit
