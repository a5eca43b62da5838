/// A command that runs in a container, or a container that somebody is attached to.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "agent/process/messages.h"
#include "agent/runtime.h"
#include "net/loop/loop.h"

namespace muster::agent::process {

/// How it ends; told by the supervisor.
struct ExecState {
  std::unique_ptr<Signal> changed;
  std::optional<int> code;
  bool lost = false;
  int pid = 0;

  void end(int exit_code);
  void lose();
};

class ProcessSession final : public Session {
 public:
  explicit ProcessSession(std::shared_ptr<ExecState> ends) : state(std::move(ends)) {}
  ~ProcessSession() override;

  /// The streams of an exec come in the order stdin, stdout, stderr, those that were asked for; a
  /// terminal alone.
  void take_exec_streams(net::Loop& loop, std::vector<Fd>& fds, const ExecConfig& config);
  /// Those of an attach likewise, but a terminal is for reading once and for writing once.
  void take_attach_streams(net::Loop& loop,
                           std::vector<Fd>& fds,
                           const ExecConfig& config,
                           bool tty);

  net::ByteStream* stdin_stream() override { return in.get(); }
  net::ByteStream* stdout_stream() override { return out.get(); }
  net::ByteStream* stderr_stream() override { return err.get(); }
  void close_stdin() override;
  void resize(int columns, int rows) override;
  Task<Result<int>> wait() override;
  void abandon() override;

  std::unique_ptr<net::ByteStream> in, out, err;
  int terminal = -1;  // a duplicate of the master, for resize
  std::function<void()> on_close_stdin;
  std::shared_ptr<ExecState> state;
};

}  // namespace muster::agent::process
