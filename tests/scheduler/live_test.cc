// The scheduler against the embedded API server: what it does when the server answers its bindings in ways that no plan foresees.
#include "lib/live_server.h"

#include <fmt/core.h>

#include "scheduler/scheduler.h"

namespace muster::scheduler {
namespace {

namespace r = client::resources;

/// A server, and a scheduler that talks to it through a handler of the test's.
class Cluster : public LiveServer {
 public:
  void run(Task<void> (*scenario)(Cluster&)) {
    LiveServer::run([this, scenario] { return scheduled(scenario); });
  }

  std::unique_ptr<Scheduler> scheduler;
  /// Called before each binding that the scheduler posts, with the name of its pod.
  std::function<Task<void>(std::string)> before_binding;
  std::map<std::string, int> bindings;  // posted by the scheduler

  Task<std::string> node_of(std::string pod) {
    const auto object = co_await client->get(r::kPods, "default", pod);
    co_return object ? json::text(json::at(*object, "spec", "nodeName")) : "(no pod)";
  }

 private:
  Task<void> scheduled(Task<void> (*scenario)(Cluster&)) {
    const auto meddled = [this](net::Request request, net::ResponseWriter& writer) -> Task<void> {
      if (request.method == "POST" && request.target.ends_with("/binding")) {
        const auto end = request.target.rfind('/'), begin = request.target.rfind('/', end - 1) + 1;
        const auto pod = request.target.substr(begin, end - begin);
        ++bindings[pod];
        if (before_binding) co_await before_binding(pod);
      }
      co_await handler(std::move(request), writer);
    };
    const auto other = client_of(meddled);
    client::Informers informers(loop, *other);
    auto made = make_scheduler(loop, *other, informers, Options{});
    EXPECT_TRUE(made);
    scheduler = std::move(*made);
    scheduler->start();
    co_await scenario(*this);
    co_await scheduler->stop();
    co_await informers.stop_all();
    scheduler.reset();
  }
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
  co_await c.create(r::kNodes, node("small", 1));
  c.before_binding = [&c](std::string name) -> Task<void> {
    if (name != "contested" || c.bindings[name] > 1) co_return;
    // Where our scheduler would never have put it.
    co_await c.create(r::kNodes, node("another", 2));
    co_await c.bind(name, "another");
  };
  co_await c.create(r::kPods, pod("contested", 1));
  co_await c.until("the refusal is counted", [&] { return c.scheduler->counters().bind_failures == 1; });
  // What the other one's binding holds is taken, and what ours would have held is free.
  co_await c.create(r::kPods, pod("second", 1));
  co_await c.until("the next pod is bound", [&] { return c.scheduler->counters().bound == 1; });
  co_await c.create(r::kPods, pod("third", 1));
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
