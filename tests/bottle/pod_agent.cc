#include "pod_agent.h"

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::bottle {
namespace {

namespace r = client::resources;

constexpr const char* kHostIp = "192.0.2.1";
/// As on a machine with two cores, wherever it is simulated.
constexpr int kStartsAtOnce = 8;

}  // namespace

PodAgent::PodAgent(SimEnv& env, client::Client& client, Machine& machine)
    : env_(env),
      client_(client),
      informers_(env, client),
      runtime_(env,
               machine,
               [this](const std::string& pod, const std::string& container) {
                 return program_of(pod, container);
               }),
      images_(env, machine),
      context_{.loop = env,
               .client = client,
               .informers = informers_,
               .runtime = runtime_,
               .directory = machine.directory(),
               .host_ip = kHostIp,
               .image_source = &images_,
               .start_slots{env, kStartsAtOnce}},
      workers_(context_, [] {}) {
  context_.resolv_conf = [](const json::Value&) { return std::string("nameserver 192.0.2.53\n"); };
  context_.events_of = [this](const std::string& node) -> client::EventRecorder& {
    auto& recorder = recorders_[node];
    if (!recorder) recorder = client::make_event_recorder(env_, client_, "kubelet", node);
    return *recorder;
  };
}

Machine::Program PodAgent::program_of(const std::string& pod_key,
                                      const std::string& container) const {
  Machine::Program out;
  const auto pod = const_cast<client::Informers&>(informers_).get(r::kPods).find(pod_key);
  if (!pod) return out;
  for (const json::Value& init : json::array_at(*pod, "spec", "initContainers")) {
    if (json::string_at(init, "name") == container) out.lasts = std::chrono::seconds(1);
  }
  if (out.lasts) return out;
  const auto lasts = parse_duration(kube::annotation(*pod, kube::names::kHollowDuration));
  if (lasts) out.lasts = *lasts;
  const auto stops = parse_duration(kube::annotation(*pod, kube::names::kHollowStopDuration));
  if (stops) out.stops = *stops;
  out.exit_code =
      static_cast<int>(parse_int(kube::annotation(*pod, kube::names::kHollowExitCode)).value_or(0));
  return out;
}

void PodAgent::follow() {
  client::InformerHandlers nodes;
  nodes.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr& after) {
    if (!after) return;
    const auto gpus = parse_int(json::string_at(*after, "status", "capacity", "nvidia.com/gpu"));
    context_.gpus.set_count(std::string(kube::name_of(*after)), static_cast<int>(gpus.value_or(0)));
  };
  informers_.get(r::kNodes).add_handlers(std::move(nodes));
  client::InformerHandlers pods;
  pods.on_change = [this](const client::ObjectPtr& before, const client::ObjectPtr& after) {
    if (before && (!after || kube::uid_of(*before) != kube::uid_of(*after)))
      workers_.removed(std::string(kube::uid_of(*before)));
    if (after && !json::string_at(*after, "spec", "nodeName").empty()) workers_.update(after);
  };
  informers_.get(r::kPods).add_handlers(std::move(pods));
  for (const auto& [resource, plural] :
       {std::pair(&r::kConfigMaps, "configmaps"), {&r::kSecrets, "secrets"}}) {
    client::InformerHandlers objects;
    objects.on_change = [this, kind = std::string(plural)](const client::ObjectPtr& before,
                                                           const client::ObjectPtr& after) {
      if (before && after) workers_.object_changed(kind, *after);
    };
    informers_.get(*resource).add_handlers(std::move(objects));
  }
}

Task<void> PodAgent::start() {
  const auto on_event = [this](const agent::RuntimeEvent& event) { workers_.on_event(event); };
  auto found = co_await runtime_.start(on_event);
  workers_.adopt(std::move(*found));
  follow();
  informers_.start_all();
  co_await informers_.wait_synced();
  co_await workers_.remove_orphans();
}

}  // namespace muster::bottle
