/// Tells when a socket appears on disk: a server that is being started is asked again then, and not
/// again and again.
#pragma once

#include <memory>
#include <string>

#include "base/task.h"
#include "net/loop/descriptor.h"

namespace muster::agent::image {

class SocketWatch {
 public:
  SocketWatch(net::Loop& loop, const std::string& socket);
  ~SocketWatch();
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;

  /// Until something appeared beside it since this was made, or a second has passed: a server that
  /// listens may still refuse, and nothing tells when it no longer does.
  Task<void> wait();

 private:
  net::Loop& loop_;
  std::shared_ptr<net::Descriptor> changes_;  // null: the folder cannot be watched
};

}  // namespace muster::agent::image
