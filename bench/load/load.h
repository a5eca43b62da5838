/// What the load generators share: their command line, the server of a kubeconfig, and requests to
/// it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/client.h"
#include "net/loop/loop.h"

namespace muster::bench {

/// `--flag value` pairs; every flag has a value.
class Flags {
 public:
  Flags(int argc, char** argv);
  [[nodiscard]] std::string text(std::string_view flag) const;
  [[nodiscard]] int number(std::string_view flag, int otherwise) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// The first cluster and the first user of a kubeconfig, as `muster up` and the fixtures of the
/// tests write it.
struct Target {
  std::string url, host, port, token;
};
Result<Target> read_target(const std::string& kubeconfig);

struct Connections {
  std::size_t most = 256;
  Duration patience = std::chrono::seconds(60);
};
Result<std::unique_ptr<net::Client>> connect(net::Loop& loop,
                                             const Target& target,
                                             Connections connections);

net::Request request(const Target& target,
                     std::string method,
                     std::string path,
                     std::string body = "");

double seconds(Duration duration);

/// Prints why and gives main()'s result.
int refuse(const Error& error);

}  // namespace muster::bench
