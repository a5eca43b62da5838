#include "main/up.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "agent/image/image_source.h"
#include "agent/node/devices.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "main/audit_flags.h"
#include "main/cluster.h"
#include "main/data_dir.h"
#include "main/pai_layout.h"
#include "main/portal_flags.h"
#include "main/serve.h"
#include "net/http/listen_address.h"

namespace muster {
namespace {

/// A table: what each flag sets, and what it may not be.
Result<ClusterOptions> read_options(const command::Values& values) {
  ClusterOptions options;
  const std::string data = values.given("data") ? values.text("data") : default_data_dir();
  options.data = std::filesystem::absolute(data).lexically_normal().string();
  options.nodes = values.text("nodes");
  options.kubeconfig = values.text("kubeconfig");
  options.hived_config = values.text("hived-config");
  options.scheduler_config = values.text("scheduler-config");
  options.images = values.text("images");
  options.pai_rest = values.text("pai-rest");
  options.admin_password_file = values.text("admin-password-file");
  options.image_source = values.text("image-source");
  const auto source = agent::image::check_source(options.image_source);
  if (!source) return fail(Code::kBadRequest, "--image-source: " + source.error().message);
  options.cdi_folders = split_nonempty(values.text("cdi-spec-dirs"), ',');
  options.runtime = values.text("runtime");
  if (options.runtime != "process" && options.runtime != "cri")
    return fail(
        Code::kBadRequest,
        fmt::format(
            "--runtime {}: wanted process (muster runs pods) or cri (a container runtime runs them)",
            options.runtime));
  if (options.runtime == "cri" && options.image_source == "none")
    return fail(Code::kBadRequest,
                "--runtime cri: pods of a container runtime need images; leave --image-source none "
                "out, or name a containerd");
  options.image_pulls_max = values.number("max-parallel-image-pulls");
  if (options.image_pulls_max < 1)
    return fail(Code::kBadRequest,
                fmt::format("--max-parallel-image-pulls {}: wanted a number from 1 on",
                            options.image_pulls_max));
  options.hollow = values.yes("hollow");
  options.node_grace = values.duration("node-monitor-grace-period");
  if (options.node_grace <= Duration::zero())
    return fail(Code::kBadRequest, "--node-monitor-grace-period: wanted a duration, e.g. 40s");
  options.token_lifetime_max = values.duration("service-account-max-token-expiration");
  if (values.given("service-account-max-token-expiration") &&
      options.token_lifetime_max < std::chrono::seconds(1))
    return fail(Code::kBadRequest,
                "--service-account-max-token-expiration: wanted a second or more, e.g. 1h");
  if (values.given("pod-max-pids")) {
    options.pod_pids_max = values.number("pod-max-pids");
    if (options.pod_pids_max < 1)
      return fail(Code::kBadRequest,
                  fmt::format("--pod-max-pids {}: wanted a number from 1 on, e.g. 4096",
                              values.text("pod-max-pids")));
  }
  const auto level = kube::parse_security_level(values.text("pod-security"));
  if (!level)
    return fail(Code::kBadRequest,
                fmt::format("--pod-security {}: wanted privileged, baseline or restricted",
                            values.text("pod-security")));
  options.pod_security = *level;
  const std::string users = values.text("pod-users");
  if (users != "map" && users != "host")
    return fail(Code::kBadRequest, fmt::format("--pod-users {}: wanted map or host", users));
  options.map_pod_users = users == "map";
  const std::string access = values.text("queue-access");
  if (access != "open" && access != "closed")
    return fail(Code::kBadRequest, fmt::format("--queue-access {}: wanted open or closed", access));
  options.encryption_key_file = values.text("encryption-key-file");
  auto audit = audit_options(values, options.data);
  if (!audit) return fail(audit.error());
  options.audit = std::move(*audit);
  const auto where = net::parse_listen("--listen", values.text("listen"));
  if (!where) return fail(where.error());
  options.address = where->address;
  options.port = where->port;
  if (values.given("gpus")) options.gpus = values.number("gpus");
  auto answering = answers_options(values);
  if (!answering) return fail(answering.error());
  options.answers = std::move(*answering);
  auto listening = portal_listening(values);
  if (!listening) return fail(listening.error());
  options.portal = std::move(*listening);
  for (const std::string& part : split_nonempty(values.text("without"), ',')) {
    if (part != "scheduler" && part != "controllers" && part != "agent")
      return fail(Code::kBadRequest,
                  fmt::format("--without {}: wanted scheduler, controllers or agent", part));
    options.without.insert(part);
  }
  if (const std::string layout = values.text("pai-layout"); !layout.empty()) {
    options.pai_layout = true;
    const auto used = use_layout(layout, options);
    if (!used) return fail(used.error());
  }
  // Where people have permissions, they hold on every way in.
  options.queues_closed =
      values.given("queue-access") ? access == "closed" : !options.pai_rest.empty();
  return options;
}

std::string kubeconfig_of(const ClusterOptions& options) {
  return options.kubeconfig.empty() ? options.data + "/kubeconfig" : options.kubeconfig;
}

/// What a person needs for OpenPAI's API: where it is, and once, the first password.
std::string pai_text(const Cluster& cluster, const ClusterOptions& options) {
  if (cluster.pai() == nullptr) return "";
  std::string text = fmt::format("  OpenPAI's API: port {}\n", cluster.pai()->port());
  if (!cluster.pai()->first_password().empty())
    text += fmt::format("  user admin, password {} (kept in {}/admin-password)\n",
                        cluster.pai()->first_password(),
                        options.data);
  if (options.pai_layout) return text + "\n" + layout_banner(options, kubeconfig_of(options));
  return text + "\n";
}

/// Where people look at the cluster, and once, the first password.
std::string portal_text(const Cluster& cluster, const ClusterOptions& options) {
  if (cluster.portal() == nullptr) return "";
  std::string text = fmt::format("  portal: {}\n", cluster.portal()->address());
  if (!cluster.first_password().empty())
    text += fmt::format("  user admin, password {} (kept in {}/admin-password)\n",
                        cluster.first_password(),
                        options.data);
  return text + "\n";
}

/// `ready` is called once it works.
using Ready = std::function<void(const Cluster& cluster, double seconds)>;

Task<int> work(net::Loop& loop,
               Signal& stop,
               const ClusterOptions& options,
               const DataLock& lock,
               const Ready& ready) {
  const Duration begun = loop.monotonic();
  Cluster cluster(loop, options, lock);
  const auto started = co_await cluster.start();
  if (started) {
    ready(cluster, std::chrono::duration<double>(loop.monotonic() - begun).count());
    co_await stop.wait(Duration::zero());
    log::info("main", "stopping");
  } else {
    fmt::print(stderr, "muster up: {}\n", started.error().message);
  }
  co_await cluster.stop();
  co_return started ? 0 : 1;
}

/// Runs until a signal says stop.
int serve(command::Call& call, const ClusterOptions& options, const Ready& ready) {
  const auto lock = DataLock::take(options.data);
  if (!lock) return call.failed(lock.error().message);
  return serve_until_signal(
      [&](net::Loop& loop, Signal& stop) { return work(loop, stop, options, *lock, ready); });
}

int serve_here(command::Call& call, const ClusterOptions& options) {
  return serve(call, options, [&](const Cluster& cluster, double seconds) {
    fmt::print(
        "muster is ready at {} ({} nodes, {:.2f} s)\n\n"
        "  export KUBECONFIG={}\n  kubectl get nodes\n\n{}",
        cluster.address(),
        cluster.node_count(),
        seconds,
        kubeconfig_of(options),
        portal_text(cluster, options) + pai_text(cluster, options));
    std::fflush(stdout);
  });
}

/// What the daemon says through the pipe is shown; if it said nothing, the end of its log is.
int wait_for_daemon(pid_t child, int pipe_end, const std::string& log_path) {
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(pipe_end, buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<std::size_t>(got));
  ::close(pipe_end);
  if (!said.empty()) {
    std::fputs(said.c_str(), stdout);
    return 0;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  fmt::print(stderr, "muster up: the cluster did not start; the end of {}:\n", log_path);
  const auto log_text = read_file(log_path);
  if (log_text)
    std::fputs(log_text->substr(log_text->size() > 2000 ? log_text->size() - 2000 : 0).c_str(),
               stderr);
  return 1;
}

int serve_as_daemon(command::Call& call,
                    const ClusterOptions& options,
                    int pipe_end,
                    const std::string& log_path) {
  ::setsid();
  const int log_file = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log_file < 0 || nothing < 0) return 1;
  ::dup2(nothing, 0);
  ::dup2(log_file, 1);
  ::dup2(log_file, 2);
  return serve(call, options, [&](const Cluster& cluster, double seconds) {
    const std::string text = fmt::format(
        "muster is ready at {} ({} nodes, {:.2f} s), process {}\n\n"
        "  export KUBECONFIG={}\n  kubectl get nodes\n  {}\n\n{}log: {}\n",
        cluster.address(),
        cluster.node_count(),
        seconds,
        ::getpid(),
        kubeconfig_of(options),
        down_command(options.data),
        portal_text(cluster, options) + pai_text(cluster, options),
        log_path);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote = ::write(pipe_end, text.data() + done, text.size() - done);
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    ::close(pipe_end);
  });
}

/// The child becomes the daemon; the parent waits until it is ready or has failed.
int detach(command::Call& call, const ClusterOptions& options) {
  const Running running = find_running(options.data);
  if (running.pid != 0)
    return call.failed(fmt::format(
        "a muster already runs with the data folder \"{}\" (process {}); stop it with '{}', or choose another with --data",
        options.data,
        running.pid,
        down_command(options.data)));
  std::error_code failure;
  std::filesystem::create_directories(options.data, failure);
  const std::string log_path = options.data + "/muster.log";
  int pipe_ends[2];
  if (failure || ::pipe2(pipe_ends, O_CLOEXEC) != 0)
    return call.failed(fmt::format("cannot use the data folder \"{}\": {}",
                                   options.data,
                                   failure ? failure.message() : std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0) return call.failed(fmt::format("cannot fork: {}", std::strerror(errno)));
  ::close(pipe_ends[child > 0 ? 1 : 0]);
  if (child > 0) return wait_for_daemon(child, pipe_ends[0], log_path);
  ::_exit(serve_as_daemon(call, options, pipe_ends[1], log_path));
}

int run_up(command::Call& call) {
  const auto options = read_options(call.values);
  if (!options) return call.misused(options.error().message);
  // What is written from here on is nobody else's; pods' files say so themselves.
  ::umask(077);
  return call.values.yes("detach") ? detach(call, *options) : serve_here(call, *options);
}

/// A table: one entry for each flag, in the order of the help.
std::vector<command::Flag> up_flags() {
  using command::Completes;
  using command::FlagType;
  return {
      {.name = "data",
       .help = "keep everything in this folder (default $MUSTER_HOME, else ~/.muster)",
       .completes = Completes::kFiles,
       .value_name = "FOLDER"},
      {.name = "listen",
       .value = "127.0.0.1:6443",
       .help = "serve the API at this address; port 0 picks a free one",
       .value_name = "ADDRESS:PORT"},
      {.name = "nodes",
       .help = "number of virtual nodes, or a file of Node objects (default 3 on the first start)",
       .completes = Completes::kFiles,
       .value_name = "N|FILE"},
      {.name = "gpus",
       .type = FlagType::kInt,
       .help = "simulated GPUs of each virtual node (default: this machine's own GPUs, else 4)",
       .value_name = "N"},
      {.name = "kubeconfig",
       .help = "also write the kubeconfig to this file",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "hollow",
       .type = FlagType::kBool,
       .value = "false",
       .help = "pretend to run pods: report them Running, start no process"},
      {.name = "hived-config",
       .help = "virtual clusters and cells, in HiveD's own format",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "scheduler-config",
       .help =
           "how to decide: a policy as for muster sim, or Volcano's scheduler configuration; read again when it changes (default: Muster's own policy)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "images",
       .help =
           "what image names mean here: roots, registries, which of this machine's files pods see (docs/agent.md)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "pai-rest",
       .help =
           "serve OpenPAI's REST API at this address over plain HTTP, as its own port 9186 does (docs/openpai-rest.md)",
       .value_name = "ADDRESS:PORT"},
      {.name = "pai-layout",
       .help =
           "create the cluster that OpenPAI's installer would create from the files in this folder: layout.yaml, or master.csv and worker.csv (docs/openpai-rest.md)",
       .completes = Completes::kFiles,
       .value_name = "FOLDER"},
      {.name = "admin-password-file",
       .help =
           "the password of the first administrator of OpenPAI's API (default: one is generated, printed once and kept in FOLDER/admin-password)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "image-source",
       .help =
           "where images come from: none (pods run on this machine's files), containerd (a private one; the package must be installed), or unix:///SOCKET of a running one (default none)",
       .completes = Completes::kWords,
       .words = {"none", "containerd"},
       .value_name = "SOURCE"},
      {.name = "runtime",
       .value = "process",
       .help =
           "who runs pods: process (muster itself), or cri (the containerd of --image-source with runc, as under a kubelet); single pods choose by runtimeClassName host or cri",
       .completes = Completes::kWords,
       .words = {"process", "cri"},
       .value_name = "RUNTIME"},
      {.name = "cdi-spec-dirs",
       .value = agent::kCdiFolders,
       .help =
           "folders with Container Device Interface files, which describe GPUs for containers (docs/gpu.md)",
       .value_name = "FOLDERS"},
      {.name = "max-parallel-image-pulls",
       .type = FlagType::kInt,
       .value = "3",
       .help = "how many images are pulled at a time",
       .value_name = "N"},
      {.name = "pod-max-pids",
       .type = FlagType::kInt,
       .help =
           "how many processes and threads a container may have (default: half of the machine's)",
       .value_name = "N"},
      {.name = "pod-security",
       .value = "baseline",
       .help =
           "what pods of non-administrators may ask for in namespaces that set no level (docs/security.md)",
       .completes = Completes::kWords,
       .words = {"privileged", "baseline", "restricted"},
       .value_name = "LEVEL"},
      {.name = "pod-users",
       .value = "map",
       .help =
           "map: a pod's root has no rights on this machine, unless the pod asks for the machine's users; host: it is root (docs/security.md)",
       .completes = Completes::kWords,
       .words = {"map", "host"},
       .value_name = "MODE"},
      {.name = "queue-access",
       .value = "open",
       .help =
           "closed: using a queue or virtual cluster requires the verb \"use\" on it, or a namespace that the queue allows; closed is the default with --pai-rest (docs/security.md)",
       .completes = Completes::kWords,
       .words = {"open", "closed"},
       .value_name = "MODE"},
      {.name = "encryption-key-file",
       .help =
           "encrypt Secrets at rest with the first key of this file and read them with any; one key per line, made with openssl rand -base64 32",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "node-monitor-grace-period",
       .type = FlagType::kDuration,
       .value = "40s",
       .help = "how long a node may go without reporting before its state is Unknown"},
      {.name = "service-account-max-token-expiration",
       .type = FlagType::kDuration,
       .help = "the longest lifetime of a pod's token, whatever it asks for"},
      {.name = "without",
       .help = "leave out scheduler, controllers or agent (separated by commas)",
       .completes = Completes::kWords,
       .words = {"scheduler", "controllers", "agent"},
       .value_name = "LIST"},
      {.name = "detach",
       .type = FlagType::kBool,
       .value = "false",
       .help = "go to the background once it is ready; the log is muster.log in the data folder"},
  };
}

}  // namespace

command::Command up_command() {
  command::Command made;
  made.name = "up";
  made.summary = "Start a cluster on this machine";
  made.details =
      "API server, scheduler, job controllers and node agent run in one process. The kubeconfig is FOLDER/kubeconfig.";
  made.examples =
      "  # In the background, with four virtual nodes of eight GPUs\n"
      "  muster up --detach --nodes 4 --gpus 8\n"
      "  # Pods in real images, pulled by a private containerd\n"
      "  muster up --image-source containerd\n"
      "  # A cluster to try the scheduler on: no process is started for a pod\n"
      "  muster up --data /tmp/hollow --listen 127.0.0.1:0 --nodes nodes.yaml --hollow\n";
  made.flags = up_flags();
  for (command::Flag& flag : portal_flags("127.0.0.1:8080")) made.flags.push_back(std::move(flag));
  for (command::Flag& flag : answers_flags("90d,200000")) made.flags.push_back(std::move(flag));
  for (command::Flag& flag : audit_flags()) made.flags.push_back(std::move(flag));
  made.run = run_up;
  return made;
}

}  // namespace muster
