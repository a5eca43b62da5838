/// Gangs through a whole cluster, from the first create to the last bind, as one watcher sees them.
///
///   e2e_load --kubeconfig FILE --gangs N --size N [--clients N]
///
/// Creates the groups, then their pods, as fast as the server takes them, and prints one JSON
/// object. The clock of a pod starts when its create is sent and ends when the watcher reads its
/// binding.
#include "load.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "json/json.h"

namespace {

using namespace muster;
using bench::seconds;

constexpr Duration kPatience = std::chrono::seconds(60);

struct Pod {
  int gang = 0;
  Duration sent{}, bound{};
};

struct Gang {
  int bound = 0;
  Duration first{}, last{};  // of its bindings
};

struct Load {
  net::Loop loop;
  // On a thread of its own, so that creating does not delay what the watcher sees.
  net::Loop watch_loop;
  std::unique_ptr<net::Client> http, watch_http;
  std::unique_ptr<Signal> done;
  bench::Target target;
  int gangs = 10'000, size = 1, clients = 64;
  int next = 0, acknowledged = 0, failed = 0;
  std::atomic<int> bound = 0;
  Duration begun{}, created{}, first_bind{}, last_bind{};
  std::vector<Gang> by_gang;
  std::vector<Pod> pods;

  [[nodiscard]] int total() const { return gangs * size; }
};

net::Request request(const Load& load,
                     std::string method,
                     std::string path,
                     std::string body = "") {
  return bench::request(load.target, std::move(method), std::move(path), std::move(body));
}

std::string group_body(const Load& load, int gang) {
  return fmt::format(
      R"({{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{{"name":"g{}"}},)"
      R"("spec":{{"minMember":{},"queue":"default"}}}})",
      gang,
      load.size);
}

std::string pod_body(const Load& load, int pod) {
  const std::string group =
      load.size == 1 ? ""
                     : fmt::format(R"(,"annotations":{{"scheduling.k8s.io/group-name":"g{}"}})",
                                   pod / load.size);
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}","labels":{{"app":"e2e"}}{}}},)"
      R"("spec":{{"restartPolicy":"Never","containers":[{{"name":"main","image":"train:1",)"
      R"("command":["train"],"resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}},)"
      R"("limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}})",
      pod,
      group);
}

Task<void> creator(Load& load, int total, std::string path, std::string (*body)(const Load&, int)) {
  while (load.next < total) {
    const int index = load.next++;
    if (body == pod_body) load.pods[static_cast<std::size_t>(index)].sent = load.loop.monotonic();
    const auto answer = co_await load.http->request(request(load, "POST", path, body(load, index)));
    if (!answer || answer->status != 201) {
      if (++load.failed == 1) {
        fmt::print(stderr, "create failed: {}\n", answer ? answer->body : answer.error().message);
      }
    }
    if (++load.acknowledged == total) load.done->notify();
  }
}

Task<void> create_all(Load& load,
                      int total,
                      std::string path,
                      std::string (*body)(const Load&, int)) {
  load.next = load.acknowledged = 0;
  for (int i = 0; i < load.clients; ++i) load.loop.spawn(creator(load, total, path, body));
  while (load.acknowledged < total) co_await load.done->wait(kPatience);
}

/// The value of the first member called `key` in a line of JSON that a server wrote.
std::string_view member(std::string_view line, std::string_view key) {
  // memmem: find() stops at every quotation mark, and what the load spends the cluster lacks.
  const auto* at =
      static_cast<const char*>(::memmem(line.data(), line.size(), key.data(), key.size()));
  if (at == nullptr) return {};
  const std::string_view rest =
      line.substr(static_cast<std::size_t>(at - line.data()) + key.size());
  return rest.substr(0, rest.find('"'));
}

void saw(Load& load, std::string_view line, Duration now) {
  if (member(line, "\"nodeName\":\"").empty()) return;
  const std::string name(member(line, "\"name\":\""));
  const auto index = static_cast<std::size_t>(std::atoi(name.c_str() + 1));
  if (name.empty() || name[0] != 'p' || index >= load.pods.size()) return;
  Pod& pod = load.pods[index];
  if (pod.bound != Duration::zero()) return;
  pod.bound = load.last_bind = now;
  if (load.bound++ == 0) load.first_bind = now;
  Gang& gang = load.by_gang[index / static_cast<std::size_t>(load.size)];
  if (gang.bound++ == 0) gang.first = now;
  gang.last = now;
  if (load.bound == load.total()) load.loop.post([&load] { load.done->notify(); });
}

Task<void> watcher(Load& load, std::string target) {
  auto stream = co_await load.watch_http->stream(request(load, "GET", target));
  if (!stream || (*stream)->status() != 200) {
    fmt::print(stderr, "watch failed\n");
    std::exit(1);
  }
  std::string buffer;
  while (true) {
    const auto piece = co_await (*stream)->read();
    if (!piece || piece->empty()) {
      fmt::print(stderr, "the watch ended\n");
      std::exit(1);
    }
    const Duration now = load.watch_loop.monotonic();
    buffer += *piece;
    std::size_t start = 0;
    for (auto end = buffer.find('\n'); end != std::string::npos; end = buffer.find('\n', start)) {
      saw(load, std::string_view(buffer).substr(start, end - start), now);
      start = end + 1;
    }
    buffer.erase(0, start);
  }
}

void report(const Load& load) {
  std::vector<double> waits;
  for (const Pod& pod : load.pods) {
    if (pod.bound != Duration::zero()) waits.push_back(seconds(pod.bound - pod.sent) * 1000);
  }
  std::sort(waits.begin(), waits.end());
  int partial = 0;
  double spread = 0;
  for (const Gang& gang : load.by_gang) {
    if (gang.bound > 0 && gang.bound < load.size) ++partial;
    spread = std::max(spread, seconds(gang.last - gang.first) * 1000);
  }
  const auto at = [&](std::size_t percent) {
    return waits.empty()
               ? 0
               : std::round(waits[std::min(waits.size() - 1, waits.size() * percent / 100)] * 10) /
                     10;
  };
  const double whole = seconds(load.last_bind - load.begun);
  json::Object out;
  out["pods"] = load.total();
  out["bound"] = load.bound.load();
  out["failed"] = load.failed;
  out["create_s"] = std::round(seconds(load.created - load.begun) * 1000) / 1000;
  out["last_bind_s"] = std::round(whole * 1000) / 1000;
  out["pods_per_s"] = whole > 0 ? std::round(load.bound / whole) : 0;
  out["create_to_bind_p50_ms"] = at(50);
  out["create_to_bind_p99_ms"] = at(99);
  out["partial_gangs"] = partial;
  out["gang_spread_max_ms"] = std::round(spread * 10) / 10;
  fmt::print("{}\n", json::dump(json::Value(std::move(out))));
}

Task<void> run(Load& load) {
  load.done = load.loop.make_signal();
  const std::string ns = fmt::format("e2e-{}x{}", load.gangs, load.size);
  (void)co_await load.http->request(request(
      load, "POST", "/api/v1/namespaces", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns)));
  if (load.size > 1) {
    co_await create_all(load,
                        load.gangs,
                        "/apis/scheduling.volcano.sh/v1beta1/namespaces/" + ns + "/podgroups",
                        group_body);
  }
  const std::string pods = "/api/v1/namespaces/" + ns + "/pods";
  load.pods.resize(static_cast<std::size_t>(load.total()));
  load.by_gang.resize(static_cast<std::size_t>(load.gangs));
  std::thread([&load, target = pods + "?watch=true"] {
    load.watch_loop.run_until_done(watcher(load, target));
  }).detach();
  load.begun = load.loop.monotonic();
  co_await create_all(load, load.total(), pods, pod_body);
  load.created = load.loop.monotonic();
  while (load.bound < load.total() && load.loop.monotonic() - load.begun < kPatience) {
    co_await load.done->wait(kPatience);
  }
  report(load);
  std::fflush(stdout);
  std::_Exit(load.bound == load.total() ? 0 : 1);  // the open watch ends with the process
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags(argc, argv);
  Load load;
  load.gangs = flags.number("--gangs", load.gangs);
  load.size = flags.number("--size", load.size);
  load.clients = flags.number("--clients", load.clients);
  auto target = bench::read_target(flags.text("--kubeconfig"));
  if (!target) return bench::refuse(target.error());
  load.target = std::move(*target);
  bench::Connections connections;
  connections.patience = kPatience;
  auto http = bench::connect(load.loop, load.target, connections);
  auto watch_http = bench::connect(load.watch_loop, load.target, connections);
  if (!http || !watch_http) return bench::refuse((http ? watch_http : http).error());
  load.http = std::move(*http);
  load.watch_http = std::move(*watch_http);
  load.loop.run_until_done(run(load));
  return 0;
}
