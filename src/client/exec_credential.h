/// Credentials that a program named in a kubeconfig prints (client.authentication.k8s.io
/// ExecCredential), as the managed clusters of cloud providers use them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::client {

struct ExecCommand {
  std::vector<std::string> argv;  // empty: none
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version = "client.authentication.k8s.io/v1";
};

struct ExecCredential {
  std::string token;
  std::string certificate_pem, key_pem;
  Time expires;  // zero: unknown
};

/// Runs the program and reads what it prints. Blocks for at most `timeout`; not for the loop's
/// thread once it runs.
Result<ExecCredential> run_exec_command(const ExecCommand& command, Duration timeout);
/// From what such a program printed.
Result<ExecCredential> parse_exec_credential(std::string_view text);

}  // namespace muster::client
