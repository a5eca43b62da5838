#include "agent/process/keeper_link.h"

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <vector>

#include "agent/files.h"

extern char** environ;

namespace muster::agent::process {

std::string keeper_key(const std::string& directory) { return directory + "/key"; }

Result<void> KeeperLink::connect() {
  auto connected = connect_at(directory_, "keeper.sock");
  if (!connected) {
    const auto started = start();
    if (!started) return started;
    connected = connect_at(directory_, "keeper.sock");
    if (!connected) return fail(connected.error());
  }
  socket_ = std::move(*connected);
  const auto key = read_file(keeper_key(directory_));
  if (key.empty()) return {};
  return send_message(socket_.get(), json::Object{{"op", "key"}, {"key", key}}, {}, directory_);
}

Result<void> KeeperLink::start() {
  std::vector<std::string> words{binary_, "agent-shim", directory_};
  words.insert(words.end(), own_network_.begin(), own_network_.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Symbols resolved once in the keeper are not resolved again in each supervisor forked from it.
  std::string bind_now = "LD_BIND_NOW=1";
  std::vector<char*> env{bind_now.data()};
  for (auto** item = environ; *item != nullptr; ++item) env.push_back(*item);
  env.push_back(nullptr);
  pid_t pid = -1;
  const int problem = posix_spawn(&pid, binary_.c_str(), nullptr, nullptr, argv.data(), env.data());
  if (problem != 0)
    return fail(system_error(fmt::format("start \"{} agent-shim\"", binary_), problem));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    return fail(
        Code::kInternal,
        fmt::format("\"{} agent-shim {}\" failed with status {}", binary_, directory_, status));
  return {};
}

Result<Fd> KeeperLink::fork_supervisor(const char* op, const json::Value& config) {
  auto pair = socket_pair();
  if (!pair) return fail(pair.error());
  const json::Value message = json::Object{{"op", op}, {"config", config}};
  auto sent = send_message(socket_.get(), message, {pair->second.get()}, directory_);
  if (!sent) {
    const auto again = connect();
    if (!again) return fail(again.error());
    sent = send_message(socket_.get(), message, {pair->second.get()}, directory_);
    if (!sent) return fail(sent.error());
  }
  return std::move(pair->first);
}

int KeeperLink::make_socket(int type) {
  auto pair = socket_pair();
  if (!pair) return -1;
  const json::Value wish = json::Object{{"op", "socket"}, {"type", type}};
  Message answer;
  const bool sent = send_message(socket_.get(), wish, {pair->second.get()}, directory_).has_value();
  pair->second.reset();
  if (!sent || receive_message(pair->first.get(), answer) != Received::kMessage ||
      answer.fds.size() != 1) {
    errno = ENETUNREACH;
    return -1;
  }
  return answer.fds.front().release();
}

void KeeperLink::end() {
  (void)send_message(socket_.get(), json::Object{{"op", "exit"}}, {}, directory_);
}

}  // namespace muster::agent::process
