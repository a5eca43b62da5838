#include "agent/image/listening.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "agent/fd.h"

namespace muster::agent::image {
namespace {

bool listens(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return client &&
         connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

bool await_listening(const std::string& socket, Duration patience) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience;
  const Fd changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // A socket appears before anybody listens at it; its owner and mode are set after that.
  const auto folder = socket.substr(0, socket.rfind('/'));
  if (!changes || inotify_add_watch(changes.get(), folder.c_str(), IN_CREATE | IN_ATTRIB) < 0)
    return listens(socket);
  while (!listens(socket)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd item{changes.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&item, 1, static_cast<int>(left.count())) <= 0)
      return listens(socket);
    char seen[4096];
    while (read(changes.get(), seen, sizeof seen) > 0) {
    }
  }
  return true;
}

}  // namespace muster::agent::image
