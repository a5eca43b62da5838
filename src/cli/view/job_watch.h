/// Wakes a command when a job or one of its pods changes.
#pragma once

#include "cli/view/fetch.h"

namespace muster::cli {

class JobWatch {
 public:
  explicit JobWatch(Session& session) : session_(session), changed_(session.env.make_signal()) {}

  /// Watches the job's object and its pods until the process ends. `labelled`: its pods carry
  /// release=NAME.
  void start(const std::string& name, const client::Resource& resource, bool labelled);
  /// Returns when something has changed since the last call, or after `longest`.
  Task<void> wait(Duration longest);

 private:
  Session& session_;
  std::shared_ptr<Signal> changed_;  // shared with the watches, which outlive the command
};

}  // namespace muster::cli
