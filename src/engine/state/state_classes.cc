// Pods that are alike for placement share one class.
#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/state/state.h"

namespace muster::engine {

namespace {

class Hash {
 public:
  void add(std::uint64_t v) {
    h_ ^= v + 0x9e3779b97f4a7c15ULL + (h_ << 6) + (h_ >> 2);
    h_ *= 0xff51afd7ed558ccdULL;
  }
  /// Most are names of resources and short: what they are told apart by in a few steps. Classes that
  /// fall together are compared.
  void add(const std::string& s) {
    if (s.size() > 16) return add(std::hash<std::string>{}(s));
    std::uint64_t word = s.size();
    if (s.size() >= 8) {
      std::uint64_t last = 0;
      std::memcpy(&last, s.data() + s.size() - 8, 8);
      std::memcpy(&word, s.data(), 8);
      word ^= last * 0x9e3779b97f4a7c15ULL;
    } else if (!s.empty()) {
      for (const std::size_t i : {std::size_t{0}, s.size() / 2, s.size() - 1})
        word = word << 8 | static_cast<unsigned char>(s[i]);
    }
    add(word);
  }
  [[nodiscard]] std::uint64_t value() const { return h_; }

 private:
  std::uint64_t h_ = 1469598103934665603ULL;
};

bool between_pods(const Pod& p) {
  return !p.pod_affinity.empty() || !p.pod_anti_affinity.empty() ||
         !p.preferred_pod_affinity.empty() || !p.preferred_pod_anti_affinity.empty() ||
         !p.topology_spread.empty();
}

std::uint64_t hash_of(const Pod& p) {
  Hash h;
  for (const auto& a : p.requests) {
    h.add(a.name);
    h.add(static_cast<std::uint64_t>(a.value));
  }
  h.add(static_cast<std::uint64_t>(p.device_share_milli));
  for (const auto& m : p.device_models) h.add(m);
  for (const auto& [k, v] : p.node_selector) {
    h.add(k);
    h.add(v);
  }
  h.add(p.node_affinity.size() * 31 + p.preferred_node_affinity.size());
  for (const auto& t : p.node_affinity) {
    for (const auto& r : t.labels) {
      h.add(r.key);
      for (const auto& v : r.values) h.add(v);
    }
    for (const auto& r : t.fields) {
      for (const auto& v : r.values) h.add(v);
    }
  }
  for (const auto& t : p.tolerations) h.add(t.key);
  for (const auto& port : p.host_ports) h.add(static_cast<std::uint64_t>(port.port));
  if (p.allowed_nodes) {
    for (const auto& n : *p.allowed_nodes) h.add(n);
  }
  if (between_pods(p)) {
    h.add(p.ns);
    for (const auto& [k, v] : p.labels) {
      h.add(k);
      h.add(v);
    }
  }
  return h.value();
}

bool same_placement(const Pod& a, const Pod& b) {
  if (a.requests != b.requests || a.device_share_milli != b.device_share_milli ||
      a.device_models != b.device_models)
    return false;
  if (a.node_selector != b.node_selector || a.node_affinity != b.node_affinity) return false;
  if (a.preferred_node_affinity != b.preferred_node_affinity || a.tolerations != b.tolerations)
    return false;
  if (a.host_ports != b.host_ports || a.allowed_nodes != b.allowed_nodes) return false;
  if (a.pod_affinity != b.pod_affinity || a.pod_anti_affinity != b.pod_anti_affinity) return false;
  if (a.preferred_pod_affinity != b.preferred_pod_affinity ||
      a.preferred_pod_anti_affinity != b.preferred_pod_anti_affinity)
    return false;
  if (a.topology_spread != b.topology_spread) return false;
  return !between_pods(a) || (a.ns == b.ns && a.labels == b.labels);
}

}  // namespace

ClassId State::class_of(const Pod& pod, TenantId tenant) {
  const auto& tenant_nodes = tenants_[tenant.index()].spec.node_selector;
  std::vector<ClassId>& bucket = class_ids_[hash_of(pod)];
  for (const ClassId id : bucket) {
    const TaskClass& c = classes_[id.index()];
    if (same_placement(c.spec, pod) && c.tenant_nodes == tenant_nodes) return id;
  }
  TaskClass c;
  c.spec = pod;
  c.between_pods = between_pods(pod);
  c.tenant_nodes = tenant_nodes;
  c.share_milli = std::clamp(pod.device_share_milli, 0, 999);
  c.request = vector_of(pod.requests);
  for (const auto& amount : pod.requests) {
    if (amount.value > 0 && names_.find(amount.name) == ResourceNames::kNone)
      c.unknown_resource = true;
  }
  c.devices = static_cast<std::int32_t>(c.request[ResourceNames::kDevice] / 1000);
  if (c.share_milli > 0) c.request.add(ResourceNames::kDevice, c.share_milli);
  c.request.set(ResourceNames::kPods, 0);
  for (const auto& model : pod.device_models) c.models.push_back(intern_model(model));
  c.models_hash = hash_models(pod.device_models);
  c.plain = c.request.size() <= 4 && c.models.empty() && c.share_milli == 0 &&
            pod.host_ports.empty() && !c.unknown_resource;
  c.best_effort = c.request.is_zero();
  c.request.set(ResourceNames::kPods, 1);
  const ClassId id(static_cast<std::uint32_t>(classes_.size()));
  classes_.push_back(std::move(c));
  // vector_of may have interned; the bucket itself is stable.
  class_ids_[hash_of(pod)].push_back(id);
  return id;
}

}  // namespace muster::engine
