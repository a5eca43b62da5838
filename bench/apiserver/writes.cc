/// What one write costs the server's own thread, without sockets: CPU time of the loop for each
/// kind of write of a pod's life.
///
///   apiserver_writes [--pods N] [--rounds N]
///
/// The server runs in this process over a store in memory; requests come through the in-process
/// transport: the create as JSON text, as from a socket, the others as values, as from the
/// scheduler and the agent.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "apiserver/server.h"
#include "json/json.h"
#include "kube/shared.h"
#include "net/http/client.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"
#include "store/store.h"

namespace {

using namespace muster;

constexpr int kClients = 64;

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

using Make = std::function<net::Request(int)>;

net::Request with_value(std::string method,
                        std::string target,
                        std::string type,
                        std::string_view text) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.set("User-Agent", "bench/1");
  request.headers.set("Content-Type", std::move(type));
  request.value = kube::ObjectPtr(std::make_shared<const json::Value>(*json::parse(text)));
  request.wants_value = true;
  return request;
}

net::Request created(int pod) {
  net::Request request;
  request.method = "POST";
  request.target = "/api/v1/namespaces/default/pods";
  request.headers.set("User-Agent", "bench/1");
  request.headers.set("Content-Type", "application/json");
  request.body = fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{}","labels":{{"app":"e2e"}}}},)"
      R"("spec":{{"restartPolicy":"Never","containers":[{{"name":"main","image":"train:1",)"
      R"("command":["train"],"resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}},)"
      R"("limits":{{"nvidia.com/gpu":"1"}}}}}}]}}}})",
      pod);
  return request;
}

net::Request bound(int pod) {
  return with_value(
      "POST",
      fmt::format("/api/v1/namespaces/default/pods/p{}/binding", pod),
      "application/json",
      fmt::format(
          R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"p{}","annotations":{{"muster.dev/gpu-indices":"5"}}}},)"
          R"("target":{{"apiVersion":"v1","kind":"Node","name":"node-0"}}}})",
          pod));
}

net::Request running(int pod) {
  std::string conditions;
  for (const std::string_view type :
       {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"}) {
    conditions += fmt::format(
        R"({{"type":"{}","status":"True","lastTransitionTime":"2026-11-15T12:14:33Z","observedGeneration":1}},)",
        type);
  }
  return with_value(
      "PATCH",
      fmt::format("/api/v1/namespaces/default/pods/p{}/status", pod),
      "application/strategic-merge-patch+json",
      fmt::format(
          R"({{"status":{{"phase":"Running","conditions":[{}{{"type":"PodScheduled","observedGeneration":1}}],"hostIP":"192.0.2.2",)"
          R"("hostIPs":[{{"ip":"192.0.2.2"}}],"podIP":"100.64.0.6","podIPs":[{{"ip":"100.64.0.6"}}],"startTime":"2026-11-15T12:14:33Z","observedGeneration":1,)"
          R"("containerStatuses":[{{"name":"main","ready":true,"started":true,"restartCount":0,"image":"train:1","imageID":"train:1",)"
          R"("containerID":"hollow://6f99fc88-67a2-4503-bc38-457076d72bf3-main","lastState":{{}},"state":{{"running":{{"startedAt":"2026-11-15T12:14:33Z"}}}},)"
          R"("allocatedResources":{{"cpu":"100m","memory":"64Mi","nvidia.com/gpu":"1"}},)"
          R"("resources":{{"limits":{{"nvidia.com/gpu":"1"}},"requests":{{"cpu":"100m","memory":"64Mi","nvidia.com/gpu":"1"}}}}}}]}}}})",
          conditions));
}

net::Request told(int pod) {
  return with_value(
      "POST",
      "/api/v1/namespaces/default/events",
      "application/json",
      fmt::format(
          R"({{"apiVersion":"v1","kind":"Event","metadata":{{"name":"p{0}.17","namespace":"default"}},"involvedObject":{{"kind":"Pod",)"
          R"("namespace":"default","name":"p{0}","uid":"6f99fc88-67a2-4503-bc38-457076d72bf3","apiVersion":"v1"}},"reason":"Scheduled",)"
          R"("message":"Successfully assigned default/p{0} to node-0","source":{{"component":"muster-scheduler"}},)"
          R"("firstTimestamp":"2026-11-15T12:14:33Z","lastTimestamp":"2026-11-15T12:14:33Z","count":1,"type":"Normal",)"
          R"("reportingComponent":"muster-scheduler"}})",
          pod));
}

struct Bench {
  net::Loop loop;
  std::unique_ptr<net::Client> http;
  std::unique_ptr<Signal> done;
  int next = 0, finished = 0, failed = 0;

  Task<void> client(const std::vector<net::Request>& requests) {
    while (next < static_cast<int>(requests.size())) {
      const int index = next++;
      const auto answer = co_await http->request(requests[static_cast<std::size_t>(index)]);
      if ((!answer || answer->status >= 300) && ++failed == 1)
        fmt::print(stderr, "refused: {}\n", answer ? answer->body : answer.error().message);
      if (++finished == static_cast<int>(requests.size())) done->notify();
    }
  }

  /// Microseconds of the loop's CPU for each request.
  Task<double> measure(const Make& make, int count) {
    std::vector<net::Request> requests;
    for (int i = 0; i < count; ++i) requests.push_back(make(i));
    next = finished = 0;
    const double begun = cpu_us();
    for (int i = 0; i < kClients; ++i) loop.spawn(client(requests));
    co_await done->wait(std::chrono::seconds(600));
    co_return (cpu_us() - begun) / count;
  }
};

}  // namespace

int main(int argc, char** argv) {
  int pods = 5000, rounds = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--pods") pods = std::atoi(argv[i + 1]);
    if (flag == "--rounds") rounds = std::atoi(argv[i + 1]);
  }
  std::map<std::string, double> best;
  for (int round = 0; round < rounds; ++round) {
    Bench bench;
    auto store = std::move(*store::open(bench.loop, ":memory:"));
    apiserver::ServerOptions options;
    options.token_key_pem = *net::make_signing_key();
    options.admin_token = "secret";
    apiserver::Server server(bench.loop, *store, std::move(options));
    bench.loop.run_until_done([](Bench& it,
                                 apiserver::Server& api,
                                 store::Store& disk,
                                 int count,
                                 std::map<std::string, double>& out) -> Task<void> {
      (void)co_await api.start();
      it.done = it.loop.make_signal();
      it.http = net::make_local_client(it.loop, api.handler(), "bench");
      const std::pair<const char*, Make> writes[] = {
          {"create", created}, {"bind", bound}, {"status", running}, {"event", told}};
      for (const auto& [name, make] : writes) {
        const double us = co_await it.measure(make, count);
        const auto found = out.find(name);
        if (found == out.end() || us < found->second) out[name] = us;
      }
      it.http.reset();
      co_await api.stop();
      co_await disk.close();
    }(bench, server, *store, pods, best));
    if (bench.failed > 0) return 1;
  }
  fmt::print("| write of a pod's life | CPU µs of the server's thread |\n|---|---|\n");
  for (const char* name : {"create", "bind", "status", "event"})
    fmt::print("| {} | {:.1f} |\n", name, best[name]);
  return 0;
}
