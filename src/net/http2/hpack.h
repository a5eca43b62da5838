/// HPACK (RFC 7541): HTTP/2's header fields as bytes, with a table of recent fields on either side
/// of a connection. Strings are written plain and read plain or Huffman-coded. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::net {

using HeaderField = std::pair<std::string, std::string>;

/// The fields both sides remember, newest first; the oldest go when the sum of their sizes passes
/// the limit.
class HpackTable {
 public:
  void add(HeaderField field);
  void resize(std::size_t bytes_max);
  [[nodiscard]] std::size_t bytes_max() const { return bytes_max_; }
  /// Index as on the wire: 1 to 61 are fixed, the table follows. Null when there is none.
  [[nodiscard]] const HeaderField* find(std::size_t index) const;
  /// The index of the field, or of its name alone; 0 when absent.
  struct Match {
    std::size_t field = 0, name = 0;
  };
  [[nodiscard]] Match match(std::string_view name, std::string_view value) const;
  static std::size_t size_of(const HeaderField& field) {
    return field.first.size() + field.second.size() + 32;
  }

 private:
  void evict();
  std::deque<HeaderField> fields_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_ = 4096;
};

class HpackEncoder {
 public:
  /// Appends one field. `remember`: the value will come again, so the peer shall keep it.
  void encode(std::string& out, std::string_view name, std::string_view value, bool remember);
  /// The peer keeps no more than this; said to it with the next field.
  void limit(std::size_t bytes_max);
  /// The same fields are encoded as the same bytes while this stays the same.
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  HpackTable table_;
  bool announce_ = false;
  std::uint64_t version_ = 0;
};

class HpackDecoder {
 public:
  /// All fields of a header block; absent when the block is broken, which ends the connection.
  std::optional<std::vector<HeaderField>> decode(std::string_view block);
  /// The same, field by field, without a copy of what nobody wants. False when the block is broken.
  using Each = std::function<void(std::string_view name, std::string_view value)>;
  bool decode(std::string_view block, const Each& each);

 private:
  HpackTable table_;
};

/// Absent when the bytes are no valid code.
std::optional<std::string> huffman_decode(std::string_view bytes);

}  // namespace muster::net
