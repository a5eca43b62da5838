/// A server's watch stream as it comes over the wire: cut into events, each read or refused. The
/// first byte says in which form and in which steps.
#include <cstdint>
#include <string_view>

#include "client/watch_frames.h"

using namespace muster;

namespace {

template <typename Pieces>
void follow(std::string_view stream, std::size_t step, bool managed_fields) {
  const client::WatchFormat format{"watch", managed_fields};
  Pieces pieces;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    pieces.add(stream.substr(at, step));
    while (const auto piece = pieces.next()) (void)Pieces::parse(*piece, format);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = 1 + static_cast<std::size_t>(data[0] >> 2) * 16;
  const bool managed_fields = (data[0] & 1) != 0;
  if ((data[0] & 2) != 0)
    follow<client::WatchFrames>(stream, step, managed_fields);
  else
    follow<client::WatchLines>(stream, step, managed_fields);
  return 0;
}
