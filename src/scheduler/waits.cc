#include "scheduler/waits.h"

#include <utility>
#include <vector>

#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "scheduler/reports.h"

namespace muster::scheduler {

/// The longest that a gang whose members still arrive is not told that it waits for them.
static constexpr Duration kArrivingMax = std::chrono::seconds(5);

void Waits::note(const engine::Wait& wait) {
  const std::string& key = wait.group.empty() ? wait.pod : wait.group;
  if (wait.refusal.reason == engine::Reason::kNone) {
    noted_.erase(key);
    if (!wait.group.empty()) groups_.waits_no_more(wait.group);
    return;
  }
  const Duration now = context_.env.monotonic();
  const auto [slot, fresh] = noted_.try_emplace(key);
  if (fresh) slot->second.since = now;
  slot->second.wait = wait;
  slot->second.changed = now;
  report_soon();
}

void Waits::report_soon() {
  if (timer_) return;
  timer_ = context_.env.after(report_after_, [this] {
    timer_.reset();
    report();
  });
}

void Waits::report() {
  const Duration now = context_.env.monotonic();
  for (auto& [key, noted] : std::exchange(noted_, {})) {
    engine::Wait& wait = noted.wait;
    // While members keep arriving, every pod of the gang would be written again for each of them.
    const bool arriving = wait.refusal.reason == engine::Reason::kNotEnoughMembers &&
                          now - noted.changed < report_after_;
    if (arriving && now - noted.since < kArrivingMax) {
      noted_.emplace(key, std::move(noted));
      report_soon();
      continue;
    }
    if (wait.group.empty()) {
      if (!told_otherwise_.contains(wait.pod)) {
        const std::string message = wait_message(wait.refusal, false);
        if (on_wait_) on_wait_(wait, wait.pod, message);
        tell(wait.pod, wait.refusal, message);
      }
      continue;
    }
    std::vector<std::string> waiting = groups_.unbound_members(wait.group);
    std::erase_if(waiting, [this](const std::string& pod) { return hands_.binds(pod); });
    // Everyone was placed since: the wait is not told any more, or the group would seem to wait for
    // ever.
    if (waiting.empty() && groups_.member_count(wait.group) > 0) continue;
    std::string message = groups_.disagreement(wait.group);
    if (message.empty()) {
      message = groups_.story(wait.group, wait.refusal, wait_message(wait.refusal, true));
    } else {
      wait.refusal.reason = engine::Reason::kInvalidGroup;
    }
    if (on_wait_) on_wait_(wait, waiting.empty() ? "" : waiting.front(), message);
    groups_.waits(wait.group, wait.refusal, message);
    for (const std::string& pod : waiting) {
      if (!told_otherwise_.contains(pod)) tell(pod, wait.refusal, message);
    }
  }
}

void Waits::tell(const std::string& pod,
                 const engine::Refusal& refusal,
                 const std::string& message) {
  context_.slow.add_latest("pod " + pod, [this, key = pod, refusal, message]() -> Task<void> {
    const client::ObjectPtr pod = context_.pods.find(key);
    if (!pod || hands_.binds(key) || !json::string_at(*pod, "spec", "nodeName").empty()) co_return;
    const json::Value& shown = kube::condition(*pod, "PodScheduled");
    if (json::string_at(shown, "message") == message && json::string_at(shown, "status") == "False")
      co_return;
    json::Value patch = unschedulable_patch(
        refusal, message, json::int_at(*pod, "metadata", "generation"), context_.env.now());
    const auto done = co_await patch_pod_status(context_.client, key, std::move(patch));
    if (done) context_.events.record(*pod, "Warning", "FailedScheduling", message);
  });
}

void Waits::tell_otherwise(const json::Value& pod, const std::string& why) {
  engine::Refusal refusal;
  refusal.reason = engine::Reason::kGated;
  told_otherwise_.insert(client::key_of(pod));
  tell(client::key_of(pod), refusal, why);
}

void Waits::placed(const std::string& pod) {
  noted_.erase(pod);
  context_.slow.forget("pod " + pod);
}

void Waits::gone(const std::string& pod) {
  noted_.erase(pod);
  told_otherwise_.erase(pod);
}

}  // namespace muster::scheduler
