#include "agent/image/protobuf.h"

#include "kube/schema/protobuf_cursor.h"

namespace muster::agent::image {

void MessageWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}

void MessageWriter::tag(int field, int wire) {
  varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void MessageWriter::block(int field, std::string_view value) {
  tag(field, 2);
  varint(value.size());
  bytes_.append(value);
}

MessageWriter& MessageWriter::text(int field, std::string_view value) {
  if (!value.empty()) block(field, value);
  return *this;
}

MessageWriter& MessageWriter::number(int field, std::uint64_t value) {
  if (value == 0) return *this;
  tag(field, 0);
  varint(value);
  return *this;
}

MessageWriter& MessageWriter::message(int field, const MessageWriter& value) {
  block(field, value.bytes_);
  return *this;
}

MessageWriter& MessageWriter::block_of(int field, std::string_view message) {
  block(field, message);
  return *this;
}

MessageWriter& MessageWriter::element(int field, std::string_view value) {
  return block_of(field, value);
}

MessageWriter& MessageWriter::element(int field, std::uint64_t value) {
  tag(field, 0);
  varint(value);
  return *this;
}

MessageWriter& MessageWriter::entry(int field, std::string_view key, std::string_view value) {
  MessageWriter one;
  one.text(1, key).text(2, value);
  return message(field, one);
}

bool read_message(std::string_view bytes, const std::function<void(const MessageField&)>& each) {
  kube::ProtobufCursor cursor(bytes);
  while (!cursor.at_end()) {
    std::uint32_t tag = 0;
    if (!cursor.tag(tag)) return false;
    MessageField field;
    field.number = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0:
        if (!cursor.varint(field.value)) return false;
        break;
      case 2:
        field.is_bytes = true;
        if (!cursor.bytes(field.bytes)) return false;
        break;
      default:
        if (!cursor.skip(tag)) return false;
        continue;
    }
    each(field);
  }
  return true;
}

}  // namespace muster::agent::image
