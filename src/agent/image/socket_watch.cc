#include "agent/image/socket_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include "agent/fd.h"

namespace muster::agent::image {
namespace {

constexpr Duration kAtMost = std::chrono::seconds(1);

}  // namespace

SocketWatch::SocketWatch(net::Loop& loop, const std::string& socket) : loop_(loop) {
  Fd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // A socket appears before anybody listens at it; its owner and mode are set after that.
  const auto folder = socket.substr(0, socket.rfind('/'));
  if (!watch || inotify_add_watch(watch.get(), folder.c_str(), IN_CREATE | IN_ATTRIB) < 0) return;
  changes_ = net::make_descriptor(loop_, watch.release());
}

SocketWatch::~SocketWatch() {
  if (changes_) changes_->close();
}

Task<void> SocketWatch::wait() {
  if (!changes_) {
    co_await loop_.sleep(kAtMost);
    co_return;
  }
  const auto changes = changes_;
  const auto patience = loop_.after(kAtMost, [changes] { changes->close(); });
  (void)co_await changes->readable();
}

}  // namespace muster::agent::image
