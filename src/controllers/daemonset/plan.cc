#include "controllers/daemonset/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "controllers/common/revisions.h"
#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "controllers/daemonset/nodes.h"
#include "kube/names.h"

namespace muster::controllers::daemonset {
namespace {

/// A daemon that fails at once is not made anew faster than this.
constexpr auto kFailedRest = std::chrono::seconds(10);

json::Value make_pod(const json::Value& set, const std::string& hash, const std::string& node) {
  auto pod = pod_from_template(set, json::at(set, "spec", "template"), name_of(set) + "-");
  set_label(pod, kube::names::kubernetes::kRevisionHash, hash);
  if (const auto generation = annotation_of(set, "deprecated.daemonset.template.generation");
      !generation.empty())
    set_label(pod, "pod-template-generation", generation);
  add_tolerations(pod);
  // The scheduler places it, on this node and no other.
  json::make(
      pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}) =
      json::Object{
          {"nodeSelectorTerms",
           json::Array{json::Object{{"matchFields",
                                     json::Array{json::Object{{"key", "metadata.name"},
                                                              {"operator", "In"},
                                                              {"values", json::Array{node}}}}}}}}};
  return pod;
}

/// Where it is, or where it is meant to go.
std::string node_of(const json::Value& pod) {
  if (const auto bound = json::string_at(pod, "spec", "nodeName"); !bound.empty())
    return std::string(bound);
  const auto& terms = json::array_at(pod,
                                     "spec",
                                     "affinity",
                                     "nodeAffinity",
                                     "requiredDuringSchedulingIgnoredDuringExecution",
                                     "nodeSelectorTerms");
  for (const auto& term : terms) {
    for (const auto& field : json::array_at(term, "matchFields")) {
      const auto& values = json::array_at(field, "values");
      if (json::string_at(field, "key") == "metadata.name" && !values.empty())
        return json::text(values[0]);
    }
  }
  return {};
}

int amount(const json::Value& value, int of, int fallback) {
  if (value.is_number()) return static_cast<int>(json::as_int(value));
  const auto text = json::as_string(value);
  if (!text.ends_with('%')) return fallback;
  return static_cast<int>((of * parse_int(text.substr(0, text.size() - 1)).value_or(0) + 99) / 100);
}

class Sync {
 public:
  Sync(Plan& plan, const json::Value& set, const View& view, Time now)
      : plan_(plan), set_(set), now_(now), hash_(template_hash(json::at(set, "spec", "template"))) {
    for (const auto* pod : view.controlled_by(kinds::kPod, uid_of(set))) {
      hashes_.insert(label_of(*pod, kube::names::kubernetes::kRevisionHash));
      pods_[node_of(*pod)].push_back(pod);
    }
    json::Value sample = json::Object{{"spec", json::at(set, "spec", "template", "spec")}};
    add_tolerations(sample);
    for (const auto* node : view.all(kinds::kNode)) {
      const auto verdict = judge(json::at(sample, "spec"), *node);
      if (verdict.should_run) wanted_.insert(name_of(*node));
      if (verdict.may_stay) allowed_.insert(name_of(*node));
    }
    sync_revisions(plan, set, view, hash_, hashes_);
  }

  void manage() {
    for (const auto& [node, pods] : pods_) {
      for (const auto* pod : pods) {
        if (is_deleting(*pod)) continue;
        if (phase_of(*pod) == "Failed") {
          replace_failed(*pod, node);
        } else if (!node.empty() && !allowed_.contains(node)) {
          drop(*pod);
        }
      }
    }
    for (const auto& node : wanted_) {
      // One that is going holds its place until it is gone.
      if (!pods_.contains(node)) make(node);
    }
    keep_one();
    if (json::string_at(set_, "spec", "updateStrategy", "type") != "OnDelete") roll();
  }

  json::Value status() const {
    int scheduled = 0, misscheduled = 0, ready = 0, updated = 0, available = 0;
    for (const auto& node : wanted_) {
      const auto* pod = best_on(node);
      if (pod == nullptr) continue;
      ++scheduled;
      ready += is_ready(*pod);
      available += is_available(*pod);
      updated += label_of(*pod, kube::names::kubernetes::kRevisionHash) == hash_;
    }
    for (const auto& [node, pods] : pods_)
      misscheduled += !wanted_.contains(node) && best_on(node) != nullptr;
    auto status = status_or_empty(set_);
    auto& object = status.as_object();
    const int desired = static_cast<int>(wanted_.size());
    object["currentNumberScheduled"] = scheduled;
    object["numberMisscheduled"] = misscheduled;
    object["desiredNumberScheduled"] = desired;
    object["numberReady"] = ready;
    object["observedGeneration"] = json::at(set_, "metadata", "generation");
    const auto set_or_drop = [&](std::string_view field, int value) {
      value > 0 ? void(object[field] = value) : void(object.erase(field));
    };
    set_or_drop("updatedNumberScheduled", updated);
    set_or_drop("numberAvailable", available);
    set_or_drop("numberUnavailable", desired - available);
    return status;
  }

 private:
  void make(const std::string& node) {
    plan_.actions.push_back(create_workload_pod(make_pod(set_, hash_, node)));
  }
  void drop(const json::Value& pod) {
    if (!dropped_.insert(name_of(pod)).second) return;
    auto action = remove(kinds::kPod, pod);
    action.events.push_back({false, "SuccessfulDelete", "Deleted pod: " + name_of(pod)});
    plan_.actions.push_back(std::move(action));
  }
  void replace_failed(const json::Value& pod, const std::string& node) {
    const auto due = time_at(json::at(pod, "metadata", "creationTimestamp")) + kFailedRest;
    if (now_ < due) {
      wake_after(plan_, due - now_);
      return;
    }
    plan_.events.push_back(
        {true,
         "FailedDaemonPod",
         fmt::format("Found failed daemon pod {}/{} on node {}, will try to kill it",
                     namespace_of(pod),
                     name_of(pod),
                     node)});
    drop(pod);
  }

  [[nodiscard]] bool is_available(const json::Value& pod) const {
    return controllers::is_available(pod, set_, now_, plan_);
  }

  /// Of the pods on a node: the new one if it is ready, else the oldest that lives.
  [[nodiscard]] const json::Value* best_on(const std::string& node) const {
    const json::Value* best = nullptr;
    const auto found = pods_.find(node);
    if (found == pods_.end()) return nullptr;
    for (const auto* pod : found->second) {
      if (is_deleting(*pod)) continue;
      if (best == nullptr ||
          (is_ready(*pod) && label_of(*pod, kube::names::kubernetes::kRevisionHash) == hash_))
        best = pod;
    }
    return best;
  }

  /// Two of the same template on one node are one too many: the older stays.
  void keep_one() {
    for (const auto& [node, pods] : pods_) {
      const json::Value* kept = nullptr;
      for (const auto* pod : pods) {
        if (is_deleting(*pod) || label_of(*pod, kube::names::kubernetes::kRevisionHash) != hash_)
          continue;
        if (kept == nullptr) {
          kept = pod;
        } else {
          drop(*pod);
        }
      }
    }
  }

  void roll() {
    const auto& rolling = json::at(set_, "spec", "updateStrategy", "rollingUpdate");
    const int desired = static_cast<int>(wanted_.size());
    const int surge = amount(json::at(rolling, "maxSurge"), desired, 0);
    int unavailable = surge > 0
                          ? amount(json::at(rolling, "maxUnavailable"), desired, 0)
                          : std::max(1, amount(json::at(rolling, "maxUnavailable"), desired, 1));
    int surging = 0;
    std::vector<const json::Value*> candidates;
    for (const auto& node : wanted_) {
      const json::Value *old = nullptr, *fresh = nullptr;
      if (const auto found = pods_.find(node); found != pods_.end()) {
        for (const auto* pod : found->second) {
          if (is_deleting(*pod)) continue;
          (label_of(*pod, kube::names::kubernetes::kRevisionHash) == hash_ ? fresh : old) = pod;
        }
      }
      const bool served =
          (old != nullptr && is_available(*old)) || (fresh != nullptr && is_available(*fresh));
      if (!served) --unavailable;
      if (old == nullptr) continue;
      if (fresh != nullptr) {
        ++surging;
        if (is_available(*fresh)) drop(*old);
      } else if (!is_available(*old)) {
        drop(*old);  // it serves nobody: nothing is lost
      } else {
        candidates.push_back(old);
      }
    }
    for (const auto* old : candidates) {
      if (surge > 0) {
        if (surging++ < surge) make(node_of(*old));
      } else if (unavailable-- > 0) {
        drop(*old);
      }
    }
  }

  Plan& plan_;
  const json::Value& set_;
  Time now_;
  std::string hash_;
  std::map<std::string, Objects> pods_;  // by node
  std::set<std::string> hashes_, wanted_, allowed_, dropped_;
};

}  // namespace

Plan plan(const json::Value& set, const View& view, const Settings&, Time now) {
  Plan plan;
  if (is_deleting(set)) return plan;
  Sync sync(plan, set, view, now);
  sync.manage();
  plan.status = sync.status();
  return plan;
}

}  // namespace muster::controllers::daemonset
