/// Text that is put together of many short pieces at the end of a Block, as a line of the audit log
/// is. Pieces that fit are copied and nothing else: there are fifty in a line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "apiserver/audit/block.h"
#include "json/text.h"

namespace muster::apiserver::audit {

/// While it is there, nobody else adds to the block.
class Text {
 public:
  explicit Text(Block& out) : out_(out) { begin(kRoom); }
  Text(const Text&) = delete;
  ~Text() { finish(); }

  /// As it is. Most pieces are of a length that the compiler knows: no call is left of them.
  [[gnu::always_inline]] void add(std::string_view piece) {
    if (piece.size() > static_cast<std::size_t>(end_ - at_)) make_room(piece.size());
    std::memcpy(at_, piece.data(), piece.size());
    at_ += piece.size();
  }
  /// A JSON string.
  void add_string(std::string_view text) {
    if (json::is_plain(text)) return add_plain(text);
    std::string escaped;
    json::append_string(escaped, text);
    add(escaped);
  }
  /// A JSON string of what holds nothing to escape: words of ours, ids and names that were looked at.
  [[gnu::always_inline]] void add_plain(std::string_view text) {
    add("\"");
    add(text);
    add("\"");
  }
  /// Digits of a number, with zeros before it up to the width.
  template <int kWidth>
  void add_digits(std::uint32_t number) {
    char digits[kWidth];
    int at = kWidth;
    for (; at > 1; at -= 2, number /= 100) std::memcpy(digits + at - 2, &kPairs[number % 100], 2);
    if (at == 1) digits[0] = static_cast<char>('0' + number % 10);
    add({digits, kWidth});
  }
  /// Everything is in the block.
  void finish() { out_.set_size(static_cast<std::size_t>(at_ - out_.data())); }

 private:
  /// 00 to 99.
  static constexpr auto kPairs = [] {
    std::array<std::array<char, 2>, 100> pairs{};
    for (std::size_t i = 0; i < pairs.size(); ++i)
      pairs[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
    return pairs;
  }();
  /// More than most lines need.
  static constexpr std::size_t kRoom = 2048;

  void begin(std::size_t room) {
    out_.reserve(out_.size() + room);
    at_ = out_.data() + out_.size();
    end_ = out_.data() + out_.capacity();
  }
  [[gnu::cold, gnu::noinline]] void make_room(std::size_t bytes) {
    finish();
    begin(bytes + kRoom);
  }

  Block& out_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace muster::apiserver::audit
