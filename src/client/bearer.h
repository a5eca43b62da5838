/// The token that says who we are: as given, read from a file that rotates, or asked of a command
/// (exec credential plugin) when it expires. On the loop.
#pragma once

#include <string>
#include <string_view>

#include "base/env.h"
#include "client/exec_credential.h"

namespace muster::client {

struct BearerOptions {
  std::string token;
  /// Read again every minute.
  std::string file;
  /// Run again when the token expires or is refused.
  ExecCommand command;
  /// When `token` ends; zero: unknown.
  Time expires;
};

class Bearer {
 public:
  Bearer(Env& env, BearerOptions options) : env_(env), options_(std::move(options)) {}

  /// The token of now; empty: none.
  std::string_view token();
  [[nodiscard]] bool can_renew() const {
    return !options_.command.argv.empty() || !options_.file.empty();
  }
  [[nodiscard]] bool expires_soon() const;
  /// Asks for a new one where the old one has expired, or nearly, or was just refused.
  Task<void> renew(bool refused);

 private:
  Env& env_;
  BearerOptions options_;
  Duration read_at_ = Duration::zero();
  bool renewing_ = false;
};

}  // namespace muster::client
