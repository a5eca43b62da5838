#include "agent/process/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net/loop/descriptor.h"

namespace muster::agent::process {

void ExecState::end(int exit_code) {
  code = exit_code;
  changed->notify();
}

void ExecState::lose() {
  lost = true;
  changed->notify();
}

ProcessSession::~ProcessSession() {
  if (terminal >= 0) ::close(terminal);
}

void ProcessSession::take_exec_streams(net::Loop& loop,
                                       std::vector<Fd>& fds,
                                       const ExecConfig& config) {
  std::size_t next = 0;
  const auto take = [&]() -> std::unique_ptr<net::ByteStream> {
    return next < fds.size() ? net::make_fd_stream(loop, fds[next++].release()) : nullptr;
  };
  if (config.tty) {
    if (fds.empty()) return;
    terminal = fcntl(fds.front().get(), F_DUPFD_CLOEXEC, 3);
    const int writer = fcntl(fds.front().get(), F_DUPFD_CLOEXEC, 3);
    out = take();
    in = net::make_fd_stream(loop, writer);
    return;
  }
  if (config.stdin_open) in = take();
  if (config.stdout_open) out = take();
  if (config.stderr_open) err = take();
}

void ProcessSession::take_attach_streams(net::Loop& loop,
                                         std::vector<Fd>& fds,
                                         const ExecConfig& config,
                                         bool tty) {
  std::size_t next = 0;
  const auto take = [&](bool wanted) -> std::unique_ptr<net::ByteStream> {
    return wanted && next < fds.size() ? net::make_fd_stream(loop, fds[next++].release()) : nullptr;
  };
  if (config.stdin_open && tty && !fds.empty())
    terminal = fcntl(fds.front().get(), F_DUPFD_CLOEXEC, 3);
  in = take(config.stdin_open);
  out = take(config.stdout_open);
  err = take(config.stderr_open && !tty);
}

void ProcessSession::close_stdin() {
  if (in && terminal < 0) in->close();
  if (terminal >= 0 && ::write(terminal, "\x04", 1) < 0) return;  // a terminal's end of input
  if (on_close_stdin) on_close_stdin();
}

void ProcessSession::resize(int columns, int rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  if (terminal >= 0) ioctl(terminal, TIOCSWINSZ, &size);
}

Task<Result<int>> ProcessSession::wait() {
  const auto held = state;
  while (!held->code && !held->lost) co_await held->changed->wait(Duration::zero());
  if (!held->code) co_return fail(Code::kUnavailable, "the pod's supervisor is gone");
  co_return *held->code;
}

void ProcessSession::abandon() {
  if (state->pid > 0 && !state->code) ::kill(state->pid, SIGKILL);
}

}  // namespace muster::agent::process
