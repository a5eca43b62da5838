// The scheduler against the embedded API server: what it does when the server answers its bindings
// in ways that no plan foresees.
#include <fmt/core.h>

#include "kube/meta.h"
#include "lib/live_server.h"
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

  Options options;
  std::unique_ptr<Scheduler> scheduler;
  /// Called before each binding that the scheduler posts, with the name of its pod.
  std::function<Task<void>(std::string)> before_binding;
  std::map<std::string, int> bindings;  // posted by the scheduler
  /// Requests of the scheduler that the server denies, as a policy of somebody's would.
  std::function<bool(const net::Request&)> denies;
  int denied = 0;
  /// So many bindings, from now on, are lost on their way, and nobody can tell that they are.
  int lost = 0;

  Task<std::string> node_of(std::string pod) {
    const auto object = co_await client->get(r::kPods, "default", pod);
    co_return object ? json::text_at(*object, "spec", "nodeName") : "(no pod)";
  }

  /// Returns once the pod is not marked as a victim.
  Task<void> unmarked(std::string pod) {
    for (int looks = 0; looks < 1000; ++looks) {
      const auto object = co_await client->get(r::kPods, "default", pod);
      if (object && kube::condition(*object, "DisruptionTarget").is_null()) co_return;
      co_await loop.sleep(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << pod << " stays marked";
  }

 private:
  static Task<void> refuse(net::ResponseWriter& writer,
                           int status,
                           std::string reason,
                           std::string message) {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json");
    response.body = fmt::format(
        R"({{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{}","code":{},"message":"{}"}})",
        reason,
        status,
        message);
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  }

  Task<void> scheduled(Task<void> (*scenario)(Cluster&)) {
    const auto meddled = [this](net::Request request, net::ResponseWriter& writer) -> Task<void> {
      if (request.method == "POST" && request.target.ends_with("/binding")) {
        const auto end = request.target.rfind('/'), begin = request.target.rfind('/', end - 1) + 1;
        const auto pod = request.target.substr(begin, end - begin);
        ++bindings[pod];
        if (before_binding) co_await before_binding(pod);
        if (lost > 0) {
          --lost;
          co_await refuse(writer, 503, "ServiceUnavailable", "the connection broke");
          co_return;
        }
      }
      if (denies && denies(request)) {
        ++denied;
        co_await refuse(writer, 403, "Forbidden", "a policy says no");
        co_return;
      }
      co_await handler(std::move(request), writer);
    };
    const auto other = client_of(meddled);
    client::Informers informers(loop, *other);
    auto made = make_scheduler(loop, *other, informers, options);
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
  return fmt::format(
      "{{apiVersion: v1, kind: Node, metadata: {{name: {}}}, status: {{allocatable: {{cpu: '8', memory: 8Gi, pods: '110', nvidia.com/gpu: '{}'}}, "
      "conditions: [{{type: Ready, status: 'True'}}]}}}}",
      name,
      gpus);
}

std::string pod(std::string_view name, int gpus, std::string_view claim = "") {
  if (!claim.empty()) {
    return fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{containers: [{{name: c, image: i}}], "
        "volumes: [{{name: v, persistentVolumeClaim: {{claimName: {}}}}}]}}}}",
        name,
        claim);
  }
  return fmt::format(
      "{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: '{}'}}}}}}]}}}}",
      name,
      gpus);
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
  co_await c.until("the refusal is counted",
                   [&] { return c.scheduler->counters().bind_failures == 1; });
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

Task<void> made_anew(Cluster& c) {
  co_await c.create(r::kNodes, node("small", 1));
  bool refused = false;
  c.before_binding = [&c, &refused](std::string name) -> Task<void> {
    if (name != "worker") co_return;
    if (c.bindings[name] > 1) {
      co_await c.until("the first binding is refused", [&] { return refused; });
      co_return;
    }
    const auto gone = co_await c.client->remove(r::kPods, "default", name, {.grace_s = 0});
    EXPECT_TRUE(gone);
    co_await c.create(r::kPods, pod("worker", 1));
    co_await c.until("its successor is being bound", [&] { return c.bindings["worker"] == 2; });
  };
  co_await c.create(r::kPods, pod("worker", 1));
  co_await c.until("the refusal is counted",
                   [&] { return c.scheduler->counters().bind_failures == 1; });
  // The successor's binding is on its way, and its place is taken.
  co_await c.create(r::kPods, pod("rival", 1));
  co_await c.until("the rival waits", [&] {
    return c.scheduler->engine().stats().gangs_waiting == 1 || c.bindings["rival"] > 0;
  });
  refused = true;
  co_await c.until("the successor is bound", [&] { return c.scheduler->counters().bound >= 1; });
  co_await c.until("nothing is left to do", [&] { return c.scheduler->idle(); });
  const auto successor = co_await c.node_of("worker");
  EXPECT_EQ(successor, "small");
  EXPECT_EQ(c.bindings["rival"], 0) << "one GPU was given twice";
  EXPECT_EQ(c.bindings["worker"], 2);
}

TEST(SchedulerLive, ABindingThatComesTooLateDoesNotUndoTheOneOfAPodMadeAnew) {
  Cluster cluster;
  cluster.run(made_anew);
}

Task<void> binding_in_doubt(Cluster& c) {
  co_await c.create(r::kNodes, node("small", 1));
  c.lost = 3;
  c.before_binding = [&c](std::string name) -> Task<void> {
    if (name == "worker" && c.bindings[name] == 1) co_await c.create(r::kPods, pod("rival", 1));
  };
  co_await c.create(r::kPods, pod("worker", 1));
  co_await c.until("the binding is answered at last",
                   [&] { return c.scheduler->counters().bound == 1; });
  const auto worker = co_await c.node_of("worker");
  EXPECT_EQ(worker, "small");
  EXPECT_EQ(c.bindings["worker"], 4);
  EXPECT_EQ(c.bindings["rival"], 0) << "what the first may hold was given away";
}

TEST(SchedulerLive, APodWhoseBindingIsInDoubtKeepsItsPlace) {
  Cluster cluster;
  cluster.run(binding_in_doubt);
}

/// The first attempt was done, whatever its answer said: the second one's refusal is no failure.
Task<void> bound_unknown(Cluster& c) {
  co_await c.create(r::kNodes, node("small", 1));
  bool posted = false;
  c.before_binding = [&](std::string name) -> Task<void> {
    if (name != "worker" || std::exchange(posted, true)) co_return;
    co_await c.bind(name, "small");
    c.lost = 1;
  };
  co_await c.create(r::kPods, pod("worker", 1));
  co_await c.until("it is bound and known to be", [&] {
    return c.scheduler->engine().stats().pods_bound == 1 && c.scheduler->idle();
  });
  co_await c.create(r::kPods, pod("rival", 1));
  co_await c.until("the rival is looked at", [&] {
    return c.scheduler->engine().stats().gangs_waiting == 1 || c.bindings["rival"] > 0;
  });
  EXPECT_EQ(c.bindings["rival"], 0);
}

TEST(SchedulerLive, ABindingThatWasDoneWithoutAnAnswerIsDone) {
  Cluster cluster;
  cluster.run(bound_unknown);
}

constexpr const char* kLater =
    "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: later}, provisioner: slow, volumeBindingMode: WaitForFirstConsumer}";

std::string claim(std::string_view name) {
  return fmt::format(
      "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {}}}, spec: {{storageClassName: later, accessModes: [ReadWriteOnce], "
      "resources: {{requests: {{storage: 1Gi}}}}}}}}",
      name);
}

std::string told_node(client::Informer& claims, const std::string& name) {
  const auto object = claims.find("default/" + name);
  return object ? json::text_at(
                      *object, "metadata", "annotations", "volume.kubernetes.io/selected-node")
                : "";
}

Task<void> slow_provisioner(Cluster& c) {
  auto& claims = c.follow(r::kPersistentVolumeClaims);
  co_await c.create(r::kStorageClasses, kLater);
  co_await c.create(r::kNodes, node("only", 1));
  for (const std::string name : {"a", "b", "c"}) {
    co_await c.create(r::kPersistentVolumeClaims, claim(name));
    co_await c.create(r::kPods, pod("with-" + name, 0, name));
  }
  co_await c.until("all claims are told their node", [&] {
    return told_node(claims, "a") == "only" && told_node(claims, "b") == "only" &&
           told_node(claims, "c") == "only";
  });
  co_await c.create(r::kPods, pod("without", 1));
  co_await c.until("a pod without claims goes past",
                   [&] { return c.scheduler->counters().bound == 1; });

  // The provisioner cannot do it there: the claim is free again, and so is its pod.
  json::Value back = json::Object{};
  json::make_object(back, {"metadata", "annotations"})["volume.kubernetes.io/selected-node"] =
      json::Value(nullptr);
  const auto patched = co_await c.client->patch(
      r::kPersistentVolumeClaims, "default", "a", "", client::PatchType::kMerge, std::move(back));
  EXPECT_TRUE(patched);
  co_await c.until("that is a failed binding",
                   [&] { return c.scheduler->counters().bind_failures == 1; });
  co_await c.until("and is tried again", [&] { return told_node(claims, "a") == "only"; });

  const auto gone = co_await c.client->remove(r::kPods, "default", "with-b", {.grace_s = 0});
  EXPECT_TRUE(gone);
  co_await c.until("nobody waits for a pod that is gone",
                   [&] { return c.scheduler->counters().bind_failures == 2; });
  // And stop() waits for none of them.
}

TEST(SchedulerLive, ASlowProvisionerHoldsUpNobodyElse) {
  Cluster cluster;
  cluster.options.volumes = true;
  cluster.options.in_flight_max = 2;
  cluster.run(slow_provisioner);
}

Task<void> binding_denied(Cluster& c) {
  auto& pods = c.follow(r::kPods);
  co_await c.create(r::kNodes, node("small", 1));
  c.denies = [](const net::Request& request) { return request.target.ends_with("/binding"); };
  co_await c.create(r::kPods, pod("worker", 1));
  const auto said = [&] {
    const auto object = pods.find("default/worker");
    const auto& conditions = object ? json::array_at(*object, "status", "conditions")
                                    : json::as_array(json::null_value());
    return conditions.empty() ? std::string() : json::text_at(conditions[0], "message");
  };
  co_await c.until("the pod says why it waits", [&] { return !said().empty(); });
  EXPECT_EQ(said(), "binding to node small failed: a policy says no");
  c.denies = nullptr;
  co_await c.until("it is bound all the same once it may be",
                   [&] { return c.scheduler->counters().bound == 1; });
}

TEST(SchedulerLive, APodWhoseBindingIsDeniedSaysSo) {
  Cluster cluster;
  cluster.run(binding_denied);
}

Task<void> eviction_denied(Cluster& c) {
  const std::string ended_at_once =
      "terminationGracePeriodSeconds: 0, containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: '1'}}}]";
  co_await c.create(
      r::kPriorityClasses,
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}");
  co_await c.create(r::kNodes, node("small", 1));
  co_await c.create(
      r::kPods,
      "{apiVersion: v1, kind: Pod, metadata: {name: kept}, spec: {" + ended_at_once + "}}");
  co_await c.until("it runs", [&] { return c.scheduler->counters().bound == 1; });
  c.denies = [](const net::Request& request) { return request.method == "DELETE"; };
  const Duration begun = c.loop.monotonic();
  co_await c.create(
      r::kPods,
      "{apiVersion: v1, kind: Pod, metadata: {name: urgent}, spec: {priorityClassName: high, " +
          ended_at_once + "}}");
  co_await c.until("its eviction is denied four times", [&] { return c.denied == 4; });
  // Between the attempts it is nobody's victim: a failure of its own is not to be taken for a
  // preemption.
  co_await c.unmarked("kept");
  EXPECT_GE(c.loop.monotonic() - begun, std::chrono::milliseconds(100 + 200 + 400));
  c.denies = nullptr;
  co_await c.until("the eviction succeeds once it may",
                   [&] { return c.scheduler->counters().evicted == 1; });
  co_await c.until("and the other one gets the room",
                   [&] { return c.scheduler->counters().bound == 2; });
}

TEST(SchedulerLive, AnEvictionThatIsDeniedIsTriedAgainLaterAndLater) {
  Cluster cluster;
  cluster.run(eviction_denied);
}

Task<void> left_in_order(Cluster& c) {
  co_await c.create(r::kNodes, node("large", 8));
  bool first_is_there = false, go_on = false;
  c.before_binding = [&](std::string) -> Task<void> {
    first_is_there = true;
    co_await c.until("the test goes on", [&] { return go_on; });
  };
  for (int i = 0; i < 6; ++i) co_await c.create(r::kPods, pod(fmt::format("worker-{}", i), 1));
  co_await c.until("all are decided and the first is being bound",
                   [&] { return first_is_there && c.scheduler->engine().stats().pods_bound == 6; });
  go_on = true;
  co_await c.scheduler->finish(std::chrono::seconds(20));
  EXPECT_EQ(c.scheduler->counters().bound, 6);
}

TEST(SchedulerLive, WhoLeavesInOrderFinishesWhatWasDecided) {
  Cluster cluster;
  cluster.options.in_flight_max = 1;
  cluster.run(left_in_order);
}

}  // namespace
}  // namespace muster::scheduler
