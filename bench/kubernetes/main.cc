/// The parts of bench/kubernetes that must be quick: the load, the one watcher whose clock counts,
/// and the null binder.
///
///   kubernetes_bench nodes KUBECONFIG COUNT
///   kubernetes_bench fill KUBECONFIG SCHEDULER GANGS SIZE    SIZE 1: pods that are in no group
///   kubernetes_bench watch KUBECONFIG PODS GANG_SIZE TIMEOUT_S
///   kubernetes_bench bind KUBECONFIG                         the null binder: pod i to node
///                                                            i mod n, decides nothing
///   kubernetes_bench clear KUBECONFIG
#include <fmt/core.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "client/client.h"
#include "kube/meta.h"
#include "net/loop/loop.h"

namespace {

using namespace muster;
namespace resources = client::resources;

constexpr const char* kNamespace = "bench";
constexpr int kInFlight = 64;
/// As many as Muster has under way: the server does more a second when many come together, whoever
/// sends them.
constexpr int kBindingsInFlight = 128;

struct Bench {
  net::Loop loop;
  std::unique_ptr<client::Client> client;
  std::vector<std::string> arguments;
  int code = 0;
  [[nodiscard]] int number(std::size_t i) const { return std::atoi(arguments.at(i).c_str()); }
};

/// `count` pieces of work, `in_flight` at a time. A failure ends the program: a benchmark of half a
/// load says nothing.
Task<void> each(Bench& bench,
                int count,
                int in_flight,
                std::function<Task<Result<void>>(int)> work) {
  struct Progress {
    int next = 0, done = 0;
    std::unique_ptr<Signal> finished;
  };
  if (count == 0) co_return;
  const auto progress = std::make_shared<Progress>();
  progress->finished = bench.loop.make_signal();
  const auto worker = [](std::shared_ptr<Progress> shared,
                         int total,
                         const std::function<Task<Result<void>>(int)>& todo) -> Task<void> {
    while (shared->next < total) {
      const auto done = co_await todo(shared->next++);
      if (!done) {
        fmt::print(stderr, "kubernetes_bench: {}\n", done.error().message);
        std::_Exit(1);
      }
      if (++shared->done == total) shared->finished->notify();
    }
  };
  for (int i = 0; i < in_flight; ++i) bench.loop.spawn(worker(progress, count, work));
  co_await progress->finished->wait(Duration::zero());
}

Result<void> without_value(Result<json::Value> answer) {
  if (!answer && answer.error().code != Code::kAlreadyExists) return fail(answer.error());
  return {};
}

Task<void> make_nodes(Bench& bench) {
  json::Value ns = json::Object{{"metadata", json::Object{{"name", kNamespace}}}};
  (void)co_await bench.client->create(resources::kNamespaces, "", std::move(ns));
  // Without a controller manager nobody makes the account that pods need.
  json::Value account = json::Object{{"metadata", json::Object{{"name", "default"}}}};
  (void)co_await bench.client->create(resources::kServiceAccounts, kNamespace, std::move(account));
  co_await each(bench, bench.number(0), kInFlight, [&](int i) -> Task<Result<void>> {
    const json::Object amounts{
        {"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}, {"nvidia.com/gpu", "16"}};
    const std::string name = fmt::format("node-{:04}", i);
    const json::Object ready{
        {"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", "2040-01-01T00:00:00Z"}};
    json::Value node = json::Object{
        {"metadata",
         json::Object{{"name", name}, {"labels", json::Object{{"kubernetes.io/hostname", name}}}}},
        {"status",
         json::Object{
             {"capacity", amounts}, {"allocatable", amounts}, {"conditions", json::Array{ready}}}}};
    const auto made = co_await bench.client->create(resources::kNodes, "", std::move(node));
    if (!made) co_return fail(made.error());
    // Admission taints new nodes until a kubelet reports; there is none.
    json::Value patch = json::Object{{"spec", json::Object{{"taints", nullptr}}}};
    auto patched = co_await bench.client->patch(
        resources::kNodes, "", name, "", client::PatchType::kMerge, std::move(patch));
    co_return without_value(std::move(patched));
  });
}

Task<void> fill(Bench& bench) {
  const std::string scheduler = bench.arguments.at(0);
  const int gangs = bench.number(1), size = bench.number(2);
  if (size > 1) {
    co_await each(bench, gangs, kInFlight, [&](int i) -> Task<Result<void>> {
      json::Value group =
          json::Object{{"metadata", json::Object{{"name", fmt::format("gang-{:04}", i)}}},
                       {"spec",
                        json::Object{{"schedulingPolicy",
                                      json::Object{{"gang", json::Object{{"minCount", size}}}}}}}};
      auto made =
          co_await bench.client->create(resources::kNativePodGroups, kNamespace, std::move(group));
      co_return without_value(std::move(made));
    });
  }
  co_await each(bench, gangs * size, kInFlight, [&](int i) -> Task<Result<void>> {
    const std::string gang = fmt::format("gang-{:04}", i / size);
    json::Object spec{{"schedulerName", scheduler},
                      {"terminationGracePeriodSeconds", 0},
                      {"automountServiceAccountToken", false}};
    if (size > 1) spec["schedulingGroup"] = json::Object{{"podGroupName", gang}};
    spec["containers"] = json::Array{json::Object{
        {"name", "main"},
        {"image", "x"},
        {"resources", json::Object{{"limits", json::Object{{"nvidia.com/gpu", "1"}}}}}}};
    json::Value pod = json::Object{{"metadata",
                                    json::Object{{"name", fmt::format("{}-{:05}", gang, i % size)},
                                                 {"labels", json::Object{{"gang", gang}}}}},
                                   {"spec", std::move(spec)}};
    auto made = co_await bench.client->create(resources::kPods, kNamespace, std::move(pod));
    co_return without_value(std::move(made));
  });
}

/// The watch of pods that get a node, from `version`. Metadata alone is asked for: the selector has
/// told the rest, and no scheduler's own watch is served from the same encoded bytes.
Task<std::unique_ptr<net::ResponseStream>> open_watch(Bench& bench, std::string version) {
  net::Request request;
  request.method = "GET";
  request.target = fmt::format(
      "/api/v1/namespaces/{}/pods?watch=true&fieldSelector=spec.nodeName%21%3D&resourceVersion={}&timeoutSeconds=3600",
      kNamespace,
      version);
  request.headers.set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  request.headers.set("Authorization", fmt::format("Bearer {}", std::getenv("TOKEN")));
  auto opened = co_await bench.client->http().stream(std::move(request));
  if (!opened || (*opened)->status() != 200) {
    fmt::print(stderr,
               "kubernetes_bench: no watch: {}\n",
               opened ? std::to_string((*opened)->status()) : opened.error().message);
    std::_Exit(1);
  }
  co_return std::move(*opened);
}

std::string_view text_behind(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  return line.substr(0, line.find('"'));
}

/// Says "ready", then counts pods as they get a node.
Task<void> watch(Bench& bench) {
  const int wanted = bench.number(0), size = bench.number(1), timeout_s = bench.number(2);
  const auto now = co_await bench.client->raw(
      "GET", fmt::format("/api/v1/namespaces/{}/pods?limit=1", kNamespace), json::Value());
  if (!now) {
    fmt::print(stderr, "kubernetes_bench: {}\n", now.error().message);
    std::_Exit(1);
  }
  std::string version = json::text_at(*now, "metadata", "resourceVersion");
  auto stream = co_await open_watch(bench, version);
  fmt::print("ready\n");
  std::fflush(stdout);
  std::map<std::string, int, std::less<>> gangs;
  Duration first{}, last{};
  int bound = 0;
  const auto finish = [&] {
    int partial = 0;
    for (const auto& [gang, count] : gangs) partial += size > 1 && count != size;
    fmt::print(
        "{}\n",
        json::dump(json::Value(json::Object{{"bound", bound},
                                            {"first_us", std::chrono::microseconds(first).count()},
                                            {"last_us", std::chrono::microseconds(last).count()},
                                            {"partial", partial}})));
    std::fflush(stdout);
    std::_Exit(0);
  };
  const auto timer = bench.loop.after(std::chrono::seconds(timeout_s), finish);
  std::string buffer;
  while (true) {
    const auto bytes = co_await stream->read();
    if (!bytes || bytes->empty()) {
      // On a busy machine the server closes watchers that do not keep up with it; nothing is lost
      // by going on from there.
      stream = co_await open_watch(bench, version);
      buffer.clear();
      continue;
    }
    const Duration at = bench.loop.monotonic();
    buffer += *bytes;
    std::size_t begin = 0;
    for (auto end = buffer.find('\n'); end != std::string::npos; end = buffer.find('\n', begin)) {
      const std::string_view line = std::string_view(buffer).substr(begin, end - begin);
      begin = end + 1;
      if (const auto seen = text_behind(line, "\"resourceVersion\":\""); !seen.empty())
        version = seen;
      if (!line.starts_with("{\"type\":\"ADDED\"")) continue;
      ++gangs[std::string(text_behind(line, "\"name\":\"gang-").substr(0, 4))];
      if (bound++ == 0) first = at;
      last = at;
    }
    buffer.erase(0, begin);
    if (bound >= wanted) finish();
  }
}

Task<void> bind(Bench& bench) {
  const auto nodes = co_await bench.client->list(resources::kNodes, {});
  client::ListOptions options;
  options.ns = kNamespace;
  const auto pods = co_await bench.client->list(resources::kPods, std::move(options));
  if (!nodes || !pods) {
    fmt::print(
        stderr, "kubernetes_bench: {}\n", nodes ? pods.error().message : nodes.error().message);
    std::_Exit(1);
  }
  const int in_flight = bench.arguments.empty() ? kBindingsInFlight : bench.number(0);
  co_await each(
      bench, static_cast<int>(pods->items.size()), in_flight, [&](int i) -> Task<Result<void>> {
        const auto index = static_cast<std::size_t>(i);
        const std::string name(kube::name_of(pods->items[index]));
        const auto node = kube::name_of(nodes->items[index % nodes->items.size()]);
        json::Value binding = json::Object{
            {"apiVersion", "v1"},
            {"kind", "Binding"},
            {"metadata", json::Object{{"name", name}}},
            {"target", json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
        auto bound = co_await bench.client->post_subresource(
            resources::kPods, kNamespace, name, "binding", std::move(binding));
        co_return without_value(std::move(bound));
      });
}

Task<void> clear(Bench& bench) {
  for (const client::Resource* resource :
       {&resources::kPods, &resources::kNativePodGroups, &resources::kEvents}) {
    client::ListOptions options;
    options.ns = kNamespace;
    const auto objects = co_await bench.client->list(*resource, std::move(options));
    if (!objects) continue;
    co_await each(bench,
                  static_cast<int>(objects->items.size()),
                  kInFlight,
                  [&](int i) -> Task<Result<void>> {
                    client::DeleteOptions how;
                    how.grace_s = 0;
                    auto gone = co_await bench.client->remove(
                        *resource,
                        kNamespace,
                        std::string(kube::name_of(objects->items[static_cast<std::size_t>(i)])),
                        how);
                    if (!gone && gone.error().code != Code::kNotFound) co_return fail(gone.error());
                    co_return Result<void>{};
                  });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::pair<Task<void> (*)(Bench&), int>, std::less<>> commands{
      {"nodes", {make_nodes, 1}},
      {"fill", {fill, 3}},
      {"watch", {watch, 3}},
      {"bind", {bind, 0}},
      {"clear", {clear, 0}}};
  const auto command = argc < 3 ? commands.end() : commands.find(argv[1]);
  if (command == commands.end() || argc - 3 < command->second.second) {
    fmt::print(stderr, "usage: kubernetes_bench nodes|fill|watch|bind|clear KUBECONFIG …\n");
    return 2;
  }
  Bench bench;
  bench.arguments.assign(argv + 3, argv + argc);
  client::KubeconfigOptions where;
  where.path = argv[2];
  auto connected = client::connect(bench.loop, std::move(where));
  if (!connected) {
    fmt::print(stderr, "kubernetes_bench: {}\n", connected.error().message);
    return 1;
  }
  bench.client = std::move(*connected);
  bench.loop.run_until_done(command->second.first(bench));
  return bench.code;
}
