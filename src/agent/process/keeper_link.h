/// The keeper as the agent sees it: a process that is found or started, and forks supervisors. On
/// the loop.
#pragma once

#include <string>

#include "agent/process/messages.h"

namespace muster::agent::process {

class KeeperLink {
 public:
  /// `binary` is started as `<binary> agent-shim <directory>` where no keeper listens there.
  KeeperLink(std::string binary, std::string directory)
      : binary_(std::move(binary)), directory_(std::move(directory)) {}

  Result<void> connect();
  /// Has a supervisor forked, for a pod ("sandbox") or ahead of one ("warm"); it speaks on the
  /// socket returned.
  Result<Fd> fork_supervisor(const char* op, const json::Value& config);
  void end();
  void disconnect() { socket_.reset(); }

 private:
  Result<void> start();

  std::string binary_, directory_;
  Fd socket_;
};

}  // namespace muster::agent::process
