/// What starting a pod costs, from the bare system calls up to the API.
///
///   agent_bench bare N             fork + unshare(all namespaces) + exec /bin/true, one by one
///   agent_bench bare-veth N        the same with a veth on a bridge and an address: what any
///                                  runtime with a network for each pod has to pay
///   agent_bench runtime N [WIDTH]  sandbox + /bin/true container through the process runtime,
///                                  WIDTH at once
///   agent_bench image N [WIDTH]    the same on an overlay of three layers, as an image has
///   agent_bench api N [WIDTH]      N /bin/true pods through the API of $KUBECONFIG, submit to
///                                  running; at most WIDTH not yet running (default: all at once)
///   agent_bench hollow N           N pods on hollow nodes through the API, until all run
#include <fmt/core.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "agent/node/run_directory.h"
#include "agent/process/netlink.h"
#include "agent/process/process_runtime.h"
#include "agent/process/shim.h"
#include "client/client.h"
#include "client/informer.h"
#include "kube/meta.h"
#include "net/loop/loop.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

void print_row(const char* what, std::vector<double> ms, double total_s) {
  if (ms.empty()) return;
  std::sort(ms.begin(), ms.end());
  const auto at = [&ms](double q) {
    return ms[std::min(ms.size() - 1,
                       static_cast<std::size_t>(q * static_cast<double>(ms.size())))];
  };
  fmt::print("{:<40} n={:<6} p50={:8.2f} ms  p99={:8.2f} ms  max={:8.2f} ms  {:8.1f}/s\n",
             what,
             ms.size(),
             at(0.5),
             at(0.99),
             ms.back(),
             static_cast<double>(ms.size()) / total_s);
  std::fflush(stdout);
}

double ms_of(Duration span) { return static_cast<double>(span.count()) / 1000.0; }

struct BareNetwork {
  std::string bridge;
  agent::process::Subnet subnet;
};

/// In the child: namespaces, a link when there is a bridge, and /bin/true in the pid namespace.
[[noreturn]] void bare_child(const BareNetwork* network, int number) {
  namespace process = agent::process;
  const auto netlink = process::open_netlink();
  const int index =
      network == nullptr ? 0 : static_cast<int>(if_nametoindex(network->bridge.c_str()));
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
    _exit(1);
  if (network != nullptr) {
    process::PodLink link;
    link.host_name = fmt::format("mb{:x}", getpid());
    link.bridge_index = index;
    link.address = network->subnet.base + 2 + static_cast<std::uint32_t>(number);
    link.gateway = network->subnet.base + 1;
    const auto joined = process::join_bridge(*netlink, link);
    if (!joined) {
      fmt::print(stderr, "{}\n", joined.error().message);
      _exit(1);
    }
  }
  const auto child = fork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  _exit(WEXITSTATUS(status));
}

void bare(net::Loop& loop, int count, const BareNetwork* network) {
  std::vector<double> times;
  const auto begun = loop.monotonic();
  for (int i = 0; i < count; ++i) {
    const auto start = loop.monotonic();
    const auto pid = fork();
    if (pid == 0) bare_child(network, i);
    int status = 0;
    waitpid(pid, &status, 0);
    times.push_back(ms_of(loop.monotonic() - start));
  }
  print_row(
      network == nullptr ? "bare fork+unshare+exec, serial" : "the same with a veth on a bridge",
      times,
      static_cast<double>((loop.monotonic() - begun).count()) / 1e6);
}

int bare_with_veth(net::Loop& loop, int count) {
  namespace process = agent::process;
  const auto subnet = process::free_subnet();
  if (!subnet) {
    fmt::print(stderr, "{}\n", subnet.error().message);
    return 1;
  }
  const BareNetwork network{fmt::format("mb{}", getpid()), *subnet};
  const auto made = process::ensure_bridge(network.bridge, subnet->base + 1, subnet->prefix, "");
  if (!made) {
    fmt::print(stderr, "{}\n", made.error().message);
    return 1;
  }
  bare(loop, count, &network);
  process::remove_link(network.bridge);
  return 0;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

struct RuntimeBench {
  net::Loop& loop;
  std::string directory;
  std::unique_ptr<agent::Runtime> runtime;
  std::vector<double> times;
  int next = 0, count = 0, done = 0;
  std::unique_ptr<Signal> changed;
  std::vector<std::string> layers;  // of an image; none: the machine's own files

  /// Three folders, the lowest with a program that needs no library.
  bool make_layers() {
    for (const auto* name : {"3", "2", "1"}) {
      layers.push_back(fmt::format("{}/image/{}/fs", directory, name));
      fs::create_directories(layers.back() + "/bin");
      fs::create_directories(layers.back() + "/etc");
    }
    std::string why;
    for (const auto* path : {"/bin/busybox", "/usr/bin/busybox"}) {
      std::error_code failed;
      fs::copy_file(path, layers.back() + "/bin/true", failed);
      if (!failed) return true;
      why = fmt::format("{}: {}", path, failed.message());
    }
    fmt::print(stderr, "the image needs a static busybox (Debian: busybox-static): {}\n", why);
    return false;
  }

  Task<void> one_after_another() {
    while (next < count) {
      const auto id = fmt::format("bench-{}", next++);
      const auto start = loop.monotonic();
      agent::SandboxConfig sandbox;
      sandbox.id = sandbox.pod_name = sandbox.hostname = id;
      sandbox.directory = directory + "/pods/" + id;
      sandbox.run_directory = directory + "/run/" + id;
      fs::create_directories(sandbox.run_directory);
      const auto made = co_await runtime->run_sandbox(sandbox);
      if (!made) {
        fmt::print(stderr, "{}\n", made.error().message);
        break;
      }
      agent::ContainerConfig container;
      container.id = id;
      container.name = "main";
      container.args = {"/bin/true"};
      container.layers = layers;
      if (!layers.empty()) container.image_user = "";
      container.log_path = sandbox.directory + "/log";
      const auto started = co_await runtime->start_container(id, container);
      const auto problem = started ? started->message : started.error().message;
      if (!problem.empty()) {
        fmt::print(stderr, "{}\n", problem);
        break;
      }
      times.push_back(ms_of(loop.monotonic() - start));
      (void)co_await runtime->remove_sandbox(id);
    }
    ++done;
    changed->notify();
  }

  /// As on a node that has been up for a moment: the sandboxes that are made ahead are there. One that
  /// has none yet waits, for the one that it has, to become ready again after each pod.
  Task<void> sandboxes_wait() {
    const auto waiting = [this] {
      std::size_t found = 0;
      for (const auto& entry : fs::directory_iterator("/proc")) {
        if (first_line(entry.path() / "comm") == "muster-warm" &&
            first_line(entry.path() / "cmdline").find(directory) != std::string::npos)
          ++found;
      }
      return found;
    };
    const auto begun = loop.monotonic();
    const auto wanted = agent::process::ProcessRuntimeOptions().warm_sandboxes;
    while (waiting() < wanted && loop.monotonic() - begun < std::chrono::seconds(30))
      co_await loop.sleep(std::chrono::milliseconds(20));
  }

  Task<void> run(int width) {
    changed = loop.make_signal();
    const auto found = co_await runtime->start([](agent::RuntimeEvent) {});
    if (!found) {
      fmt::print(stderr, "{}\n", found.error().message);
      co_return;
    }
    co_await sandboxes_wait();
    const auto begun = loop.monotonic();
    for (int i = 0; i < width; ++i) loop.spawn(one_after_another());
    while (done < width) co_await changed->wait(Duration::zero());
    const auto what = layers.empty() ? "runtime" : "image";
    print_row(fmt::format("{}, {} at once (incl. removal)", what, width).c_str(),
              times,
              static_cast<double>((loop.monotonic() - begun).count()) / 1e6);
    co_await runtime->stop(/*clean=*/true);
  }
};

struct ApiBench {
  net::Loop& loop;
  client::Client& client;
  std::map<std::string, Duration> submitted;
  std::map<std::string, double> started;
  std::unique_ptr<Signal> changed;
  int creating = 0;
  bool keep = false;  // leave the pods

  json::Value pod(const std::string& name) const {
    json::Object container{
        {"name", "main"}, {"image", "true"}, {"command", json::Array{"/bin/true"}}};
    return json::Object{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", json::Object{{"name", name}, {"labels", json::Object{{"bench", "agent"}}}}},
        {"spec",
         json::Object{{"restartPolicy", "Never"},
                      {"terminationGracePeriodSeconds", 0},
                      {"containers", json::Array{container}}}}};
  }

  Task<void> create(std::string name) {
    const auto made = co_await client.create(client::resources::kPods, "default", pod(name));
    if (!made) fmt::print(stderr, "create {}: {}\n", name, made.error().message);
    --creating;
    changed->notify();
  }

  Task<void> run(int count, int width) {
    changed = loop.make_signal();
    client::Informers informers(loop, client);
    client::ListOptions options;
    options.label_selector = "bench=agent";
    client::InformerHandlers handlers;
    handlers.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr& now) {
      if (!now) return;
      const auto phase = json::string_at(*now, "status", "phase");
      if (phase != "Running" && phase != "Succeeded" && phase != "Failed") return;
      const std::string name(kube::name_of(*now));
      if (submitted.contains(name) &&
          started.emplace(name, ms_of(loop.monotonic() - submitted[name])).second)
        changed->notify();
    };
    informers.get(client::resources::kPods, options).add_handlers(std::move(handlers));
    informers.start_all();
    co_await informers.wait_synced();
    const auto begun = loop.monotonic();
    for (int i = 0; i < count; ++i) {
      while (creating >= 64 ||
             (width > 0 && submitted.size() - started.size() >= static_cast<std::size_t>(width)))
        co_await changed->wait(Duration::zero());
      ++creating;
      const auto name = fmt::format("bench-{}-{}", getpid(), i);
      submitted[name] = loop.monotonic();
      loop.spawn(create(name));
    }
    while (started.size() < static_cast<std::size_t>(count)) {
      const bool more = co_await changed->wait(std::chrono::seconds(60));
      if (!more) {
        fmt::print(stderr,
                   "only {} of {} pods started within a minute of silence\n",
                   started.size(),
                   count);
        break;
      }
    }
    std::vector<double> times;
    for (const auto& [name, ms] : started) times.push_back(ms);
    print_row(width > 0 ? fmt::format("submit to running, API, {} at a time", width).c_str()
                        : "submit to running, API, all at once",
              times,
              static_cast<double>((loop.monotonic() - begun).count()) / 1e6);
    for (const auto& [name, when] : submitted) {
      if (keep) break;
      client::DeleteOptions remove;
      remove.grace_s = 0;
      (void)co_await client.remove(client::resources::kPods, "default", name, remove);
    }
    co_await informers.stop_all();
  }
};

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 100;
  net::Loop loop;
  if (mode == "bare") {
    bare(loop, count, nullptr);
    return 0;
  }
  if (mode == "bare-veth") return bare_with_veth(loop, count);
  if (mode == "runtime" || mode == "image") {
    char name[] = "/tmp/muster-bench-XXXXXX";
    RuntimeBench bench{loop, mkdtemp(name), nullptr, {}, 0, count, 0, nullptr, {}};
    if (mode == "image" && !bench.make_layers()) {
      fs::remove_all(bench.directory);
      return 1;
    }
    agent::process::ProcessRuntimeOptions options;
    options.directory = bench.directory;
    options.shim_binary = "/proc/self/exe";
    options.images = mode == "image";
    (void)agent::prepare_run_directory(bench.directory + "/run");
    bench.runtime = agent::process::make_process_runtime(loop, options);
    loop.run_until_done(bench.run(argc > 3 ? std::atoi(argv[3]) : 1));
    agent::remove_run_directory(bench.directory + "/run");
    fs::remove_all(bench.directory);
    return bench.times.size() == static_cast<std::size_t>(count) ? 0 : 1;
  }
  if (mode == "api" || mode == "hollow") {
    auto client = client::connect(loop, {});
    if (!client) {
      fmt::print(stderr, "{}\n", client.error().message);
      return 1;
    }
    ApiBench bench{loop, **client, {}, {}, nullptr, 0, mode == "hollow"};
    loop.run_until_done(bench.run(count, argc > 3 ? std::atoi(argv[3]) : 0));
    return 0;
  }
  fmt::print(stderr, "usage: agent_bench bare|bare-veth|runtime|image|api|hollow N [WIDTH]\n");
  return 2;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "agent-shim") == 0)
    return muster::agent::shim_main(argc, argv);
  return muster::run(argc, argv);
}
