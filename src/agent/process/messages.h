/// Messages between the agent and its shims: one JSON object per SOCK_SEQPACKET record, file
/// descriptors beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::agent::process {

/// Owns one file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Message {
  json::Value body;
  std::vector<Fd> fds;
};

/// A body too large for a record travels through a file below `spill_dir`.
Result<void> send_message(int socket,
                          const json::Value& body,
                          const std::vector<int>& fds,
                          const std::string& spill_dir);

enum class Received { kMessage, kNothingYet, kClosed };
/// Never blocks on a non-blocking socket.
Received receive_message(int socket, Message& message);

/// A unix SOCK_SEQPACKET address may be longer than sockaddr_un allows: the directory is opened and
/// named by number.
Result<Fd> listen_at(const std::string& directory, const std::string& name);
Result<Fd> connect_at(const std::string& directory, const std::string& name);
Result<std::pair<Fd, Fd>> socket_pair();

Error system_error(const std::string& what, int error_number);

}  // namespace muster::agent::process
