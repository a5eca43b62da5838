#include "controllers/common/comebacks.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "controllers/common/objects.h"
#include "controllers/common/training.h"
#include "kube/pod_end.h"

namespace muster::controllers {
namespace {

constexpr Duration kFirst = std::chrono::seconds(10);
constexpr Duration kMost = std::chrono::minutes(5);
constexpr Duration kGood = std::chrono::minutes(10);

bool deletes_pod(const Action& action) {
  return action.verb == Action::Verb::kDelete && action.kind == kinds::kPod;
}

const json::Value* failed_pod(const Action& action, const View& view) {
  const auto* pod = view.find(kinds::kPod, action.name);
  if (pod == nullptr || uid_of(*pod) != action.uid || is_deleting(*pod)) return nullptr;
  const auto phase = phase_of(*pod);
  // Whoever deletes a pod that has succeeded wants it to run on.
  return (phase == "Failed" || phase == "Succeeded") && !was_preempted(*pod) ? pod : nullptr;
}

/// When its last container ended, by the clock of its node.
std::optional<Time> end_of(const json::Value& pod) {
  std::optional<Time> end;
  for (const json::Value& status : json::array_at(pod, "status", "containerStatuses")) {
    const auto at = parse_time(json::string_at(status, "state", "terminated", "finishedAt"));
    if (at && (!end || *at > *end)) end = *at;
  }
  return end;
}

}  // namespace

Time Comebacks::Failures::due() const {
  if (count < 2) return last;
  return last + std::min<Duration>(kMost, kFirst * (1 << std::min(count - 2, 10)));
}

void Comebacks::note_failures(const Plan& plan, const View& view, Time now) {
  const json::Value* first = nullptr;
  for (const Action& action : plan.actions) {
    if (first == nullptr && deletes_pod(action)) first = failed_pod(action, view);
  }
  if (first == nullptr) return;
  const auto ended = kube::how_pod_ended(*first);
  const auto how = fmt::format(
      "Pod {} failed again{}", name_of(*first), ended.empty() ? "" : " (" + ended + ")");
  for (const Action& action : plan.actions) {
    const auto* pod = deletes_pod(action) ? view.find(kinds::kPod, action.name) : nullptr;
    if (pod == nullptr || is_deleting(*pod)) continue;
    Failures& failures = pods_[action.name];
    if (failures.uid == action.uid) continue;
    // How long it waited for a place says nothing of how it ran, and the clock here nothing of what
    // its node has written. Whoever runs on lived until the first failed.
    const auto begun = parse_time(json::string_at(*pod, "status", "startTime"));
    const auto own = end_of(*pod);
    const Time end = own ? *own : end_of(*first).value_or(now);
    if (begun && end - *begun >= kGood) failures = {};
    failures = {.count = failures.count + 1, .uid = action.uid, .last = now, .how = how};
  }
}

std::optional<Time> Comebacks::hold_back(Plan& plan, const View& view, Time now) {
  note_failures(plan, view, now);
  if (pods_.empty()) return std::nullopt;
  std::optional<Time> wake;
  std::string event;
  std::erase_if(plan.actions, [&](const Action& action) {
    if (action.verb != Action::Verb::kCreate || action.kind != kinds::kPod) return false;
    const auto found = pods_.find(action.name);
    if (found == pods_.end() || found->second.due() <= now) return false;
    wake = wake ? std::min(*wake, found->second.due()) : found->second.due();
    if (!std::exchange(found->second.told, true) && event.empty())
      event =
          fmt::format("{}; it is created again in {} s",
                      found->second.how,
                      std::chrono::ceil<std::chrono::seconds>(found->second.due() - now).count());
    return true;
  });
  if (!event.empty()) plan.events.push_back({true, "BackOff", event});
  return wake;
}

}  // namespace muster::controllers
