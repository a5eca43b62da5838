/// Any bytes as HTTP/2 header blocks, one after the other on the same table; and what is encoded
/// must decode to itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/http2/hpack.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  net::HpackDecoder decoder;
  const auto half = size / 2;
  if (decoder.decode(text.substr(0, half))) (void)decoder.decode(text.substr(half));
  (void)net::huffman_decode(text);

  net::HpackEncoder encoder;
  net::HpackDecoder other;
  const std::string name(text.substr(0, half)), value(text.substr(half));
  for (const bool remember : {true, false, true}) {
    std::string block;
    encoder.encode(block, name, value, remember);
    encoder.encode(block, ":path", value, false);
    const auto back = other.decode(block);
    if (!back || back->size() != 2 || (*back)[0] != net::HeaderField(name, value) ||
        (*back)[1].second != value)
      std::abort();
    encoder.limit(size);
  }
  return 0;
}
