#include "agent/process/messages.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace muster::agent::process {
namespace {

constexpr std::size_t kRecordMax = 96 * 1024;  // well below the default socket buffer of 208 KiB
constexpr std::size_t kFdsMax = 8;

Result<void> make_address(const std::string& directory,
                          const std::string& name,
                          Fd& holder,
                          sockaddr_un& address) {
  holder.reset(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!holder) return fail(system_error(fmt::format("open \"{}\"", directory), errno));
  address = {};
  address.sun_family = AF_UNIX;
  const auto path = fmt::format("/proc/self/fd/{}/{}", holder.get(), name);
  if (path.size() >= sizeof address.sun_path)
    return fail(Code::kInternal, fmt::format("socket name \"{}\" is too long", name));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return {};
}

}  // namespace

Result<void> send_message(int socket,
                          const json::Value& body,
                          const std::vector<int>& fds,
                          const std::string& spill_dir) {
  auto text = json::dump(body);
  if (text.size() > kRecordMax) {
    static int counter = 0;
    const auto path = fmt::format("{}/message-{}-{}", spill_dir, getpid(), ++counter);
    std::ofstream(path) << text;
    text = json::dump(json::Object{{"spilled", path}});
  }
  iovec io{text.data(), text.size()};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)] = {};
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    auto* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(part), fds.data(), sizeof(int) * fds.size());
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    return fail(system_error("send to shim", errno));
  }
  return {};
}

Received receive_message(int socket, Message& message) {
  ssize_t got;
  do {  // a record's size first: a buffer for the largest would cost more than most messages
    got = recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Received::kNothingYet : Received::kClosed;
  if (got == 0) return Received::kClosed;
  std::string buffer(static_cast<std::size_t>(got), '\0');
  iovec io{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Received::kNothingYet : Received::kClosed;
  if (got == 0) return Received::kClosed;
  message.fds.clear();
  for (auto* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      message.fds.emplace_back(fd);
    }
  }
  buffer.resize(static_cast<std::size_t>(got));
  auto body = json::parse(buffer);
  if (!body)
    return Received::kClosed;  // only our own code writes here; a broken record means a broken peer
  if (const auto spilled = json::text_at(*body, "spilled"); !spilled.empty()) {
    std::ifstream file(spilled);
    std::stringstream text;
    text << file.rdbuf();
    unlink(spilled.c_str());
    body = json::parse(text.str());
    if (!body) return Received::kClosed;
  }
  message.body = std::move(*body);
  return Received::kMessage;
}

Result<Fd> listen_at(const std::string& directory, const std::string& name) {
  Fd holder;
  sockaddr_un address;
  const auto made = make_address(directory, name, holder, address);
  if (!made) return fail(made.error());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  unlink(address.sun_path);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), 128) != 0) {
    return fail(system_error(fmt::format("listen at \"{}/{}\"", directory, name), errno));
  }
  return socket;
}

Result<Fd> connect_at(const std::string& directory, const std::string& name) {
  Fd holder;
  sockaddr_un address;
  const auto made = make_address(directory, name, holder, address);
  if (!made) return fail(made.error());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail(system_error(fmt::format("connect to \"{}/{}\"", directory, name), errno));
  }
  return socket;
}

Result<std::pair<Fd, Fd>> socket_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return fail(system_error("socketpair", errno));
  return std::pair(Fd(fds[0]), Fd(fds[1]));
}

}  // namespace muster::agent::process
