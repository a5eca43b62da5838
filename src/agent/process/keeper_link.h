/// The keeper as the agent sees it: a process that is found or started, and forks supervisors. On
/// the loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/process/messages.h"

namespace muster::agent::process {

/// Whoever connects to a keeper says what this file holds, where there is one.
std::string keeper_key(const std::string& directory);

class KeeperLink {
 public:
  /// `binary` is started as `<binary> agent-shim <directory>` where no keeper listens there.
  KeeperLink(std::string binary, std::string directory)
      : binary_(std::move(binary)), directory_(std::move(directory)) {}

  /// A keeper that is started shall be root of a user namespace, in a network of its own.
  void want_own_network(const std::string& bridge, std::uint32_t base, int prefix) {
    own_network_ = {bridge, std::to_string(base), std::to_string(prefix)};
  }
  Result<void> connect();
  /// A socket of the network that the keeper is in; -1 with errno set. Waits for its answer.
  int make_socket(int type);
  /// Has a supervisor forked, for a pod ("sandbox") or ahead of one ("warm"); it speaks on the
  /// socket returned.
  Result<Fd> fork_supervisor(const char* op, const json::Value& config);
  void end();
  void disconnect() { socket_.reset(); }

 private:
  Result<void> start();

  std::string binary_, directory_;
  std::vector<std::string> own_network_;
  Fd socket_;
};

}  // namespace muster::agent::process
