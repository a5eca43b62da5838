#include "cli/cli.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/strings.h"
#include "cli/commands/exec.h"
#include "cli/shell/commands.h"
#include "cli/shell/dispatch.h"
#include "client/kubeconfig.h"

namespace muster::cli {
namespace {

/// True when the word is a flag that takes the next word as its value.
bool takes_next(const Command* command, const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  const auto in = [&](const std::vector<Flag>& flags) -> const Flag* {
    for (const Flag& flag : flags) {
      const bool old = word.starts_with("--") &&
                       std::find(flag.deprecated.begin(), flag.deprecated.end(), word.substr(2)) !=
                           flag.deprecated.end();
      if (old || word == "--" + flag.name ||
          (flag.shorthand != 0 && word == std::string{'-', flag.shorthand}))
        return &flag;
    }
    return nullptr;
  };
  const Flag* flag = command == nullptr ? nullptr : in(command->flags);
  if (flag == nullptr) flag = in(global_flags());
  return flag != nullptr && flag->type != FlagType::kBool && flag->bare.empty();
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  std::vector<std::string> near;
  for (const std::string& name : names) {
    if (name.starts_with(word) && word.size() >= 2) near.push_back(name);
  }
  if (near.empty()) {
    if (const auto closest = nearest(word, names)) near.push_back(*closest);
  }
  if (near.empty()) return "";
  return "\nDid you mean this?\n\t" + join(near, "\n\t") + "\n";
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.hidden) continue;
    names.push_back(command.name);
    names.insert(names.end(), command.aliases.begin(), command.aliases.end());
  }
  return names;
}

std::string program_of(const char* path) {
  const std::string name(path == nullptr ? "muster" : path);
  const std::size_t slash = name.rfind('/');
  const std::string last = slash == std::string::npos ? name : name.substr(slash + 1);
  return last == "arena" || last == "kubectl" ? last : "muster";
}

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
  options.path = values.text("config");
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

Result<void> connect_session(Session& session,
                             net::Loop& loop,
                             const Command& command,
                             const Values& values) {
  if (!command.needs_cluster && command.name != "__complete") return {};
  auto client = make_session_client(session, loop, values);
  if (!client) {
    if (values.yes("dry-run") || !command.needs_cluster) return {};
    return fail(client.error().code, client.error().message);
  }
  if (!session.ns_given && session.config.find("namespace") == session.config.end())
    session.ns = (*client)->default_namespace();
  session.use(std::move(*client));
  return {};
}

/// What the launcher of an MPIJob runs: `kubectl exec POD [-c CONTAINER] -- COMMAND…`, with the
/// pod's own account.
int run_as_kubectl(Console& console, const std::vector<std::string>& words) {
  Command exec;
  exec.name = "exec";
  exec.needs_cluster = true;
  exec.flags = {{.name = "container", .shorthand = 'c'},
                {.name = "stdin", .shorthand = 'i', .type = FlagType::kBool, .value = "false"},
                {.name = "tty", .shorthand = 't', .type = FlagType::kBool, .value = "false"}};
  const std::vector<std::string> rest(words.empty() ? words.end() : words.begin() + 1, words.end());
  const auto values = parse_flags(exec, global_flags(), rest);
  if (words.empty() || words[0] != "exec" || !values || values->args.size() < 2) {
    console.err(fmt::format(
        "error: {}; as kubectl this program knows only: kubectl exec POD [-c CONTAINER] [-it] -- COMMAND\n",
        values ? "no such command" : values.error().message));
    return 1;
  }
  static auto& loop = *new net::Loop();  // static, so that it is in use until the end and no leak
  static auto& session = *new Session(loop, console);
  session.program = "kubectl";
  session.ns_given = values->given("namespace");
  if (session.ns_given) session.ns = values->text("namespace");
  if (const auto connected = connect_session(session, loop, exec, *values); !connected)
    return session.failed(connected.error());
  ExecOptions options;
  options.ns = session.ns;
  options.pod = values->args[0];
  options.container = values->text("container");
  options.command.assign(values->args.begin() + 1, values->args.end());
  options.with_stdin = values->yes("stdin");
  options.terminal = values->yes("tty");
  int code = 0;
  const auto task = [](Session& inner, ExecOptions what, int& exit_code) -> Task<void> {
    exit_code = co_await exec_in_pod(inner, std::move(what));
  };
  loop.run_until_done(task(session, options, code));
  std::fflush(stdout);
  return code;
}

}  // namespace

Located locate(const std::vector<std::string>& words) {
  Located found;
  const std::vector<Command>* level = &registry();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--" || level == nullptr) {
      found.rest.insert(
          found.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (word.size() > 1 && word[0] == '-') {
      found.rest.push_back(word);
      if (takes_next(found.command, word) && i + 1 < words.size()) found.rest.push_back(words[++i]);
      continue;
    }
    const Command* child = find_child(*level, word);
    if (child == nullptr) {
      found.unknown = word;
      found.rest.push_back(word);
      level = nullptr;
      continue;
    }
    found.path += (found.path.empty() ? "" : " ") + child->name;
    found.command = child;
    level = child->children.empty() ? nullptr : &child->children;
  }
  return found;
}

std::optional<int> answer_without_running(Console& console,
                                          const std::string& program,
                                          const Located& found) {
  const auto wants_help =
      std::any_of(found.rest.begin(), found.rest.end(), [](const std::string& word) {
        return word == "--help" || word == "-h";
      });
  if (found.command == nullptr) {
    if (found.unknown.empty()) {
      console.out(root_help(program));
      return 0;
    }
    std::vector<std::string> names = names_of(registry());
    for (const std::string& name : foreign_command_words()) names.push_back(name);
    console.err(
        fmt::format("Error: unknown command \"{}\" for \"{}\"\n{}\nRun '{} --help' for usage.\n",
                    found.unknown,
                    program,
                    did_you_mean(found.unknown, names),
                    program));
    return 1;
  }
  if (found.command->run != nullptr) return std::nullopt;
  const std::string path = program + " " + found.path;
  if (!found.unknown.empty() && !wants_help) {
    console.err(
        fmt::format("Error: unknown command \"{}\" for \"{}\"\n{}\nRun '{} --help' for usage.\n",
                    found.unknown,
                    path,
                    did_you_mean(found.unknown, names_of(found.command->children)),
                    path));
    return 1;
  }
  console.out(command_help(*found.command, path));
  return 0;
}

std::optional<int> check_call(Console& console,
                              const std::string& program,
                              const Located& found,
                              Result<Values>& values) {
  const std::string path = program + " " + found.path;
  if (!values) {
    console.err(
        fmt::format("Error: {}\nRun '{} --help' for usage.\n", values.error().message, path));
    return 1;
  }
  for (const std::string& warning : values->warnings) console.err(warning + "\n");
  if (values->help) {
    console.out(command_help(*found.command, path));
    return 0;
  }
  if (const std::string level = values->text("loglevel"); !console.set_level(level)) {
    console.error(fmt::format("unknown loglevel {}, want debug, info, warn or error", level));
    return 1;
  }
  const bool wants_name = !found.command->arguments.empty() && found.command->arguments[0] != '[';
  const bool wants_command =
      found.command->arguments == "[flags] \"command\"" && values->text("dry-run") != "true";
  if (values->args.empty() && (wants_name || wants_command)) {
    console.out(command_help(*found.command, path));
    console.error(wants_command ? "please set the training command"
                                : fmt::format("please set the {}",
                                              found.command->arguments.starts_with("JOB")
                                                  ? "job name"
                                                  : found.command->arguments));
    return 1;
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  // A command lives for milliseconds: memory is taken in large pieces and not given back.
  ::mallopt(M_TOP_PAD, 8 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  Console console = Console::standard();
  const std::string program = program_of(argc > 0 ? argv[0] : nullptr);
  if (program == "kubectl") return run_as_kubectl(console, {argv + std::min(argc, 1), argv + argc});
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words == std::vector<std::string>{"--version"}) words = {"version", "--short"};
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const Located found = locate(words);
  if (const auto code = answer_without_running(console, program, found)) return *code;
  Result<Values> values = parse_flags(*found.command, global_flags(), found.rest);
  if (const auto code = check_call(console, program, found, values)) return *code;

  // Watches and a thread that reads the terminal may still hang in the loop when the command is
  // done; the end of the process ends them, so the loop and the session are left as they are.
  static auto& loop = *new net::Loop();  // static, so that it is in use until the end and no leak
  static auto& session = *new Session(loop, console);
  session.program = program;
  session.config = read_arena_config();
  session.ns_given = values->given("namespace");
  if (session.ns_given) session.ns = values->text("namespace");
  if (const auto ns = session.config.find("namespace");
      !session.ns_given && ns != session.config.end())
    session.ns = ns->second;
  if (const auto connected = connect_session(session, loop, *found.command, *values); !connected)
    return session.failed(connected.error());

  int code = 0;
  Invocation invocation{*found.command, *values, session};
  const auto main_task = [](Invocation& call, int& exit_code) -> Task<void> {
    exit_code = co_await call.command.run(call);
  };
  loop.run_until_done(main_task(invocation, code));
  console.progress("");
  std::fflush(stdout);
  return code;
}

}  // namespace muster::cli
