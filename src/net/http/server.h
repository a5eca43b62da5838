/// An HTTP/1.1 server over TLS (or plain, for tests and metrics) with keep-alive, bodies bounded in
/// size and time, chunked streams, WebSocket and raw upgrades. Slow and half-open connections are
/// cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/http/http.h"
#include "net/loop/loop.h"

namespace muster::net {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0 picks one
  /// Instead of an address: a Unix socket that only its owner may open; plain HTTP.
  std::string unix_path;
  std::string certificate_pem;  // empty: plain HTTP
  std::string key_pem;
  std::string client_ca_pem;  // client certificates signed by it are verified and reported as Peer
  std::size_t body_bytes_max = 3 * 1024 * 1024;
  std::size_t header_bytes_max = 64 * 1024;
  /// From connect or previous answer's first byte to the whole head.
  Duration head_timeout = std::chrono::seconds(15);
  Duration body_timeout = std::chrono::seconds(60);
  Duration idle_timeout = std::chrono::seconds(300);
  /// One write of an answer or a chunk; a slower reader is cut.
  Duration write_timeout = std::chrono::minutes(5);
  std::size_t connections_max = 20'000;
};

class Server {
 public:
  virtual ~Server() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// Stops accepting, closes idle connections, ends streams, waits for what is in flight (bounded).
  virtual Task<void> stop() = 0;
};

/// Bound and listening when it returns.
Result<std::unique_ptr<Server>> listen(Loop& loop, ServerOptions options, Handler handler);

/// For a server that listen() made with a certificate: connections from now on are shown this one,
/// those that are open stay. A pair that is wrong changes nothing.
Result<void> set_certificate(Server& server, std::string certificate_pem, std::string key_pem);

}  // namespace muster::net
