#include "agent/image/containerd.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "agent/fd.h"
#include "agent/files.h"
#include "agent/image/containerd_state.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/json.h"

namespace muster::agent::image {
namespace {

namespace fs = std::filesystem;
constexpr Duration kEndPatience = std::chrono::seconds(5);
constexpr Duration kRestartMax = std::chrono::seconds(30);
/// One that lived this long is started again at once.
constexpr Duration kStable = std::chrono::seconds(10);
constexpr auto kConfigName = "/containerd.toml";

std::string find_program() {
  const char* path = std::getenv("PATH");
  auto places = split_nonempty(path == nullptr ? "" : path, ':');
  for (const auto* usual : {"/usr/bin", "/usr/local/bin", "/usr/sbin"}) places.emplace_back(usual);
  for (const auto& place : places) {
    const auto program = place + "/containerd";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

/// A string of TOML is one of JSON, as far as paths go.
std::string toml(const std::string& text) { return json::dump(json::Value(json::String(text))); }

std::vector<std::string> command_line(int pid) {
  return split(read_file(fmt::format("/proc/{}/cmdline", pid), 8192), '\0');
}

/// The configuration file of ours that a process was started with; empty: it is none of ours.
std::string config_of(int pid) {
  const auto words = command_line(pid);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--config" && words[0].ends_with("containerd") &&
        words[i + 1].ends_with(std::string("/containerd") + kConfigName))
      return words[i + 1];
  }
  return "";
}

/// Those of musters that were killed and whose folders are gone since.
void end_orphans() {
  std::error_code error;
  for (fs::directory_iterator item("/proc", error), end; !error && item != end;
       item.increment(error)) {
    const auto pid = parse_int(item->path().filename().string());
    if (!pid) continue;
    const auto config = config_of(static_cast<int>(*pid));
    if (config.empty() || fs::exists(config, error)) continue;
    log::info("agent", "ending containerd {}: its folder is gone", *pid);
    ::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
}

/// What of its table is for running pods.
std::string pod_settings(const PodSupport& pods) {
  return fmt::format(R"(    sandbox_image = {}
    disable_apparmor = {}
    restrict_oom_score_adj = true
    enable_unprivileged_ports = true
    enable_unprivileged_icmp = true
    netns_mounts_under_state_dir = true
    [plugins."io.containerd.grpc.v1.cri".containerd]
      snapshotter = "overlayfs"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        options = {{SystemdCgroup = false}}
)",
                     toml(pods.sandbox_image),
                     !fs::exists("/sys/kernel/security/apparmor"));
}

}  // namespace

bool containerd_installed() { return !find_program().empty(); }

std::string containerd_config(const std::string& directory, const PodSupport& pods) {
  const auto at = [&directory](const char* name) { return toml(directory + name); };
  return fmt::format(
      R"(# Written by muster at each start.
version = 2
root = {}
state = {}
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.restart"{}]
grpc = {{address = {}}}
debug = {{level = "warn"}}
[plugins]
  "io.containerd.internal.v1.opt" = {{path = {}}}
  [plugins."io.containerd.grpc.v1.cri"]
    stream_server_address = "127.0.0.1"
    stream_server_port = "0"
    cni = {{conf_dir = {}, bin_dir = {}}}
    registry = {{config_path = {}}}
{})",
      at("/root"),
      pods.state.empty() ? at("/state") : toml(pods.state),
      pods.plugins.empty() ? R"(, "io.containerd.monitor.v1.cgroups")" : "",
      at("/containerd.sock"),
      at("/opt"),
      pods.plugins.empty() ? at("/none") : at("/cni"),
      pods.plugins.empty() ? at("/none") : toml(pods.plugins),
      at("/certs.d"),
      pods.plugins.empty() ? "" : pod_settings(pods));
}

std::string hosts_file(const Registry& registry) {
  return fmt::format("server = {0}\n[host.{0}]\n  capabilities = [\"pull\", \"resolve\"]\n",
                     toml(registry.endpoint));
}

Containerd::Containerd(net::Loop& loop, std::string directory)
    : loop_(loop), directory_(std::move(directory)) {}

Containerd::~Containerd() {
  *stopped_ = true;
  if (process_) process_->close();
}

Result<void> Containerd::start(const std::vector<Registry>& registries, PodSupport pods) {
  // Beside its socket containerd makes one of a longer name.
  constexpr std::size_t kPathMax = sizeof(sockaddr_un::sun_path) - sizeof ".ttrpc";
  if (socket().size() > kPathMax)
    return fail(Code::kInvalid,
                fmt::format("the path \"{}\" has {} bytes, a socket's name may have {}; choose a "
                            "shorter data folder",
                            socket(),
                            socket().size(),
                            kPathMax));
  end_orphans();
  remove_orphaned_states();
  if (!pods.plugins.empty()) pods.state = containerd_state(directory_);
  const auto before = read_file(directory_ + kConfigName);
  const auto written = write_files(registries, pods);
  if (!written) return written;
  pid_ = running_pid();
  // It reads its settings when it starts; watch() sees to that.
  if (pid_ != 0 && before != containerd_config(directory_, pods)) ::kill(pid_, SIGTERM);
  if (pid_ == 0) {
    const auto launched = launch();
    if (!launched) return launched;
  }
  loop_.spawn(watch(stopped_));
  return {};
}

Result<void> Containerd::write_files(const std::vector<Registry>& registries,
                                     const PodSupport& pods) const {
  std::error_code error;
  fs::remove_all(directory_ + "/certs.d", error);
  for (const auto* name : {"", "/none", "/certs.d", "/cni"}) {
    const auto made = make_directory(directory_ + name);
    if (!made) return made;
  }
  for (const auto& registry : registries) {
    if (registry.endpoint.empty()) continue;
    const auto place = directory_ + "/certs.d/" + registry.name;
    const auto made = make_directory(place);
    if (!made) return made;
    const auto written = write_file(place + "/hosts.toml", hosts_file(registry), 0600);
    if (!written) return written;
  }
  if (!pods.plugins.empty()) {
    const auto network = write_file(directory_ + "/cni/10-muster.conflist", pods.network, 0600);
    if (!network) return network;
  }
  return write_file(directory_ + kConfigName, containerd_config(directory_, pods), 0600);
}

int Containerd::running_pid() const {
  const auto pid = parse_int(trim(read_file(directory_ + "/pid", 32))).value_or(0);
  if (pid <= 0 || config_of(static_cast<int>(pid)) != directory_ + kConfigName) return 0;
  return static_cast<int>(pid);
}

Result<void> Containerd::launch() {
  const auto program = find_program();
  if (program.empty())
    return fail(Code::kUnavailable,
                "containerd is not installed; install it (Debian: apt-get install containerd), or "
                "run pods on this machine's own files with --image-source none");
  const auto config = directory_ + kConfigName;
  const auto log = directory_ + "/containerd.log";
  const char* const words[] = {program.c_str(), "--config", config.c_str(), nullptr};
  const auto child = fork();
  if (child < 0) return fail(system_error("start containerd", errno));
  if (child == 0) {
    setsid();
    umask(022);  // images' root directories get their mode from it
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
    const int in = open("/dev/null", O_RDONLY);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    close_range(3, ~0U, 0);
    if (chdir("/") == 0) execv(program.c_str(), const_cast<char* const*>(words));
    _exit(127);
  }
  pid_ = child;
  return write_file(directory_ + "/pid", fmt::format("{}\n", pid_), 0600);
}

/// Notices its end and starts it again; the later, the shorter it lives.
Task<void> Containerd::watch(std::shared_ptr<bool> stopped) {
  Duration pause = std::chrono::milliseconds(50);
  while (!*stopped) {
    const auto begun = loop_.monotonic();
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    if (handle >= 0) {
      const std::shared_ptr<net::Descriptor> process = net::make_descriptor(loop_, handle);
      process_ = process;
      (void)co_await process->readable();
    }
    if (*stopped) co_return;
    int status = 0;
    (void)waitpid(pid_, &status, WNOHANG);
    pause = loop_.monotonic() - begun > kStable ? Duration(std::chrono::milliseconds(50))
                                                : std::min(pause * 2, kRestartMax);
    log::warn("agent",
              "containerd (process {}) has ended and is started again; what it said is in "
              "{}/containerd.log",
              pid_,
              directory_);
    co_await loop_.sleep(pause);
    if (*stopped) co_return;
    const auto launched = launch();
    if (!launched) log::warn("agent", "{}", launched.error().message);
  }
}

Task<void> Containerd::end() {
  *stopped_ = true;
  const auto process = process_;
  if (pid_ <= 0) co_return;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (handle >= 0) {
    const std::shared_ptr<net::Descriptor> ended = net::make_descriptor(loop_, handle);
    ::kill(pid_, SIGTERM);
    const auto patience = loop_.after(kEndPatience, [pid = pid_] { ::kill(pid, SIGKILL); });
    (void)co_await ended->readable();
    int status = 0;
    (void)waitpid(pid_, &status, WNOHANG);
  }
  std::error_code ignored;
  fs::remove(directory_ + "/pid", ignored);
  remove_containerd_state(directory_);
  pid_ = 0;
}

}  // namespace muster::agent::image
