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
  std::string
      unix_path;  // tried first, as plain HTTP: the same server on this machine, without TLS's cost
  std::string ca_pem;           // empty: the system's roots
  std::string certificate_pem;  // client certificate
  std::string key_pem;
  std::string server_name;  // overrides SNI and the name that is checked
  bool insecure = false;
  bool http2 =
      false;  // requests share connections where the server speaks HTTP/2; streams never do
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
  /// The next value of a stream of values; without one at the end.
  virtual Task<Result<Value>> read_value();
  virtual void close() = 0;
};

class Client {
 public:
  virtual ~Client() = default;
  /// The handler at the other end takes values for bodies and may answer with them.
  [[nodiscard]] virtual bool takes_values() const { return false; }
  virtual Task<Result<Response>> request(Request request) = 0;
  virtual Task<Result<std::unique_ptr<ResponseStream>>> stream(Request request) = 0;
  virtual Task<Result<std::unique_ptr<WebSocket>>> websocket(Request request,
                                                             std::string subprotocol) = 0;
};

Result<std::unique_ptr<Client>> make_client(Loop& loop, ClientOptions options);
/// The same interface straight into a handler of this process; `user` is whom the handler sees as
/// Peer::trusted_user. `takes_values`: the handler knows net::Value.
std::unique_ptr<Client> make_local_client(Loop& loop,
                                          Handler handler,
                                          std::string user,
                                          bool takes_values = false);

}  // namespace muster::net
