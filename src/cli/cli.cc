#include "cli/cli.h"

#include <fmt/core.h>

#include <cstdio>
#include <fstream>

#include "cli/commands/exec.h"
#include "cli/shell/commands.h"
#include "client/kubeconfig.h"

namespace muster::cli {
namespace {

/// On this machine a round trip costs less than the handshake of a second connection; elsewhere
/// requests go side by side.
bool is_loopback(std::string_view url) {
  return url.starts_with("https://127.") || url.starts_with("https://localhost:") ||
         url.starts_with("https://[::1]");
}

Result<std::unique_ptr<client::Client>> make_session_client(Session& session,
                                                            net::Loop& loop,
                                                            const Values& values) {
  client::KubeconfigOptions options;
  options.path = values.text(values.given("kubeconfig") ? "kubeconfig" : "config");
  options.context = values.text("context");
  session.kubeconfig = options.path;
  auto connection = client::resolve_connection(options);
  if (!connection && connection.error().code == Code::kNotFound && options.path.empty()) {
    return fail(
        Code::kNotFound,
        "there is no cluster to talk to: start one with 'muster up', or name one with --config FILE or $KUBECONFIG");
  }
  if (!connection) return fail(connection.error());
  session.kubeconfig = connection->files;
  session.server = connection->http.url;
  session.bearer = connection->client.token;
  if (session.bearer.empty() && !connection->client.token_file.empty()) {
    std::ifstream file(connection->client.token_file);
    std::getline(file, session.bearer);
  }
  connection->client.user_agent = session.program;
  if (is_loopback(connection->http.url)) {
    connection->http.connections_max = 1;
    session.reads_together = true;
  }
  auto http = net::make_client(loop, std::move(connection->http));
  if (!http) return fail(http.error());
  return client::make_client(loop, std::move(*http), std::move(connection->client));
}

Result<void> connect_session(Session& session, net::Loop& loop, Needs needs, const Values& values) {
  if (needs == Needs::kNothing) return {};
  auto client = make_session_client(session, loop, values);
  if (!client) {
    session.unconnected_because = client.error().message;
    if (values.yes("dry-run") || needs == Needs::kClusterIfThere) return {};
    return fail(client.error());
  }
  if (!session.ns_given && session.config.find("namespace") == session.config.end())
    session.ns = (*client)->default_namespace();
  session.use(std::move(*client));
  return {};
}

/// Watches and a thread that reads the terminal may still hang in the loop when a command is done.
/// The end of the process ends them, so the loop is never destroyed; a static reference keeps it
/// reachable, and a leak checker content.
net::Loop& the_loop() {
  static auto& loop = *new net::Loop();
  return loop;
}
/// As the loop: what it has read is not freed piece by piece.
Session& the_session(Console& console) {
  static auto& session = *new Session(the_loop(), console);
  return session;
}

/// The exit code.
int wait_for(Task<int> work) {
  int code = 0;
  const auto task = [](Task<int> inner, int& exit_code) -> Task<void> {
    exit_code = co_await std::move(inner);
  };
  the_loop().run_until_done(task(std::move(work), code));
  std::fflush(stdout);
  return code;
}

}  // namespace

int InSession::operator()(Call& call) const {
  Session& session = the_session(call.console);
  session.program = call.program.name;
  session.config = read_arena_config();
  session.ns_given = call.values.given("namespace");
  if (session.ns_given) session.ns = call.values.text("namespace");
  if (const auto ns = session.config.find("namespace");
      !session.ns_given && ns != session.config.end())
    session.ns = ns->second;
  if (const auto connected = connect_session(session, the_loop(), needs, call.values); !connected)
    return session.failed(connected.error());
  Invocation invocation{call.command, call.values, session, call.program};
  return wait_for(work(invocation));
}

int run_as_kubectl(const std::vector<std::string>& words) {
  Console console = Console::standard();
  const std::vector<Flag> flags{
      {.name = "container", .shorthand = 'c'},
      {.name = "stdin", .shorthand = 'i', .type = FlagType::kBool, .value = "false"},
      {.name = "tty", .shorthand = 't', .type = FlagType::kBool, .value = "false"}};
  const std::vector<std::string> rest(words.empty() ? words.end() : words.begin() + 1, words.end());
  const auto values = command::parse_flags(flags, global_flags(), rest);
  if (words.empty() || words[0] != "exec" || !values || values->args.size() < 2) {
    console.err(fmt::format(
        "error: {}; as kubectl this program knows only: kubectl exec POD [-c CONTAINER] [-it] -- COMMAND\n",
        values ? "no such command" : values.error().message));
    return 1;
  }
  Session& session = the_session(console);
  session.program = "kubectl";
  session.ns_given = values->given("namespace");
  if (session.ns_given) session.ns = values->text("namespace");
  if (const auto connected = connect_session(session, the_loop(), Needs::kCluster, *values);
      !connected)
    return session.failed(connected.error());
  ExecOptions options;
  options.ns = session.ns;
  options.pod = values->args[0];
  options.container = values->text("container");
  options.command.assign(values->args.begin() + 1, values->args.end());
  options.with_stdin = values->yes("stdin");
  options.terminal = values->yes("tty");
  return wait_for(exec_in_pod(session, std::move(options)));
}

}  // namespace muster::cli
