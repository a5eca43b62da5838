/// One HTTP/2 connection (RFC 9113) to a server that chose it in the TLS handshake: many requests
/// at once over one socket. What is asked in one turn of the loop leaves in one write, and many
/// answers come with one read, which is what makes thousands of small requests a second cheap:
/// while many answers are due, or a watch has much to tell, the socket is read every few
/// milliseconds instead of for each of them. Upgrades keep connections of their own. Everything
/// runs on the loop.
#pragma once

#include <memory>
#include <string>

#include "net/http/client.h"
#include "net/http/submit.h"
#include "net/loop/stream.h"

namespace muster::net {

class Http2Connection {
 public:
  virtual ~Http2Connection() = default;
  /// How many more requests may begin now; 0 once the connection has failed or is on its way out.
  [[nodiscard]] virtual std::size_t room() const = 0;
  [[nodiscard]] virtual bool usable() const = 0;
  /// Call only while there is room. `untouched` is set when the server has certainly not looked at
  /// the request.
  virtual Task<Result<Response>> request(Request request, Duration timeout, bool& untouched) = 0;
  /// The same for one of many requests, without a coroutine; a good answer has a status and no
  /// more. `done` is never called inside of the call; an error of a request that the server has not
  /// looked at is marked by `untouched`.
  using Done = std::function<void(Result<Response>, bool untouched)>;
  virtual void submit(std::shared_ptr<const CommonHead> head,
                      std::string_view target,
                      std::string body,
                      Duration timeout,
                      Done done) = 0;
  /// Streams stay for minutes: they may take half of what the server allows, so that there is
  /// always room for requests.
  [[nodiscard]] virtual bool takes_stream() const = 0;
  /// Call only while takes_stream(). `timeout` is for the head of the answer. The stream must be
  /// read as it comes: what nobody reads is kept here.
  virtual Task<Result<std::unique_ptr<ResponseStream>>> stream(Request request,
                                                               Duration timeout,
                                                               bool& untouched) = 0;
  virtual void close() = 0;
};

/// How a peer wants to be spoken to; as it stands, a Kubernetes API server.
struct Http2Manners {
  std::string scheme = "https";
  /// Ask a silent server whether it is there. gRPC's servers take more than a few of these for an
  /// attack and close the connection.
  bool pings = true;
  std::size_t answer_bytes_max = 512ULL * 1024 * 1024;
};

/// `freed` is called whenever there is more room than before. `path` goes before every target.
std::shared_ptr<Http2Connection> start_http2(std::shared_ptr<Stream> stream,
                                             std::string authority,
                                             std::string path,
                                             std::function<void()> freed,
                                             Http2Manners manners = {});

}  // namespace muster::net
