/// What one write costs the server's own thread, without sockets: CPU time of the loop for each
/// kind of write of a pod's life.
///
///   apiserver_writes [--pods N] [--rounds N]
///
/// The server runs in this process over a store in memory. The create comes as JSON text, as from a
/// socket; the others come as values, through the client that the scheduler and the agent have.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "apiserver/server.h"
#include "client/client.h"
#include "json/json.h"
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

/// One write; false when it was refused, which is printed.
using Write = std::function<Task<Result<void>>(int pod)>;

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

std::string name_of(int pod) { return fmt::format("p{}", pod); }

json::Value bound(int pod) {
  return *json::parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"p{}","annotations":{{"muster.dev/gpu-indices":"5"}}}},)"
      R"("target":{{"apiVersion":"v1","kind":"Node","name":"node-0"}}}})",
      pod));
}

json::Value running() {
  std::string conditions;
  for (const std::string_view type :
       {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"}) {
    conditions += fmt::format(
        R"({{"type":"{}","status":"True","lastTransitionTime":"2026-11-15T12:14:33Z","observedGeneration":1}},)",
        type);
  }
  return *json::parse(fmt::format(
      R"({{"status":{{"phase":"Running","conditions":[{}{{"type":"PodScheduled","observedGeneration":1}}],"hostIP":"192.0.2.2",)"
      R"("hostIPs":[{{"ip":"192.0.2.2"}}],"podIP":"100.64.0.6","podIPs":[{{"ip":"100.64.0.6"}}],"startTime":"2026-11-15T12:14:33Z","observedGeneration":1,)"
      R"("containerStatuses":[{{"name":"main","ready":true,"started":true,"restartCount":0,"image":"train:1","imageID":"train:1",)"
      R"("containerID":"hollow://6f99fc88-67a2-4503-bc38-457076d72bf3-main","lastState":{{}},"state":{{"running":{{"startedAt":"2026-11-15T12:14:33Z"}}}},)"
      R"("allocatedResources":{{"cpu":"100m","memory":"64Mi","nvidia.com/gpu":"1"}},)"
      R"("resources":{{"limits":{{"nvidia.com/gpu":"1"}},"requests":{{"cpu":"100m","memory":"64Mi","nvidia.com/gpu":"1"}}}}}}]}}}})",
      conditions));
}

json::Value told(int pod) {
  return *json::parse(fmt::format(
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
  std::unique_ptr<client::Client> scheduler, agent;
  std::unique_ptr<Signal> done;
  int next = 0, finished = 0, failed = 0;
  // Made before the clock starts.
  std::vector<net::Request> creates;
  std::vector<json::Value> bodies;

  Task<Result<void>> create(int pod) {
    const auto answer = co_await http->request(std::move(creates[static_cast<std::size_t>(pod)]));
    if (!answer) co_return fail(answer.error());
    if (answer->status >= 300) co_return fail(Code::kInternal, answer->body);
    co_return Result<void>();
  }
  Task<Result<void>> bind(int pod) {
    const auto answer = co_await scheduler->post_subresource(kube::resources::kPods,
                                                             "default",
                                                             name_of(pod),
                                                             "binding",
                                                             take(pod),
                                                             client::Answer::kNone);
    if (!answer) co_return fail(answer.error());
    co_return Result<void>();
  }
  Task<Result<void>> report(int pod) {
    const auto answer = co_await agent->patch(kube::resources::kPods,
                                              "default",
                                              name_of(pod),
                                              "status",
                                              kube::PatchType::kStrategic,
                                              take(pod),
                                              client::Answer::kNone);
    if (!answer) co_return fail(answer.error());
    co_return Result<void>();
  }
  Task<Result<void>> tell(int pod) {
    const auto answer = co_await scheduler->create(
        kube::resources::kEvents, "default", take(pod), client::Answer::kNone);
    if (!answer) co_return fail(answer.error());
    co_return Result<void>();
  }
  json::Value take(int pod) { return std::move(bodies[static_cast<std::size_t>(pod)]); }

  Task<void> work(const Write& write, int count) {
    while (next < count) {
      const auto written = co_await write(next++);
      if (!written && ++failed == 1) fmt::print(stderr, "refused: {}\n", written.error().message);
      if (++finished == count) done->notify();
    }
  }

  /// Microseconds of the loop's CPU for each write.
  Task<double> measure(const Write& write, int count) {
    next = finished = 0;
    const double begun = cpu_us();
    for (int i = 0; i < kClients; ++i) loop.spawn(work(write, count));
    co_await done->wait(std::chrono::seconds(600));
    co_return (cpu_us() - begun) / count;
  }
};

/// Creates, binds, reports and tells of `count` pods; keeps the best of each.
Task<void> lives(Bench& it,
                 apiserver::Server& api,
                 store::Store& disk,
                 int count,
                 std::map<std::string, double>& best) {
  (void)co_await api.start();
  it.done = it.loop.make_signal();
  it.http = net::make_local_client(it.loop, api.handler(), "bench");
  it.scheduler = api.make_client("bench-scheduler");
  it.agent = api.make_client("bench-agent");
  struct Step {
    const char* name;
    Write write;
    std::function<json::Value(int)> body;
  };
  const Step steps[] = {
      {"create", [&](int pod) { return it.create(pod); }, nullptr},
      {"bind", [&](int pod) { return it.bind(pod); }, bound},
      {"status", [&](int pod) { return it.report(pod); }, [](int) { return running(); }},
      {"event", [&](int pod) { return it.tell(pod); }, told}};
  for (int i = 0; i < count; ++i) it.creates.push_back(created(i));
  for (const Step& step : steps) {
    it.bodies.clear();
    for (int i = 0; step.body && i < count; ++i) it.bodies.push_back(step.body(i));
    const double us = co_await it.measure(step.write, count);
    const auto found = best.find(step.name);
    if (found == best.end() || us < found->second) best[step.name] = us;
  }
  it.http.reset();
  it.scheduler.reset();
  it.agent.reset();
  co_await api.stop();
  co_await disk.close();
}

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
    bench.loop.run_until_done(lives(bench, server, *store, pods, best));
    if (bench.failed > 0) return 1;
  }
  fmt::print("| write of a pod's life | CPU µs of the server's thread |\n|---|---|\n");
  for (const char* name : {"create", "bind", "status", "event"})
    fmt::print("| {} | {:.1f} |\n", name, best[name]);
  return 0;
}
