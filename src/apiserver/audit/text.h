/// Text that is put together of many short pieces, most of a line of the audit log among them.
///
/// Pieces are collected beside the string they are for: an append to a std::string costs more than
/// most of the pieces do, and there are fifty in a line.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "json/text.h"

namespace muster::apiserver::audit {

class Text {
 public:
  explicit Text(std::string& out) : out_(out) {}
  Text(const Text&) = delete;
  ~Text() { flush(); }

  /// As it is. Most pieces are of a length that the compiler knows: no call is left of them.
  [[gnu::always_inline]] void add(std::string_view piece) {
    if (piece.size() > static_cast<std::size_t>(buffer_ + sizeof buffer_ - at_))
      return add_long(piece);
    std::memcpy(at_, piece.data(), piece.size());
    at_ += piece.size();
  }
  /// A JSON string.
  void add_string(std::string_view text) {
    if (json::is_plain(text)) return add_plain(text);
    flush();
    json::append_string(out_, text);
  }
  /// A JSON string of what holds nothing to escape: words of ours, ids and names that were looked at.
  void add_plain(std::string_view text) {
    add("\"");
    add(text);
    add("\"");
  }
  /// Digits of a number, with zeros before it up to the width.
  template <int kWidth>
  void add_digits(std::int64_t number) {
    char digits[kWidth];
    for (int at = kWidth - 1; at >= 0; --at, number /= 10)
      digits[at] = static_cast<char>('0' + number % 10);
    add({digits, kWidth});
  }
  /// Everything is in the string.
  void flush() {
    out_.append(buffer_, static_cast<std::size_t>(at_ - buffer_));
    at_ = buffer_;
  }

 private:
  [[gnu::cold, gnu::noinline]] void add_long(std::string_view piece) {
    flush();
    out_ += piece;
  }

  std::string& out_;
  char buffer_[2048];
  char* at_ = buffer_;
};

}  // namespace muster::apiserver::audit
