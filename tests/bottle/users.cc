#include "users.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "hived/annotations.h"
#include "hived/config_map.h"
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
  bool again = false;       // what fails is made again
  bool urgent = false;      // others have to go
  bool comes_back = false;  // once it had to go
  bool spare = false;       // it uses what is left over
  bool of_team = false;     // in the queue whose limits are changed
};

constexpr const char* kUrgent = "urgent";
constexpr const char* kSpare = "spare";
/// After this a change is in force everywhere: a scheduler may be stopped for a minute and a half.
constexpr Duration kInForce = std::chrono::minutes(3);
constexpr int kFillersMax = 3;

json::Value pod_template(const PodWish& wish) {
  json::Object annotations;
  if (wish.seconds > 0)
    annotations[kube::names::kHollowDuration] = fmt::format("{}s", wish.seconds);
  if (wish.fails) annotations[kube::names::kHollowExitCode] = "1";
  json::Value container = {{"name", "pytorch"}, {"image", "any"}};
  if (wish.gpus > 0)
    json::make(container, {"resources", "limits", "nvidia.com/gpu"}) = std::to_string(wish.gpus);
  json::Object spec = {{"restartPolicy", "Never"},
                       {"containers", json::Array{std::move(container)}}};
  if (wish.urgent) spec["priorityClassName"] = kUrgent;
  if (wish.spare) spec["priorityClassName"] = kSpare;
  return {{"metadata", {{"annotations", std::move(annotations)}}}, {"spec", std::move(spec)}};
}

json::Value named(std::string_view api_version, std::string_view kind, const std::string& name) {
  return {{"apiVersion", api_version},
          {"kind", kind},
          {"metadata", {{"name", name}, {"namespace", "default"}}}};
}

json::Value pytorch(const std::string& name, const PodWish& wish, int workers) {
  json::Value job = named("kubeflow.org/v1", "PyTorchJob", name);
  const auto replicas = [&](int count) {
    return json::Value{{"replicas", count},
                       {"restartPolicy", wish.again ? "OnFailure" : "Never"},
                       {"template", pod_template(wish)}};
  };
  json::make(job, {"spec", "runPolicy", "backoffLimit"}) = 2;
  if (wish.of_team) json::make(job, {"spec", "runPolicy", "schedulingPolicy", "queue"}) = kTeam;
  if (wish.comes_back)
    json::make(job, {"metadata", "annotations", kube::names::kOnPreempt}) = "requeue";
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
  json::Array policies{{{"event", "TaskCompleted"}, {"action", "CompleteJob"}}};
  if (wish.again) policies.push_back({{"event", "PodFailed"}, {"action", "RestartTask"}});
  if (wish.comes_back) policies.push_back({{"event", "PodEvicted"}, {"action", "RestartJob"}});
  json::make(job, {"spec"}) = json::Value{
      {"minAvailable", pods},
      {"schedulerName", "volcano"},
      {"queue", wish.of_team ? kTeam : "default"},
      {"maxRetry", 2},
      {"policies", std::move(policies)},
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
  if (what < 32 && jobs_.size() < kJobsMax) return submit_one();
  if (what < 32 || what >= 66 || jobs_.empty()) {
    env_.spawn(count(fmt::format("register-{}", random.below(6))));
    return;
  }
  const auto chosen = std::next(jobs_.begin(), static_cast<long>(random.below(jobs_.size())));
  if (!chosen->second.made) return;
  if (what < 44) {
    env_.spawn(remove(chosen->first, chosen->second));
    jobs_.erase(chosen);
  } else if (what < 54) {
    ++counts_.suspended;
    chosen->second.suspended = !chosen->second.suspended;
    env_.spawn(suspend(chosen->first, chosen->second.suspended));
  } else if (what < 62) {
    ++counts_.resized;
    env_.spawn(resize(chosen->first, 1 + static_cast<int>(random.below(3))));
  } else {
    ++counts_.queues_changed;
    queue_ = {static_cast<int>(random.below(13)), 1 + static_cast<int>(random.below(4))};
    env_.spawn(set_queue());
  }
}

void Users::submit_one() {
  Random& random = world_.random();
  const std::string name = fmt::format("job-{}", next_++);
  ++jobs_since_;
  PodWish wish;
  wish.gpus = static_cast<int>(random.below(3));  // four pods of them fit
  wish.seconds = 1 + static_cast<int>(random.below(90));
  wish.fails = random.chance(20);
  wish.again = random.chance(40);
  wish.urgent = random.chance(20);
  wish.comes_back = random.chance(40);
  wish.of_team = random.chance(40);
  if (wish.fails && random.chance(50)) wish.seconds = 1;
  const int pods = 1 + static_cast<int>(random.below(3));
  const auto [kind, job] = draw(random.below(4), name, wish, pods);
  counts_.crashing += wish.fails ? 1 : 0;
  counts_.urgent += wish.urgent ? 1 : 0;
  // Neither kind counts these restarts against a limit: it is tried until somebody deletes it.
  const bool endless =
      (kind == &r::kVolcanoJobs || kind == &r::kPyTorchJobs) && wish.fails && wish.again;
  jobs_[name] = {.kind = kind, .endless = endless, .object = job};
  env_.spawn(submit(kind, job));
}

void Users::mend_all() {
  for (auto& [name, job] : jobs_) {
    if (std::exchange(job.suspended, false)) env_.spawn(suspend(name, false));
    if (job.endless) env_.spawn(remove(name, job));
  }
  std::erase_if(jobs_, [](const auto& each) { return each.second.endless; });
  queue_ = {tenants_ ? 8 : 0, 1};
  env_.spawn(set_queue());
  if (cells_.split.nodes > 0) {
    cells_ = {.split = {cells_.split.nodes, cells_.split.nodes / 2, false}};
    env_.spawn(set_cells());
  }
  for (auto& [number, wanted] : nodes_) {
    wanted = {true, false};
    env_.spawn(set_node(number));
  }
}

void Users::change_node(int number) {
  auto& [there, closed] = nodes_.try_emplace(number, true, false).first->second;
  if (!there || closed) {
    there = true;
    closed = false;
  } else if (world_.random().chance(50)) {
    there = false;
  } else {
    closed = true;
  }
  tell_(fmt::format("node-{}: {}",
                    number,
                    !there   ? "is deleted"
                    : closed ? "is cordoned"
                             : "is back"));
  env_.spawn(set_node(number));
}

/// Until it is as it is wanted.
Task<void> Users::set_node(int number) {
  const std::string name = fmt::format("node-{}", number);
  for (int tries = 0; tries < kTries; ++tries) {
    const auto wanted = nodes_[number];
    const auto [there, closed] = wanted;
    Result<void> done;
    if (!there) {
      done = co_await client_->remove(r::kNodes, "", name, {});
      const bool gone = done || done.error().code == Code::kNotFound;
      if (gone && nodes_[number] == wanted) co_return;
      if (gone) continue;
    } else {
      const auto made = co_await client_->create(r::kNodes, "", make_node(number, 4));
      const auto set = co_await client_->patch(r::kNodes,
                                               "",
                                               name,
                                               "",
                                               client::PatchType::kMerge,
                                               {{"spec", {{"unschedulable", closed}}}});
      if (set && nodes_[number] == wanted) co_return;
      if (set) continue;
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

/// One that was overtaken on its way by a later wish writes that one again.
Task<void> Users::suspend(std::string name, bool suspended) {
  tell_(fmt::format("user: {} {}", suspended ? "suspends" : "resumes", name));
  for (int tries = 0; tries < kTries; ++tries) {
    const auto found = jobs_.find(name);
    if (found == jobs_.end()) co_return;
    suspended = found->second.suspended;
    const client::Resource& kind = *found->second.kind;
    json::Value patch = json::Object{};
    if (&kind == &r::kJobs)
      json::make(patch, {"spec", "suspend"}) = suspended;
    else if (&kind == &r::kVolcanoJobs)
      json::make(patch, {"metadata", "annotations", kube::names::kSuspend}) =
          suspended ? json::Value("true") : json::Value();
    else
      json::make(patch, {"spec", "runPolicy", "suspend"}) = suspended;
    const auto done = co_await client_->patch(
        kind, "default", name, "", client::PatchType::kMerge, std::move(patch));
    if (done || done.error().code == Code::kInvalid || done.error().code == Code::kNotFound) {
      const auto now = jobs_.find(name);
      if (now == jobs_.end() || now->second.suspended == suspended) co_return;
      continue;
    }
    co_await env_.sleep(std::chrono::seconds(2));
  }
}

/// To so many pods; whether a job can be made larger or smaller is for the server to say.
Task<void> Users::resize(std::string name, int pods) {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) co_return;
  const client::Resource& kind = *found->second.kind;
  json::Value patch = json::Object{};
  if (&kind == &r::kJobs) {
    json::make(patch, {"spec", "parallelism"}) = pods;
  } else if (&kind == &r::kVolcanoJobs) {
    json::Array tasks = json::array_at(found->second.object, "spec", "tasks");
    tasks[0].as_object()["replicas"] = pods;
    json::make(patch, {"spec", "minAvailable"}) = pods;
    json::make(patch, {"spec", "tasks"}) = std::move(tasks);
  } else if (&kind == &r::kMPIJobsV2Beta1) {
    json::make(patch, {"spec", "mpiReplicaSpecs", "Worker", "replicas"}) = pods;
  } else {
    json::make(patch, {"spec", "pytorchReplicaSpecs", "Worker", "replicas"}) = pods;
  }
  tell_(fmt::format("user: wants {} pods of {}", pods, name));
  for (int tries = 0; tries < 20; ++tries) {
    const auto done =
        co_await client_->patch(kind, "default", name, "", client::PatchType::kMerge, patch);
    if (done || (done.error().code != Code::kUnavailable && done.error().code != Code::kTimeout))
      co_return;
    co_await env_.sleep(std::chrono::seconds(2));
  }
}

/// So many GPUs at most; 0: as many as there are.
Task<void> Users::set_queue() {
  tell_(fmt::format("queue {}: {} GPUs at most, weight {}", kTeam, queue_.first, queue_.second));
  checks_.promises().no_limit(fmt::format("queue {}", kTeam));
  for (int tries = 0; tries < kTries; ++tries) {
    const auto wanted = queue_;
    const auto [gpus, weight] = wanted;
    json::Value patch = json::Object{};
    json::make(patch, {"spec", "weight"}) = weight;
    json::make(patch, {"spec", "capability"}) =
        gpus == 0
            ? json::Value()
            : json::Value{
                  {"nvidia.com/gpu", std::to_string(gpus)}, {"cpu", "1000"}, {"memory", "1000Gi"}};
    const auto done = co_await client_->patch(
        r::kQueues, "", kTeam, "", client::PatchType::kMerge, std::move(patch));
    const bool answered = done || done.error().code == Code::kInvalid;
    if (answered && queue_ == wanted) {
      if (done && gpus > 0)
        checks_.promises().limit(fmt::format("queue {}", kTeam), gpus, world_.now() + kInForce);
      co_return;
    }
    if (!answered) co_await env_.sleep(std::chrono::seconds(2));
  }
}

void Users::have_tenants(int nodes) {
  tenants_ = true;
  json::Value spare = {{"apiVersion", "scheduling.k8s.io/v1"},
                       {"kind", "PriorityClass"},
                       {"metadata", {{"name", kSpare}}},
                       {"value", -1}};
  env_.spawn(create(&r::kPriorityClasses, std::move(spare)));
  if (nodes == 0) return;
  cells_.split = {nodes, nodes / 2, false};
  env_.spawn(set_cells());
}

void Users::change_cells(Random& random) {
  ++counts_.cells_changed;
  const std::uint64_t what = random.below(10);
  if (what < 6) {
    cells_.there = true;
    cells_.split.first =
        static_cast<int>(random.below(static_cast<std::uint64_t>(cells_.split.nodes) + 1));
    cells_.split.pairs = random.chance(50);
  } else if (what < 8) {
    cells_.stopped = !cells_.stopped;
  } else {
    cells_.there = !cells_.there;
  }
  env_.spawn(set_cells());
}

/// The ConfigMap as it is wanted.
Task<void> Users::set_cells() {
  tell_(fmt::format("cells: {} of {} nodes for default, the others {}for {}{}{}",
                    cells_.split.first,
                    cells_.split.nodes,
                    cells_.split.pairs ? "in pairs " : "",
                    kTeam,
                    cells_.stopped ? ", out of use" : "",
                    cells_.there ? "" : ", forgotten"));
  const std::string tenants[] = {"virtual cluster default",
                                 fmt::format("virtual cluster {}", kTeam)};
  for (const std::string& tenant : tenants) checks_.promises().no_limit(tenant);
  for (int tries = 0; tries < kTries; ++tries) {
    const Cells wanted = cells_;
    json::Value map = {
        {"apiVersion", "v1"},
        {"kind", "ConfigMap"},
        {"metadata", {{"name", hived::kConfigMapName}, {"namespace", hived::kConfigMapNamespace}}},
        {"data",
         {{hived::kConfigMapKey, cells_text(wanted.split)},
          {hived::kConfigMapStopped, wanted.stopped ? "true" : "false"}}}};
    bool done = false;
    if (wanted.there) {
      const auto made = co_await client_->create(r::kConfigMaps, hived::kConfigMapNamespace, map);
      done = made.has_value();
      if (!made && made.error().code == Code::kAlreadyExists) {
        const auto set = co_await client_->patch(r::kConfigMaps,
                                                 hived::kConfigMapNamespace,
                                                 hived::kConfigMapName,
                                                 "",
                                                 client::PatchType::kMerge,
                                                 {{"data", json::at(map, "data")}});
        done = set.has_value();
      }
    } else {
      const auto gone = co_await client_->remove(
          r::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName, {});
      done = gone || gone.error().code == Code::kNotFound;
    }
    if (done && cells_ == wanted) {
      if (!wanted.there) co_return;
      const int first = wanted.split.first, rest = wanted.split.nodes - first;
      checks_.promises().limit(tenants[0], 4 * first, world_.now() + kInForce);
      checks_.promises().limit(tenants[1], 4 * rest, world_.now() + kInForce);
      co_return;
    }
    if (!done) co_await env_.sleep(std::chrono::seconds(2));
  }
}

/// One that never ends and has no right to what it uses: everybody else has to end all the same.
void Users::submit_filler(Random& random) {
  if (fillers_ == kFillersMax) return;
  ++counts_.fillers;
  PodWish wish;
  wish.gpus = 1 + static_cast<int>(random.below(2));
  wish.spare = wish.comes_back = true;
  wish.of_team = random.chance(50);
  const int pods = 1 + static_cast<int>(random.below(2));
  env_.spawn(submit(&r::kVolcanoJobs, volcano(fmt::format("filler-{}", fillers_++), wish, pods)));
}

/// What jobs name and somebody has to make once.
void Users::prepare() {
  json::Value queue = {{"apiVersion", "scheduling.volcano.sh/v1beta1"},
                       {"kind", "Queue"},
                       {"metadata", {{"name", kTeam}}},
                       {"spec", {{"weight", 1}, {"reclaimable", true}}}};
  json::Value urgent = {{"apiVersion", "scheduling.k8s.io/v1"},
                        {"kind", "PriorityClass"},
                        {"metadata", {{"name", kUrgent}}},
                        {"value", 1000}};
  env_.spawn(create(&r::kQueues, std::move(queue)));
  env_.spawn(create(&r::kPriorityClasses, std::move(urgent)));
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
    const auto made = co_await client_->create(*kind, kind->namespaced ? "default" : "", object);
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

void Users::want_what_is_not_there() {
  json::Value pod = named("v1", "Pod", "wants");
  json::make(pod, {"spec"}) = json::at(pod_template({.seconds = 60}), "spec");
  json::make(pod, {"spec", "nodeName"}) = "node-0";
  const json::Value source = {{"configMapRef", {{"name", "nowhere"}}}};
  json::make(pod, {"spec", "containers"}).as_array()[0].as_object()["envFrom"] =
      json::Array{source};
  env_.spawn(create(&r::kPods, pod));
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

void Users::share_a_device() {
  for (int i = 0; i < 2; ++i) {
    json::Value pod = named("v1", "Pod", fmt::format("shares-{}", i));
    json::make(pod, {"metadata", "annotations", std::string(hived::kLeafCellIsolation)}) = "0";
    json::make(pod, {"spec"}) = json::at(pod_template({.gpus = 1, .seconds = 60}), "spec");
    json::make(pod, {"spec", "nodeName"}) = "node-0";
    env_.spawn(create(&r::kPods, pod));
  }
}

void Users::pass_somebody() {
  json::Value first = named("v1", "Pod", "first"), second = named("v1", "Pod", "second");
  for (json::Value* pod : {&first, &second})
    json::make(*pod, {"spec"}) = json::at(pod_template({.seconds = 60}), "spec");
  json::make(first, {"spec", "nodeSelector"}) = {{"where", "nowhere"}};
  json::make(second, {"spec", "nodeName"}) = "node-0";
  env_.spawn(bind_behind(std::move(first), std::move(second)));
}

Task<void> Users::bind_behind(json::Value first, json::Value second) {
  co_await create(&r::kPods, std::move(first));
  co_await env_.sleep(kInForce + std::chrono::minutes(1));
  co_await create(&r::kPods, std::move(second));
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
