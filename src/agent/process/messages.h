/// Messages between the agent and its shims: one JSON object per SOCK_SEQPACKET record, file
/// descriptors beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/fd.h"
#include "json/json.h"

namespace muster::agent::process {

using agent::Fd;
using agent::system_error;

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

}  // namespace muster::agent::process
