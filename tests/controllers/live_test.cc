// The controllers against the embedded API server: what the frame does with caches, conflicts and
// the three MPIJob versions cannot be seen in a plan. Nothing runs pods here; the tests play the
// kubelet.
#include <fmt/core.h>

#include "controllers/common/objects.h"
#include "controllers/controllers.h"
#include "lib/live_server.h"

namespace muster::controllers {
namespace {

namespace r = client::resources;

/// A server, and all controllers at work on it.
class Cluster : public LiveServer {
 public:
  void run(Task<void> (*scenario)(Cluster&)) {
    LiveServer::run([this, scenario] { return controlled(scenario); });
  }

  Task<void> phase(std::string pod, std::string value) {
    json::Value patch = json::Object{{"status", json::Object{{"phase", value}}}};
    const auto done = co_await client->patch(
        r::kPods, "default", pod, "status", client::PatchType::kMerge, std::move(patch));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }

 private:
  Task<void> controlled(Task<void> (*scenario)(Cluster&)) {
    client::Informers informers(loop, *client);
    Controllers controllers(loop, *client, informers, Options{});
    co_await controllers.start();
    co_await scenario(*this);
    co_await controllers.stop();
    co_await informers.stop_all();
  }
};

std::string last_condition(const client::ObjectPtr& job) {
  if (!job) return "(no job)";
  const auto& conditions = json::array_at(*job, "status", "conditions");
  return conditions.empty() ? "" : json::text_at(conditions.back(), "type");
}

constexpr const char* kPyTorchJob = R"(
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: p}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: i}]}}}
    Worker: {replicas: 2, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: i}]}}}
)";

Task<void> preempted(Cluster& c) {
  auto& jobs = c.follow(r::kPyTorchJobs);
  auto& pods = c.follow(r::kPods);
  auto& services = c.follow(r::kServices);
  co_await c.create(r::kPyTorchJobs, kPyTorchJob);
  co_await c.until("three pods and services", [&] {
    return pods.objects().size() == 3 && services.find("default/p-worker-1") != nullptr;
  });
  for (const std::string name : {"p-master-0", "p-worker-0", "p-worker-1"}) {
    co_await c.bind(name, "n1");
    co_await c.phase(name, "Running");
  }
  co_await c.until("Running", [&] { return last_condition(jobs.find("default/p")) == "Running"; });
  const auto removed =
      co_await c.client->remove(r::kPods, "default", "p-worker-1", client::DeleteOptions{});
  EXPECT_TRUE(removed) << (removed ? "" : removed.error().message);
  co_await c.until("Failed", [&] { return last_condition(jobs.find("default/p")) == "Failed"; });
}

TEST(ControllersLive, APreemptedPyTorchJobFails) {
  Cluster cluster;
  cluster.run(preempted);
}

Task<void> many(Cluster& c) {
  auto& jobs = c.follow(r::kJobs);
  auto& pods = c.follow(r::kPods);
  co_await c.create(r::kJobs, R"(
apiVersion: batch/v1
kind: Job
metadata: {name: many}
spec: {parallelism: 100, completions: 100, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
)");
  co_await c.until("a hundred pods, counted", [&] {
    const auto job = jobs.find("default/many");
    return job && json::int_at(*job, "status", "active") == 100;
  });
  EXPECT_EQ(pods.objects().size(), 100U) << "a stale cache made pods twice";
  for (const auto& [key, pod] : std::map<std::string, client::ObjectPtr>(pods.objects()))
    co_await c.phase(name_of(*pod), "Succeeded");
  co_await c.until("Complete",
                   [&] { return last_condition(jobs.find("default/many")) == "Complete"; });
}

TEST(ControllersLive, AHundredPodsAreMadeOnce) {
  Cluster cluster;
  cluster.run(many);
}

Task<void> three_versions(Cluster& c) {
  auto& maps = c.follow(r::kConfigMaps);
  auto& sets = c.follow(r::kStatefulSets);
  auto& launchers = c.follow(r::kJobs);
  auto& pods = c.follow(r::kPods);
  const auto v1 = [](const char* version, const char* name) {
    return fmt::format(R"(
apiVersion: kubeflow.org/{}
kind: MPIJob
metadata: {{name: {}}}
spec:
  mpiReplicaSpecs:
    Launcher: {{replicas: 1, template: {{spec: {{containers: [{{name: mpi, image: i}}]}}}}}}
    Worker: {{replicas: 1, template: {{spec: {{containers: [{{name: mpi, image: i}}]}}}}}}
)",
                       version,
                       name);
  };
  co_await c.create(r::kMPIJobsV1, v1("v1", "one"));
  co_await c.create(r::kMPIJobsV2Beta1, v1("v2beta1", "two"));
  co_await c.create(r::kMPIJobsV1Alpha1, R"(
apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: alpha}
spec: {replicas: 1, template: {spec: {containers: [{name: mpi, image: i}]}}}
)");
  co_await c.until("the objects of all three", [&] {
    return pods.find("default/one-launcher") && launchers.find("default/two-launcher") &&
           sets.find("default/alpha-worker") && maps.find("default/alpha-config") &&
           pods.find("default/alpha-worker-0");
  });
  const auto owner = [&](const std::string& key) {
    const auto map = maps.find(key);
    return map ? json::text_at(json::array_at(*map, "metadata", "ownerReferences")[0], "apiVersion")
               : std::string("(none)");
  };
  EXPECT_EQ(owner("default/one-config"), "kubeflow.org/v1");
  EXPECT_EQ(owner("default/two-config"), "kubeflow.org/v2beta1");
  EXPECT_EQ(owner("default/alpha-config"), "kubeflow.org/v1alpha1");
  EXPECT_EQ(pods.find("default/two-launcher"), nullptr) << "v1's controller took a v2beta1 job";
}

TEST(ControllersLive, EachMPIJobHasOneController) {
  Cluster cluster;
  cluster.run(three_versions);
}

Task<void> named(Cluster& c) {
  auto& endpoints = c.follow(r::kEndpoints);
  auto& jobs = c.follow(r::kT9kMPIJobs);
  auto& pods = c.follow(r::kPods);
  co_await c.create(r::kT9kMPIJobs, R"(
apiVersion: batch.tensorstack.dev/v1beta1
kind: MPIJob
metadata: {name: t}
spec: {worker: {replicas: 2, cmd: [a], template: {spec: {containers: [{name: mpi-worker, image: i}]}}}}
)");
  co_await c.until("three pods", [&] { return pods.objects().size() == 3; });
  int number = 0;
  for (const std::string name : {"t-launcher", "t-worker-0", "t-worker-1"}) {
    co_await c.bind(name, "n1");
    json::Value patch = json::Object{
        {"status",
         json::Object{{"phase", "Running"}, {"podIP", fmt::format("10.0.0.{}", ++number)}}}};
    const auto done = co_await c.client->patch(
        r::kPods, "default", name, "status", client::PatchType::kMerge, std::move(patch));
    EXPECT_TRUE(done);
  }
  co_await c.until("phase Running", [&] {
    const auto job = jobs.find("default/t");
    return job && json::string_at(*job, "status", "phase") == "Running";
  });
  co_await c.until("names of all pods", [&] {
    const auto object = endpoints.find("default/t");
    if (!object || json::array_at(*object, "subsets").empty()) return false;
    return json::array_at(json::array_at(*object, "subsets")[0], "addresses").size() == 3;
  });
}

TEST(ControllersLive, WorkersOfAT9kJobHaveNames) {
  Cluster cluster;
  cluster.run(named);
}

Task<void> kept_short(Cluster& c) {
  const client::Resource queues{"scheduler.tensorstack.dev", "v1beta1", "queues", "Queue", true};
  auto& jobs = c.follow(r::kT9kMPIJobs);
  auto& pods = c.follow(r::kPods);
  auto& events = c.follow(r::kEvents);
  json::Value ns = json::Object{{"metadata", json::Object{{"name", "t9k-system"}}}};
  const auto home = co_await c.client->create(r::kNamespaces, "", std::move(ns));
  EXPECT_TRUE(home || home.error().code == Code::kAlreadyExists);
  const auto pod = [](const char* name, const char* queue) {
    return fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, labels: {{scheduler.tensorstack.dev/queue: {}}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}",
        name,
        queue);
  };
  co_await c.create(r::kPods, pod("old", "short"));
  co_await c.create(r::kPods, pod("free", "other"));
  co_await c.create(r::kT9kMPIJobs, R"(
apiVersion: batch.tensorstack.dev/v1beta1
kind: MPIJob
metadata: {name: t}
spec: {scheduler: {t9kScheduler: {queue: short}}, worker: {replicas: 1, cmd: [a], template: {spec: {containers: [{name: mpi-worker, image: i}]}}}}
)");
  co_await c.until("the job's pods are there", [&] {
    return pods.find("default/t-worker-0") && pods.find("default/t-launcher");
  });
  // The limit comes last: it is for pods that are there already as well.
  json::Value queue =
      json::Object{{"apiVersion", "scheduler.tensorstack.dev/v1beta1"},
                   {"kind", "Queue"},
                   {"metadata", json::Object{{"name", "short"}, {"namespace", "t9k-system"}}},
                   {"spec", json::Object{{"maxDuration", "1s"}}}};
  const auto made = co_await c.client->create(queues, "t9k-system", std::move(queue));
  EXPECT_TRUE(made) << made.error().message;
  co_await c.until("the pod is gone", [&] { return !pods.find("default/old"); });
  co_await c.until("the job is paused", [&] {
    const auto job = jobs.find("default/t");
    return job && json::bool_at(*job, "spec", "runMode", "pause", "enabled") &&
           json::string_at(*job, "status", "phase") == "Paused";
  });
  co_await c.until("both were told", [&] {
    std::set<std::string> told;
    for (const auto& [key, event] : events.objects()) {
      if (json::string_at(*event, "reason") == "MaxDurationExceeded")
        told.insert(json::text_at(*event, "involvedObject", "name"));
    }
    return told == std::set<std::string>{"old", "t"};
  });
  EXPECT_TRUE(pods.find("default/free"));
}

TEST(ControllersLive, AQueueEndsWhatHasBeenInItForTooLong) {
  Cluster cluster;
  cluster.run(kept_short);
}

}  // namespace
}  // namespace muster::controllers
