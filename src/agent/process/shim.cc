#include "agent/process/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "agent/files.h"
#include "agent/process/capabilities.h"
#include "agent/process/keeper_link.h"
#include "agent/process/messages.h"
#include "agent/process/own_users.h"
#include "agent/process/seccomp.h"
#include "agent/process/supervisor.h"
#include "agent/process/wire.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using process::Fd;
using process::Message;
using process::Received;

constexpr int kLookMs = 10'000;

/// A socket of the network that the keeper is in, for an agent that is not.
void give_socket(const Message& message) {
  const auto type = static_cast<int>(json::int_at(message.body, "type"));
  const Fd made(socket(AF_INET, type | SOCK_CLOEXEC, 0));
  if (made)
    (void)process::send_message(message.fds.front().get(), json::Object{}, {made.get()}, "");
}

/// Namespaces that need no root, if the agent wants them: it names the bridge of the pods' network.
Result<void> settle(int argc, char** argv) {
  if (argc != 6) return {};
  process::OwnNetwork network;
  network.bridge = argv[3];
  network.subnet.base = static_cast<std::uint32_t>(parse_int(argv[4]).value_or(0));
  network.subnet.prefix = static_cast<int>(parse_int(argv[5]).value_or(16));
  process::WayOut out;
  auto done = process::become_own_root();
  if (done) done = process::make_own_network(network);
  if (done) out.open(network);
  return done;
}

/// Whether the keeper is ready, as its parent, which the agent waits for, hears it.
bool became_ready(Fd from) {
  char ready = 0;
  return read(from.get(), &ready, 1) == 1;
}

/// The keeper does one thing: it forks supervisors. It is small and has one thread, so that a fork
/// is cheap and a supervisor needs no exec; the agent, large and threaded, is neither.
int keep(Fd listener, const std::string& directory) {
  // Most containers have this one: their first processes find it made.
  (void)process::known_filter(process::capability_set({}, {}));
  const std::string socket = directory + "/keeper.sock";
  const auto key = read_file(process::keeper_key(directory));
  std::vector<Fd> connections;
  std::set<int> strangers;  // that have not said the key yet
  for (;;) {
    std::vector<pollfd> polls{{listener.get(), POLLIN, 0}};
    for (const auto& connection : connections) polls.push_back({connection.get(), POLLIN, 0});
    const int ready = poll(polls.data(), polls.size(), connections.empty() ? kLookMs : -1);
    // Nobody is connected, and with the folder gone nobody can ever be.
    if (ready == 0 && access(socket.c_str(), F_OK) != 0) return 0;
    if (polls[0].revents != 0) {
      Fd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (connection && !key.empty()) strangers.insert(connection.get());
      if (connection) connections.push_back(std::move(connection));
    }
    for (std::size_t i = polls.size() - 1; i >= 1; --i) {
      if (polls[i].revents == 0) continue;
      Message message;
      const int from = connections[i - 1].get();
      auto received = process::receive_message(from, message);
      if (received == Received::kMessage && strangers.contains(from)) {
        if (json::text_at(message.body, "key") != key) received = Received::kClosed;
        strangers.erase(from);
      }
      if (received == Received::kClosed) {
        strangers.erase(from);
        connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        continue;
      }
      if (received == Received::kNothingYet) continue;
      const auto op = json::text_at(message.body, "op");
      if (op == "exit") return 0;
      if (op == "socket" && message.fds.size() == 1) {
        give_socket(message);
        continue;
      }
      const bool later = op == "warm";
      if ((op != "sandbox" && !later) || message.fds.size() != 1) continue;
      if (fork() == 0) {
        connections.clear();
        listener.reset();
        signal(SIGCHLD, SIG_DFL);
        setsid();
        auto config = process::shim_config_from_json(json::at(message.body, "config"));
        auto control = std::move(message.fds.front());
        _exit(later ? process::supervise_later(std::move(config), std::move(control))
                    : process::supervise(std::move(config), std::move(control)));
      }
    }
  }
}

}  // namespace

int shim_main(int argc, char** argv) {
  if (argc != 3 && argc != 6) {
    std::fputs(
        "usage: muster agent-shim DIRECTORY [BRIDGE SUBNET PREFIX] (started by the agent, not by "
        "people)\n",
        stderr);
    return 2;
  }
  auto listening = process::listen_at(argv[2], "keeper.sock");
  if (!listening) {
    std::fprintf(stderr, "agent-shim: %s\n", listening.error().message.c_str());
    return 1;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  Fd says(ends[1]);
  if (fork() != 0) {
    says.reset();
    return became_ready(Fd(ends[0])) ? 0 : 1;
  }
  close(ends[0]);
  setsid();
  // The agent's threads block signals that its loop waits for; the mask came along through exec.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_NAME, "muster-keeper");
  umask(022);
  if (chdir("/") != 0) return 1;
  const auto settled = settle(argc, argv);
  if (!settled) {
    std::fprintf(stderr, "agent-shim: %s\n", settled.error().message.c_str());
    return 1;
  }
  if (write(says.get(), "1", 1) != 1) return 1;
  says.reset();
  const int listener = fcntl(listening->get(), F_DUPFD_CLOEXEC, 100);
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) dup2(null, fd);
  close_range(3, 99, 0);
  close_range(101, ~0U, 0);
  listening->release();
  return keep(Fd(listener), argv[2]);
}

}  // namespace muster::agent
