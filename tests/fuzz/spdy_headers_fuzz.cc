/// Any bytes as SPDY header blocks, one after the other on the same zlib state; and what packs must
/// unpack.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/spdy/spdy_headers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  muster::net::SpdyInflater inflater;
  const auto half = size / 2;
  const auto first = inflater.unpack(text.substr(0, half));
  if (first) (void)inflater.unpack(text.substr(half)).has_value();

  muster::net::SpdyDeflater deflater;
  muster::net::SpdyInflater other;
  muster::net::Headers headers;
  headers.add("x", std::string(text.substr(0, text.find('\0'))));
  const auto back = other.unpack(deflater.pack(headers));
  if (!back || back->get("x") != headers.get("x")) std::abort();
  return 0;
}
