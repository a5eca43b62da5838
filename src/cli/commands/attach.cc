/// attach: a command inside an instance, over the exec WebSocket.
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>

#include "base/strings.h"
#include "cli/commands/exec.h"
#include "cli/commands/instance.h"
#include "cli/shell/commands.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

// Channels of the remote command protocol.
constexpr char kStdin = 0, kStdout = 1, kStderr = 2, kError = 3, kResize = 4,
               kClose = static_cast<char>(0xFF);

/// Raw mode while it lives, when stdin is a terminal.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted) {
    if (!wanted || ::tcgetattr(STDIN_FILENO, &saved_) != 0) return;
    termios raw = saved_;
    ::cfmakeraw(&raw);
    raw_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  ~RawTerminal() {
    if (raw_) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios saved_{};
  bool raw_ = false;
};

/// Shared with the thread that reads stdin and with the sizes that follow the terminal: each may
/// outlive the command.
struct Exec {
  Session& session;
  std::unique_ptr<net::WebSocket> socket;
  bool closed = false;
};

std::string terminal_size() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return "";
  return fmt::format("{{\"Width\":{},\"Height\":{}}}", size.ws_col, size.ws_row);
}

using ExecPtr = std::shared_ptr<Exec>;

Task<void> send(ExecPtr exec, std::string bytes) {
  if (exec->closed) co_return;
  net::WebSocket::Message message;
  message.data = std::move(bytes);
  const auto written = co_await exec->socket->write(std::move(message));
  if (!written) exec->closed = true;
}

/// Reads stdin on a thread of its own, since a terminal cannot be polled away; the thread ends with
/// the process.
void pump_stdin(Env& env, const ExecPtr& exec) {
  std::thread([&env, exec] {
    char buffer[4096];
    for (;;) {
      const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (count <= 0) break;
      std::string bytes(1, kStdin);
      bytes.append(buffer, static_cast<std::size_t>(count));
      env.post([&env, exec, bytes = std::move(bytes)] { env.spawn(send(exec, bytes)); });
    }
    env.post([&env, exec] { env.spawn(send(exec, std::string{kClose, kStdin})); });
  }).detach();
}

Task<void> follow_size(ExecPtr exec) {
  std::string last;
  while (!exec->closed) {
    if (std::string size = terminal_size(); !size.empty() && size != last) {
      last = size;
      co_await send(exec, std::string(1, kResize) + size);
    }
    co_await exec->session.env.sleep(std::chrono::milliseconds(500));
  }
}

/// The exit code of a Status on the error channel.
int exit_code_of(Session& session, const json::Value& status) {
  if (json::string_at(status, "status") == "Success") return 0;
  for (const json::Value& cause : json::array_at(status, "details", "causes")) {
    if (json::string_at(cause, "reason") == "ExitCode") {
      return static_cast<int>(parse_int(json::string_at(cause, "message")).value_or(1));
    }
  }
  return session.failed(json::as_string(json::at(status, "message"), "the command failed"));
}

Task<int> read_answers(Exec& exec) {
  int code = 0;
  for (;;) {
    const auto message = co_await exec.socket->read();
    if (!message || !message->has_value()) break;
    const std::string& data = (*message)->data;
    if (data.empty()) continue;
    const std::string_view rest = std::string_view(data).substr(1);
    if (data[0] == kStdout) exec.session.console.out(rest);
    if (data[0] == kStdout) exec.session.console.flush();
    if (data[0] == kStderr) exec.session.console.err(rest);
    if (data[0] != kError) continue;
    const auto status = json::parse(rest);
    if (status) code = exit_code_of(exec.session, *status);
  }
  exec.closed = true;
  co_return code;
}

std::string exec_target(const ExecOptions& options) {
  std::string target =
      fmt::format("/api/v1/namespaces/{}/pods/{}/exec?stdout=true&stderr={}&stdin={}&tty={}",
                  options.ns,
                  options.pod,
                  !options.terminal,
                  options.with_stdin,
                  options.terminal);
  if (!options.container.empty()) target += "&container=" + percent_encode(options.container);
  for (const std::string& word : options.command) target += "&command=" + percent_encode(word);
  return target;
}

}  // namespace

Task<int> exec_in_pod(Session& session, ExecOptions options) {
  auto socket = co_await session.cluster().http().websocket(
      session.request("GET", exec_target(options)), "v5.channel.k8s.io");
  if (!socket) co_return session.failed(socket.error());
  const auto exec = std::make_shared<Exec>(session, std::move(*socket));
  const RawTerminal raw(options.terminal);
  if (options.with_stdin) pump_stdin(session.env, exec);
  if (options.terminal) session.env.spawn(follow_size(exec));
  const int code = co_await read_answers(*exec);
  co_return code;
}

Task<int> run_attach(Invocation& call) {
  Session& session = call.session;
  const auto chosen = co_await choose_instance(call);
  if (!chosen) co_return 1;
  const Instance& instance = *chosen->instance;
  if (instance.phase == "SUCCEEDED" || instance.phase == "FAILED") {
    co_return session.failed(fmt::format(
        "cannot exec into a completed instance; {} is {}", instance.name, instance.phase));
  }
  if (instance.phase == "PENDING") {
    co_return session.failed(
        fmt::format("instance {} is not running, it is {}; see '{} explain {}'",
                    instance.name,
                    instance.status,
                    session.program,
                    chosen->job->name));
  }
  ExecOptions options;
  options.ns = chosen->job->ns;
  options.pod = instance.name;
  options.container = container_or_first(*chosen);
  options.command.assign(call.values.args.begin() + 1, call.values.args.end());
  if (options.command.empty()) options.command.emplace_back("sh");
  options.with_stdin = true;
  options.terminal = ::isatty(STDIN_FILENO) != 0;
  session.console.err(fmt::format("Hello! You are attached to container {} of instance {}\n",
                                  options.container,
                                  instance.name));
  const int code = co_await exec_in_pod(session, std::move(options));
  co_return code;
}

}  // namespace muster::cli
