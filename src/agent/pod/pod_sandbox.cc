#include "agent/pod/pod_sandbox.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "agent/files.h"
#include "agent/pod/names.h"
#include "agent/pod/runtime_choice.h"
#include "agent/streams/former_logs.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/framework.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {

namespace fs = std::filesystem;
using json::at;
using json::text;
using std::chrono::seconds;

namespace {

/// A pod that ends gives its GPUs back within moments.
constexpr Duration kGpuWait = std::chrono::milliseconds(20);
/// Policies are in force within a fraction of a second; a pod that waits longer says what for.
constexpr Duration kPolicyWait = seconds(3);

/// GPUs that pods of the node name, whether they have them yet or not: after a restart they are
/// seen in any order.
std::set<int> named_gpus(client::Informers& informers, const std::string& node) {
  std::set<int> out;
  for (const auto& [key, pod] : informers.get(client::resources::kPods).objects()) {
    if (json::string_at(*pod, "spec", "nodeName") != node || kube::pod_finished(*pod) ||
        gpu_wish(*pod).count == 0)
      continue;
    for (const auto& word : split_nonempty(kube::annotation(*pod, kube::names::kGpuIndices), ','))
      out.insert(static_cast<int>(parse_int(trim(word)).value_or(-1)));
  }
  return out;
}

}  // namespace

Task<Result<Objects>> PodSandbox::fetch_objects() {
  Objects out;
  const auto ns = std::string(kube::namespace_of(*life_.pod));
  for (const auto& ref : references(*life_.pod)) {
    const auto& resource = ref.first == "configmaps" ? client::resources::kConfigMaps
                           : ref.first == "secrets"  ? client::resources::kSecrets
                                                     : client::resources::kPersistentVolumeClaims;
    if (ref.first != "persistentvolumeclaims") {
      const auto known = life_.context.informers.get(resource).find(ns + "/" + ref.second);
      if (known) {
        out[ref] = *known;
        continue;
      }
    }
    auto got = co_await life_.context.client.get(resource, ns, ref.second);
    if (!got && got.error().code != Code::kNotFound) co_return fail(got.error());
    out[ref] = got ? std::move(*got) : json::Value();
  }
  co_return out;
}

Task<Result<void>> PodSandbox::refresh_volumes() {
  auto objects = co_await fetch_objects();
  if (!objects) co_return fail(objects.error());
  objects_ = std::move(*objects);
  co_await tokens_.fetch(life_.context, life_.pod);
  VolumeInputs inputs;
  const auto pod = life_.pod;
  inputs.pod = pod.get();
  inputs.facts = life_.facts();
  inputs.objects = objects_;
  inputs.tokens = tokens_.by_audience();
  inputs.pod_directory = life_.places.disk;
  inputs.run_directory = life_.places.run;
  inputs.hidden = life_.context.hidden;
  inputs.group = json::as_int(at(*life_.pod, "spec", "securityContext", "fsGroup"), -1);
  inputs.claims_directory = life_.context.directory + "/claims";
  Result<PreparedVolumes> prepared;
  const auto work = [&prepared, &inputs] { prepared = prepare_volumes(inputs); };
  co_await life_.context.loop.run_on_worker(work);
  if (!prepared) co_return fail(prepared.error());
  volumes_ = std::move(*prepared);
  knows_volumes_ = true;
  co_return Result<void>();
}

GpuAnswer PodSandbox::take_gpus() {
  GpuClaim claim;
  claim.wish = gpu_wish(*life_.pod);
  if (claim.wish.count == 0) return {};
  claim.node = text(at(*life_.pod, "spec", "nodeName"));
  claim.pod_uid = life_.uid;
  claim.chosen = std::string(kube::annotation(*life_.pod, kube::names::kGpuIndices));
  if (claim.chosen.empty()) claim.spoken_for = named_gpus(life_.context.informers, claim.node);
  return life_.context.gpus.take(claim);
}

bool PodSandbox::admit() {
  const auto answer = take_gpus();
  switch (answer.kind) {
    case GpuAnswer::Kind::kGiven:
      // For an agent that is started later.
      if (!answer.indices.empty() && make_directory(life_.places.run))
        (void)write_file(gpu_file(life_.places), life_.context.gpus.note(life_.uid), 0600);
      return true;
    case GpuAnswer::Kind::kWait:
      retry_at_ = life_.context.loop.now() + kGpuWait;
      return false;
    case GpuAnswer::Kind::kRefused:
      break;
  }
  life_.event(nullptr, "Warning", answer.reason.c_str(), answer.message);
  life_.end(answer.reason, answer.message);
  return false;
}

Task<bool> PodSandbox::make() {
  const auto made = co_await try_make();
  if (made) {
    failures_ = 0;
    co_return true;
  }
  retry_at_ = life_.context.loop.now() +
              std::min<Duration>(seconds(1 << std::min(failures_++, 6)), seconds(60));
  co_return false;
}

Task<Result<void>> PodSandbox::try_make() {
  co_await remove();  // the remains of one that died
  const auto place = make_directory(life_.places.run);
  if (!place) co_return place;
  const auto volumes = co_await refresh_volumes();
  if (!volumes) {
    life_.event(nullptr, "Warning", "FailedMount", volumes.error().message);
    co_return volumes;
  }
  auto config = sandbox_config(*life_.pod, life_.places);
  const auto choice = co_await choose_runtime(life_.context, life_.pod);
  config.under_cri = choice.cri;
  config.handler = choice.handler;
  config.memory_volumes = volumes_.memory;
  (void)write_file(config.hosts_file, "127.0.0.1\tlocalhost\n");
  (void)write_file(config.resolv_conf_file, life_.context.resolv_conf(*life_.pod));
  known_ = true;
  const auto made = co_await life_.context.runtime.run_sandbox(std::move(config));
  if (!made) {
    known_ = false;
    life_.event(nullptr,
                "Warning",
                "FailedCreatePodSandBox",
                fmt::format("Failed to create pod sandbox: {}", made.error().message));
    co_return fail(made.error());
  }
  life_.state.sandbox_ready = true;
  life_.state.pod_ip = made->address.empty() ? life_.context.host_ip : made->address;
  (void)write_file(life_.places.run + "/hosts", hosts_file(*life_.pod, life_.state.pod_ip));
  if (life_.context.in_force && !made->address.empty()) {
    const auto late = life_.context.loop.after(kPolicyWait, [this] {
      life_.event(nullptr,
                  "Warning",
                  "NetworkNotReady",
                  "Waiting for the network policies of this node to be in force");
    });
    const auto fenced = co_await life_.context.in_force();
    if (!fenced) {
      life_.event(nullptr,
                  "Warning",
                  "FailedCreatePodSandBox",
                  fmt::format("Failed to create pod sandbox: network policies: {}",
                              fenced.error().message));
      life_.state.sandbox_ready = false;
      co_return fenced;
    }
  }
  open_ports();
  co_return Result<void>();
}

void PodSandbox::open_ports() {
  if (life_.state.pod_ip == life_.context.host_ip) return;
  for (const auto& problem : host_ports_.open(*life_.pod, life_.state.pod_ip))
    life_.event(nullptr, "Warning", problem.reason, problem.message);
}

/// After a resize: what runs gets the limits that the spec now has.
Task<void> PodSandbox::apply_limits() {
  const auto pod = life_.pod;
  for (auto* records : {&life_.state.inits, &life_.state.containers, &life_.state.ephemerals}) {
    for (auto& record : *records) {
      if (!record.running()) continue;
      const auto applied = co_await life_.context.runtime.update_limits(
          life_.uid,
          record.current->id,
          container_limits(life_.spec_of(record), life_.context.pids_max));
      if (!applied)
        log::warn("agent",
                  "resize of container {} of pod {}: {}",
                  record.name,
                  life_.uid,
                  applied.error().message);
    }
  }
}

Task<void> PodSandbox::remove() {
  host_ports_.close();
  if (!std::exchange(known_, false)) co_return;
  (void)co_await life_.context.runtime.remove_sandbox(life_.uid);
  life_.state.sandbox_ready = false;
}

Task<void> PodSandbox::tear_down() {
  co_await remove();
  life_.context.gpus.release(life_.uid);
  const auto places = life_.places;
  const bool keeps = kube::annotation(*life_.pod, kube::names::framework::kKeepLogs) == "true";
  const auto work = [places,
                     keeps,
                     roots = life_.root_folders(),
                     uid = life_.uid,
                     logs = former_logs(life_.context.directory)] {
    std::error_code ignored;
    if (keeps) logs.keep(places.disk, uid);
    fs::remove_all(places.disk, ignored);
    for (const auto& root : roots) fs::remove_all(root, ignored);
    fs::remove_all(places.run, ignored);
  };
  const auto slot = co_await life_.context.removal_slots.take();
  co_await life_.context.loop.run_on_worker(work);
}

}  // namespace muster::agent
