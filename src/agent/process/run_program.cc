#include "agent/process/run_program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "agent/fd.h"
#include "agent/process/messages.h"
#include "agent/process/monotonic.h"
#include "base/strings.h"

extern char** environ;

namespace muster::agent::process {
namespace {

struct Ends {
  Fd read, write;
};
/// Our end of it never blocks.
Result<Ends> make_pipe_to(bool we_write) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("pipe", errno));
  Ends out{Fd(ends[0]), Fd(ends[1])};
  fcntl(we_write ? ends[1] : ends[0], F_SETFL, O_NONBLOCK);
  return out;
}

Result<pid_t> start(std::vector<std::string>& words, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawnattr_t attributes;  // a group of its own, to be killed as a whole
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int problem = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (problem != 0) return fail(system_error(fmt::format("start \"{}\"", words[0]), problem));
  return pid;
}

/// What can be read now; closed at the end.
void read_some(Fd& from, std::string& to) {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(from.get(), buffer, sizeof buffer)) > 0)
    to.append(buffer, static_cast<std::size_t>(got));
  if (got == 0) from.reset();
}

void write_some(Fd& to, std::string_view& left) {
  const auto wrote = write(to.get(), left.data(), left.size());
  if (wrote > 0) left.remove_prefix(static_cast<std::size_t>(wrote));
  if (left.empty() || (wrote < 0 && errno != EAGAIN && errno != EINTR)) to.reset();
}

}  // namespace

Result<std::string> run_program(std::vector<std::string> words,
                                const std::string& input,
                                Duration patience) {
  auto in = make_pipe_to(true), out = make_pipe_to(false), err = make_pipe_to(false);
  if (!in || !out || !err) return fail(Code::kInternal, "no pipe can be made");
  const auto pid = start(words, in->read.get(), out->write.get(), err->write.get());
  if (!pid) return fail(pid.error());
  for (auto* end : {&in->read, &out->write, &err->write}) end->reset();
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)));
  std::string printed, said;
  std::string_view left = input;
  if (left.empty()) in->write.reset();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  const auto deadline = monotonic_ms() + milliseconds;
  bool ended = !process;  // a kernel without such descriptors: waited for below
  for (std::int64_t rest = milliseconds; !ended && rest > 0; rest = deadline - monotonic_ms()) {
    pollfd polls[] = {{process.get(), POLLIN, 0},
                      {in->write.get(), POLLOUT, 0},
                      {out->read.get(), POLLIN, 0},
                      {err->read.get(), POLLIN, 0}};
    poll(polls, std::size(polls), static_cast<int>(rest));
    if (polls[1].revents != 0) write_some(in->write, left);
    if (polls[2].revents != 0) read_some(out->read, printed);
    if (polls[3].revents != 0) read_some(err->read, said);
    ended = polls[0].revents != 0;
  }
  if (!ended) kill(-*pid, SIGKILL);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    return fail(Code::kTimeout,
                fmt::format("{} did not end within {} s and was killed",
                            words[0],
                            std::chrono::duration<double>(patience).count()));
  if (out->read) read_some(out->read, printed);
  if (err->read) read_some(err->read, said);
  if (status == 0) return printed;
  return fail(Code::kInternal, fmt::format("{}: {}", words[0], trim(said)));
}

}  // namespace muster::agent::process
