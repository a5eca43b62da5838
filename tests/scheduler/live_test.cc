// The scheduler against the embedded API server: what it does when the server answers its bindings in ways that no plan foresees.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "apiserver/server.h"
#include "client/client.h"
#include "client/informer.h"
#include "kube/meta.h"
#include "net/client.h"
#include "net/loop.h"
#include "net/tls.h"
#include "scheduler/scheduler.h"
#include "store/store.h"

namespace muster::scheduler {
namespace {

namespace r = client::resources;

/// An API server, a scheduler that talks to it through a handler of the test's, and a client that goes past it.
class Cluster {
 public:
  Cluster() {
    char path[] = "/tmp/scheduler-live-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~Cluster() { std::filesystem::remove_all(folder_); }

  void run(std::function<Task<void>(Cluster&)> scenario) { loop.run_until_done(all(std::move(scenario))); }

  net::Loop loop;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<Scheduler> scheduler;
  /// Called before each binding that the scheduler posts, with the name of its pod.
  std::function<Task<void>(std::string)> before_binding;
  std::map<std::string, int> bindings;  // posted by the scheduler

  Task<void> create(const client::Resource& resource, std::string ns, std::string yaml) {
    auto object = json::parse_yaml_one(yaml);
    const auto made = co_await client->create(resource, std::move(ns), std::move(*object));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
  }
  Task<void> bind(std::string pod, std::string node) {
    json::Value body = json::Object{{"apiVersion", "v1"}, {"kind", "Binding"}, {"metadata", json::Object{{"name", pod}}}, {"target", json::Object{{"kind", "Node"}, {"name", node}}}};
    const auto done = co_await client->post_subresource(r::kPods, "default", pod, "binding", std::move(body));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
  Task<std::string> node_of(std::string pod) {
    const auto object = co_await client->get(r::kPods, "default", pod);
    co_return object ? json::text(json::at(*object, "spec", "nodeName")) : "(no pod)";
  }
  Task<void> until(std::string what, std::function<bool()> holds) {
    const auto end = loop.monotonic() + std::chrono::seconds(20);
    while (!holds()) {
      if (loop.monotonic() > end) {
        ADD_FAILURE() << "waited in vain until " << what;
        co_return;
      }
      co_await loop.sleep(std::chrono::milliseconds(5));
    }
  }

 private:
  Task<void> all(std::function<Task<void>(Cluster&)> scenario) {
    auto store = store::open(loop, folder_ + "/db");
    if (!store) {
      ADD_FAILURE() << store.error().message;
      co_return;
    }
    apiserver::ServerOptions options;
    const auto key = net::make_signing_key();
    if (key) options.token_key_pem = *key;
    apiserver::Server server(loop, **store, std::move(options));
    const auto started = co_await server.start();
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    client = client::make_client(loop, net::make_local_client(loop, server.handler(), "system:muster", true), client::ClientOptions{});
    const auto meddled = [this, handler = server.handler()](net::Request request, net::ResponseWriter& writer) -> Task<void> {
      if (request.method == "POST" && request.target.ends_with("/binding")) {
        const auto end = request.target.rfind('/'), begin = request.target.rfind('/', end - 1) + 1;
        const auto pod = request.target.substr(begin, end - begin);
        ++bindings[pod];
        if (before_binding) co_await before_binding(pod);
      }
      co_await handler(std::move(request), writer);
    };
    const auto other = client::make_client(loop, net::make_local_client(loop, meddled, "system:muster", true), client::ClientOptions{});
    client::Informers informers(loop, *other);
    auto made = make_scheduler(loop, *other, informers, Options{});
    EXPECT_TRUE(made);
    scheduler = std::move(*made);
    scheduler->start();
    co_await scenario(*this);
    co_await scheduler->stop();
    co_await informers.stop_all();
    scheduler.reset();
    co_await server.stop();
    client.reset();
    co_await (*store)->close();
  }

  std::string folder_;
};

std::string node(std::string_view name, int gpus) {
  return fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}}}, status: {{allocatable: {{cpu: '8', memory: 8Gi, pods: '110', nvidia.com/gpu: '{}'}}, "
                     "conditions: [{{type: Ready, status: 'True'}}]}}}}",
                     name, gpus);
}

std::string pod(std::string_view name, int gpus) {
  return fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: '{}'}}}}}}]}}}}", name, gpus);
}

Task<void> bound_by_another(Cluster& c) {
  co_await c.create(r::kNodes, "", node("small", 1));
  c.before_binding = [&c](std::string name) -> Task<void> {
    if (name != "contested" || c.bindings[name] > 1) co_return;
    // Where our scheduler would never have put it.
    co_await c.create(r::kNodes, "", node("another", 2));
    co_await c.bind(name, "another");
  };
  co_await c.create(r::kPods, "default", pod("contested", 1));
  co_await c.until("the refusal is counted", [&] { return c.scheduler->counters().bind_failures == 1; });
  // What the other one's binding holds is taken, and what ours would have held is free.
  co_await c.create(r::kPods, "default", pod("second", 1));
  co_await c.until("the next pod is bound", [&] { return c.scheduler->counters().bound == 1; });
  co_await c.create(r::kPods, "default", pod("third", 1));
  co_await c.until("and the one behind it", [&] { return c.scheduler->counters().bound == 2; });
  co_await c.until("nothing is left to do", [&] { return c.scheduler->idle(); });
  const auto contested = co_await c.node_of("contested");
  EXPECT_EQ(contested, "another");
  const auto second = co_await c.node_of("second");
  const auto third = co_await c.node_of("third");
  EXPECT_EQ((std::set{second, third}), (std::set<std::string>{"small", "another"}));
  EXPECT_EQ(c.bindings["contested"], 1) << "a pod that has a node is not bound again";
  EXPECT_EQ(c.scheduler->counters().bind_failures, 1);
}

TEST(SchedulerLive, APodThatAnotherOneBindsMeanwhileIsLeftToIt) {
  Cluster cluster;
  cluster.run(bound_by_another);
}

}  // namespace
}  // namespace muster::scheduler
