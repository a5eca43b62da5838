#include "apiserver/housekeeping/disruption.h"

#include <fmt/core.h>

#include "apiserver/registry/writer.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/selector/selector.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kBudgets = "poddisruptionbudgets.policy";

/// An int, or a percentage of `total` rounded up.
std::int64_t scaled(const json::Value& value, std::int64_t total) {
  if (value.is_number()) return json::as_int(value);
  std::string_view text = json::as_string(value);
  if (!text.ends_with('%')) return parse_int(text).value_or(0);
  text.remove_suffix(1);
  return (parse_int(text).value_or(0) * total + 99) / 100;
}

}  // namespace

Disruption::Counts Disruption::count(const Stored& budget) const {
  Counts counts;
  const auto selector =
      kube::LabelSelector::from_object(json::at(budget.object, "spec", "selector"));
  if (!selector) return counts;
  std::set<std::string> controllers;
  std::int64_t bare = 0, replicas = 0;
  core_.image.collection("pods").each_in(budget.ns(), [&](const StoredPtr& pod) {
    if (!selector->matches_object(pod->object) || kube::pod_finished(pod->object)) return;
    if (!kube::is_deleting(pod->object) && kube::condition_true(pod->object, "Ready"))
      ++counts.healthy;
    const kube::OwnerReference owner = kube::controller_of(pod->object);
    const std::string storage = owner.kind == "ReplicaSet"    ? "replicasets.apps"
                                : owner.kind == "StatefulSet" ? "statefulsets.apps"
                                                              : "";
    const StoredPtr controller =
        storage.empty()
            ? nullptr
            : core_.image.collection(storage).find(std::string(budget.ns()) + "/" + owner.name);
    if (!controller) {
      ++bare;
    } else if (controllers.insert(owner.uid).second) {
      replicas += json::as_int(json::at(controller->object, "spec", "replicas"), 1);
    }
  });
  counts.expected = bare + replicas;
  const json::Value& most = json::at(budget.object, "spec", "maxUnavailable");
  if (!most.is_null()) {
    counts.desired = std::max<std::int64_t>(0, counts.expected - scaled(most, counts.expected));
  } else {
    counts.desired = scaled(json::at(budget.object, "spec", "minAvailable"), counts.expected);
  }
  return counts;
}

Result<void> Disruption::check(const json::Value& pod) const {
  if (kube::pod_finished(pod) || json::string_at(pod, "status", "phase") == "Pending" ||
      kube::is_deleting(pod))
    return {};
  std::vector<StoredPtr> budgets;
  core_.image.collection(kBudgets).each_in(kube::namespace_of(pod), [&](const StoredPtr& budget) {
    const auto selector =
        kube::LabelSelector::from_object(json::at(budget->object, "spec", "selector"));
    if (selector && selector->matches_object(pod)) budgets.push_back(budget);
  });
  if (budgets.size() > 1)
    return fail(
        Code::kInternal,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  if (budgets.empty()) return {};
  const Counts counts = count(*budgets.front());
  if (counts.allowed() > 0) return {};
  // An unhealthy pod holds nothing up when enough others are healthy.
  if (!kube::condition_true(pod, "Ready") && counts.healthy >= counts.desired && counts.desired > 0)
    return {};
  Error error;
  error.code = Code::kTooManyRequests;
  error.message = "Cannot evict pod as it would violate the pod's disruption budget.";
  error.causes.push_back(
      {"DisruptionBudget",
       fmt::format("The disruption budget {} needs {} healthy pods and has {} currently",
                   budgets.front()->name(),
                   counts.desired,
                   counts.healthy),
       ""});
  return fail(std::move(error));
}

void Disruption::start() {
  wake_ = core_.env.make_signal();
  for (const auto& [key, budget] : core_.image.collection(kBudgets).objects())
    dirty_.emplace(budget->ns());
  core_.env.spawn(write_status());
}

void Disruption::observe(Collection& collection, const Change& change) {
  const bool budget = collection.storage() == kBudgets;
  if (!budget && collection.storage() != "pods") return;
  const std::string ns(change.after->ns());
  if (core_.image.collection(kBudgets).count(ns) == 0) return;
  if (dirty_.insert(ns).second && wake_) wake_->notify();
}

Task<void> Disruption::write_status() {
  const Gate::Pass pass(core_.gate);
  const Gate::Sleeper sleeper(core_.gate, *wake_);
  const ResourcePtr resource = core_.resources.get("policy", "v1", "poddisruptionbudgets");
  while (!core_.gate.closed()) {
    if (dirty_.empty()) {
      co_await wake_->wait(Duration::zero());
      continue;
    }
    const std::set<std::string> dirty = std::exchange(dirty_, {});
    std::vector<StoredPtr> budgets;
    for (const std::string& ns : dirty)
      core_.image.collection(kBudgets).each_in(
          ns, [&](const StoredPtr& each) { budgets.push_back(each); });
    for (const StoredPtr& budget : budgets) {
      const Counts counts = count(*budget);
      const Time now = core_.env.now();
      WriteOptions options;
      options.subresource = "internal";
      options.uid = std::string(kube::uid_of(budget->object));
      const auto written = co_await core_.writer->update(
          resource,
          std::string(budget->ns()),
          std::string(budget->name()),
          [&](const json::Value& live) -> Result<json::Value> {
            json::Value next = live;
            json::Object& status = json::make_object(next, {"status"});
            status["observedGeneration"] = json::int_at(live, "metadata", "generation");
            status["disruptionsAllowed"] = counts.allowed();
            status["currentHealthy"] = counts.healthy;
            status["desiredHealthy"] = counts.desired;
            status["expectedPods"] = counts.expected;
            const bool enough = counts.allowed() > 0;
            kube::set_condition(next,
                                {"DisruptionAllowed",
                                 enough ? "True" : "False",
                                 enough ? "SufficientPods" : "InsufficientPods",
                                 ""},
                                now);
            for (json::Value& condition : json::make(next, {"status", "conditions"}).get_array()) {
              condition.get_object()["message"] = "";
              condition.get_object()["observedGeneration"] =
                  json::at(live, "metadata", "generation");
            }
            return next;
          },
          options);
      if (!written && written.error().code != Code::kNotFound &&
          written.error().code != Code::kConflict) {
        log::warn("apiserver", "budget {}: {}", budget->key, written.error().message);
      }
    }
    co_await core_.env.sleep(std::chrono::milliseconds(50));
  }
}

}  // namespace muster::apiserver
