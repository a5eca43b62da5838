/// HTTP as the rest of Muster sees it: requests in, answers out, streams and upgrades. No Boost in
/// sight.
///
/// One handler serves both worlds: net::Server calls it for requests from sockets, and the
/// in-process transport (local_client.cc) calls it directly. Everything runs on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "base/task.h"

namespace muster::net {

/// Header fields in order; names compare without case.
class Headers {
 public:
  void add(std::string name, std::string value);
  void set(std::string name, std::string value);
  /// The first value, or empty.
  [[nodiscard]] std::string_view get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  /// Every value of the name, comma lists left as they are.
  [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& fields() const {
    return fields_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Who is at the other end, as far as the transport knows.
struct Peer {
  std::string address;                   // "127.0.0.1:54321"; empty in-process
  std::optional<std::string> cert_user;  // common name of a verified client certificate
  std::vector<std::string> cert_groups;  // its organisations
  /// Set by the in-process transport only: the request is Muster's own component and needs no
  /// credential.
  std::optional<std::string> trusted_user;
};

struct Request {
  std::string method;  // upper case
  std::string target;  // as sent: /api/v1/pods?watch=true
  Headers headers;
  std::string body;
  Peer peer;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

/// Bytes both ways after an upgrade or a plain connect.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// At least one byte, or empty at the end of the stream.
  virtual Task<Result<std::string>> read() = 0;
  virtual Task<Result<void>> write(std::string bytes) = 0;
  virtual void close() = 0;
};

class WebSocket {
 public:
  struct Message {
    bool binary = true;
    std::string data;
  };
  virtual ~WebSocket() = default;
  [[nodiscard]] virtual std::string subprotocol() const = 0;
  /// nullopt when the peer closed.
  virtual Task<Result<std::optional<Message>>> read() = 0;
  virtual Task<Result<void>> write(Message message) = 0;
  /// Sends a Close frame and waits briefly for the peer's.
  virtual Task<void> close(std::uint16_t code, std::string reason) = 0;
};

/// The handler's side of one exchange. Exactly one of send / start / upgrade is called, once.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  /// The whole answer at once.
  virtual Task<Result<void>> send(Response response) = 0;
  /// Head of a streamed (chunked) answer; then write() as often as needed, each flushed; then
  /// finish().
  virtual Task<Result<void>> start(Response head) = 0;
  /// Shared bytes: one serialised event goes to many watchers without a copy.
  virtual Task<Result<void>> write(std::shared_ptr<const std::string> chunk) = 0;
  virtual Task<Result<void>> finish() = 0;

  enum class Now {
    kSent,  // all of it
    kKept,  // the client reads slowly: the rest goes out with flush(), or before the next write
    kBusy,  // nothing: a write is under way, or the client has gone
  };
  /// write() without waiting.
  virtual Now write_now(std::shared_ptr<const std::string> chunk) = 0;
  /// Waits until what write_now() kept is sent.
  virtual Task<Result<void>> flush() = 0;
  /// True when write_now() may run on a worker, as long as nobody else uses the writer meanwhile.
  /// Asks for the memory that it will touch, too.
  [[nodiscard]] virtual bool writes_aside() const { return false; }

  /// True once the client has gone; a streaming handler that waits for events should look.
  [[nodiscard]] virtual bool closed() const = 0;
  /// Called on the loop when the client goes away during a stream (or never).
  virtual void on_close(std::function<void()> callback) = 0;

  /// 101 with this subprotocol (empty: none). The writer is spent.
  virtual Task<Result<std::unique_ptr<WebSocket>>> upgrade_websocket(std::string subprotocol) = 0;
  /// 101 with these headers, then raw bytes (SPDY).
  virtual Task<Result<std::unique_ptr<ByteStream>>> upgrade_raw(Headers headers) = 0;
};

using Handler = std::function<Task<void>(Request, ResponseWriter&)>;

/// The parts of a target.
struct Target {
  std::string path;                                                // decoded; "/api/v1/pods"
  std::vector<std::string> segments;                               // decoded, no empty ones
  std::vector<std::pair<std::string, std::string>> query;          // decoded, in order
  [[nodiscard]] std::string_view get(std::string_view key) const;  // first value or empty
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view key) const;
};
Result<Target> parse_target(std::string_view target);

}  // namespace muster::net
