#include "agent/node/gpu_ledger.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {
namespace {

constexpr auto kGpu = "nvidia.com/gpu";
constexpr int kWhole = 1000;

GpuAnswer unexpected(const std::string& why) {
  GpuAnswer out;
  out.kind = GpuAnswer::Kind::kRefused;
  out.reason = "UnexpectedAdmissionError";
  out.message =
      fmt::format("Pod was rejected: Allocate failed due to {}, which is unexpected", why);
  return out;
}

GpuAnswer out_of(int requested, int used, int capacity) {
  GpuAnswer out;
  out.kind = GpuAnswer::Kind::kRefused;
  out.reason = fmt::format("OutOf{}", kGpu);
  out.message = fmt::format(
      "Pod was rejected: Node didn't have enough resource: {}, requested: {}, used: {}, "
      "capacity: {}",
      kGpu,
      requested,
      used,
      capacity);
  return out;
}

GpuAnswer wait() {
  GpuAnswer out;
  out.kind = GpuAnswer::Kind::kWait;
  return out;
}

/// Each a number of its own from 0 to below `count`.
std::optional<std::vector<int>> parse_indices(std::string_view text, int count) {
  std::vector<int> out;
  for (const auto& word : split(text, ',')) {
    const auto index = parse_int(trim(word));
    if (!index || *index < 0 || *index >= count) return std::nullopt;
    if (std::find(out.begin(), out.end(), static_cast<int>(*index)) != out.end())
      return std::nullopt;
    out.push_back(static_cast<int>(*index));
  }
  return out;
}

}  // namespace

GpuWish gpu_wish(const json::Value& pod) {
  GpuWish wish;
  if (const auto share = parse_int(kube::annotation(pod, kube::names::kGpuMilli));
      share && *share > 0 && *share < kWhole) {
    wish.count = 1;
    wish.share_milli = static_cast<int>(*share);
    return wish;
  }
  const auto requests = kube::pod_requests(pod);
  const auto amount = [&requests](std::string_view name) {
    const auto found = requests.find(std::string(name));
    return found == requests.end() ? 0 : found->second;
  };
  constexpr std::int64_t kMost = 1 << 20;
  wish.count = static_cast<int>(std::clamp<std::int64_t>(amount(kGpu), 0, kMost));
  if (wish.count > 0 || amount(kube::names::hived::kSchedulingEnable) <= 0) return wish;
  const auto spec =
      json::parse_yaml_one(kube::annotation(pod, kube::names::hived::kSchedulingSpec));
  if (!spec) return wish;
  for (const auto* field : {"leafCellNumber", "gpuNumber"}) {
    if (const auto cells = json::int_at(*spec, field); cells > 0 && wish.count == 0)
      wish.count = static_cast<int>(std::min(cells, kMost));
  }
  return wish;
}

std::vector<GpuLedger::Load> GpuLedger::loads(const std::string& node) const {
  const auto count = counts_.find(node);
  std::vector<Load> out(
      static_cast<std::size_t>(count == counts_.end() ? 0 : std::max(0, count->second)));
  for (const auto& [uid, held] : by_pod_) {
    if (held.node != node) continue;
    for (const auto index : held.indices) {
      if (index < 0 || static_cast<std::size_t>(index) >= out.size()) continue;
      auto& load = out[static_cast<std::size_t>(index)];
      (held.leaves ? load.leaves : load.stays) += held.share_milli;
    }
  }
  return out;
}

GpuAnswer GpuLedger::take(const GpuClaim& claim) {
  if (claim.wish.count <= 0) return {};
  if (const auto held = by_pod_.find(claim.pod_uid); held != by_pod_.end()) {
    GpuAnswer same;
    same.indices = held->second.indices;
    return same;
  }
  const auto taken = loads(claim.node);
  auto answer = claim.chosen.empty() ? pick(claim, taken) : take_chosen(claim, taken);
  if (answer.kind == GpuAnswer::Kind::kGiven)
    by_pod_[claim.pod_uid] = {claim.node, answer.indices, claim.wish.share_milli, false};
  return answer;
}

GpuAnswer GpuLedger::pick(const GpuClaim& claim, const std::vector<Load>& loads) const {
  GpuAnswer out;
  int later = 0, used = 0;  // free once those that end have ended
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const int index = static_cast<int>(i);
    if (loads[i].stays > 0) ++used;
    if (claim.spoken_for.contains(index) || loads[i].stays + claim.wish.share_milli > kWhole)
      continue;
    ++later;
    const bool now = loads[i].stays + loads[i].leaves + claim.wish.share_milli <= kWhole;
    if (now && static_cast<int>(out.indices.size()) < claim.wish.count)
      out.indices.push_back(index);
  }
  if (static_cast<int>(out.indices.size()) == claim.wish.count) return out;
  if (later >= claim.wish.count) return wait();
  return out_of(claim.wish.count, used, static_cast<int>(loads.size()));
}

GpuAnswer GpuLedger::take_chosen(const GpuClaim& claim, const std::vector<Load>& loads) const {
  const auto capacity = static_cast<int>(loads.size());
  const auto indices = parse_indices(claim.chosen, capacity);
  if (!indices)
    return unexpected(
        fmt::format("\"{}\" not naming GPUs of this node, which has {}", claim.chosen, capacity));
  if (static_cast<int>(indices->size()) != claim.wish.count)
    return unexpected(fmt::format("\"{}\" naming {} GPUs of a pod that asks for {}",
                                  claim.chosen,
                                  indices->size(),
                                  claim.wish.count));
  bool must_wait = false;
  for (const auto index : *indices) {
    const auto& load = loads[static_cast<std::size_t>(index)];
    if (load.stays + claim.wish.share_milli > kWhole) {
      const auto used =
          std::count_if(loads.begin(), loads.end(), [](const Load& one) { return one.stays > 0; });
      if (static_cast<int>(used) + claim.wish.count > capacity)
        return out_of(claim.wish.count, static_cast<int>(used), capacity);
      return unexpected(fmt::format("GPU {} being held by another pod", index));
    }
    must_wait = must_wait || load.stays + load.leaves + claim.wish.share_milli > kWhole;
  }
  if (must_wait) return wait();
  GpuAnswer out;
  out.indices = *indices;
  return out;
}

void GpuLedger::leave(const std::string& pod_uid) {
  if (const auto found = by_pod_.find(pod_uid); found != by_pod_.end()) found->second.leaves = true;
}

std::string GpuLedger::note(const std::string& pod_uid) const {
  const auto found = by_pod_.find(pod_uid);
  if (found == by_pod_.end()) return "";
  const auto& held = found->second;
  return fmt::format("{} {} {}", held.node, held.share_milli, fmt::join(held.indices, ","));
}

void GpuLedger::restore(const std::string& pod_uid, std::string_view note) {
  const auto words = split(note, ' ');
  if (words.size() != 3) return;
  Held held;
  held.node = words[0];
  held.share_milli = static_cast<int>(parse_int(words[1]).value_or(kWhole));
  for (const auto& word : split_nonempty(words[2], ','))
    held.indices.push_back(static_cast<int>(parse_int(word).value_or(-1)));
  by_pod_[pod_uid] = std::move(held);
}

}  // namespace muster::agent
