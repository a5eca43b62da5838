/// gRPC's plain calls (one message there, one back) to a server on a unix socket of this machine,
/// and those that answer with many messages.
///
/// A call is an HTTP/2 request whose body is a message behind five bytes, and whose trailers say
/// how it went. The connection is made with the first call and again after it was lost; a call
/// that was on its way then fails. Errors read as Go programs show them, `rpc error: code =
/// NotFound desc = …`, because people search for these words. Everything runs on the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "base/time.h"
#include "net/loop/loop.h"

namespace muster::net {

constexpr std::size_t kGrpcMessageBytesMax = 16 * 1024 * 1024;

struct GrpcCall {
  std::string method;   // "/runtime.v1.ImageService/PullImage"
  std::string message;  // as protobuf has it
  std::vector<std::pair<std::string, std::string>> metadata;
  Duration timeout = std::chrono::seconds(10);
};

class GrpcClient {
 public:
  virtual ~GrpcClient() = default;
  /// The answer's message.
  virtual Task<Result<std::string>> call(GrpcCall call) = 0;
  /// A call whose answer goes on: `each` message as it comes, until close(), an error, or the
  /// server's end. It has no time limit, and keeps a client of its own busy.
  virtual Task<Result<void>> follow(GrpcCall call, std::function<void(std::string)> each) = 0;
  virtual void close() = 0;
};

std::unique_ptr<GrpcClient> make_grpc_client(Loop& loop, std::string unix_path);

/// A message as it travels: not compressed, its length, itself.
std::string grpc_frame(std::string_view message);
/// Takes the next whole message from the beginning of what has come; absent: more must come.
Result<std::optional<std::string>> grpc_next(std::string& received);
/// The one message of an answer's body.
Result<std::string> grpc_unframe(std::string_view body);
/// What trailers `grpc-status` and `grpc-message` say; `message` is percent-encoded.
Error grpc_error(int status, std::string_view message);
/// A span of time as `grpc-timeout` has it, at most eight digits and a unit.
std::string grpc_timeout(Duration timeout);

}  // namespace muster::net
