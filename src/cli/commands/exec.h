/// A command inside a container, with this process' streams.
#pragma once

#include <string>
#include <vector>

#include "cli/shell/session.h"

namespace muster::cli {

struct ExecOptions {
  std::string ns, pod;
  std::string container;  // empty: the first
  std::vector<std::string> command;
  bool with_stdin = false, terminal = false;
};
/// Returns the command's exit code.
Task<int> exec_in_pod(Session& session, ExecOptions options);

}  // namespace muster::cli
