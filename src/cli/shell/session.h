/// What a running command works with: the cluster, the console, the clock, who and where.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "command/command.h"

namespace muster::cli {

// The words of the command line's data, as every file of this room uses them.
using command::Call;
using command::Colour;
using command::Command;
using command::Completes;
using command::Console;
using command::Flag;
using command::FlagType;
using command::Values;

// Exit codes beyond 0 (done) and 1 (an error), for scripts that wait for a job.
constexpr int kExitJobFailed = 3;
constexpr int kExitNotInTime = 4;

class Session {
 public:
  Session(Env& session_env, Console& session_console)
      : env(session_env), console(session_console) {}

  Env& env;
  Console& console;
  std::string program = "muster";             // or "arena": how texts name the program
  std::string ns = "default";                 // of the jobs
  bool ns_given = false;                      // by the flag
  std::map<std::string, std::string> config;  // ~/.arena/config

  [[nodiscard]] client::Client& cluster() { return *client_; }
  [[nodiscard]] bool connected() const { return client_ != nullptr; }
  std::string unconnected_because;
  void use(std::unique_ptr<client::Client> client) { client_ = std::move(client); }
  [[nodiscard]] Time now() { return fixed_now ? fixed_now : env.now(); }
  Time fixed_now;  // tests

  /// A request for cluster().http(), which adds no credential of its own.
  [[nodiscard]] net::Request request(std::string method, std::string target) const;
  std::string bearer;  // token; empty when a certificate does
  /// The server may be Muster's, which answers several reads in one round trip; cleared once it is
  /// known not to.
  bool reads_together = false;

  /// The name the cluster knows the caller by; asked once.
  Task<std::string> user();

  /// Prints an error line and returns exit code 1.
  int failed(std::string_view what);
  /// The same, in the user's words when the cluster cannot be reached or refuses the credentials.
  int failed(const Error& error);

  /// Holds it until the session ends. The program's session never does, so what it read is not
  /// freed one by one.
  void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }

  std::string server;      // its address, for messages
  std::string kubeconfig;  // the file it came from; empty: inside a cluster

 private:
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<client::Client> client_;
  std::string user_;
};

/// One call of a command of this room.
struct Invocation {
  const Command& command;
  Values& values;
  Session& session;
  const command::Program& program;
};
using CommandFunction = Task<int> (*)(Invocation&);

/// What a command needs of a cluster.
enum class Needs : std::uint8_t { kNothing, kClusterIfThere, kCluster };

/// A command::Run: makes the session, connects it and waits for the function.
struct InSession {
  CommandFunction work = nullptr;
  Needs needs = Needs::kCluster;
  int operator()(Call& call) const;
};

/// key=value lines of $ARENA_CONFIG or ~/.arena/config.
std::map<std::string, std::string> read_arena_config();

/// Runs the tasks at the same time and returns when all are done.
Task<void> run_all(Env& env, std::vector<Task<void>> tasks);

}  // namespace muster::cli
