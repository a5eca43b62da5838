#include "users.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::bottle {
namespace {

namespace r = client::resources;
constexpr std::uint64_t kJobsMax = 14;
/// For ever, as far as a run is concerned.
constexpr int kTries = 10'000;

struct PodWish {
  int gpus = 0;
  int seconds = 0;  // 0: for ever
  bool fails = false;
  std::string restart = "Never";
};

json::Value pod_template(const PodWish& wish) {
  json::Object annotations;
  if (wish.seconds > 0)
    annotations[kube::names::kHollowDuration] = fmt::format("{}s", wish.seconds);
  if (wish.fails) annotations[kube::names::kHollowExitCode] = "1";
  json::Value container = {{"name", "pytorch"}, {"image", "any"}};
  if (wish.gpus > 0)
    json::make(container, {"resources", "limits", "nvidia.com/gpu"}) = std::to_string(wish.gpus);
  return {{"metadata", {{"annotations", std::move(annotations)}}},
          {"spec",
           {{"restartPolicy", wish.restart}, {"containers", json::Array{std::move(container)}}}}};
}

json::Value named(std::string_view api_version, std::string_view kind, const std::string& name) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata", {{"name", name}, {"namespace", "default"}}}};
}

json::Value pytorch(const std::string& name, const PodWish& wish, int workers) {
  json::Value job = named("kubeflow.org/v1", "PyTorchJob", name);
  const auto replicas = [&](int count) {
    return json::Value{
        {"replicas", count}, {"restartPolicy", "Never"}, {"template", pod_template(wish)}};
  };
  json::make(job, {"spec", "pytorchReplicaSpecs", "Master"}) = replicas(1);
  if (workers > 0) json::make(job, {"spec", "pytorchReplicaSpecs", "Worker"}) = replicas(workers);
  return job;
}

json::Value batch(const std::string& name, const PodWish& wish, int pods) {
  json::Value job = named("batch/v1", "Job", name);
  json::make(job, {"spec"}) = json::Value{{"parallelism", pods},
                                          {"completions", pods},
                                          {"backoffLimit", 2},
                                          {"template", pod_template(wish)}};
  return job;
}

json::Value volcano(const std::string& name, const PodWish& wish, int pods) {
  json::Value job = named("batch.volcano.sh/v1alpha1", "Job", name);
  json::make(job, {"spec"}) = json::Value{
      {"minAvailable", pods},
      {"schedulerName", "volcano"},
      {"maxRetry", 2},
      {"policies", json::Array{{{"event", "TaskCompleted"}, {"action", "CompleteJob"}}}},
      {"tasks",
       json::Array{{{"name", "task"}, {"replicas", pods}, {"template", pod_template(wish)}}}}};
  return job;
}

/// Its workers live until the launcher has ended.
json::Value mpi(const std::string& name, const PodWish& wish, int workers) {
  json::Value job = named("kubeflow.org/v2beta1", "MPIJob", name);
  PodWish launcher = wish, worker = wish;
  launcher.gpus = 0;
  worker.seconds = 0;
  json::make(job, {"spec"}) =
      json::Value{{"slotsPerWorker", 1},
                  {"runPolicy", {{"cleanPodPolicy", "Running"}, {"backoffLimit", 2}}},
                  {"mpiReplicaSpecs",
                   {{"Launcher", {{"replicas", 1}, {"template", pod_template(launcher)}}},
                    {"Worker", {{"replicas", workers}, {"template", pod_template(worker)}}}}}};
  return job;
}

std::pair<const client::Resource*, json::Value> draw(std::uint64_t number,
                                                     const std::string& name,
                                                     const PodWish& wish,
                                                     int pods) {
  if (number == 0) return {&r::kPyTorchJobs, pytorch(name, wish, pods)};
  if (number == 1) return {&r::kJobs, batch(name, wish, pods)};
  if (number == 2) return {&r::kVolcanoJobs, volcano(name, wish, pods)};
  return {&r::kMPIJobsV2Beta1, mpi(name, wish, pods)};
}

}  // namespace

Users::Users(SimWorld& world, Place& place, Checks& checks, std::function<void(std::string)> tell)
    : world_(world),
      env_(world),
      checks_(checks),
      tell_(std::move(tell)),
      client_(make_link(env_, place, "system:muster")) {}

void Users::act() {
  ++actions_;
  Random& random = world_.random();
  const std::uint64_t what = random.below(100);
  if (what < 35 && jobs_.size() < kJobsMax) {
    const std::string name = fmt::format("job-{}", next_++);
    PodWish wish;
    wish.gpus = static_cast<int>(random.below(3));  // four pods of them fit
    wish.seconds = 1 + static_cast<int>(random.below(90));
    wish.fails = random.chance(15);
    const int pods = 1 + static_cast<int>(random.below(3));
    const auto [kind, job] = draw(random.below(4), name, wish, pods);
    jobs_[name].kind = kind;
    env_.spawn(submit(kind, job));
  } else if (what < 50 && !jobs_.empty()) {
    const auto chosen = std::next(jobs_.begin(), static_cast<long>(random.below(jobs_.size())));
    if (!chosen->second.made) return;
    env_.spawn(remove(chosen->first, chosen->second));
    jobs_.erase(chosen);
  } else if (what < 60 && !jobs_.empty()) {
    const auto chosen = std::next(jobs_.begin(), static_cast<long>(random.below(jobs_.size())));
    if (!chosen->second.made || chosen->second.kind == &r::kVolcanoJobs) return;
    chosen->second.suspended = !chosen->second.suspended;
    env_.spawn(suspend(chosen->first, chosen->second.suspended));
  } else {
    env_.spawn(count(fmt::format("register-{}", random.below(6))));
  }
}

void Users::mend_all() {
  for (auto& [name, job] : jobs_) {
    if (std::exchange(job.suspended, false)) env_.spawn(suspend(name, false));
  }
  for (auto& [number, wanted] : nodes_) {
    wanted = {true, false};
    env_.spawn(set_node(number, true, false));
  }
}

void Users::change_node(int number, bool may_vanish) {
  auto& [there, closed] = nodes_.try_emplace(number, true, false).first->second;
  if (!there || closed) {
    there = true;
    closed = false;
  } else if (may_vanish && world_.random().chance(50)) {
    there = false;
  } else {
    closed = true;
  }
  tell_(fmt::format("node-{}: {}",
                    number,
                    !there   ? "is deleted"
                    : closed ? "is cordoned"
                             : "is back"));
  env_.spawn(set_node(number, there, closed));
}

/// Until it is so, or something else is wanted.
Task<void> Users::set_node(int number, bool there, bool closed) {
  const std::string name = fmt::format("node-{}", number);
  const std::pair<bool, bool> wanted(there, closed);
  for (int tries = 0; tries < kTries && nodes_[number] == wanted; ++tries) {
    Result<void> done;
    if (!there) {
      done = co_await client_->remove(r::kNodes, "", name, {});
      if (done || done.error().code == Code::kNotFound) co_return;
    } else {
      const auto made = co_await client_->create(r::kNodes, "", make_node(number, 4));
      const auto set = co_await client_->patch(r::kNodes,
                                               "",
                                               name,
                                               "",
                                               client::PatchType::kMerge,
                                               {{"spec", {{"unschedulable", closed}}}});
      if (set) co_return;
    }
    co_await env_.sleep(std::chrono::seconds(2));
  }
}

/// Whoever does not get an answer asks again until there is one.
Task<void> Users::submit(const client::Resource* kind, json::Value job) {
  const std::string name(kube::name_of(job));
  for (int tries = 0; tries < kTries; ++tries) {
    const auto made = co_await client_->create(*kind, "default", job);
    if (made || made.error().code == Code::kAlreadyExists) {
      tell_(fmt::format("user: {} {} is submitted", kind->kind, name));
      if (const auto found = jobs_.find(name); found != jobs_.end()) found->second.made = true;
      co_return;
    }
    if (made.error().code == Code::kInvalid || made.error().code == Code::kBadRequest)
      checks_.fail("harness", fmt::format("{} is refused: {}", name, made.error().message));
    co_await env_.sleep(std::chrono::seconds(2));
  }
}

Task<void> Users::remove(std::string name, Job job) {
  tell_(fmt::format("user: deletes {} {}", job.kind->kind, name));
  for (int tries = 0; tries < kTries; ++tries) {
    const auto gone = co_await client_->remove(*job.kind, "default", name, {});
    if (gone || gone.error().code == Code::kNotFound) co_return;
    co_await env_.sleep(std::chrono::seconds(2));
  }
}

Task<void> Users::suspend(std::string name, bool suspended) {
  tell_(fmt::format("user: {} {}", suspended ? "suspends" : "resumes", name));
  for (int tries = 0; tries < kTries; ++tries) {
    const auto found = jobs_.find(name);
    if (found == jobs_.end() || found->second.suspended != suspended) co_return;
    const client::Resource& kind = *found->second.kind;
    const json::Value spec = &kind == &r::kJobs
                                 ? json::Value{{"suspend", suspended}}
                                 : json::Value{{"runPolicy", {{"suspend", suspended}}}};
    const auto done = co_await client_->patch(
        kind, "default", name, "", client::PatchType::kMerge, {{"spec", spec}});
    if (done || done.error().code == Code::kInvalid) co_return;
    co_await env_.sleep(std::chrono::seconds(2));
  }
}

/// Reads the number and writes the next one; what is acknowledged must be there for ever.
Task<void> Users::count(std::string name) {
  const auto live = co_await client_->get(r::kConfigMaps, "default", name);
  if (!live && live.error().code != Code::kNotFound) co_return;
  json::Value next = live ? *live : named("v1", "ConfigMap", name);
  const std::int64_t number =
      1 + (live ? parse_int(json::string_at(*live, "data", "number")).value_or(0) : 0);
  json::make(next, {"data", "number"}) = std::to_string(number);
  json::make(next, {"data", "filler"}) =
      std::string(world_.random().below(3000), static_cast<char>('a' + number % 26));
  const auto written = live ? co_await client_->update(r::kConfigMaps, next)
                            : co_await client_->create(r::kConfigMaps, "default", next);
  if (written) checks_.acknowledged(name, number);
}

Task<void> Users::create(const client::Resource* kind, json::Value object) {
  for (int tries = 0; tries < kTries; ++tries) {
    const auto made = co_await client_->create(*kind, "default", object);
    if (made || made.error().code == Code::kAlreadyExists) co_return;
    co_await env_.sleep(std::chrono::seconds(1));
  }
}

// --------------------------------------------------------------------------- what --break does

void Users::take_gpus_twice() {
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("greedy-{}", i);
    json::Value pod = named("v1", "Pod", name);
    json::make(pod, {"spec"}) = json::at(pod_template({.gpus = 4, .seconds = 600}), "spec");
    json::make(pod, {"spec", "nodeName"}) = "node-0";
    env_.spawn(create(&r::kPods, pod));
  }
}

void Users::bind_in_part() {
  for (int i = 0; i < 2; ++i) {
    json::Value pod = named("v1", "Pod", fmt::format("part-{}", i));
    json::make(pod, {"metadata", "annotations", "scheduling.k8s.io/group-name"}) = "nobodys";
    json::make(pod, {"spec"}) = json::at(pod_template({.gpus = i == 0 ? 0 : 99}), "spec");
    if (i == 0) json::make(pod, {"spec", "nodeName"}) = "node-0";
    env_.spawn(create(&r::kPods, pod));
  }
}

void Users::write_without_end() {
  const auto again = [](Users& users) -> Task<void> {
    while (true) {
      co_await users.count("hot");
      co_await users.env_.sleep(std::chrono::milliseconds(5));
    }
  };
  env_.spawn(again(*this));
}

void Users::write_now_and_then() {
  const auto again = [](Users& users) -> Task<void> {
    while (true) {
      co_await users.count("slow");
      co_await users.env_.sleep(std::chrono::minutes(4));
    }
  };
  env_.spawn(again(*this));
}

void Users::run_for_ever() { env_.spawn(submit(&r::kJobs, batch("endless", {.gpus = 1}, 1))); }

void Users::leave_an_orphan() {
  json::Value secret = named("v1", "Secret", "orphan");
  json::make(secret, {"metadata", "finalizers"}) = json::Array{"example.com/nobody"};
  const auto leave = [](Users& users, json::Value object) -> Task<void> {
    co_await users.create(&r::kSecrets, std::move(object));
    co_await users.remove("orphan", {&r::kSecrets, true});
  };
  env_.spawn(leave(*this, std::move(secret)));
}

}  // namespace muster::bottle
