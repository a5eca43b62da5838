/// Protobuf messages, as many of their parts as a few calls to containerd need: written field by
/// field, read field by field. What is not known is skipped. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster::agent::image {

class MessageWriter {
 public:
  /// Fields that are empty are not written, as protobuf has it.
  MessageWriter& text(int field, std::string_view value);
  MessageWriter& number(int field, std::uint64_t value);
  MessageWriter& message(int field, const MessageWriter& value);
  /// The same of one that was written before.
  MessageWriter& block_of(int field, std::string_view message);
  /// One of a list: an empty one counts.
  MessageWriter& element(int field, std::string_view value);
  MessageWriter& element(int field, std::uint64_t value);
  /// One entry of a map of strings.
  MessageWriter& entry(int field, std::string_view key, std::string_view value);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int wire);
  void varint(std::uint64_t value);
  void block(int field, std::string_view value);
  std::string bytes_;
};

struct MessageField {
  int number = 0;
  bool is_bytes = false;  // text, bytes or a message; else a number
  std::uint64_t value = 0;
  std::string_view bytes;
};

/// Every field in turn. False: the bytes are no message; what was told before may be used or not.
bool read_message(std::string_view bytes, const std::function<void(const MessageField&)>& each);

}  // namespace muster::agent::image
