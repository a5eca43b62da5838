/// SPDY/3.1 framing as kubectl up to 1.29 speaks it after an upgrade (exec, attach, port-forward),
/// and as newer ones tunnel it inside WebSocket messages (port-forward): many streams with headers
/// over one ByteStream.
///
/// What the streams mean (error, stdin, stdout …) is the caller's. Flow control: windows are
/// announced, and honoured once the peer is seen to use them; Kubernetes' own library does not, so
/// TCP's back-pressure is what bounds memory otherwise. Everything runs on the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/env.h"
#include "net/http/http.h"

namespace muster::net {

class SpdyStream : public ByteStream {
 public:
  [[nodiscard]] virtual std::uint32_t id() const = 0;
  /// Names in lower case, as they came; e.g. "streamtype".
  [[nodiscard]] virtual const Headers& headers() const = 0;
  /// No more will be written; reading goes on.
  virtual Task<Result<void>> finish() = 0;
  /// Ends both directions with an error for the peer.
  virtual void reset() = 0;
  // read(): empty once the peer has finished. close(): finishes and drops what still comes.
};

class SpdySession {
 public:
  virtual ~SpdySession() = default;
  /// The next stream that the peer opens (it has been replied to); null when the session has ended
  /// or the peer opens no more.
  virtual Task<std::shared_ptr<SpdyStream>> accept() = 0;
  /// Opens one and waits for the reply.
  virtual Task<Result<std::shared_ptr<SpdyStream>>> open(Headers headers) = 0;
  /// Sends what is queued and a GOAWAY (bounded in time), then closes.
  virtual Task<void> shutdown() = 0;
  /// At once.
  virtual void close() = 0;
  [[nodiscard]] virtual bool closed() const = 0;
  /// Until closed() is true. One caller at a time.
  virtual Task<void> wait_closed() = 0;
};

enum class SpdyRole { kServer, kClient };
std::unique_ptr<SpdySession> make_spdy_session(Env& env,
                                               std::unique_ptr<ByteStream> bytes,
                                               SpdyRole role);

/// The byte stream inside the binary messages of a WebSocket. close() sends a Close frame in the
/// background.
std::unique_ptr<ByteStream> make_websocket_bytes(Env& env, std::unique_ptr<WebSocket> socket);

}  // namespace muster::net
