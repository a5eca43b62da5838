/// Load for one API server over its socket: durable creates per second, a large list, watch
/// fan-out.
///
///   apiserver_load --kubeconfig FILE [--creates N] [--pods N] [--watchers N] [--changes N]
///
/// 0 leaves a part out. Prints one JSON object. The clients and the server share the machine, so
/// throughput and list times hold the clients' work too; watch latencies do not (watchers.h).
#include "load.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/strings.h"
#include "json/json.h"
#include "watchers.h"

namespace {

using namespace muster;
using bench::seconds;

struct Load {
  net::Loop loop;
  std::unique_ptr<net::Client> http;
  bench::Target target;
  int creates = 2000, pods = 10'000, watchers = 1000, changes = 100;
  json::Object report;
};

net::Request request(const Load& load,
                     std::string method,
                     std::string path,
                     std::string body = "") {
  return bench::request(load.target, std::move(method), std::move(path), std::move(body));
}

std::string pod_body(const std::string& name) {
  return fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","labels":{{"app":"load","index":"{}"}}}},"spec":{{"schedulerName":"nobody","automountServiceAccountToken":false,)"
      R"("containers":[{{"name":"main","image":"busybox:1.36","command":["sleep","3600"],"env":[{{"name":"A","value":"1"}},{{"name":"B","value":"2"}}],)"
      R"("resources":{{"requests":{{"cpu":"1","memory":"1Gi"}},"limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}})",
      name,
      name);
}

/// `clients` coroutines, each creating as soon as its last create was acknowledged.
Task<double> creates(Load& load,
                     int clients,
                     int total,
                     std::string path,
                     std::string prefix,
                     std::string (*body)(const std::string&)) {
  struct Progress {
    int next = 0, done = 0, failed = 0;
    std::unique_ptr<Signal> signal;
  };
  const auto progress = std::make_shared<Progress>();
  progress->signal = load.loop.make_signal();
  const Duration begun = load.loop.monotonic();
  for (int i = 0; i < clients; ++i) {
    load.loop.spawn([](Load& it,
                       int count,
                       std::string where,
                       std::string start,
                       std::string (*make)(const std::string&),
                       std::shared_ptr<Progress> shared) -> Task<void> {
      while (shared->next < count) {
        const std::string name = fmt::format("{}{}", start, shared->next++);
        const auto answer = co_await it.http->request(request(it, "POST", where, make(name)));
        if (!answer || answer->status != 201) {
          if (++shared->failed == 1)
            fmt::print(stderr,
                       "create failed: {}\n",
                       answer ? answer->body.substr(0, 300) : answer.error().message);
        }
        if (++shared->done == count) shared->signal->notify();
      }
    }(load, total, path, prefix, body, progress));
  }
  co_await progress->signal->wait(std::chrono::seconds(300));
  co_return (progress->done - progress->failed) / seconds(load.loop.monotonic() - begun);
}

std::string config_map(const std::string& name) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"data":{{"a":"{}"}}}})", name, std::string(400, 'x'));
}

Task<void> measure_list(Load& load) {
  const auto made =
      co_await creates(load, 64, load.pods, "/api/v1/namespaces/load/pods", "p-", pod_body);
  load.report["pod_creates_per_s_64"] = static_cast<std::int64_t>(made);
  double best = 1e9, sum = 0;
  std::size_t bytes = 0;
  constexpr int kTimes = 5;
  for (int i = 0; i < kTimes; ++i) {
    const Duration begun = load.loop.monotonic();
    const auto answer =
        co_await load.http->request(request(load, "GET", "/api/v1/namespaces/load/pods"));
    if (!answer || answer->status != 200) {
      fmt::print(stderr,
                 "list failed: {}\n",
                 answer ? answer->body.substr(0, 200) : answer.error().message);
      co_return;
    }
    const double took = seconds(load.loop.monotonic() - begun);
    best = std::min(best, took);
    sum += took;
    bytes = answer->body.size();
  }
  load.report["list_ms"] = static_cast<std::int64_t>(best * 1000);
  load.report["list_mean_ms"] = static_cast<std::int64_t>(sum / kTimes * 1000);
  load.report["list_mb"] = static_cast<std::int64_t>(bytes / 1000000);
}

/// The p-th percentile in milliseconds, to a hundredth.
double percentile_ms(std::vector<std::int64_t>& sorted_ns, std::size_t p) {
  return std::round(static_cast<double>(sorted_ns[sorted_ns.size() * p / 100]) / 1e4) / 100;
}

/// One object changes now and then; how long until each watcher's machine has the event? Told
/// twice: from the moment the write was sent (one fsync included), and from the moment the write
/// was known, by its answer or by the first watcher, whichever was first.
Task<void> measure_fanout(Load& load) {
  (void)co_await load.http->request(
      request(load, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"fanout"}})"));
  co_await load.loop.sleep(std::chrono::milliseconds(500));
  const auto made = co_await load.http->request(
      request(load,
              "POST",
              "/api/v1/namespaces/fanout/configmaps",
              R"({"metadata":{"name":"tick"},"data":{"tick":"start"}})"));
  if (!made || made->status != 201) co_return;
  const auto object = json::parse(made->body);
  const std::string version = object ? json::text_at(*object, "metadata", "resourceVersion") : "";
  bench::Watchers watchers(
      {load.target.host,
       load.target.port,
       load.target.token,
       "/api/v1/namespaces/fanout/configmaps?watch=true&resourceVersion=" + version,
       load.watchers});
  for (int i = 0; i < 600 && watchers.connected() < load.watchers; ++i)
    co_await load.loop.sleep(std::chrono::milliseconds(100));
  co_await load.loop.sleep(std::chrono::milliseconds(500));
  struct Write {
    std::int64_t sent = 0, answered = 0;
  };
  std::map<std::string, Write> writes;
  for (int i = 0; i < load.changes; ++i) {
    const std::string tick = std::to_string(i);
    auto put = request(load,
                       "PATCH",
                       "/api/v1/namespaces/fanout/configmaps/tick",
                       fmt::format(R"({{"data":{{"tick":"{}"}}}})", tick));
    put.headers.set("Content-Type", "application/merge-patch+json");
    Write& write = writes[tick];
    write.sent = bench::realtime_ns();
    (void)co_await load.http->request(std::move(put));
    write.answered = bench::realtime_ns();
    co_await load.loop.sleep(std::chrono::milliseconds(100));
    watchers.read_one();
  }
  load.report["watchers"] = watchers.connected();
  load.report["watch_floor_ms"] =
      std::round(bench::fanout_floor_ms(load.watchers, made->body.size()) * 100) / 100;
  std::vector<std::int64_t> from_sent, from_known;
  for (auto& [tick, times] : watchers.finish()) {
    if (!writes.contains(tick)) continue;
    const Write& write = writes[tick];
    const std::int64_t known =
        std::min(write.answered, *std::min_element(times.begin(), times.end()));
    for (const std::int64_t time : times) {
      from_sent.push_back(time - write.sent);
      from_known.push_back(time - known);
    }
  }
  load.report["events"] = static_cast<std::int64_t>(from_known.size());
  if (from_known.empty()) co_return;
  std::sort(from_sent.begin(), from_sent.end());
  std::sort(from_known.begin(), from_known.end());
  load.report["watch_p50_ms"] = percentile_ms(from_known, 50);
  load.report["watch_p99_ms"] = percentile_ms(from_known, 99);
  load.report["watch_from_request_p50_ms"] = percentile_ms(from_sent, 50);
  load.report["watch_from_request_p99_ms"] = percentile_ms(from_sent, 99);
}

Task<void> run(Load& load) {
  (void)co_await load.http->request(
      request(load, "POST", "/api/v1/namespaces", R"({"metadata":{"name":"load"}})"));
  // A real server without its controller manager has nobody who makes the account that pods need.
  (void)co_await load.http->request(request(load,
                                            "POST",
                                            "/api/v1/namespaces/load/serviceaccounts",
                                            R"({"metadata":{"name":"default"}})"));
  co_await load.loop.sleep(std::chrono::milliseconds(500));
  for (const int clients : {1, 16, 64}) {
    if (load.creates == 0) break;  // would never be done
    const int total = clients == 1 ? load.creates / 4 : load.creates;
    const double rate = co_await creates(load,
                                         clients,
                                         total,
                                         "/api/v1/namespaces/load/configmaps",
                                         fmt::format("c{}-", clients),
                                         config_map);
    load.report[fmt::format("creates_per_s_{}", clients)] = static_cast<std::int64_t>(rate);
  }
  if (load.watchers > 0) co_await measure_fanout(load);
  if (load.pods > 0) co_await measure_list(load);
  fmt::print("{}\n", json::dump(json::Value(load.report)));
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags(argc, argv);
  Load load;
  load.creates = flags.number("--creates", load.creates);
  load.pods = flags.number("--pods", load.pods);
  load.watchers = flags.number("--watchers", load.watchers);
  load.changes = flags.number("--changes", load.changes);
  auto target = bench::read_target(flags.text("--kubeconfig"));
  if (!target) return bench::refuse(target.error());
  load.target = std::move(*target);
  bench::Connections connections;
  connections.most = 4096;
  connections.patience = std::chrono::seconds(120);
  auto http = bench::connect(load.loop, load.target, connections);
  if (!http) return bench::refuse(http.error());
  load.http = std::move(*http);
  load.loop.run_until_done(run(load));
  return 0;
}
