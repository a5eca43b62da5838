#include "main/cells_preview.h"

#include <fmt/core.h>

#include <algorithm>

#include "hived/annotations.h"
#include "hived/config.h"
#include "hived/config_map.h"
#include "hived/tree.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster {
namespace {

/// Bound pods that carry their cells, oldest first.
std::vector<hived::RunningPod> running_pods(client::Informers& informers) {
  std::vector<client::ObjectPtr> pods;
  for (const auto& [key, pod] : informers.get(client::resources::kPods).objects()) {
    if (!kube::pod_finished(*pod) && !json::string_at(*pod, "spec", "nodeName").empty())
      pods.push_back(pod);
  }
  std::stable_sort(
      pods.begin(), pods.end(), [](const client::ObjectPtr& a, const client::ObjectPtr& b) {
        return kube::creation_time(*a) < kube::creation_time(*b);
      });
  std::vector<hived::RunningPod> out;
  for (const client::ObjectPtr& pod : pods) {
    const std::string ns(kube::namespace_of(*pod)), name(kube::name_of(*pod));
    const auto spec =
        hived::parse_scheduling_spec(kube::annotation(*pod, hived::kSchedulingSpec), ns, name);
    const auto bind = hived::parse_bind_info(kube::annotation(*pod, hived::kBindInfo));
    if (spec && bind)
      out.push_back({{std::string(kube::uid_of(*pod)), ns + "/" + name}, *spec, *bind});
  }
  return out;
}

}  // namespace

Task<Result<std::vector<std::string>>> preview_cells(client::Client& client,
                                                     client::Informers& informers,
                                                     std::string text) {
  const auto fresh = hived::parse_config(text);
  if (!fresh) co_return fail(fresh.error());
  const auto map = co_await client.get(
      client::resources::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
  std::vector<std::string> out;
  if (!map) co_return out;
  const auto present = hived::parse_config(json::string_at(*map, "data", hived::kConfigMapKey));
  if (!present) co_return out;
  const auto report = hived::check(*present, *fresh, running_pods(informers));
  if (!report) co_return fail(report.error());
  for (const hived::GroupChange& change : report->changes) {
    if (change.effect != hived::GroupChange::Effect::kKept)
      out.push_back(fmt::format("{} of {}: {}", change.group, change.vc, change.text));
  }
  out.insert(out.end(), report->warnings.begin(), report->warnings.end());
  co_return out;
}

}  // namespace muster
