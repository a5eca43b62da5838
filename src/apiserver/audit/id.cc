#include "apiserver/audit/id.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "net/tls/tls.h"

namespace muster::apiserver::audit {
namespace {

constexpr std::size_t kBytes = 16;

static_assert(std::endian::native == std::endian::little);

/// The digits of four bytes, in their order.
std::uint64_t digits_of(std::uint32_t bytes) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t spread = (bytes & 0xffff0000ULL) << 16 | (bytes & 0xffffULL);
  spread = (spread << 8 | spread) & 0x00ff00ff00ff00ff;
  const std::uint64_t nibbles = (spread >> 4 & 0x000f000f000f000f) | (spread & 0x000f000f000f000f)
                                                                         << 8;
  const std::uint64_t letters = (nibbles + kOnes * 6) >> 4 & kOnes;
  return nibbles + kOnes * '0' + letters * ('a' - '0' - 10);
}

/// Drawn a block at a time: a draw costs more than an id.
class Source {
 public:
  const unsigned char* next() {
    if (left_ == 0) {
      bytes_ = net::random_bytes(kAtOnce * kBytes);
      left_ = kAtOnce;
    }
    return reinterpret_cast<unsigned char*>(bytes_.data()) + --left_ * kBytes;
  }

 private:
  static constexpr std::size_t kAtOnce = 256;
  std::string bytes_;
  std::size_t left_ = 0;
};

}  // namespace

void Id::set(std::string_view text) {
  size_ = static_cast<std::uint8_t>(std::min(text.size(), kMax));
  std::memcpy(text_.data(), text.data(), size_);
}

void Id::draw() {
  static thread_local Source source;
  std::uint32_t words[kBytes / 4];
  std::memcpy(words, source.next(), kBytes);
  words[1] = (words[1] & 0xff0fffff) | 0x00400000;  // the version, in byte 6
  words[2] = (words[2] & 0xffffff3f) | 0x00000080;  // the variant, in byte 8
  char digits[2 * kBytes];
  for (std::size_t i = 0; i < std::size(words); ++i) {
    const std::uint64_t eight = digits_of(words[i]);
    std::memcpy(digits + 8 * i, &eight, sizeof eight);
  }
  // xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
  char* text = text_.data();
  std::memcpy(text, digits, 8);
  std::memcpy(text + 9, digits + 8, 4);
  std::memcpy(text + 14, digits + 12, 4);
  std::memcpy(text + 19, digits + 16, 4);
  std::memcpy(text + 24, digits + 20, 12);
  text[8] = text[13] = text[18] = text[23] = '-';
  size_ = 36;
}

}  // namespace muster::apiserver::audit
