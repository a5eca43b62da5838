#include "client/exec_credential.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "base/strings.h"
#include "json/json.h"

extern char** environ;

namespace muster::client {
namespace {

constexpr std::size_t kOutputBytesMax = 1024 * 1024;

/// Our environment with the command's own on top.
std::vector<std::string> environment_for(const ExecCommand& command) {
  auto own = command.env;
  own.emplace_back(
      "KUBERNETES_EXEC_INFO",
      fmt::format(R"({{"apiVersion":{},"kind":"ExecCredential","spec":{{"interactive":false}}}})",
                  quoted(command.api_version)));
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : own)
      replaced = replaced ||
                 (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=');
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// Everything until the end, or nothing when the time is up.
bool read_until(int fd, std::chrono::steady_clock::time_point end, std::string& out) {
  char buffer[4096];
  while (out.size() < kOutputBytesMax) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const auto got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    out.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

Result<ExecCredential> parse_exec_credential(std::string_view text) {
  const auto parsed = json::parse(text);
  if (!parsed || json::string_at(*parsed, "kind") != "ExecCredential") {
    return fail(Code::kInvalid,
                "credential program: wanted an ExecCredential in JSON on its standard output");
  }
  const auto& status = json::at(*parsed, "status");
  ExecCredential out;
  out.token = json::text_at(status, "token");
  out.certificate_pem = json::text_at(status, "clientCertificateData");
  out.key_pem = json::text_at(status, "clientKeyData");
  if (out.token.empty() && (out.certificate_pem.empty() || out.key_pem.empty())) {
    return fail(
        Code::kInvalid,
        "credential program: its answer holds neither a token nor a certificate with its key");
  }
  const auto expires = json::string_at(status, "expirationTimestamp");
  if (!expires.empty()) {
    const auto time = parse_time(expires);
    if (!time)
      return fail(Code::kInvalid,
                  fmt::format("credential program: expirationTimestamp: {}", time.error().message));
    out.expires = *time;
  }
  return out;
}

Result<ExecCredential> run_exec_command(const ExecCommand& command, Duration timeout) {
  const auto& program = command.argv.front();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(Code::kInternal, fmt::format("credential program: pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  auto arguments = command.argv;
  auto environment = environment_for(command);
  auto argv = pointers(arguments);
  auto envp = pointers(environment);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return fail(Code::kUnauthorized,
                fmt::format("credential program \"{}\" of the kubeconfig cannot be run: {}",
                            program,
                            std::strerror(error)));
  }
  std::string output;
  const bool ended = read_until(ends[0], std::chrono::steady_clock::now() + timeout, output);
  ::close(ends[0]);
  if (!ended) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    return fail(
        Code::kTimeout,
        fmt::format("credential program \"{}\" of the kubeconfig did not end in time", program));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Code::kUnauthorized,
                fmt::format("credential program \"{}\" of the kubeconfig failed with {}",
                            program,
                            WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                              : "a signal"));
  }
  return parse_exec_credential(output);
}

}  // namespace muster::client
