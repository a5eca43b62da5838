/// An HTTP client: keep-alive HTTP/1.1 or shared HTTP/2 connections to one server, streamed
/// answers, WebSocket.
#pragma once

#include <memory>
#include <string>

#include "net/http/http.h"
#include "net/loop/loop.h"

namespace muster::net {

struct ClientOptions {
  std::string url;  // https://127.0.0.1:6443 or http://…
  /// Tried first, as plain HTTP: the same server on this machine, without TLS's cost.
  std::string unix_path;
  /// Empty: the system's roots.
  std::string ca_pem;
  /// The client's own, if it has one.
  std::string certificate_pem;
  std::string key_pem;
  std::string server_name;  // overrides SNI and the name that is checked
  bool insecure = false;
  /// Requests share connections where the server speaks HTTP/2, and so do streams that are read as
  /// they come (submit.h).
  bool http2 = false;
  std::size_t connections_max = 64;
  Duration connect_timeout = std::chrono::seconds(10);
  Duration request_timeout = std::chrono::seconds(60);
};

/// An answer whose body arrives in pieces.
class ResponseStream {
 public:
  virtual ~ResponseStream() = default;
  [[nodiscard]] virtual int status() const = 0;
  [[nodiscard]] virtual const Headers& headers() const = 0;
  /// At least one byte, or empty at the end.
  virtual Task<Result<std::string>> read() = 0;
  virtual void close() = 0;
};

class Client {
 public:
  virtual ~Client() = default;
  virtual Task<Result<Response>> request(Request request) = 0;
  virtual Task<Result<std::unique_ptr<ResponseStream>>> stream(Request request) = 0;
  virtual Task<Result<std::unique_ptr<WebSocket>>> websocket(Request request,
                                                             std::string subprotocol) = 0;
};

Result<std::unique_ptr<Client>> make_client(Loop& loop, ClientOptions options);
/// The same interface straight into a handler of this process; `user` is whom the handler sees as
/// Peer::trusted_user.
std::unique_ptr<Client> make_local_client(Env& env, Handler handler, std::string user);

}  // namespace muster::net
