/// Steps through the bytes of a protobuf message: tags, numbers, and views of what stands in them.
/// Nothing is copied.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::kube {

class ProtobufCursor {
 public:
  explicit ProtobufCursor(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool at_end() const { return at_ == end_; }

  /// Field number and wire type. No field has the number 0.
  bool tag(std::uint32_t& out) {
    std::uint64_t number = 0;
    if (!varint(number) || number > 0xffffffffU || (number >> 3) == 0) return false;
    out = static_cast<std::uint32_t>(number);
    return true;
  }
  bool varint(std::uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool fixed64(std::uint64_t& out) {
    if (end_ - at_ < 8) return false;
    out = 0;
    for (int i = 7; i >= 0; --i) out = out << 8 | static_cast<unsigned char>(at_[i]);
    at_ += 8;
    return true;
  }
  bool bytes(std::string_view& out) {
    std::uint64_t size = 0;
    if (!varint(size) || size > static_cast<std::uint64_t>(end_ - at_)) return false;
    out = {at_, static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }
  /// Over the value behind `tag`. A group, which nobody sends, ends with its own end and may hold
  /// others.
  bool skip(std::uint32_t tag) {
    std::uint64_t number = 0;
    std::string_view text;
    int groups = 0;
    while (true) {
      switch (tag & 7) {
        case 0:
          if (!varint(number)) return false;
          break;
        case 1:
          if (!fixed64(number)) return false;
          break;
        case 2:
          if (!bytes(text)) return false;
          break;
        case 3:
          ++groups;
          break;
        case 4:
          if (--groups < 0) return false;
          break;
        case 5:
          if (end_ - at_ < 4) return false;
          at_ += 4;
          break;
        default:
          return false;
      }
      if (groups == 0) return true;
      if (!this->tag(tag)) return false;
    }
  }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace muster::kube
