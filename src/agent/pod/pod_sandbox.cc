/// PodWorker: what its containers share. Objects of the API, volumes, the sandbox, names, ports,
/// limits.
#include <fmt/core.h>

#include <filesystem>

#include "agent/files.h"
#include "agent/pod/names.h"
#include "agent/pod/pod_worker.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {

namespace fs = std::filesystem;
using json::at;
using json::text;

namespace {

/// A pod that ends gives its GPUs back within moments.
constexpr Duration kGpuWait = std::chrono::milliseconds(20);

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

Task<Result<Objects>> PodWorker::fetch_objects() {
  Objects out;
  const auto ns = std::string(kube::namespace_of(*pod_));
  for (const auto& ref : references(*pod_)) {
    const auto& resource = ref.first == "configmaps" ? client::resources::kConfigMaps
                           : ref.first == "secrets"  ? client::resources::kSecrets
                                                     : client::resources::kPersistentVolumeClaims;
    if (ref.first != "persistentvolumeclaims") {
      const auto known = context_.informers.get(resource).find(ns + "/" + ref.second);
      if (known) {
        out[ref] = *known;
        continue;
      }
    }
    auto got = co_await context_.client.get(resource, ns, ref.second);
    if (!got && got.error().code != Code::kNotFound) co_return fail(got.error());
    out[ref] = got ? std::move(*got) : json::Value();
  }
  co_return out;
}

Task<Result<void>> PodWorker::refresh_volumes() {
  auto objects = co_await fetch_objects();
  if (!objects) co_return fail(objects.error());
  objects_ = std::move(*objects);
  co_await tokens_.fetch(context_, pod_);
  VolumeInputs inputs;
  const auto pod = pod_;
  inputs.pod = pod.get();
  inputs.facts = facts();
  inputs.objects = objects_;
  inputs.tokens = tokens_.by_audience();
  inputs.pod_directory = places_.disk;
  inputs.run_directory = places_.run;
  inputs.hidden = context_.hidden;
  inputs.group = json::as_int(at(*pod_, "spec", "securityContext", "fsGroup"), -1);
  inputs.claims_directory = context_.directory + "/claims";
  Result<PreparedVolumes> prepared;
  const auto work = [&prepared, &inputs] { prepared = prepare_volumes(inputs); };
  co_await context_.loop.run_on_worker(work);
  if (!prepared) co_return fail(prepared.error());
  volumes_ = std::move(*prepared);
  co_return Result<void>();
}

GpuAnswer PodWorker::take_gpus() {
  GpuClaim claim;
  claim.wish = gpu_wish(*pod_);
  if (claim.wish.count == 0) return {};
  claim.node = text(at(*pod_, "spec", "nodeName"));
  claim.pod_uid = uid_;
  claim.chosen = std::string(kube::annotation(*pod_, kube::names::kGpuIndices));
  if (claim.chosen.empty()) claim.spoken_for = named_gpus(context_.informers, claim.node);
  return context_.gpus.take(claim);
}

bool PodWorker::admit() {
  const auto answer = take_gpus();
  switch (answer.kind) {
    case GpuAnswer::Kind::kGiven:
      // For an agent that is started later.
      if (!answer.indices.empty() && make_directory(places_.run))
        (void)write_file(gpu_file(places_), context_.gpus.note(uid_), 0600);
      return true;
    case GpuAnswer::Kind::kWait:
      retry_sandbox_at_ = context_.loop.now() + kGpuWait;
      return false;
    case GpuAnswer::Kind::kRefused:
      break;
  }
  record_event(nullptr, "Warning", answer.reason.c_str(), answer.message);
  end(answer.reason, answer.message);
  return false;
}

Task<Result<void>> PodWorker::make_sandbox() {
  if (sandbox_known_) {  // the remains of one that died
    (void)co_await context_.runtime.remove_sandbox(uid_);
    sandbox_known_ = false;
  }
  const auto place = make_directory(places_.run);
  if (!place) co_return place;
  const auto volumes = co_await refresh_volumes();
  if (!volumes) {
    record_event(nullptr, "Warning", "FailedMount", volumes.error().message);
    co_return volumes;
  }
  auto config = sandbox_config(*pod_, places_);
  config.memory_volumes = volumes_.memory;
  (void)write_file(config.hosts_file, "127.0.0.1\tlocalhost\n");
  (void)write_file(config.resolv_conf_file, context_.resolv_conf(*pod_));
  sandbox_known_ = true;
  const auto made = co_await context_.runtime.run_sandbox(std::move(config));
  if (!made) {
    sandbox_known_ = false;
    record_event(nullptr,
                 "Warning",
                 "FailedCreatePodSandBox",
                 fmt::format("Failed to create pod sandbox: {}", made.error().message));
    co_return fail(made.error());
  }
  state_.sandbox_ready = true;
  state_.pod_ip = made->address.empty() ? context_.host_ip : made->address;
  sandbox_failures_ = 0;
  write_names();
  open_host_ports();
  co_return Result<void>();
}

/// In place: the file is mounted into containers that may run already.
void PodWorker::write_names() {
  (void)write_file(places_.run + "/hosts", hosts_file(*pod_, state_.pod_ip));
}

void PodWorker::open_host_ports() {
  if (state_.pod_ip == context_.host_ip) return;
  for (const auto& problem : host_ports_.open(*pod_, state_.pod_ip))
    record_event(nullptr, "Warning", problem.reason, problem.message);
}

/// After a resize: what runs gets the limits that the spec now has.
Task<void> PodWorker::apply_limits() {
  limits_stale_ = false;
  const auto pod = pod_;
  for (auto* records : {&state_.inits, &state_.containers, &state_.ephemerals}) {
    for (auto& record : *records) {
      if (!record.running()) continue;
      const auto applied = co_await context_.runtime.update_limits(
          uid_, record.current->id, container_limits(spec_of(record), context_.pids_max));
      if (!applied)
        log::warn("agent",
                  "resize of container {} of pod {}: {}",
                  record.name,
                  uid_,
                  applied.error().message);
    }
  }
}

Task<void> PodWorker::tear_down() {
  host_ports_.close();
  if (sandbox_known_) (void)co_await context_.runtime.remove_sandbox(uid_);
  sandbox_known_ = false;
  context_.gpus.release(uid_);
  const auto places = places_;
  const auto work = [places] {
    std::error_code ignored;
    fs::remove_all(places.disk, ignored);
    fs::remove_all(places.run, ignored);
  };
  co_await context_.loop.run_on_worker(work);
}

}  // namespace muster::agent
