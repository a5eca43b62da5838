/// Any bytes as what the peer of a SPDY session sends, in both roles: streams open, carry bytes and
/// end, or the session does. The first byte says in which role, in which steps, and whether one
/// stream is open already: a packed header block is hard to guess.
#include <cstdint>
#include <string_view>

#include "net/loop/loop.h"
#include "net/spdy/spdy.h"
#include "net/spdy/spdy_headers.h"

using namespace muster;

namespace {

/// Gives the input in pieces, then the end; takes everything.
class Peer final : public net::ByteStream {
 public:
  Peer(std::string_view input, std::size_t step) : input_(input), step_(step) {}
  Task<Result<std::string>> read() override {
    std::string piece(input_.substr(0, step_));
    input_.remove_prefix(piece.size());
    co_return piece;
  }
  Task<Result<void>> write(std::string) override { co_return Result<void>{}; }
  void close() override { input_ = {}; }

 private:
  std::string_view input_;
  std::size_t step_;
};

/// SYN_STREAM, or SYN_REPLY to the client's own.
std::string opening(bool server) {
  net::Headers headers;
  headers.set("streamtype", "data");
  net::SpdyDeflater deflater;
  const std::string body =
      std::string("\0\0\0\1", 4) + (server ? std::string(6, '\0') : "") + deflater.pack(headers);
  std::string frame("\x80\3\0", 3);
  frame += server ? '\1' : '\2';
  for (const int shift : {24, 16, 8, 0})
    frame += static_cast<char>(body.size() >> shift);  // no flags, and the size
  return frame + body;
}

Task<void> drain(net::SpdyStream& stream) {
  while (true) {
    const auto bytes = co_await stream.read();
    if (!bytes || bytes->empty()) co_return;
  }
}

Task<void> serve(net::Loop& loop, std::string_view input, std::size_t step) {
  const auto session =
      net::make_spdy_session(loop, std::make_unique<Peer>(input, step), net::SpdyRole::kServer);
  std::vector<std::shared_ptr<net::SpdyStream>> streams;
  while (true) {
    auto stream = co_await session->accept();
    if (!stream) break;
    (void)co_await stream->write("hello");
    streams.push_back(std::move(stream));
  }
  // The input is at its end, so reading what came does not wait.
  session->close();
  for (const auto& stream : streams) co_await drain(*stream);
}

Task<void> open(net::Loop& loop, std::string_view input, std::size_t step) {
  const auto session =
      net::make_spdy_session(loop, std::make_unique<Peer>(input, step), net::SpdyRole::kClient);
  net::Headers headers;
  headers.set("streamtype", "data");
  const auto stream = co_await session->open(std::move(headers));
  if (stream) co_await drain(**stream);
  session->close();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static net::Loop loop;
  const bool server = (data[0] & 1) != 0;
  std::string input = (data[0] & 2) != 0 ? opening(server) : "";
  input.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = 1 + static_cast<std::size_t>(data[0] >> 2) * 16;
  if (server)
    loop.run_until_done(serve(loop, input, step));
  else
    loop.run_until_done(open(loop, input, step));
  return 0;
}
